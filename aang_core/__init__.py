"""AANG: build auxiliary objectives from plug-in stages, and learn which of them help.

This is the index of the public names. Each is imported from its module when first used, so that a
plug-in's hooks, and every command that only lists things, do without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aang_core.corpora.cache import atomic_write, cache_folder
    from aang_core.corpora.places import find_files, read_lines, read_text_lines
    from aang_core.errors import (
        AangError,
        AmbiguousNameError,
        ConfigError,
        DataError,
        ModelError,
        PluginError,
        UnknownNameError,
    )
    from aang_core.fitting import FitResult, fit
    from aang_core.hookspecs import (
        RegisterCommand,
        RegisterObjective,
        RegisterPrimitive,
        RegisterSpace,
        hookimpl,
    )
    from aang_core.objective import Objective
    from aang_core.options import number_option, sample_size_option
    from aang_core.plugin_api import PLUGIN_API
    from aang_core.plugins import Plugins, load_plugins
    from aang_core.primitive import STAGES, Origin, Primitive, Stage
    from aang_core.registry import Registry
    from aang_core.run import Run, train
    from aang_core.space import Space, load_space
    from aang_core.stages import (
        SELECTION_RATE,
        CorruptedRows,
        Corruption,
        CountsHits,
        Data,
        DataContext,
        DocumentStatistics,
        Example,
        HeadBuilder,
        Output,
        ReadReport,
        Representation,
        StepData,
        StreamingData,
        TextStream,
        Transform,
        View,
        Vocabulary,
        random_tokens,
        select_tokens,
        word_starts,
    )
    from aang_core.tasks import Batch, RowLosses, Task
    from aang_core.tensor_task import TensorTask
    from aang_core.training.evaluation import scores
    from aang_core.training.optimization import OptimizerSettings
    from aang_core.weighting import (
        DevLossAlong,
        Signal,
        StepSignals,
        StepwiseWeighter,
        TaskCard,
        Update,
        Weighter,
        Workbench,
    )

__all__ = [
    "PLUGIN_API",
    "SELECTION_RATE",
    "STAGES",
    "AangError",
    "AmbiguousNameError",
    "Batch",
    "ConfigError",
    "CorruptedRows",
    "Corruption",
    "CountsHits",
    "Data",
    "DataContext",
    "DataError",
    "DevLossAlong",
    "DocumentStatistics",
    "Example",
    "FitResult",
    "HeadBuilder",
    "ModelError",
    "Objective",
    "OptimizerSettings",
    "Origin",
    "Output",
    "PluginError",
    "Plugins",
    "Primitive",
    "ReadReport",
    "RegisterCommand",
    "RegisterObjective",
    "RegisterPrimitive",
    "RegisterSpace",
    "Registry",
    "Representation",
    "RowLosses",
    "Run",
    "Signal",
    "Space",
    "Stage",
    "StepData",
    "StepSignals",
    "StepwiseWeighter",
    "StreamingData",
    "Task",
    "TaskCard",
    "TensorTask",
    "TextStream",
    "Transform",
    "UnknownNameError",
    "Update",
    "View",
    "Vocabulary",
    "Weighter",
    "Workbench",
    "atomic_write",
    "cache_folder",
    "find_files",
    "fit",
    "hookimpl",
    "load_plugins",
    "load_space",
    "number_option",
    "random_tokens",
    "read_lines",
    "read_text_lines",
    "sample_size_option",
    "scores",
    "select_tokens",
    "train",
    "word_starts",
]

_HOMES = {
    "corpora.cache": "atomic_write cache_folder",
    "corpora.places": "find_files read_lines read_text_lines",
    "errors": (
        "AangError AmbiguousNameError ConfigError DataError ModelError PluginError UnknownNameError"
    ),
    "fitting": "FitResult fit",
    "hookspecs": ("RegisterCommand RegisterObjective RegisterPrimitive RegisterSpace hookimpl"),
    "objective": "Objective",
    "options": "number_option sample_size_option",
    "plugin_api": "PLUGIN_API",
    "plugins": "Plugins load_plugins",
    "primitive": "STAGES Origin Primitive Stage",
    "registry": "Registry",
    "run": "Run train",
    "space": "Space load_space",
    "stages": (
        "SELECTION_RATE CorruptedRows Corruption CountsHits Data DataContext DocumentStatistics "
        "Example HeadBuilder Output ReadReport Representation StepData StreamingData TextStream "
        "Transform View Vocabulary random_tokens select_tokens word_starts"
    ),
    "tasks": "Batch RowLosses Task",
    "tensor_task": "TensorTask",
    "training.evaluation": "scores",
    "training.optimization": "OptimizerSettings",
    "weighting": (
        "DevLossAlong Signal StepSignals StepwiseWeighter TaskCard Update Weighter Workbench"
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

# Hidden from type checkers: with it they would take any misspelled name for an attribute.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
