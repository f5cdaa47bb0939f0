"""Compares the plug-ins that a run recorded with those that are installed."""

from collections.abc import Mapping
from typing import Any

from aang_core.plugins.loading import Plugins
from aang_core.plugins.primitive import CORE


def plugin_differences(recorded: Mapping[str, Any], installed: Plugins) -> list[str]:
    """How the core and the plug-ins that a run used differ from those that are installed.

    Args:
        recorded: the content of the run's ``plugins.json``. Plug-ins that supplied no primitive to
            the run are ignored.
        installed: the plug-ins of this process.

    Returns:
        A sentence for each difference.
    """
    then = {p["distribution"]: p["version"] for p in recorded["plugins"] if p["status"] == "ok"}
    now = {r.origin.distribution: r for r in installed.records}
    loaded = {r.origin.distribution: r for r in installed.records if r.status == "ok"}
    sentences = []
    for name in sorted({CORE, *recorded["primitives"].values()}):
        if name not in then:
            continue
        if name in loaded:
            version = loaded[name].origin.version
            state = "" if version == then[name] else f"installed is {version}"
        elif name in now:
            state = f"it is {now[name].status} now; see aang plugins"
        else:
            state = "it is not installed now"
        if state:
            sentences.append(f"the run used {name} {then[name]}; {state}")
    return sentences
