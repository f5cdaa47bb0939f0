"""From options to a run folder and back."""

from aang_core.assembly import assembly, option_owners, read_end_task, source_rows, unlabelled
from aang_core.assembly.assembly import Assembly, assemble, load_model
from aang_core.assembly.end_task import EndTask
from aang_core.assembly.imbalance import class_weights, strata
from aang_core.assembly.named_options import without_unread_text
from aang_core.assembly.placed_rows import place_rows, unchanged_where
from aang_core.assembly.prediction import part_of
from aang_core.assembly.rehearsal import rehearse
from aang_core.assembly.source_rows import SourceReader
from aang_core.assembly.sources import prepare_sources
from aang_core.config import (
    TrainConfig,
    left_to_the_data,
    read_config_file,
    recorded_config,
    resolve_config,
    resolve_training,
    with_absolute_paths,
)
from aang_core.config.settings import parse_settings
from aang_core.from_python.arrays import class_names, labelled_columns
from aang_core.from_python.given_data import GivenData
from aang_core.runs import (
    LINEAR,
    PENALTIES,
    Origins,
    card_of,
    final_fine_tuning,
    fitting,
    linear_result,
    memory_needed,
    prediction_files,
    tf_idf,
)
from aang_core.runs.applied import applied_scores
from aang_core.runs.evaluating import evaluation_of
from aang_core.runs.linear_controls import MOST_WORK, controls_of
from aang_core.runs.markdown import plain, table
from aang_core.runs.memory_needed import check_memory, lowering_told
from aang_core.runs.new_folder import new_run_folder
from aang_core.runs.prediction_files import write_predictions
from aang_core.runs.predictor import Prediction, Predictor, Text
from aang_core.runs.preparation_config import from_anywhere
from aang_core.runs.texts_to_predict import Row, rows_of_file, rows_of_lines
from aang_core.runs.tracking import Tracker
from aang_core.runs.training import build_trainer, choose_device, choose_training_device, score_rows
