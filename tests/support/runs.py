"""From options to a run folder and back."""

from aang.assembly import assembly, option_owners, read_end_task, source_rows
from aang.assembly.assembly import Assembly, assemble, load_model, rehearse
from aang.assembly.end_task import EndTask, class_weights, strata
from aang.assembly.labelled_tasks import without_unread_text
from aang.assembly.objective_task import place_rows, unchanged_where
from aang.assembly.source_rows import SourceReader
from aang.assembly.sources import prepare_sources
from aang.config import (
    TrainConfig,
    left_to_the_data,
    read_config_file,
    recorded_config,
    resolve_config,
    resolve_training,
    schema_of,
    with_absolute_paths,
)
from aang.config.values import parse_settings
from aang.from_python.given_data import GivenData
from aang.runs import (
    PENALTIES,
    choose_device,
    final_fine_tuning,
    linear_result,
    memory,
    tf_idf,
)
from aang.runs.evaluate import applied_scores, evaluation_of
from aang.runs.linear_controls import MOST_WORK, controls_of
from aang.runs.memory import check_memory, lowered
from aang.runs.predict import Predictor, Text
from aang.runs.prediction_files import Row, rows_of_file, rows_of_lines, write_predictions
from aang.runs.resume import new_run_folder
from aang.runs.training import (
    build_trainer,
    choose_training_device,
    part_of,
    score_rows,
)
from aang_plugin_best.arrays import class_names, labelled_columns
from aang_plugin_hub.card import card_of, cell, plain
from aang_plugin_hub.origins import Origins
from aang_plugin_prepare.config import from_anywhere
from aang_plugin_prepare.text import read_unlabelled
