"""Which plug-ins are loaded, in which order, and how to choose."""

from pathlib import Path
from textwrap import dedent

import pytest
from aang import train

from aang_core import AangError, load_plugins
from tests.plugins_layer.on_disk import PREAMBLE, Site, transform
from tests.support.plugins import plugin_of


def records(site: Site, *arguments: str, **variables: str) -> dict[str, tuple[str, str | None]]:
    rows = site.json(*arguments, "plugins", environ=variables)
    return {row["distribution"]: (row["status"], row["error"]) for row in rows}


def test_plugins_are_sorted_after_the_cores_own(site: Site) -> None:
    """The order of the path and of the files plays no part."""
    for name in ("zeta", "alpha", "mid"):
        site.plugin(f"aang-plugin-{name}", transform(name))
    found = [row["distribution"] for row in site.json("plugins")]
    assert found[0] == "aang-core"
    assert found[1:] == sorted(found[1:])


def test_a_distribution_may_hold_several_plugins(site: Site) -> None:
    site.module("pack_one", PREAMBLE + dedent(transform("one")))
    site.module("pack_two", "import nowhere\n")
    site.metadata("pack", "[aang]\ntwo = pack_two\none = pack_one\n")
    rows = [row for row in site.json("plugins") if row["distribution"] == "pack"]
    assert [(row["entry_point"], row["status"]) for row in rows] == [
        ("one", "ok"),
        ("two", "failed"),
    ]
    assert site.primitives()["pack"] == ["one"]


def test_an_entry_point_may_name_an_object(site: Site) -> None:
    site.module(
        "objects",
        """
        from aang_core import hookimpl

        class Hooks:
            @hookimpl
            def aang_register_transforms(self, register):
                register("from-object", "registered by a method", "a:b")

        hooks = Hooks()
        """,
    )
    site.metadata("objects", "[aang]\nobjects = objects:hooks\n")
    assert site.primitives()["objects"] == ["from-object"]


def test_the_second_distribution_with_an_entry_point_is_shadowed(
    site: Site, tmp_path: Path
) -> None:
    """Which one wins does not depend on the path: the name that sorts first does."""
    other = Site(tmp_path / "other")
    other.folder.mkdir()
    other.plugin("aang-plugin-aaa", transform("wanted"), entry_point="same")
    site.plugin("aang-plugin-bbb", transform("unwanted"), entry_point="same")
    paths = [str(site.folder), str(other.folder)]
    for order in (paths, paths[::-1]):
        environ = {"PYTHONPATH": ":".join(order)}
        rows = records(site, **environ)
        assert rows["aang-plugin-aaa"] == ("ok", None)
        status, error = rows["aang-plugin-bbb"]
        assert status == "shadowed"
        assert error is not None
        assert "aang-plugin-aaa 1.0 has the same entry point same" in error
        assert "aang-plugin-bbb" not in site.primitives(environ=environ)


def test_a_distribution_that_keeps_out_a_built_in_plugin_is_told(site: Site) -> None:
    """With every command, ``aang train`` too; so that nobody trains with it unknowingly."""
    site.plugin("aang-aaa", transform("other"), entry_point="tartan")
    for command in (["list-primitives"], ["train", "no-such-file.yaml"]):
        done = site.aang(*command)
        # A list is about plug-ins, so it has the notice in it.
        told = done.stdout if command == ["list-primitives"] else done.stderr
        assert "Plug-in tartan (aang-plugin-tartan" in told
        assert (
            "is not loaded: aang-aaa 1.0 has the same entry point tartan and is loaded instead"
            in told
        )
        assert "--disable-plugin aang-aaa loads this one" in told
    assert "not loaded" not in site.aang("--disable-plugin", "aang-aaa", "list-primitives").stdout


@pytest.mark.filterwarnings("ignore")
def test_the_same_is_told_from_python(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site.plugin("aang-aaa", transform("other"), entry_point="tartan")
    monkeypatch.syspath_prepend(str(site.folder))
    with pytest.raises(AangError):
        train(train="no-such-file.jsonl", steps=1)
    assert "note: Plug-in tartan (aang-plugin-tartan" in capsys.readouterr().err


def test_disabling_the_one_that_shadows_gives_way_to_the_other(site: Site) -> None:
    site.plugin("aang-plugin-aaa", transform("wanted"), entry_point="same")
    site.plugin("aang-plugin-bbb", transform("unwanted"), entry_point="same")
    rows = records(site, "--disable-plugin", "aang-plugin-aaa")
    assert rows["aang-plugin-aaa"][0] == "disabled"
    assert rows["aang-plugin-bbb"][0] == "ok"


def test_a_third_party_cannot_take_the_place_of_the_core(site: Site) -> None:
    site.plugin("aaa", transform("no-op"), entry_point="core")
    assert records(site)["aaa"][0] == "shadowed"
    assert records(site)["aang-core"][0] == "ok"


def test_the_same_distribution_twice_on_the_path_counts_once(site: Site, tmp_path: Path) -> None:
    """A stale copy further down the path is not the one that gets imported."""
    stale = Site(tmp_path / "stale")
    stale.folder.mkdir()
    site.plugin("aang-plugin-same", transform("new"), version="2.0")
    stale.plugin("Aang_Plugin.same", transform("old"), version="1.0", entry_point="same")
    environ = {"PYTHONPATH": f"{site.folder}:{stale.folder}"}
    rows = site.json("plugins", environ=environ)
    assert [row["version"] for row in rows if row["entry_point"] == "same"] == ["2.0"]


@pytest.mark.parametrize("name", ["mine", "aang-plugin-mine"])
def test_a_plugin_is_disabled_by_either_name(name: str, site: Site) -> None:
    """Its module is not even imported."""
    site.plugin("aang-plugin-mine", "raise SystemExit('imported')\n")
    for rows in (
        records(site, "--disable-plugin", name),
        records(site, AANG_DISABLE_PLUGINS=f" other ,{name},"),
    ):
        assert rows["aang-plugin-mine"] == ("disabled", f"disabled by name: {name}")


@pytest.mark.parametrize("name", ["aang_plugin_tfidf", "AANG-Plugin.tfidf", "TfIdf"])
def test_names_are_spelled_as_for_pip(name: str, site: Site) -> None:
    rows = records(site, AANG_DISABLE_PLUGINS=name), records(site, "--disable-plugin", name)
    assert [found["aang-plugin-tfidf"][0] for found in rows] == ["disabled", "disabled"]


def test_several_plugins_are_disabled_at_once(site: Site) -> None:
    statuses = site.statuses("--disable-plugin", "bert", "--disable-plugin", "aang-plugin-gpt")
    assert statuses["aang-plugin-bert"] == statuses["aang-plugin-gpt"] == "disabled"
    assert statuses["aang-plugin-xlnet"] == "ok"


def test_a_disabled_name_that_nobody_has_is_an_error_only_where_it_was_typed(site: Site) -> None:
    done = site.aang("--disable-plugin", "xlnt", "plugins")
    assert done.returncode == 2
    assert "there is no plug-in xlnt; did you mean xlnet?" in done.stderr
    assert site.aang("plugins", environ={"AANG_DISABLE_PLUGINS": "xlnt"}).returncode == 0


@pytest.fixture
def local_file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(PREAMBLE + dedent(transform("local")), encoding="utf-8")
    return path


def test_a_file_is_a_plugin(local_file: Path, site: Site) -> None:
    rows = site.json("--plugin", str(local_file), "plugins")
    (row,) = [row for row in rows if row["entry_point"] == "mine"]
    assert (row["distribution"], row["status"]) == ("mine.py", "ok")
    assert site.primitives("--plugin", str(local_file))["mine.py"] == ["local"]


def test_the_version_of_a_local_file_is_its_content(local_file: Path, site: Site) -> None:
    def version() -> str:
        rows = site.json("--plugin", str(local_file), "plugins")
        return next(str(row["version"]) for row in rows if row["entry_point"] == "mine")

    before = version()
    assert before == version()
    assert before.startswith("sha256-")
    local_file.write_text(local_file.read_text() + "\n# changed\n", encoding="utf-8")
    assert version() != before


def test_the_variable_loads_files_and_modules(local_file: Path, site: Site) -> None:
    site.module("loose.hooks", PREAMBLE + dedent(transform("loose")))
    environ = {"AANG_LOAD_PLUGINS": f"loose.hooks, {local_file}, {local_file.name}"}
    done = site.aang("list-primitives", "--json", environ=environ, cwd=local_file.parent)
    assert done.returncode == 0
    assert done.stdout.count('"local"') == 2  # the name and the version of a module
    assert site.primitives(environ=environ)["loose.hooks"] == ["loose"]


def test_a_local_plugin_that_is_missing_fails_like_any_other(site: Site) -> None:
    environ = {"AANG_LOAD_PLUGINS": "no_such_module,/nowhere/at_all.py"}
    rows = records(site, **environ)
    assert rows["no_such_module"][0] == "failed"
    status, error = rows["at_all.py"]
    assert status == "failed"
    assert error is not None
    assert "/nowhere/at_all.py cannot be read: No such file" in error


def test_a_local_file_given_as_an_option_must_exist(site: Site) -> None:
    done = site.aang("--plugin", "nowhere.py", "plugins")
    assert done.returncode == 2
    assert "nowhere.py" in done.stderr


def test_a_file_that_is_no_python_fails(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a plug-in")
    (row,) = [
        row
        for row in site.json("--plugin", str(path), "plugins")
        if row["distribution"] == "notes.txt"
    ]
    assert row["status"] == "failed"
    assert "not a Python file" in row["error"]


def test_local_files_of_the_same_name_do_not_both_load(local_file: Path, site: Site) -> None:
    twin = site.folder / "mine.py"
    twin.write_text(local_file.read_text() + "\n", encoding="utf-8")
    rows = site.json("--plugin", str(local_file), "--plugin", str(twin), "plugins")
    assert [row["status"] for row in rows if row["distribution"] == "mine.py"] == ["ok", "shadowed"]


def test_a_local_file_can_hold_what_a_dataclass_and_a_lazy_target_need(
    site: Site, tmp_path: Path
) -> None:
    """Both look the module up by its name."""
    path = tmp_path / "with class.py"
    path.write_text(
        dedent(
            """
            from __future__ import annotations
            from dataclasses import dataclass
            import click
            from aang_core import hookimpl

            @dataclass
            class Thing:
                size: int = 3

            @hookimpl
            def aang_register_transforms(register):
                register("thing", "made from here", f"{__name__}:Thing")

            @hookimpl
            def aang_register_commands(register):
                register("show", "show a thing", show)

            @click.command()
            @click.pass_obj
            def show(plugins):
                click.echo(plugins.registry.primitive("transform", "thing").make(size=4))
            """
        ),
        encoding="utf-8",
    )
    done = site.aang("--plugin", str(path), "show")
    assert done.stdout == "Thing(size=4)\n", done.stderr


@pytest.mark.parametrize("beside", ["beside.py", "beside/__init__.py"])
def test_a_local_file_cannot_import_what_is_beside_it(
    site: Site, tmp_path: Path, beside: str
) -> None:
    """Whoever downloads a plug-in does not mean to run what else is in that folder."""
    path = tmp_path / "mine.py"
    path.write_text("import beside\n" + PREAMBLE, encoding="utf-8")
    module = tmp_path / beside
    module.parent.mkdir(exist_ok=True)
    module.write_text("raise SystemExit('imported')\n", encoding="utf-8")
    (row,) = [
        row
        for row in site.json("--plugin", str(path), "plugins")
        if row["distribution"] == "mine.py"
    ]
    assert row["status"] == "failed"
    assert row["error"].startswith("it imports beside from its folder, which a plug-in in")


def test_a_module_belongs_to_the_plugin_of_its_package() -> None:
    found = plugin_of("aang_plugin_packed.packed", "…/aang_plugin_packed/packed.py")
    assert found in {record.origin for record in load_plugins(environ={}).records}
    assert found is not None
    assert (found.distribution, found.entry_point) == ("aang-plugin-packed", "packed")
    assert plugin_of("__main__", "mine.py") is None


def test_a_module_beside_the_one_with_hooks_belongs_to_the_plugin(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pip has noted it."""
    monkeypatch.syspath_prepend(site.folder)
    site.plugin("aang-plugin-aaa", transform("mine"))
    (info,) = site.folder.glob("*.dist-info")
    info.joinpath("top_level.txt").write_text("aaa_beside\n", encoding="utf-8")
    found = plugin_of("aaa_beside.inner", "…/aaa_beside/inner.py")
    assert found is not None
    assert found.distribution == "aang-plugin-aaa"


def test_only_some_distributions_are_loaded(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Besides the core; those left out are not imported, and shadow nobody."""
    monkeypatch.syspath_prepend(site.folder)
    site.plugin("aang-plugin-aaa", "raise SystemExit('imported')\n", entry_point="same")
    site.plugin("aang-plugin-bbb", transform("wanted"), entry_point="same")
    plugins = load_plugins(only={"aang-plugin-bbb", "aang-plugin-task"}, environ={})
    assert {r.origin.distribution for r in plugins.records if r.status == "ok"} == {
        *("aang-core", "aang-plugin-bbb", "aang-plugin-task")
    }
    (left_out,) = [r for r in plugins.records if r.origin.distribution == "aang-plugin-aaa"]
    assert left_out.status == "disabled"
    assert left_out.error == "left out: only aang-plugin-bbb, aang-plugin-task is loaded"
