"""AANG: build auxiliary objectives from plug-in stages, and learn which of them help.

This is the index of the public names. Each is imported from its module when first used, so that
plug-ins can register, and commands can list things, without importing torch.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_index

if TYPE_CHECKING:
    from aang_core.errors import AangError as AangError
    from aang_core.errors import AmbiguousNameError as AmbiguousNameError
    from aang_core.errors import ConfigError as ConfigError
    from aang_core.errors import DataError as DataError
    from aang_core.errors import LockedError as LockedError
    from aang_core.errors import ModelError as ModelError
    from aang_core.errors import PluginError as PluginError
    from aang_core.errors import SharedError as SharedError
    from aang_core.errors import UnknownNameError as UnknownNameError
    from aang_core.fitting import FitResult as FitResult
    from aang_core.fitting import fit as fit
    from aang_core.hookspecs import RegisterCandidate as RegisterCandidate
    from aang_core.hookspecs import RegisterCommand as RegisterCommand
    from aang_core.hookspecs import RegisterGrid as RegisterGrid
    from aang_core.hookspecs import RegisterObjective as RegisterObjective
    from aang_core.hookspecs import RegisterOption as RegisterOption
    from aang_core.hookspecs import RegisterPrimitive as RegisterPrimitive
    from aang_core.hookspecs import RegisterRecipe as RegisterRecipe
    from aang_core.hookspecs import RegisterSpace as RegisterSpace
    from aang_core.hookspecs import RegisterTarget as RegisterTarget
    from aang_core.hookspecs import hookimpl as hookimpl
    from aang_core.objectives.objective import Objective as Objective
    from aang_core.objectives.space import Space as Space
    from aang_core.objectives.space import load_space as load_space
    from aang_core.objectives.stages import SELECTION_RATE as SELECTION_RATE
    from aang_core.objectives.stages import CorruptedRows as CorruptedRows
    from aang_core.objectives.stages import Corruption as Corruption
    from aang_core.objectives.stages import Data as Data
    from aang_core.objectives.stages import DataContext as DataContext
    from aang_core.objectives.stages import DocumentStatistics as DocumentStatistics
    from aang_core.objectives.stages import EmbeddedRows as EmbeddedRows
    from aang_core.objectives.stages import Example as Example
    from aang_core.objectives.stages import HeadBuilder as HeadBuilder
    from aang_core.objectives.stages import NoisesEmbeddings as NoisesEmbeddings
    from aang_core.objectives.stages import Output as Output
    from aang_core.objectives.stages import ReadReport as ReadReport
    from aang_core.objectives.stages import Representation as Representation
    from aang_core.objectives.stages import RowsBefore as RowsBefore
    from aang_core.objectives.stages import ShownRows as ShownRows
    from aang_core.objectives.stages import TaggedWord as TaggedWord
    from aang_core.objectives.stages import TextRepresentation as TextRepresentation
    from aang_core.objectives.stages import TextStream as TextStream
    from aang_core.objectives.stages import Transform as Transform
    from aang_core.objectives.stages import View as View
    from aang_core.objectives.stages import Vocabulary as Vocabulary
    from aang_core.objectives.stages import random_tokens as random_tokens
    from aang_core.objectives.stages import select_tokens as select_tokens
    from aang_core.objectives.stages import sentence_starts as sentence_starts
    from aang_core.objectives.stages import word_starts as word_starts
    from aang_core.plugins import Plugins as Plugins
    from aang_core.plugins import load_plugins as load_plugins
    from aang_core.plugins.hooks import PLUGIN_API as PLUGIN_API
    from aang_core.plugins.primitive import STAGES as STAGES
    from aang_core.plugins.primitive import CandidateEntry as CandidateEntry
    from aang_core.plugins.primitive import Origin as Origin
    from aang_core.plugins.primitive import Primitive as Primitive
    from aang_core.plugins.primitive import Stage as Stage
    from aang_core.plugins.primitive import flag_option as flag_option
    from aang_core.plugins.primitive import number_option as number_option
    from aang_core.plugins.primitive import sample_size_option as sample_size_option
    from aang_core.plugins.primitive import whole_number_option as whole_number_option
    from aang_core.plugins.registry import Registry as Registry
    from aang_core.plugins.registry import did_you_mean as did_you_mean
    from aang_core.tasks.processes import Processes as Processes
    from aang_core.tasks.task import Batch as Batch
    from aang_core.tasks.task import RowLosses as RowLosses
    from aang_core.tasks.task import Task as Task
    from aang_core.tasks.task import TensorTask as TensorTask
    from aang_core.tasks.weighting import StepwiseWeighter as StepwiseWeighter
    from aang_core.tasks.weighting import TaskCard as TaskCard
    from aang_core.tasks.weighting import Weighter as Weighter
    from aang_core.tasks.weighting import restored_by_task as restored_by_task
    from aang_core.tasks.weighting import softmax as softmax
    from aang_core.tasks.workbench import DevLossAlong as DevLossAlong
    from aang_core.tasks.workbench import Signal as Signal
    from aang_core.tasks.workbench import StepSignals as StepSignals
    from aang_core.tasks.workbench import Update as Update
    from aang_core.tasks.workbench import Workbench as Workbench
    from aang_core.training.optimization import OptimizerSettings as OptimizerSettings
    from aang_core.training.trainer import Observer as Observer
else:
    __getattr__, __dir__, __all__ = lazy_index(__name__)
