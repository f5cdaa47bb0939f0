"""The ``aang`` command itself: help, version, errors, and commands of plug-ins."""

import subprocess
import sys
import sysconfig
from importlib.metadata import version
from pathlib import Path
from textwrap import dedent

import pytest

from tests.plugins_layer.on_disk import Site, transform

GREET = """
    import click

    @click.command()
    @click.option("--name", default="you")
    @click.pass_obj
    def greet(plugins, name):
        "Say hello. At length."
        click.echo(f"hello {name}, {len(plugins.registry.primitives('data'))}")

    @hookimpl
    def aang_register_commands(register):
        register("greet", "Say hello.", greet)
"""


def test_help_lists_every_command_and_names_itself_aang(site: Site) -> None:
    for arguments in ([], ["--help"], ["-h"]):
        done = site.aang(*arguments)
        text = done.stdout + done.stderr
        assert "Usage: aang [OPTIONS] COMMAND" in text
        for name in (
            "train",
            "evaluate",
            "list-primitives",
            "list-spaces",
            "show-space",
            "plugins",
        ):
            assert f"\n  {name} " in text


def test_version(site: Site) -> None:
    site.plugin("aang-plugin-mine", transform("mine"), version="3.2.1")
    site.plugin("aang-plugin-broken", "raise OSError('disk on fire')\n", version="3.2.1")
    first, *others = site.aang("--version").stdout.splitlines()
    assert first == f"aang {version('aang-core')}"
    assert "plug-ins 3.2.1: aang-plugin-broken (failed), aang-plugin-mine" in others
    assert site.aang("--disable-plugin", "mine", "--version").stdout.count("mine (disabled)") == 1


def test_the_console_script_is_the_same_command() -> None:
    script = Path(sysconfig.get_path("scripts"), "aang")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"aang {version('aang-core')}\n")


def test_a_command_of_a_plugin(site: Site) -> None:
    site.plugin("aang-plugin-polite", GREET)
    assert site.aang("greet", "--name", "me").stdout == "hello me, 6\n"
    assert "greet            Say hello. (aang-plugin-polite 1.0)" in site.aang("--help").stdout


BY_NAME = """
    @hookimpl
    def aang_register_commands(register):
        register("tell", "Tell a story.", "story:tell")
"""


def test_a_command_that_is_registered_by_name_is_imported_when_it_runs(site: Site) -> None:
    site.plugin("aang-plugin-story", BY_NAME)
    story = site.folder / "story.py"
    story.write_text("import click\n\n@click.command()\ndef tell():\n    click.echo('once')\n")
    assert site.aang("tell").stdout == "once\n"
    story.write_text("1 / 0\n")
    assert "Tell a story. (aang-plugin-story 1.0)" in site.aang("--help").stdout
    done = site.aang("tell")
    assert done.returncode == 2
    whose = "Error: command tell of aang-plugin-story 1.0: importing story:tell raised"
    assert done.stderr.startswith(f"{whose} ZeroDivisionError")
    assert len(done.stderr.splitlines()) == 1
    story.write_text("tell = 3\n")
    assert "story:tell is not callable" in site.aang("tell").stderr


def test_a_standard_command_that_is_not_there_says_what_brings_it(site: Site) -> None:
    done = site.aang("--disable-plugin", "aang-plugin-compare", "compare")
    assert done.returncode == 2
    assert "aang-plugin-compare is disabled" in done.stderr


def test_a_command_of_a_local_file_is_in_the_help_wherever_the_option_stands(site: Site) -> None:
    path = site.folder / "polite.py"
    path.write_text("from aang_core import hookimpl\n" + dedent(GREET))
    assert "Say hello." in site.aang("--plugin", str(path), "--help").stdout
    assert site.aang("--plugin", str(path), "greet").returncode == 0


def test_a_plugin_cannot_replace_a_command_of_the_core(site: Site) -> None:
    site.plugin("aang-plugin-polite", GREET.replace('"greet"', '"plugins"'))
    assert "aang-plugin-polite" in site.aang("plugins").stdout
    assert "aang-plugin-polite:plugins" in site.aang("--help").stdout
    assert site.aang("aang-plugin-polite:plugins").stdout == "hello you, 6\n"


def test_two_plugins_with_one_command_leave_the_choice_to_the_user(site: Site) -> None:
    site.plugin("aang-plugin-one", GREET)
    site.plugin("aang-plugin-two", GREET.replace("hello", "good day"))
    done = site.aang("greet")
    assert done.returncode == 2
    assert "aang-plugin-one:greet, aang-plugin-two:greet" in done.stderr
    assert site.aang("aang-plugin-two:greet").stdout.startswith("good day")


def test_an_unknown_command_gets_near_ones_offered(site: Site) -> None:
    done = site.aang("list-primitivs")
    assert done.returncode == 2
    assert "no command list-primitivs; did you mean list-primitives" in done.stderr


def test_an_unknown_command_may_come_with_a_plugin_that_failed(site: Site) -> None:
    site.plugin("aang-plugin-broken", "raise OSError\n")
    done = site.aang("greet")
    assert "(aang-plugin-broken is broken, see aang plugins)" in done.stderr


def test_other_commands_tell_of_failed_plugins_beforehand(site: Site) -> None:
    site.plugin("aang-plugin-broken", "raise OSError('x')\n")
    done = site.aang("show-space", "td", "--json")
    assert done.returncode == 0
    assert "Plug-in broken (aang-plugin-broken 1.0) failed to load" in done.stderr


@pytest.mark.parametrize("before", [[], ["--help"]])
def test_a_wrong_global_option_is_told_without_a_traceback(before: list[str], site: Site) -> None:
    done = site.aang("--disable-plugin", "nobody", *before, "plugins")
    assert done.returncode == 2
    assert done.stderr.startswith("Error: there is no plug-in nobody; there are: ")
    assert len(done.stderr.splitlines()) == 1


def test_what_was_not_raised_on_purpose_keeps_its_traceback(site: Site) -> None:
    site.plugin("aang-plugin-polite", GREET.replace("click.echo", "1 / 0 #"))
    done = site.aang("greet", anew=True)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr


def test_a_reader_that_leaves_early_is_no_error() -> None:
    """``aang list-primitives | head -1``."""
    command = f"env -u COLUMNS {sys.executable} -m aang_core list-primitives | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("stage")
    assert "Traceback" not in done.stderr
