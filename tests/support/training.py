"""The trainer, its workbench, rows, optimisation and checkpoints."""

from aang_core.cores import usable_cores
from aang_core.tasks.launched import local_rank
from aang_core.tasks.processes import ALONE, Processes, processes_of_environment
from aang_core.tasks.single_task import SingleTask
from aang_core.training import devices, precision
from aang_core.training.balanced_order import BalancedOrder
from aang_core.training.bench import TrainingBench
from aang_core.training.checkpoint import load_checkpoint, save_checkpoint
from aang_core.training.compiling import check_compiler
from aang_core.training.dev_set import DevSet
from aang_core.training.draws import OTHER_DROPOUT, separate_dropout
from aang_core.training.evaluation import per_class
from aang_core.training.free_memory import ReturnsFreeMemory
from aang_core.training.frozen_part import FrozenPart
from aang_core.training.interruption import Interrupted, Interruption
from aang_core.training.losses import LossMeans
from aang_core.training.memory import is_out_of_memory, running_out_told
from aang_core.training.memory_cost import MemoryCost
from aang_core.training.model_state import ModelState
from aang_core.training.numbers import problem_of
from aang_core.training.optimization import Optimization
from aang_core.training.precision import check_precision, in_effect, settle_precision
from aang_core.training.rows import RowOrder, rows_of_draw, share_rows
from aang_core.training.setup import TrainingSettings, make_trainer
from aang_core.training.signal_mean import SignalMean
from aang_core.training.step_rows import RowBudget
from aang_core.training.trainer import Schedule, Trainer
