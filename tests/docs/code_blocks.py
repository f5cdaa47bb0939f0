"""The fenced blocks of the documentation, and what makes each of them true.

=========  =====================================================================================
language   what is done with a block
=========  =====================================================================================
python     one that is headed ``# NAME.py`` is a file: it is written, run, and its tests are run;
           of the others, which need a trained model, all imports are resolved
yaml       read as what it is: a space, a comparison, the header of a model card, or the options of
           ``aang train``
toml       parsed
json       parsed; its keys are names that the code uses
console    commands that are cheap are run and must print what is shown, ``…`` standing for
           anything; the others are read by the parser of ``aang``, and their progress lines must
           have the form that training prints
bash       as the commands of a console that show no output
text       trees name files that are there; logs have the form that training prints; records have
           keys that the code uses; values are Python's; pictures are listed here
=========  =====================================================================================

Blocks that are headed by a file name are written to the page's folder, where what follows finds
them; plug-ins among them count as loaded.
"""

import ast
import importlib
import json
import re
import runpy
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent

import click
import yaml
from aang_plugin_compare.planning import read_comparison
from aang_plugin_tune.plan import read_search_file
from click.testing import CliRunner
from huggingface_hub import ModelCardData
from ray.scripts.scripts import cli as ray_commands

from aang_core import Objective, Registry, load_plugins, load_space
from tests.docs.documents import ROOT
from tests.support.commands import aang, given_options
from tests.support.data import ONE_CLASS
from tests.support.runs import (
    TrainConfig,
    option_owners,
    read_config_file,
    resolve_config,
    resolve_training,
    schema_of,
)

CHEAP = {
    *("plugins", "list-primitives", "list-objectives", "list-spaces", "show-space"),
    *("check-plugin", "new-plugin"),
}
"""Commands that train nothing."""

OF_SERVERS = {"fastapi", "onnxruntime"}
"""Packages that only a server needs, and nothing here."""

PICTURES = {
    "objectives layer (text)                       tasks layer (any domain)",
    "plugins/*        one family of ideas each: stages, weighters, engines, kinds of task, "
    "commands",
    "data            transform          representation        output",
}
"""First lines of drawings, which state nothing that could be checked."""

_FENCE = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"# (\S+\.(?:py|yaml|toml))$")
_STEP = re.compile(
    r"step \d+: dev [a-z0-9-]+ \d+\.\d\d( \(best\))?"
    r"(?: · loss \d+\.\d{4}(?:, objectives \d+\.\d{4})?)?"
    r"( · λ_e \d\.\d\d(?: · top (\S+))?)?"
)
_READING_STEP = re.compile(
    r"step \d+(?: of \d+)? · held-out loss \d+\.\d{4} · accuracy \d\.\d{4}(?: · [\d:]+ left)?"
)
_NOTE = re.compile(r"note: (\d+ × .+ \(first: .+\)|.+[^.])")
_LOG = (
    _STEP,
    _NOTE,
    re.compile(r"reading data and loading the encoder \.\.\."),
    re.compile(
        r"(task|classes|weights|rows|cut to \d+|overlaps|duplicates|objectives|pre-training|encoder"
        r"|head|options|a step|expected) {2,}\S.*"
    ),
    re.compile(r"training: about \d.+ for \d+ steps, an estimate from \d+ of them; peak .+ GB"),
    re.compile(r"All \d+ steps were trained\."),
    re.compile(r"The best model is from step \d+:"),
    re.compile(r"[a-z0-9-]+(, 95% interval)? +dev +test"),
    re.compile(r"Dev has only \d+ rows, so its score may be off by chance: .+"),
    re.compile(r"TF-IDF with \w+ regression on the same rows: [^:]+, ahead of this model on \w+\."),
    re.compile(
        r"(this run \([a-z-]+\)|plain fine-tuning, mean of \d+ seeds|majority class)[ \d.–()]+"
    ),
    re.compile(r"Everything about this run is in \S+\. Its model is an ordinary transformers"),
    re.compile(r"folder, which needs no AANG:"),
    re.compile(r" +(from transformers import pipeline|classify = pipeline\('text-.+)"),
    re.compile(r"…"),
    re.compile(r"Run \S+: \S+, seed \d+, \d+ steps in [\d.]+ s, the best model from step \d+"),
    re.compile(r"\S+: dev [\d.–() ]+, test [\d.–() ]+; majority class: dev [\d.]+, test [\d.–]+"),
    re.compile(r"\d+ objectives?; model in \S+"),
    re.compile(r"Error: .+[^.]"),
    re.compile(r"trial-\d+: \S+=.+: dev [\d.]+"),
    re.compile(r"stopped by SIG\w+; to go on:"),
    re.compile(r" +aang tune .+"),
)


@dataclass(frozen=True)
class Block:
    """A fenced block; ``line`` is that of its fence, counted from one."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def section(self) -> str:
        """The heading of the second level that the block stands under; empty before the first."""
        before = self.page.read_text(encoding="utf-8").splitlines()[: self.line]
        return next((line[3:] for line in reversed(before) if line.startswith("## ")), "")

    @property
    def heading(self) -> str | None:
        """The name of the file that the block is the content of."""
        found = _HEADING.match(self.text.splitlines()[0]) if self.text.strip() else None
        return found[1] if found else None


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found[2], dedent(found[3]))
        for found in _FENCE.finditer(text)
    ]


def check(block: Block, folder: Path) -> None:
    """Check one block; ``folder``, the current one, holds the files of those before it.

    Raises:
        AssertionError, AangError, click.ClickException: it is not true, or nobody knows whether.
    """
    checks: Mapping[str, Callable[[Block, Path, Registry], None]] = {
        "python": _python,
        "yaml": _yaml,
        "toml": _toml,
        "json": _json,
        "console": _console,
        "bash": _bash,
        "text": _text,
    }
    assert block.language in checks, f"nothing checks a block in {block.language!r}"
    if block.heading:
        (folder / block.heading).write_text(block.text, encoding="utf-8")
    local = [str(p) for p in folder.glob("*.py") if "@hookimpl" in p.read_text(encoding="utf-8")]
    with _importable(folder):
        checks[block.language](block, folder, load_plugins(local=local, environ={}).registry)


def _python(block: Block, folder: Path, registry: Registry) -> None:
    tree = ast.parse(block.text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                _resolve(alias.name, None, folder)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                _resolve(node.module or "", alias.name, folder)
    if block.heading:
        _run(folder / block.heading)


def _resolve(module: str, name: str | None, folder: Path) -> None:
    if module in OF_SERVERS:
        return
    with _importable(folder):
        found = importlib.import_module(module)
    assert name is None or hasattr(found, name), f"{module} has no {name}"


def _run(path: Path) -> None:
    with _importable(path.parent):
        names = runpy.run_path(str(path))
        for name, value in names.items():
            if name.startswith("test_"):
                value()


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Modules in ``folder`` can be imported inside, and are forgotten outside."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and Path(file).is_relative_to(folder):
                del sys.modules[name]


def _yaml(block: Block, folder: Path, registry: Registry) -> None:
    path = folder / (block.heading or "block.yaml")
    path.write_text(block.text, encoding="utf-8")
    keys = set(yaml.safe_load(block.text))
    if "representation" in keys:
        assert load_space(path, registry).objectives
    elif "search" in keys:
        assert read_search_file(path)[0].search
    elif "methods" in keys:
        assert read_comparison(path, registry).cells
    elif "model-index" in keys:
        # Refuses an index that the hub could not read.
        card = ModelCardData(**yaml.safe_load(block.text))
        assert card.eval_results
        assert {result.metric_name for result in card.eval_results} == set(ONE_CLASS.metrics)
    else:
        options = read_config_file(path)
        _names_in(resolve_config(options, {}, registry), options.get("set") or (), registry)


def _toml(block: Block, folder: Path, registry: Registry) -> None:
    assert tomllib.loads(block.text)


def _json(block: Block, folder: Path, registry: Registry) -> None:
    try:
        json.loads(block.text)
    except json.JSONDecodeError:
        for line in block.text.splitlines():
            json.loads(line)
    _check_keys(block.text, registry)


def _console(block: Block, folder: Path, registry: Registry) -> None:
    turns = re.split(r"^\$ ", re.sub(r"\\\n\s*", "", block.text), flags=re.MULTILINE)
    assert not turns[0].strip(), "a console block begins with a command behind $"
    for turn in turns[1:]:
        command, _, shown = turn.partition("\n")
        words = shlex.split(command, comments=True)
        _command(words, folder, registry)
        if not shown.strip():
            continue
        if words[0] == "aang" and CHEAP & set(words):
            same(shown, _printed(words[1:]))
        else:
            _check_progress(shown, registry)


def _printed(words: Sequence[str]) -> str:
    done = CliRunner(env={"COLUMNS": None}).invoke(aang, list(words))
    # A plug-in that fails a check may well be what is shown.
    assert done.exit_code in ((0, 1) if "check-plugin" in words else (0,)), done.output
    return done.stdout


def same(shown: str, printed: str) -> None:
    """``…`` on a line of its own stands for any lines, within a line for anything in it.

    Raises:
        AssertionError: something else was printed than is shown.
    """
    pattern = ""
    for line in shown.rstrip().splitlines():
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(map(re.escape, line.rstrip().split("…"))) + r" *\n"
    assert re.fullmatch(pattern, printed.rstrip() + "\n"), f"it prints\n{printed}"


def _bash(block: Block, folder: Path, registry: Registry) -> None:
    # A shell writes out the folders of plugins/ there.
    text = block.text.replace("$(printf -- '-e %s ' plugins/*)", "")
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        for command in line.split("&&"):
            words = shlex.split(command, comments=True)
            if words:
                _command(words, folder, registry)


def _command(words: Sequence[str], folder: Path, registry: Registry) -> None:
    program, *arguments = words
    match program:
        case "aang":
            _aang(arguments, registry)
        case "pip":
            _pip(arguments, folder)
        case "pytest":
            paths = [a for a in arguments if not a.startswith("-") and "/" in a]
            assert all((ROOT / path).exists() for path in paths), paths
        case "python" if arguments[:2] in (["-m", "venv"], ["-m", "build"]):
            pass
        case "python" if arguments[:2] == ["-m", "pytest"]:
            _command(arguments[1:], folder, registry)
        case "python" if arguments[:2] == ["-m", "benchmarks.signal_quality"]:
            plugin = str(ROOT / "benchmarks" / "signal_quality" / "plugin.py")
            _aang(["--plugin", plugin, "signal-quality", *arguments[2:]], registry)
        case "python" if arguments[0] == "-m":
            main = importlib.import_module(arguments[1]).main
            try:
                main.make_context(arguments[1], list(arguments[2:]))
            except click.BadParameter as error:
                if not error.message.endswith("does not exist."):  # as what only a reader has
                    raise
        case "python":
            path = arguments[0]
            assert (ROOT / path).is_file() or (folder / path).is_file(), f"there is no {path}"
        case "torchrun" | "accelerate":
            _aang(arguments[arguments.index("aang_core") + 1 :], registry)
        case ".":
            assert arguments == [".venv/bin/activate"]
        case "export":
            assert all("=" in word for word in arguments), arguments
        case "ray":
            command = ray_commands.get_command(click.Context(ray_commands), arguments[0])
            assert command is not None, f"ray has no command {arguments[0]}"
            command.make_parser(click.Context(command)).parse_args(list(arguments[1:]))
        case _:
            assert (ROOT / program).is_file(), f"nobody knows what {program} is"


def _aang(words: Sequence[str], registry: Registry) -> None:
    """Have the real parser read a command, and the schema check the options of a training."""
    root = click.Context(aang, info_name="aang")
    given, rest, _ = aang.make_parser(root).parse_args(list(words))
    if not rest:
        return
    root.params = {"local": [Path(file) for file in given.get("local", ())]}
    name, *arguments = rest
    command = aang.get_command(root, name)
    assert command is not None, f"there is no command {name}"
    context = command.make_context(name, list(arguments), parent=root)
    if name == "new-plugin":  # what it writes is what the next lines install and test
        _printed(words)
    if name in ("train", "diagnose") and context.params.get("resume") is None:
        options = {k: v for k, v in context.params.items() if k in schema_of(registry).model_fields}
        file = context.params["config_file"]
        resolve = resolve_training if name == "train" else resolve_config
        options = given_options(options)
        config = resolve(read_config_file(file) if file else {}, options, registry)
        if "local" not in given:
            _names_in(config, options.get("set", ()), registry)


def _names_in(config: TrainConfig, owners: Iterable[str], registry: Registry) -> None:
    registry.weighter(config.weighter)
    if not config.aux_task:
        load_space(config.space, registry)
        unused = set(owners) - set(option_owners(config, registry))
        assert not unused, f"nothing in this run has the options --set {unused}"


def _pip(arguments: Sequence[str], folder: Path) -> None:
    assert arguments[0] == "install"
    required = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    if arguments[1] in required:  # a package of another index beforehand
        assert arguments[2] == "--index-url"
        assert len(arguments) == 4
        return
    for word in arguments[1:]:
        if word in ("-r", "-e", "build", "--force-reinstall", "--no-deps", "tensorboard"):
            continue
        path, _, extra = word.removesuffix("]").partition("[")
        if path.endswith(".txt"):
            assert (ROOT / path).is_file(), f"there is no {path}"
        elif path == "aang-core" or (path.startswith("aang-plugin-") and not extra):
            assert extra in {"", *_extras(ROOT)}, word
        else:
            ours = ROOT / "plugins" / path
            project = ROOT if path == "." else ours if ours.is_dir() else folder / path
            assert not extra or extra in _extras(project), word


def _extras(project: Path) -> set[str]:
    content = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    return set(content["project"].get("optional-dependencies", {}))


def _text(block: Block, folder: Path, registry: Registry) -> None:
    lines = block.text.splitlines()
    if lines[0].strip() in PICTURES:
        return
    if any("── " in line for line in lines):
        names = set(re.findall(r"── (\S+)", block.text)) - {"…"}
        # Of a name with a number or an ending, the code may have what is before it.
        known = {n for n in names if _is_known(re.sub(r"(?<=-)\d+$|(?<=\.)txt$", "", n), registry)}
        assert names == known, names - known
    elif re.match(r"[\w*.]+/? {2,}\S", lines[0]):
        _check_listing(lines)
    elif '": ' in block.text:
        _check_keys(block.text, registry)
    elif any(form.fullmatch(lines[0]) for form in _LOG):
        for line in lines:
            assert any(form.fullmatch(line) for form in _LOG), f"training prints no {line!r}"
        _check_progress(block.text, registry)
    else:
        ast.literal_eval(block.text.strip())


def _check_listing(lines: Sequence[str]) -> None:
    """Every path of a tree drawn with blanks is there."""
    parents: list[str] = []
    for line in lines:
        found = re.match(r"( *)(\S+)", line)
        assert found
        parents = [*parents[: len(found[1]) // 2], found[2]]
        assert list(ROOT.glob("/".join(part.rstrip("/") for part in parents))), f"no {parents}"


def _check_progress(shown: str, registry: Registry) -> None:
    """Lines of progress have the form that they are printed in, and name legal objectives."""
    for line in shown.splitlines():
        if line.startswith("step "):
            found = _STEP.fullmatch(line)
            assert found or _READING_STEP.fullmatch(line), f"training prints no {line!r}"
            assert not found or not found[3] or Objective.parse(found[3], registry).legal


def _check_keys(text: str, registry: Registry) -> None:
    keys = set(re.findall(r'"([^"]+)":', text))
    assert not [key for key in sorted(keys) if not _is_known(key, registry)]


def _is_known(name: str, registry: Registry) -> bool:
    """Whether it is a name of something registered, or the code has it as a string."""
    parts = name.split("/")
    registered = {part for p in registry.primitives() for part in (p.name, p.stage)}
    if all(part in registered for part in parts) or name.isdigit():  # a checkpoint's number
        return True
    assets = ROOT / "plugins" / "aang" / "aang" / "assets" / "demo-encoder"
    return (assets / name).is_file() or any(name in _strings(path) for path in _sources())


def _sources() -> Iterator[Path]:
    yield from (ROOT / "aang_core").rglob("*.py")
    yield from (ROOT / "plugins").glob("*/aang*/**/*.py")


@cache
def _strings(path: Path) -> frozenset[str]:
    """String constants and names of fields and arguments of a module, split at slashes."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {node.value, *node.value.split("/"), *node.value.split("|")}
        elif isinstance(node, ast.arg | ast.keyword):
            found.add(str(node.arg))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return frozenset(found)
