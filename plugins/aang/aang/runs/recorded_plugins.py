"""The plug-ins that a run records in ``plugins.json``, and how they differ when it is resumed."""

from collections.abc import Sequence
from pathlib import Path

from aang.assembly.sources import Sources
from aang.runs.run_files import read_part
from aang.runs.schema import PluginsUsed, PluginUsed
from aang_core.errors import DataError
from aang_core.plugins import Plugins
from aang_core.plugins.comparison import plugin_differences


def plugins_used(plugins: Plugins, sources: Sources, changes: Sequence[str]) -> PluginsUsed:
    """Distribution and version of every plug-in, and the primitives that the run uses.

    Args:
        plugins: all plug-ins that were found.
        sources: the sources of the run.
        changes: how the plug-ins had changed when the run was resumed, a sentence each.
    """
    objectives = [*sources.objectives, *(stage.objective for stage in sources.pretraining)]
    used = [sources.weighter, *(p for objective in objectives for p in objective.primitives)]
    return PluginsUsed(
        plugins=[
            PluginUsed(
                distribution=record.origin.distribution,
                version=record.origin.version,
                entry_point=record.origin.entry_point,
                status=record.status,
            )
            for record in plugins.records
        ],
        primitives={f"{p.stage}/{p.key}": p.origin.distribution for p in used},
        changes=list(changes),
    )


def recorded_differences(out: Path, installed: Plugins) -> list[str]:
    """How the plug-ins of the run in ``out`` differ from those installed, a sentence each.

    Raises:
        DataError: the run's ``plugins.json`` is damaged.
    """
    recorded = _recorded(out)
    return plugin_differences(recorded.document(), installed) if recorded else []


def changes(out: Path, installed: Plugins) -> list[str]:
    """The differences found by earlier resumes of the run, and by this one.

    Raises:
        DataError: the run's ``plugins.json`` is damaged.
    """
    recorded = _recorded(out)
    return [*(recorded.changes if recorded else ()), *recorded_differences(out, installed)]


def _recorded(out: Path) -> PluginsUsed | None:
    """Read ``plugins.json``; None if the run was interrupted before it was written."""
    try:
        return read_part(PluginsUsed, out)
    except FileNotFoundError:
        return None
    except DataError as error:
        raise DataError(f"{error}; start a new run") from error
