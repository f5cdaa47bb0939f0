"""Nothing in the core or the standard plug-ins runs code that a file or a string holds."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for folder in (ROOT / "aang_core", *(ROOT / "plugins").glob("*/aang*"))
    for path in folder.rglob("*.py")
)

MODULES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
HARMLESS = {"joblib.cpu_count"}
"""All that may be imported from them."""
CALLS = {
    *("eval", "exec", "compile", "os.system", "os.popen", "os.startfile", "pty.spawn"),
    *("torch.load", "torch.save", "torch.jit.load", "torch.hub.load", "numpy.load", "np.load"),
    *("yaml.load", "yaml.load_all", "yaml.full_load", "yaml.unsafe_load", "pandas.read_pickle"),
    *("yaml.FullLoader", "yaml.UnsafeLoader", "yaml.Loader"),
}


def offences(source: str) -> Iterator[str]:
    """What of a module's source would run somebody else's code, by line."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found = [n.name for n in names if n.name.split(".")[0] in MODULES]
            case ast.ImportFrom(module=str(module), names=names):
                named = {f"{module}.{n.name}" for n in names}
                found = [module] if module.split(".")[0] in MODULES and named - HARMLESS else []
            case ast.Call(func=function, keywords=keywords):
                name = ast.unparse(function)
                found = [name] if name in CALLS else []
                found += [
                    f"{k.arg}={ast.unparse(k.value)}"
                    for k in keywords
                    if (k.arg in {"shell", "trust_remote_code", "allow_pickle"} and _is(k, True))
                    or (k.arg == "weights_only" and _is(k, False))
                ]
            case _:
                continue
        yield from (f"{node.lineno}: {what}" for what in found)


def _is(keyword: ast.keyword, value: bool) -> bool:
    return isinstance(keyword.value, ast.Constant) and keyword.value.value is value


IN_MEMORY = {
    "plugins/aang-testing/aang_testing/conformance.py",
    "plugins/aang-testing/aang_testing/expectation.py",
}
"""They pickle what they have just made, to see whether it can be, and whether it has changed."""


def test_no_module_runs_what_it_reads() -> None:
    assert len(SOURCES) > 150
    found = {str(p.relative_to(ROOT)): list(offences(p.read_text("utf-8"))) for p in SOURCES}
    assert {path for path, lines in found.items() if lines} == IN_MEMORY
    for path in IN_MEMORY:
        assert [line.partition(": ")[2] for line in found[path]] == ["pickle"]
        assert "pickle.load(" not in (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from pickle import loads",
        "from joblib import cpu_count, load",
        "import torch; torch.load(path)",
        "import yaml; yaml.load(text, yaml.Loader)",
        "subprocess.run(command, shell=True)",
        "AutoModel.from_pretrained(name, trust_remote_code=True)",
        "os.system('ls')",
        "eval(text)",
        "load(path, weights_only=False)",
    ],
)
def test_the_check_notices(line: str) -> None:
    assert list(offences(line))


def from_pretrained_calls(source: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
            (".from_pretrained", ".from_config")
        ):
            yield node


def test_whether_code_of_models_may_run_is_always_said() -> None:
    """Left unsaid, transformers asks on the terminal, and takes what comes from standard input."""
    calls = [
        (path.name, call)
        for path in SOURCES
        for call in from_pretrained_calls(path.read_text(encoding="utf-8"))
    ]
    assert len(calls) > 5
    for name, call in calls:
        assert "trust_remote_code" in {k.arg for k in call.keywords}, f"{name}:{call.lineno}"


def test_every_python_that_is_started_is_told_to_leave_out_the_current_folder() -> None:
    """Without ``-P``, ``-m`` and ``-c`` put it on ``sys.path``, and its files would be imported."""
    commands = [
        (path.name, [ast.unparse(element) for element in node.elts])
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.List | ast.Tuple)
    ]
    started = [(name, told) for name, told in commands if "sys.executable" in told]
    assert len(started) > 2
    for name, told in started:
        assert told[:2] == ["sys.executable", "'-P'"], name


def test_only_one_module_prints() -> None:
    """All output goes through ``cli/output.py``, where what a terminal acts upon is written out."""
    cli = ROOT / "aang_core" / "cli"
    for path in (ROOT / "aang_core").rglob("*.py"):
        if path == cli / "output.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                assert name not in {"print", "click.echo", "click.secho", "sys.stdout.write"}, (
                    f"{path.relative_to(ROOT)}:{node.lineno}: use aang_core.cli.output"
                )
