"""AANG: build auxiliary objectives from plug-in stages, and learn which of them help.

This is the index of the public names. Each is imported from its module when first used, so that
plug-ins can register, and commands can list things, without importing torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any
from warnings import warn

if TYPE_CHECKING:
    from aang_core.errors import (
        AangError,
        AmbiguousNameError,
        ConfigError,
        DataError,
        LockedError,
        ModelError,
        PluginError,
        SharedError,
        UnknownNameError,
    )
    from aang_core.fitting import FitResult, fit
    from aang_core.hookspecs import (
        RegisterCommand,
        RegisterGrid,
        RegisterObjective,
        RegisterOption,
        RegisterPrimitive,
        RegisterRecipe,
        RegisterSpace,
        RegisterTarget,
        hookimpl,
    )
    from aang_core.objectives.objective import Objective
    from aang_core.objectives.space import Space, load_space
    from aang_core.objectives.stages import (
        SELECTION_RATE,
        CorruptedRows,
        Corruption,
        CountsHits,
        Data,
        DataContext,
        DocumentStatistics,
        EndTaskData,
        Example,
        HeadBuilder,
        Output,
        ReadReport,
        Representation,
        RowsBefore,
        ShownRows,
        StepData,
        StreamingData,
        TaggedWord,
        TextRepresentation,
        TextStream,
        Transform,
        View,
        Vocabulary,
        random_tokens,
        select_tokens,
        sentence_starts,
        word_starts,
    )
    from aang_core.plugins import Plugins, load_plugins
    from aang_core.plugins.hooks import PLUGIN_API
    from aang_core.plugins.name_table import did_you_mean
    from aang_core.plugins.options import number_option, sample_size_option, whole_number_option
    from aang_core.plugins.primitive import STAGES, Origin, Primitive, Stage
    from aang_core.plugins.registry import Registry
    from aang_core.tasks.processes import Processes
    from aang_core.tasks.signals import Signal, StepSignals
    from aang_core.tasks.task import Batch, RowLosses, Task, TensorTask
    from aang_core.tasks.weighting import (
        StepwiseWeighter,
        TaskCard,
        Weighter,
        restored_by_task,
        softmax,
    )
    from aang_core.tasks.workbench import DevLossAlong, Update, Workbench
    from aang_core.training.evaluation import Metric, scores
    from aang_core.training.optimization import OptimizerSettings
    from aang_core.training.trainer import Observer

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
    "EndTaskData",
    "Example",
    "FitResult",
    "HeadBuilder",
    "LockedError",
    "Metric",
    "ModelError",
    "Objective",
    "Observer",
    "OptimizerSettings",
    "Origin",
    "Output",
    "PluginError",
    "Plugins",
    "Primitive",
    "Processes",
    "ReadReport",
    "RegisterCommand",
    "RegisterGrid",
    "RegisterObjective",
    "RegisterOption",
    "RegisterPrimitive",
    "RegisterRecipe",
    "RegisterSpace",
    "RegisterTarget",
    "Registry",
    "Representation",
    "RowLosses",
    "RowsBefore",
    "SharedError",
    "ShownRows",
    "Signal",
    "Space",
    "Stage",
    "StepData",
    "StepSignals",
    "StepwiseWeighter",
    "StreamingData",
    "TaggedWord",
    "Task",
    "TaskCard",
    "TensorTask",
    "TextRepresentation",
    "TextStream",
    "Transform",
    "UnknownNameError",
    "Update",
    "View",
    "Vocabulary",
    "Weighter",
    "Workbench",
    "did_you_mean",
    "fit",
    "hookimpl",
    "load_plugins",
    "load_space",
    "number_option",
    "random_tokens",
    "restored_by_task",
    "sample_size_option",
    "scores",
    "select_tokens",
    "sentence_starts",
    "softmax",
    "whole_number_option",
    "word_starts",
]

_HOMES = {
    "errors": (
        "AangError AmbiguousNameError ConfigError DataError LockedError ModelError PluginError "
        "SharedError UnknownNameError"
    ),
    "fitting": "FitResult fit",
    "hookspecs": (
        "RegisterCommand RegisterGrid RegisterObjective RegisterOption RegisterPrimitive "
        "RegisterRecipe RegisterSpace RegisterTarget hookimpl"
    ),
    "objectives.objective": "Objective",
    "plugins.options": "number_option sample_size_option whole_number_option",
    "plugins.hooks": "PLUGIN_API",
    "plugins": "Plugins load_plugins",
    "plugins.primitive": "STAGES Origin Primitive Stage",
    "plugins.name_table": "did_you_mean",
    "plugins.registry": "Registry",
    "objectives.space": "Space load_space",
    "objectives.stages": (
        "SELECTION_RATE CorruptedRows Corruption CountsHits Data DataContext DocumentStatistics "
        "EndTaskData Example HeadBuilder Output ReadReport Representation RowsBefore ShownRows "
        "StepData StreamingData TaggedWord TextRepresentation TextStream Transform View "
        "Vocabulary random_tokens select_tokens sentence_starts word_starts"
    ),
    "tasks.processes": "Processes",
    "tasks.task": "Batch RowLosses Task TensorTask",
    "training.evaluation": "Metric scores",
    "training.optimization": "OptimizerSettings",
    "training.trainer": "Observer",
    "tasks.signals": "Signal StepSignals",
    "tasks.weighting": "StepwiseWeighter TaskCard Weighter restored_by_task softmax",
    "tasks.workbench": "DevLossAlong Update Workbench",
}
_MOVED = {
    "AangClassifier": "aang",
    "Diagnosis": "aang_plugin_diagnose",
    "Run": "aang",
    "TextModel": "aang",
    "TrainedPart": "aang",
    "atomic_write": "aang",
    "cache_folder": "aang",
    "find_files": "aang",
    "read_lines": "aang",
    "read_text_lines": "aang",
    "train": "aang",
}
"""Names that this package had, and the package that has each; they go in the next release."""

_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

# Hidden from type checkers: otherwise they would accept any misspelled name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _MOVED:
            warn(
                f"{__name__}.{name} is {_MOVED[name]}.{name} now", DeprecationWarning, stacklevel=2
            )
            return getattr(import_module(_MOVED[name]), name)
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
