"""``aang check-plugin``: good plug-ins pass, and every way to be bad is noticed and explained."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner, Result

from aang_core import ConfigError, load_plugins
from tests.plugins_layer.on_disk import Site
from tests.support.commands import aang
from tests.support.plugins import Options, checks_of, warnings_of

STANDARD = sorted({r.origin.distribution for r in load_plugins(environ={}).records})


# Their own tests check their contracts by default.
@pytest.mark.full
@pytest.mark.parametrize("plugin", STANDARD)
def test_every_standard_plugin_passes(plugin: str) -> None:
    done = CliRunner().invoke(aang, ["check-plugin", plugin])
    assert done.exit_code == 0, done.output
    assert "FAILED" not in done.output


GOOD = """
    from aang_core import hookimpl

    class Mine:
        def __call__(self, ids, ordinary, vocabulary, generator):
            from aang_core import Corruption, select_tokens
            selected = select_tokens(ordinary, generator)
            return Corruption(ids.masked_fill(selected, vocabulary.mask_id), selected)

    @hookimpl
    def aang_register_transforms(register):
        register("mine", "masks", Mine, provides=("masks-tokens",))
"""

BAD = {
    "imports torch": (
        ("from aang_core import hookimpl", "import torch\n    from aang_core import hookimpl"),
        ["FAILED  registering imports nothing heavy", "with it loaded, torch is", "module:Class"],
    ),
    "an untrue trait": (
        ('provides=("masks-tokens",)', 'provides=("replaces-tokens",)'),
        ["FAILED  transform mine: its contract", "trait replaces-tokens"],
    ),
    "global randomness": (
        ("select_tokens(ordinary, generator)", "ordinary & (ordinary.float().uniform_() < 0.2)"),
        ["FAILED  transform mine: its contract", "global state of torch"],
    ),
    "changes its input": (
        ("ids.masked_fill(selected", "ids.masked_fill_(selected"),
        ["FAILED  transform mine: its contract", "changed in place"],
    ),
    "needs an option": (
        ("class Mine:", "class Mine:\n        def __init__(self, rate): self.rate = rate"),
        ["FAILED  transform mine: it can be made without options", "rate", "default"],
    ),
    "cannot be pickled": (
        ("class Mine:", "class Mine:\n        def __init__(self): self.f = lambda: 1"),
        ["FAILED  transform mine: it can be pickled"],
    ),
    "a name with capitals": (('"mine"', '"Mine"'), ["FAILED  it loads", "the name must match"]),
    "no summary": (('"masks", Mine', '"", Mine'), ["FAILED  it loads", "summary"]),
    "an undecorated hook": (("@hookimpl", ""), ["FAILED  it loads", "not decorated"]),
    "another interface": (
        ("class Mine:", "AANG_PLUGIN_API = 2\n    class Mine:"),
        [
            "FAILED  it loads",
            "version 2 of the plug-in interface, and this core has version 1",
            "AANG_PLUGIN_API = 1",
        ],
    ),
    "an illegal objective": (
        (
            "    @hookimpl",
            "    @hookimpl\n    def aang_register_objectives(register):\n"
            '        register("odd", "odd", "task/mine/left-to-right/end-task")\n\n    @hookimpl',
        ),
        ["FAILED  objective odd: it is legal", "sentence-representation"],
    ),
}


@pytest.fixture
def torch_in_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes that measure what a plug-in imports find an empty ``torch``."""
    folder = tmp_path / "instead"
    folder.mkdir()
    (folder / "torch.py").touch()
    monkeypatch.syspath_prepend(folder)


def checked(folder: Path, source: str) -> Result:
    return CliRunner().invoke(aang, ["check-plugin", str(written(folder, source))])


def test_a_good_file_passes(tmp_path: Path) -> None:
    done = checked(tmp_path, GOOD)
    assert done.exit_code == 0, done.output
    assert "6 of 6 checks passed" in done.stdout


@pytest.mark.usefixtures("torch_in_no_time")
@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_noticed(tmp_path: Path, case: str) -> None:
    (old, new), said = BAD[case]
    assert old in GOOD
    done = checked(tmp_path, GOOD.replace(old, new))
    assert done.exit_code == 1, done.output
    for words in said:
        assert words in done.stdout


RunPytest = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run_pytest(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> RunPytest:
    """Run pytest with the checks, in this process or a new one; its status and what it prints."""
    monkeypatch.chdir(tmp_path)

    def run(*given: str) -> tuple[int, str, str]:
        arguments = ["-p", "aang_testing.pytest_plugin", "-q", "-p", "no:cacheprovider"]
        arguments += ["--import-mode=importlib", *given]
        if getattr(request, "param", "here") == "here":
            capsys.readouterr()
            # The handlers of faults are the process's own, and those of the outer pytest stay.
            code = pytest.main(["-p", "no:faulthandler", *arguments])
            return code, *capsys.readouterr()
        command = [sys.executable, "-m", "pytest", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.mark.parametrize(
    "run_pytest", ["here", pytest.param("anew", marks=pytest.mark.full)], indirect=True
)
def test_as_a_pytest_plugin(tmp_path: Path, run_pytest: RunPytest) -> None:
    """The checks run together with the repository's own tests and fail like tests."""
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    path = written(tmp_path, GOOD.replace('"masks-tokens",', '"replaces-tokens",'))
    code, out, _ = run_pytest("--aang-plugin", str(path), str(tmp_path))
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "6 passed" in out
    assert "1 failed" in out
    assert "trait replaces-tokens" in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--aang-plugin", "aang-plugin-xlnt"), "did you mean aang-plugin-xlnet"),
        (("--aang-plugin", "."), "pyproject.toml"),
        (("--aang-plugin", "aang-plugin-tfidf", "--aang-set", "x"), "--aang-plugin aang-plugin-t"),
    ],
)
def test_pytest_is_told_in_one_line(
    options: tuple[str, ...], said: str, run_pytest: RunPytest
) -> None:
    code, out, err = run_pytest(*options)
    assert code == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in err.splitlines() if line.startswith("ERROR")]
    assert said in line
    assert "INTERNALERROR" not in out


def with_rate(folder: Path, name: str) -> Path:
    """A file whose transform ``name`` needs the option ``rate``."""
    needs = "class Mine:\n        def __init__(self, rate):\n            self.rate = rate"
    source = GOOD.replace("class Mine:", needs).replace('"mine"', f'"{name}"')
    path = folder / f"{name}.py"
    path.write_text(dedent(source.replace("generator)\n", "generator, self.rate)\n")))
    return path


@pytest.mark.parametrize(
    ("third", "code", "said"),
    [
        pytest.param((), pytest.ExitCode.OK, "12 passed", marks=pytest.mark.full),
        (
            ("--aang-set", "three.rate=0.5"),
            pytest.ExitCode.USAGE_ERROR,
            "--set three.…: one.py and two.py have no three; they register: one, two",
        ),
    ],
)
def test_options_go_to_the_plugins_that_take_them(
    third: tuple[str, ...], code: int, said: str, tmp_path: Path, run_pytest: RunPytest
) -> None:
    """Only an option that none of them takes is refused."""
    one, two = [str(with_rate(tmp_path, name)) for name in ("one", "two")]
    options = ("--aang-set", "one.rate=0.5", "--aang-set", "two.rate=0.25", *third)
    ended, out, err = run_pytest("--aang-plugin", one, "--aang-plugin", two, *options)
    assert ended == code, out + err
    assert said in out + err


def test_the_file_that_is_named_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not another one that the environment names."""
    (tmp_path / "other.py").write_text(dedent(GOOD), encoding="utf-8")
    files = f"{tmp_path / 'mine.py'},{tmp_path / 'other.py'}"
    monkeypatch.setenv("AANG_LOAD_PLUGINS", files)
    done = checked(tmp_path, GOOD.replace("@hookimpl", ""))
    assert done.exit_code == 1, done.output
    assert "not decorated" in done.stdout


def test_no_such_plugin(tmp_path: Path) -> None:
    done = CliRunner().invoke(aang, ["check-plugin", "aang-plugin-xlnt"])
    assert done.exit_code == 2
    assert "did you mean aang-plugin-xlnet" in done.output
    done = CliRunner().invoke(aang, ["check-plugin", str(tmp_path)])
    assert done.exit_code == 2
    assert "pyproject.toml" in done.output
    project = '[project]\nname = "aang-plugin-xlnt"\nversion = "1.0"\n'
    (tmp_path / "pyproject.toml").write_text(project, encoding="utf-8")
    done = CliRunner().invoke(aang, ["check-plugin", str(tmp_path)])
    assert done.exit_code == 2
    assert f"aang-plugin-xlnt is not installed in this environment; pip install -e {tmp_path}" in (
        done.output
    )


def failures(path: Path, options: Options | None = None) -> dict[str, str]:
    """The message of every check that fails."""
    found = {}
    for check in checks_of(str(path), options):
        try:
            check.run()
        except AssertionError as error:
            found[check.name] = str(error)
    return found


def written(folder: Path, source: str) -> Path:
    path = folder / "mine.py"
    path.write_text(dedent(source), encoding="utf-8")
    return path


def test_options_take_the_place_of_defaults(tmp_path: Path) -> None:
    """A primitive that needs an option can be checked, and with several values of it."""
    needs = "class Mine:\n        def __init__(self, rate):\n            self.rate = rate"
    source = GOOD.replace("class Mine:", needs)
    path = written(tmp_path, source.replace("generator)\n", "generator, self.rate)\n"))
    assert "needs a value for its option rate" in "".join(failures(path).values())
    assert not failures(path, {"mine": {"rate": 0.5}})
    names = [check.name for check in checks_of(str(path), {"mine": {"rate": 0.5}})]
    assert "transform mine: it can be made with rate=0.5" in names
    (failed,) = failures(path, {"mine": {"rate": 0.0}}).values()
    assert "selected of 4,000 ordinary tokens: expected some, got none" in failed
    with pytest.raises(
        ConfigError, match=r"--set mien\.…: mine\.py has no mien; did you mean mine"
    ):
        checks_of(str(path), {"mien": {}})
    done = CliRunner().invoke(aang, ["check-plugin", str(path), "--set", "mine.rate=0.5"])
    assert done.exit_code == 0, done.output


BODY = "selected = select_tokens(ordinary, generator)"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            'return ids + "a"',
            "TypeError: unsupported operand type(s) for +: 'Tensor' and 'str' "
            "({path}:7, in __call__)",
        ),
        (
            "return ids",
            "what it returned: expected a Corruption of ids and selected, got [64, 64] of int64 "
            "({path}:4)",
        ),
        (
            "if len(ids) > 3: raise KeyError('many')",
            "KeyError: 'many' ({path}:7, in __call__)",
        ),
        (
            "ordinary = torch.ones_like(ordinary)",
            "selected: expected ordinary tokens alone, got a special token or padding ({path}:4)",
        ),
    ],
)
def test_a_failure_is_one_sentence_with_file_and_line(
    tmp_path: Path, body: str, message: str
) -> None:
    source = GOOD.replace("from aang_core import Corr", "import torch; from aang_core import Corr")
    path = written(tmp_path, source.replace(BODY, f"{body}\n            {BODY}"))
    found = failures(path)
    assert found == {"transform mine: its contract, traits included": message.format(path=path)}


def test_counts_in_half_precision_are_noticed(tmp_path: Path) -> None:
    """Training in bfloat16 would refuse them: there are no 257 targets in it."""
    path = written(
        tmp_path,
        """
        from aang_core import Output, hookimpl

        class Mine(Output):
            def head(self, heads):
                return heads.token_regression()
            def targets(self, rows):
                return {}
            def losses(self, head, hidden, targets):
                from aang_core import RowLosses
                losses = head(hidden)[:, 0].square()
                return RowLosses(losses, losses.new_ones(len(losses)))

        @hookimpl
        def aang_register_outputs(register):
            register("mine", "nothing much", Mine, requires=("text",))
        """,
    )
    (message,) = failures(path).values()
    assert message.startswith("counts of targets: expected a tensor [B] = [")
    assert "of bfloat16" in message


KINDS = {
    "single-label": """
                labels = targets["labels"]
                assert labels.dtype == torch.int64 and labels.shape == (len(hidden),)
    """,
    "multi-label": """
                labels = targets["labels"]
                assert labels.shape == (len(hidden), 3) and set(labels.unique().tolist()) <= {0, 1}
    """,
    "regression": """
                labels = targets["labels"]
                assert labels.is_floating_point() and labels.shape == (len(hidden),)
    """,
    "token-labels": """
                labels = targets["labels"]
                assert labels.dtype == torch.int64 and labels.shape == hidden.shape[:2]
    """,
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_output_gets_the_labels_of_its_kind_of_end_task(tmp_path: Path, kind: str) -> None:
    """As documented of CorruptedRows, in every view, with heads and a loss that fit them."""
    field = "token_labels" if kind == "token-labels" else "labels"
    path = written(
        tmp_path,
        f"""
        from aang_core import Output, hookimpl

        class Mine(Output):
            views = ("corrupted", "clean")

            def head(self, heads):
                self.label_losses = heads.label_losses
                return heads.end_task()

            def targets(self, rows):
                return {{"labels": rows.{field}}}

            def losses(self, head, hidden, targets):
                import torch
                {KINDS[kind].strip()}
                return self.label_losses(head(hidden), labels)

        @hookimpl
        def aang_register_outputs(register):
            register(
                "mine",
                "the end task's labels",
                Mine,
                requires=("text", "labels:end-task", "end-task:{kind}"),
            )
        """,
    )
    assert not failures(path)


def test_a_slow_plugin_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import time\ntime.sleep(0.25)\n" + dedent(GOOD)
    # It is measured in processes of its own; how long it takes in this one does not matter.
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    (name, message), *others = failures(written(tmp_path, source)).items()
    assert not others
    assert name == "it loads in 0.2 s"
    assert message.startswith("mine.py takes 0.")


def test_what_nobody_provides_is_required_in_vain(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD.replace("provides=(", 'requires=("txet",), provides=('))
    (message,) = failures(path).values()
    assert "requires txet" in message


def test_plugins_of_others_play_no_part(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """One imports torch slowly, has the same primitive, and comes first by its entry point."""
    site.plugin("aang-plugin-zzz", GOOD + BOTH, preamble="")
    bad = "import time, torch\ntime.sleep(0.5)\n" + dedent(GOOD)
    site.plugin("aang-plugin-aaa", bad, preamble="", entry_point="zzz")
    monkeypatch.setenv("PYTHONPATH", str(site.folder), prepend=":")
    monkeypatch.syspath_prepend(site.folder)
    done = CliRunner().invoke(aang, ["check-plugin", "aang-plugin-zzz"])
    assert done.exit_code == 0, done.output
    assert "passed  objective mine: it is legal" in done.stdout


BOTH = """
    @hookimpl
    def aang_register_objectives(register):
        register("mine", "mine", "task/mine/bidirectional/denoise")
"""


def test_a_plugin_may_build_on_those_that_it_depends_on(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the dependency, its users might not have what its objective names."""
    site.plugin("aang-plugin-base", GOOD, preamble="")
    site.plugin("aang-plugin-upper", "from aang_core import hookimpl\n" + dedent(BOTH), preamble="")
    monkeypatch.syspath_prepend(site.folder)
    monkeypatch.setenv("PYTHONPATH", str(site.folder), prepend=":")
    (message,) = failures(Path("aang-plugin-upper")).values()
    assert "no transform mine" in message
    assert "(aang-plugin-base" in message
    assert "disabled)" in message
    (metadata,) = site.folder.glob("aang_plugin_upper-*/METADATA")
    metadata.write_text(f"{metadata.read_text()}Requires-Dist: aang-plugin-base>=1\n")
    assert not failures(Path("aang-plugin-upper"))


def test_every_entry_point_of_a_distribution_is_checked(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its own name, an entry point is checked without the others."""
    site.module("alpha_hooks", "raise RuntimeError('out of order')")
    site.module("zeta_hooks", GOOD)
    site.metadata("aang-plugin-two", "[aang]\nalpha = alpha_hooks\nzeta = zeta_hooks\n")
    monkeypatch.syspath_prepend(site.folder)
    monkeypatch.setenv("PYTHONPATH", str(site.folder), prepend=":")
    done = CliRunner().invoke(aang, ["check-plugin", "aang-plugin-two"])
    assert done.exit_code == 1, done.output
    assert "FAILED  alpha: it loads" in done.stdout
    assert "out of order" in done.stdout
    assert "passed  zeta: it loads" in done.stdout
    assert "passed  transform mine: its contract" in done.stdout
    assert "6 of 7 checks passed" in done.stdout
    done = CliRunner().invoke(aang, ["check-plugin", "zeta"])
    assert done.exit_code == 0, done.output
    assert "passed  it loads\n" in done.stdout
    assert "6 of 6" in done.stdout


def test_names_that_others_have_are_warnings(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD.replace('"mine"', '"mask"'))
    (warning,) = warnings_of(str(path))
    assert warning.startswith("the transform mask is a name of aang-plugin-bert too")
    assert "mine.py:mask" in warning
    done = CliRunner().invoke(aang, ["check-plugin", str(path)])
    assert done.exit_code == 0
    assert f"warning {warning}" in done.stdout
    assert not warnings_of(str(written(tmp_path, GOOD)))
    near = GOOD.replace('"masks-tokens"', '"masks-token"')
    (warning,) = warnings_of(str(written(tmp_path, near)))
    assert warning.endswith("nobody requires; did you mean masks-tokens?")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    folder = tmp_path / "site"
    folder.mkdir()
    return Site(folder)
