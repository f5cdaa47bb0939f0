"""The sources of a run: its plan and its end task, before a model is loaded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from aang.assembly.labelled_tasks import (
    auxiliary_files,
    end_task_columns,
    end_task_files,
    with_auxiliary_data,
)
from aang.assembly.plan import Plan, make_plan, settled
from aang.assembly.text_options import check_paths, refuse_unread
from aang.config import TrainConfig
from aang.corpora.cache import cached_text
from aang.corpora.dataset_task import load_dataset_task
from aang.corpora.in_memory import DOMAIN_TEXT
from aang.corpora.labelled import can_be_learned
from aang.corpora.labelled_task import (
    LabelledTask,
    TaskReading,
    TaskWithTexts,
    load_task,
)
from aang.corpora.tables import NOTHING_IN_MEMORY, TableInMemory
from aang.corpora.train_draw import TrainDraw, draw_train
from aang.corpora.unlabelled_texts import UnlabelledTexts
from aang_core.errors import ConfigError, DataError
from aang_core.gradients.dev_head import find_dev_heads
from aang_core.gradients.engine import find_engine
from aang_core.objectives.stages import DataContext, Example, ReadReport
from aang_core.plugins import load_plugins
from aang_core.plugins.primitive import CORE, TargetEntry
from aang_core.plugins.registry import Registry

DEMO = "demo"
"""The end task, brought by a plug-in, that is trained where no data is named."""


@dataclass(frozen=True)
class Sources:
    """A plan and its sources: the end task is read, and the rest is located.

    Attributes:
        plan: what the run trains, with the options that depend on the kind of the end task.
        task: the end task's texts and labels.
        encoder: a model folder or hub name.
        context: what data primitives read, and where they report.
        held_out: returns the part, dev or test, that has a text. An unscored test part counts if it
            is the demo's or a data set's, but not if it is a file, which is not read.
        fine_tuning: scores of plain fine-tuning on this task, if they are known beforehand.
        pretrained: whether ``encoder`` comes from a stage of pre-training.
        draw: which training rows were drawn; None if all of them are used.
        copies: the copies of data in memory, by the names of their files in the run folder.
        registry: everything that plug-ins have registered.
        engine: the engine of a plug-in that ``--gradients`` selects; None for the core's own.
        dev_heads: the dev heads of plug-ins that ``--dev-head`` and ``--dev-head-fit`` select.
    """

    plan: Plan
    task: LabelledTask
    encoder: str
    context: DataContext
    held_out: Callable[[Example], str | None]
    fine_tuning: Mapping[str, Any] | None
    pretrained: bool = False
    draw: TrainDraw | None = None
    copies: Mapping[str, str] = field(default_factory=dict)
    registry: Registry = field(default_factory=Registry)
    engine: TargetEntry | None = None
    dev_heads: Mapping[str, TargetEntry] = field(default_factory=dict)

    @property
    def config(self) -> TrainConfig:
        """The options of the plan."""
        return self.plan.config

    @property
    def named_engine(self) -> TargetEntry | None:
        """The engine of a plug-in that ``--gradients`` names.

        None for the core's own, and for ``auto``, which takes what suits the device.
        """
        return None if self.config.gradients == "auto" else self.engine

    @property
    def report(self) -> ReadReport:
        """Notes about the data."""
        return self.context.report

    def with_options(self, **options: Any) -> "Sources":
        """The same sources with other options, which change nothing that is read already."""
        config = self.config.model_copy(update=options)
        return replace(self, plan=replace(self.plan, config=config))

    def after(self, encoder: str) -> "Sources":
        """The same sources with the encoder that a stage of pre-training has saved."""
        return replace(self, encoder=encoder, pretrained=True, fine_tuning=None)


def prepare_sources(
    config: TrainConfig,
    registry: Registry,
    in_memory: Mapping[Path, TableInMemory] = NOTHING_IN_MEMORY,
) -> Sources:
    """Resolve every name in ``config``, then read the end task.

    Args:
        config: the run's options.
        registry: everything that plug-ins have registered.
        in_memory: data in memory, by the files in ``config`` that will hold its copy.

    Raises:
        AangError: a name is unknown or ambiguous, an option is not used, a primitive cannot be
            imported, or a file cannot be used.
    """
    auxiliary = auxiliary_files(config)
    registry = with_auxiliary_data(registry, auxiliary)
    report = ReadReport()
    # Fail now if a name or a path is wrong, before any data is read or a model is loaded.
    check_paths(config, in_memory)
    engine = find_engine(config.gradients, registry)
    dev_heads = find_dev_heads(config.dev_head, config.dev_head_fit, registry)
    plan = make_plan(config, registry, auxiliary)
    refuse_unread(plan, registry, in_memory)
    read = _read(plan.config, report, registry, in_memory)
    plan = settled(plan, read.task.task_type, registry, auxiliary)
    for note in plan.notes:
        report.note(note)
    config = plan.config
    if config.test_predictions and not (config.test_score and read.task.test):
        raise ConfigError(
            "--test-predictions: the run has no test rows to predict; give --test, without "
            "--no-test-score"
        )
    task, draw = _trained(config, read.task, report)
    unlabelled = read.unlabelled
    if config.unlabelled:
        places = [in_memory.get(Path(place), place) for place in config.unlabelled]
        columns = end_task_columns(config)
        unlabelled = UnlabelledTexts(places, columns, task, report)
    if config.model is None and not config.is_demo:
        report.note(
            "no --model is given, so the small encoder of the demo is trained. It has read only "
            "Python documentation; a general one, such as roberta-base, will do better"
        )
    own_encoder = config.model is None and not config.from_scratch
    own_rows = config.train_rows is None and not config.train_on_dev and not config.meta_fraction
    comparable = config.is_demo and own_encoder and own_rows and config.test_score
    measured = read.fine_tuning if comparable else None
    return Sources(
        plan=plan,
        task=_with_test_if_scored(config, task),
        encoder=encoder_of(config),
        context=DataContext(
            task.train, read.domain, read.out_of_domain, unlabelled, config.seed, report
        ),
        held_out=partial(_held_out, task, config.train_on_dev),
        fine_tuning=measured if measured and measured["metric"] == config.metric else None,
        draw=draw,
        registry=registry,
        engine=engine,
        dev_heads=dev_heads,
    )


def encoder_of(config: TrainConfig) -> str:
    """The folder or hub name of the encoder."""
    return config.model or str(files("aang") / "assets" / "demo-encoder")


def read_end_task(
    config: TrainConfig, report: ReadReport, registry: Registry | None = None
) -> tuple[LabelledTask, TrainDraw | None]:
    """Read the end task, and draw its training rows, or add dev's, if the options ask for it.

    Args:
        config: the run's options.
        report: collects notes about the data.
        registry: where kinds of end task are looked up; None for the installed ones.

    Returns:
        The end task, and which training rows were drawn; None if all of them are used.

    Raises:
        AangError: a file cannot be used, or has too few rows to draw from.
    """
    read = _read(config, report, registry or load_plugins().registry)
    task, draw = _trained(config, read.task, report)
    return _with_test_if_scored(config, task), draw


def _held_out(task: LabelledTask, train_on_dev: bool, example: Example) -> str | None:
    """``dev`` or ``test``, if the text is in it and so must not be trained on."""
    part = task.part_with(example)
    return None if train_on_dev and part == "dev" else part


def _with_test_if_scored(config: TrainConfig, task: LabelledTask) -> LabelledTask:
    # Only after reading: the test texts of the demo and of data sets stay out of unlabelled text.
    return task if config.test_score else replace(task, test=())


def _trained(
    config: TrainConfig, task: LabelledTask, report: ReadReport
) -> tuple[LabelledTask, TrainDraw | None]:
    draw = None
    if config.train_rows is not None:
        task, draw = draw_train(task, config.train_rows, config.seed)
        report.note(
            f"{len(draw.rows)} of {draw.of} training rows drawn, {task.task_type.draws}, seed "
            f"{config.seed}"
        )
    return (_with_dev(task, report) if config.train_on_dev else task), draw


def _with_dev(task: LabelledTask, report: ReadReport) -> LabelledTask:
    """The task with the dev rows among its training rows, too."""
    unknown = [e for e in task.dev if not can_be_learned(e, task.task_type)]
    if unknown:
        raise DataError(
            f"--train-on-dev: {len(unknown)} of the {len(task.dev)} dev rows have a class that "
            f"train lacks, such as {unknown[0].label!r}, which the model cannot learn; put all "
            "rows into --train, from which dev is then split off"
        )
    report.note(
        f"the {len(task.dev)} dev rows are trained on, too, and the last model is kept, so dev "
        "scores do not say how good it is on new texts"
    )
    return replace(task, train=task.train + task.dev)


def _domain_copy(table: TableInMemory) -> Path:
    """A copy of in-domain text: an array in JSON, of which each row is a text, as in Parquet."""
    return cached_text("in-memory/domain.json", table.copy((DOMAIN_TEXT,), array=True))


def _read(
    config: TrainConfig,
    report: ReadReport,
    registry: Registry,
    in_memory: Mapping[Path, TableInMemory] = NOTHING_IN_MEMORY,
) -> TaskWithTexts:
    """The end task, and where its in-domain and out-of-domain texts are."""
    domain = tuple(
        _domain_copy(in_memory[Path(place)]) if Path(place) in in_memory else Path(place)
        for place in config.domain
    )
    other = tuple(Path(place) for place in config.out_of_domain)
    reading = TaskReading(
        end_task_columns(config),
        config.task_type,
        config.label_names,
        config.seed,
        config.dev_fraction,
        config.skip_bad_rows,
        registry,
    )
    files = end_task_files(config)
    if files is not None:
        named = {"train": files.train, "dev": files.dev}
        if config.test_score:
            named["test"] = files.test
        parts = {
            part: in_memory.get(path, path) for part, path in named.items() if path is not None
        }
        return TaskWithTexts(load_task(parts, reading, report, files.name), domain, other)
    if config.dataset not in (None, DEMO) and config.dataset not in registry.tasks:
        name, _, part = config.dataset.partition(":")
        return TaskWithTexts(load_dataset_task(name, part or None, reading, report), domain, other)
    tasks = registry.tasks if config.dataset else registry.as_meant_by(CORE).tasks
    brought: TaskWithTexts = tasks.find(config.dataset or DEMO).load()(report)
    return replace(
        brought, domain=domain or brought.domain, out_of_domain=other or brought.out_of_domain
    )
