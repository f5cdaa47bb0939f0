"""Commands that only list things import nothing that takes long."""

import resource
import subprocess
import sys

import pytest

HEAVY = {"torch", "transformers", "datasets", "sklearn", "numpy", "pandas", "pyarrow"}


def imported_by(*arguments: str) -> set[str]:
    code = (
        "import sys\n"
        "from aang_core.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "print('\\n--', *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return set(done.stdout.rpartition("--")[2].split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["list-primitives"],
        ["list-primitives", "--json"],
        ["plugins"],
        ["plugins", "--json"],
        ["--help"],
        ["--version"],
    ],
)
def test_a_listing_imports_neither_torch_nor_pydantic(arguments: list[str]) -> None:
    assert not imported_by(*arguments) & {*HEAVY, "pydantic", "yaml"}


def test_json_needs_no_table() -> None:
    assert "rich" not in imported_by("list-primitives", "--json")


@pytest.mark.parametrize(
    "arguments",
    [["list-spaces"], ["show-space", "td"], ["train", "--help"], ["evaluate", "--help"]],
)
def test_a_space_and_the_help_of_every_command_need_no_torch(arguments: list[str]) -> None:
    assert not imported_by(*arguments) & HEAVY


def test_the_primitives_of_all_plugins_are_listed_within_half_a_second() -> None:
    """Processor time, the best of a few: what else the machine does plays no part."""

    def seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        imported_by("list-primitives")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    assert min(seconds() for _ in range(3)) < 0.5
