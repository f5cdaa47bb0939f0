"""The trainer, its workbench, rows, optimisation and checkpoints."""

from aang_core.cores import usable_cores
from aang_core.tasks.processes import ALONE, Processes, local_rank, processes_of_environment
from aang_core.tasks.weighting import SingleTask
from aang_core.training import devices, precision
from aang_core.training.bench import RunTasks, StepSettings, TrainingBench
from aang_core.training.checkpoint import load_checkpoint, save_checkpoint
from aang_core.training.compiling import check_compiler
from aang_core.training.evaluation import per_class
from aang_core.training.free_memory import ReturnsFreeMemory
from aang_core.training.interruption import Interrupted, Interruption
from aang_core.training.means import LossMeans, SignalMean
from aang_core.training.memory import is_out_of_memory, running_out_told
from aang_core.training.memory_cost import MemoryCost
from aang_core.training.model_state import FrozenPart, ModelState
from aang_core.training.numbers import problem_of
from aang_core.training.optimization import Optimization
from aang_core.training.precision import check_precision, in_effect, settle_precision
from aang_core.training.rows import (
    OTHER_DROPOUT,
    BalancedOrder,
    RowBudget,
    RowOrder,
    separate_dropout,
    share_rows,
)
from aang_core.training.setup import TrainingSettings, make_trainer
from aang_core.training.trainer import Schedule, Trainer, Watching
from aang_core.training.trials import DevSet
