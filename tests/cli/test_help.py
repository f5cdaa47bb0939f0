"""``--help`` fits on a screen, and ``--help-all`` shows what it leaves out."""

import re

import click
import pytest
from click.testing import CliRunner

from aang_core import load_plugins
from tests.support.commands import aang
from tests.support.runs import schema_of

SCREEN = 53
"""Lines of 80 characters."""

COMMANDS = aang.list_commands(click.Context(aang, info_name="aang"))


def shown(*arguments: str) -> str:
    done = CliRunner(env={"COLUMNS": "80"}).invoke(aang, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_fits_on_a_screen(command: str) -> None:
    lines = shown(command, "--help").splitlines()
    assert 5 < len(lines) <= SCREEN
    assert max(map(len, lines)) <= 80


def test_help_all_shows_every_option_and_the_recipes() -> None:
    whole, usual = shown("train", "--help-all"), shown("train", "--help")
    fields = schema_of(load_plugins(environ={}).registry).model_fields
    flags = {f"--{name.replace('_', '-')}" for name in fields}
    assert flags <= {*re.findall(r"^  (--[\w-]+)", whole, re.MULTILINE)}
    assert "Recipes:" in whole
    assert "--adam-eps" not in usual
    assert "--help-all" in usual


def test_a_command_without_rare_options_has_one_help() -> None:
    assert "--help-all" not in shown("list-spaces", "--help")
