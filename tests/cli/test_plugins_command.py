from textwrap import dedent

from tests.plugins_layer.on_disk import Site, transform


def test_the_standard_plugins_are_listed_and_well(site: Site) -> None:
    rows = site.json("plugins")
    keys = {"distribution", "version", "entry_point", "status", "seconds", "error", "warnings"}
    assert all(set(row) == keys for row in rows)
    assert {row["entry_point"] for row in rows} >= {
        "core",
        "task",
        "s2orc",
        "bert",
        "gpt",
        "xlnet",
        "tfidf",
        "tartan",
        "factored",
    }
    assert all(
        row["status"] == "ok" and row["error"] is None and not row["warnings"] for row in rows
    )


def test_every_state_is_shown_to_people(site: Site) -> None:
    site.plugin("aang-plugin-a-fine", transform("fine"), entry_point="same")
    site.plugin("aang-plugin-b-late", transform("late"), entry_point="same")
    site.plugin("aang-plugin-broken", "raise OSError('disk on fire')\n")
    site.plugin("aang-plugin-unwanted", transform("unwanted"))
    done = site.aang("--disable-plugin", "unwanted", "plugins")
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    *cells, seconds = lines["aang-plugin-a-fine"].split()
    assert cells == ["aang-plugin-a-fine", "1.0", "same", "ok"]
    assert 0 <= float(seconds) < 1
    assert "shadowed" in lines["aang-plugin-b-late"]
    assert "OSError: disk on fire" in lines["aang-plugin-broken"]
    assert "disabled by name: unwanted" in lines["aang-plugin-unwanted"]
    assert done.returncode == 0


def test_check_fails_for_failed_plugins_alone(site: Site) -> None:
    """A disabled plug-in is not a failure, and --json can be checked, too."""
    site.plugin("aang-plugin-broken", "raise OSError\n")
    assert site.aang("plugins", "--check").returncode == 1
    assert site.aang("plugins", "--check", "--json").returncode == 1
    assert site.aang("--disable-plugin", "broken", "plugins", "--check").returncode == 0


def test_at_a_narrow_width_the_error_is_whole(site: Site) -> None:
    site.plugin("aang-plugin-broken", "raise OSError('a/very/long/path/' * 20)\n")
    done = site.aang("plugins", environ={"COLUMNS": "40"})
    assert "a/very/long/path/" * 20 in done.stdout


def test_a_plugin_that_takes_long_to_load_is_named_with_its_time(site: Site) -> None:
    source = "import time\ntime.sleep(0.25)\n" + dedent(transform("heavy"))
    site.plugin("aang-plugin-heavy", source)
    site.plugin("aang-plugin-light", transform("light"))
    rows = {row["distribution"]: row for row in site.json("plugins")}
    assert 0.25 <= rows["aang-plugin-heavy"]["seconds"] < 5
    done = site.aang("plugins")
    assert "every command" not in done.stdout  # any plug-in may take long on a busy machine
    told = [line for line in done.stderr.splitlines() if "every command" in line]
    assert "note: plug-in heavy (aang-plugin-heavy 1.0) took 0." in "".join(told)
    assert not [line for line in told if "light" in line]
    disabled = site.json("--disable-plugin", "heavy", "plugins")
    assert {row["distribution"]: row for row in disabled}["aang-plugin-heavy"]["seconds"] is None
