"""The trainer, its workbench, rows, optimisation and checkpoints."""

from aang.runs import computing as precision
from aang.runs import devices
from aang.runs.computing import check_compiler, check_precision, in_effect, settle_precision
from aang.runs.memory import ReturnsFreeMemory, running_out_told
from aang.task_types.metrics import per_class

from aang_core.fitting import TrainingSettings, make_trainer
from aang_core.tasks.processes import ALONE, Processes, local_rank, processes_of_environment
from aang_core.tasks.weighting import SingleTask
from aang_core.training.bench import RunTasks, StepSettings, TrainingBench
from aang_core.training.checkpoint import Checkpointer, load_checkpoint, save_checkpoint
from aang_core.training.interruption import Interrupted, Interruption
from aang_core.training.model_state import FrozenPart, ModelState
from aang_core.training.numbers import LossMeans, problem_of
from aang_core.training.optimization import Optimization
from aang_core.training.rows import (
    OTHER_DROPOUT,
    BalancedOrder,
    Draws,
    RowBudget,
    RowOrder,
    draw_segments,
    separate_dropout,
    share_rows,
)
from aang_core.training.step import is_out_of_memory
from aang_core.training.trainer import Schedule, Trainer, Watching
from aang_core.training.trials import DevSet
