"""What the machine has, to paste into an issue."""

import json
from importlib.metadata import version
from pathlib import Path

from tests.plugins_layer.on_disk import Site


def test_it_tells_what_an_issue_needs(site: Site) -> None:
    """In Markdown, with the plug-ins that failed, and without the name of the user."""
    site.plugin("aang-plugin-broken", "raise OSError('disk on fire')\n")
    cache = Path.home() / "nowhere" / "aang"
    text = site.aang("doctor", environ={"AANG_CACHE": str(cache)}).stdout
    for title in ("machine", "device", "packages", "plug-ins", "caches", "environment"):
        assert f"**{title}**\n" in text
    assert f"- torch: {version('torch')}\n" in text
    assert "- --device auto: " in text
    broken = [line for line in text.splitlines() if line.startswith("- aang-plugin-broken")]
    assert "failed: " in broken[0]
    assert "disk on fire" in broken[0]
    assert "- AANG: ~/nowhere/aang, does not exist yet\n" in text
    assert str(Path.home()) not in text


def test_something_broken_does_not_hide_the_rest(site: Site) -> None:
    site.module("torch", "raise OSError('libcudart.so.12: cannot open shared object file')")
    found = json.loads(site.aang("doctor", "--json", anew=True).stdout)
    assert found["device"] == {"error": "OSError: libcudart.so.12: cannot open shared object file"}
    assert found["machine"]["memory"].endswith("GB")
    assert "libcudart" in site.aang("doctor", anew=True).stdout


def test_threads_that_wait_sleep(site: Site) -> None:
    """Unless the user has chosen otherwise: spinning, they keep cores from other jobs."""
    assert site.json("doctor")["environment"]["OMP_WAIT_POLICY"] == "passive"
    text = site.aang("doctor", environ={"OMP_WAIT_POLICY": "active"}).stdout
    assert "- OMP_WAIT_POLICY: active\n" in text


def test_for_programs(site: Site) -> None:
    found = site.json("doctor")
    assert found["packages"]["aang-core"] == version("aang-core")
    assert found["machine"]["memory"].endswith("GB")
