"""One plug-in, loaded without those of others.

Another plug-in may fail, be slow, import torch, or register the same names. None of this is the
fault of the plug-in that is checked.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from aang_core.errors import UnknownNameError
from aang_core.plugins import Plugins, load_plugins
from aang_core.plugins.loading import LOAD_VARIABLE, SLOW, PluginRecord
from aang_core.plugins.primitive import Origin, Primitive, normalised
from aang_core.plugins.registry import did_you_mean, required_by, standard_plugins

HEAVY = ("torch", "transformers", "sklearn")


@dataclass(frozen=True)
class Burden:
    """What loading a plug-in costs every command.

    Attributes:
        seconds: the time that it takes, at best.
        heavy: the heavy packages that it imports.
        error: the output of a new process that could not load it; empty if it could.
    """

    seconds: float
    heavy: tuple[str, ...]
    error: str = ""


@dataclass(frozen=True)
class Alone:
    """A plug-in, with only the core, the standard plug-ins and those that it depends on.

    Attributes:
        records: what became of each of its entry points.
        plugins: all of these plug-ins.
        local: its file, if it is not installed.
    """

    records: tuple[PluginRecord, ...]
    plugins: Plugins
    local: tuple[str, ...]

    @property
    def distribution(self) -> str:
        """The name of its distribution."""
        return self.records[0].origin.distribution

    @property
    def origins(self) -> list[Origin]:
        """Its entry points."""
        return [record.origin for record in self.records]

    @property
    def primitives(self) -> list[Primitive]:
        """The primitives of stages and the weighters that it registers."""
        return [p for p in self.plugins.registry.primitives() if p.origin in self.origins]

    @cached_property
    def burden(self) -> Burden:
        """Measured in separate processes, since torch may already be imported in this one."""
        found = self._measured()
        for _ in range(2):
            if found.seconds > SLOW and not found.heavy:
                # A busy machine or a first compilation is not the plug-in's fault.
                found = min(found, self._measured(), key=lambda burden: burden.seconds)
        return found

    def _measured(self) -> Burden:
        # With this process's own path, so that it finds the plug-in wherever this one did.
        code = (
            f"import json, sys; sys.path[:] = {sys.path!r}; "
            "from aang_core.plugins import load_plugins; "
            f"found = load_plugins(local={self.local!r}, only={{{self.distribution!r}}}); "
            f"seconds = [r.seconds for r in found.records if r.origin.distribution == "
            f"{self.distribution!r}]; "
            f"heavy = [m for m in {HEAVY!r} if m in sys.modules]; "
            "print(json.dumps([sum(seconds), heavy]))"
        )
        command = [sys.executable, "-P", "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return Burden(0.0, (), done.stderr.strip()[-500:] or "it says nothing")
        seconds, heavy = json.loads(done.stdout.splitlines()[-1])
        return Burden(float(seconds), tuple(heavy))


def load_alone(plugin: str) -> Alone:
    """Load a plug-in, with only the core, the standard plug-ins and those that it depends on.

    Args:
        plugin: an installed distribution, its entry point, or a file ``FILE.py``.

    Raises:
        UnknownNameError: no such plug-in is installed.
    """
    local = (plugin,) if plugin.endswith(".py") else ()
    # This loads only the core, and lists all others. The environment may name
    # this file and others, of which the last would be taken for it.
    environ = {name: os.environ[name] for name in os.environ if not local or name != LOAD_VARIABLE}
    found = load_plugins(local=local, only=(), environ=environ)
    origins = [record.origin for record in found.records]
    named = origins[-1:] if local else _named(plugin, origins)
    distribution = named[0].distribution
    required = standard_plugins() | required_by(distribution) | {"aang-testing"}
    needed = {o.distribution for o in origins if normalised(o.distribution) in required}
    needed.add(distribution)
    plugins = load_plugins(local=local, only=needed)
    records = {record.origin: record for record in reversed(plugins.records)}
    return Alone(tuple(records[origin] for origin in named), plugins, local)


def _named(plugin: str, origins: Sequence[Origin]) -> list[Origin]:
    """Every entry point of the distribution ``plugin``, or the entry point of this name."""
    if entry_points := [origin for origin in origins if origin.distribution == plugin]:
        return entry_points
    known = {origin.entry_point: origin for origin in origins}
    if plugin not in known:
        names = [*known, *(origin.distribution for origin in origins)]
        hint = did_you_mean(plugin, names, "there are")
        raise UnknownNameError(f"there is no plug-in {plugin}; {hint}")
    return [known[plugin]]
