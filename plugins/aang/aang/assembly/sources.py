"""The sources of a run: all names resolved and the end task read, before a model is loaded."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from aang.assembly.chain_stage import PretrainingStage
from aang.assembly.composition import compose_or_default, settle
from aang.assembly.labelled_tasks import auxiliary_files, end_task_files, with_auxiliary_data
from aang.assembly.text_options import check_paths, refuse_unread
from aang.config import TrainConfig
from aang.corpora.cache import atomic_write, cache_folder
from aang.corpora.dataset_task import load_dataset_task
from aang.corpora.demo import (
    DemoExample,
    DemoTask,
    DemoTaskUnavailable,
    load_demo_task,
    out_of_domain_paragraphs,
)
from aang.corpora.demo_unlabelled import UnlabelledParagraphs
from aang.corpora.held_out import HeldOutTexts
from aang.corpora.in_memory import DOMAIN_TEXT, TableInMemory
from aang.corpora.labelled import Columns
from aang.corpora.labelled_task import LabelledTask, load_task
from aang.corpora.tables import NOTHING_IN_MEMORY
from aang.corpora.task_files import column_options
from aang.corpora.train_draw import TrainDraw, draw_train
from aang.corpora.unlabelled_texts import UnlabelledTexts
from aang_core.errors import DataError
from aang_core.objectives.objective import Objective
from aang_core.objectives.stages import Example, ReadReport
from aang_core.plugins.primitive import CORE, Primitive
from aang_core.plugins.registry import Registry

DEMO = "demo"
"""Name of the built-in demo task."""

_ASSETS = files("aang") / "assets"


@dataclass(frozen=True)
class Sources:
    """Everything that a run needs besides its settings.

    Attributes:
        config: the run's options, with what depends on the kind of the end task.
        task: the end task's texts and labels.
        encoder: a model folder or hub name.
        domain: files of in-domain text.
        out_of_domain: files of generic text.
        unlabelled: texts like the end task's own, without labels; None if none are named.
        held_out: recognises the texts of dev and test. Of a test part that is not scored, it knows
            those of the demo and of a data set, but not those of a file, which is not read.
        weighter: the weighter.
        objectives: the objectives; empty if the weighter trains the end task alone.
        pretraining: the stages of pre-training.
        alone: the weighter of these stages and of the final fine-tuning; None if there are none.
        options: options of primitives and weighter that the user set, by name.
        fine_tuning: scores of plain fine-tuning on this task, if they are known beforehand.
        report: notes about the data.
        pretrained: whether ``encoder`` comes from a stage of pre-training.
        draw: which training rows were drawn; None if all of them are used.
    """

    config: TrainConfig
    task: LabelledTask
    encoder: str
    domain: tuple[Path, ...]
    out_of_domain: tuple[Path, ...]
    unlabelled: Iterable[Example] | None
    held_out: HeldOutTexts
    weighter: Primitive
    objectives: Sequence[Objective]
    pretraining: Sequence[PretrainingStage]
    alone: Primitive | None
    options: Mapping[str, Mapping[str, Any]]
    fine_tuning: Mapping[str, Any] | None
    report: ReadReport
    pretrained: bool = False
    draw: TrainDraw | None = None

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
    config, composed = compose_or_default(config, registry, auxiliary)
    refuse_unread(config, composed.data, registry, in_memory)
    read = _read(config, report, in_memory)
    config, composed = settle(config, read.task.task_type, composed, registry, auxiliary)
    for note in composed.notes:
        report.note(note)
    task, draw = _drawn(config, read.task, report)
    if config.model is None and not config.is_demo:
        report.note(
            "no --model is given, so the small encoder of the demo is trained, which has read "
            "Python documentation only; roberta-base, say, knows more"
        )
    as_shipped = config.model is None and config.train_rows is None
    comparable = config.is_demo and as_shipped and not config.from_scratch and config.test_score
    return Sources(
        config=config,
        task=_with_test_if_scored(config, task),
        encoder=encoder_of(config),
        domain=read.domain,
        out_of_domain=read.out_of_domain,
        unlabelled=_unlabelled(config, read, task, report, in_memory),
        held_out=HeldOutTexts(task),
        weighter=composed.weighter,
        objectives=composed.objectives,
        pretraining=composed.stages,
        alone=registry.as_meant_by(CORE).weighter("single-task")
        if composed.stages or config.final_fine_tuning
        else None,
        options=config.set,
        fine_tuning=_shipped_fine_tuning(config.metric) if comparable else None,
        report=report,
        draw=draw,
    )


def encoder_of(config: TrainConfig) -> str:
    """The folder or hub name of the encoder."""
    return config.model or str(_ASSETS / "demo-encoder")


def read_end_task(config: TrainConfig, report: ReadReport) -> tuple[LabelledTask, TrainDraw | None]:
    """Read the end task, and draw its training rows if the options ask for it.

    Args:
        config: the run's options.
        report: collects notes about the data.

    Returns:
        The end task, and which training rows were drawn; None if all of them are used.

    Raises:
        AangError: a file cannot be used, or has too few rows to draw from.
    """
    task, draw = _drawn(config, _read(config, report).task, report)
    return _with_test_if_scored(config, task), draw


def _with_test_if_scored(config: TrainConfig, task: LabelledTask) -> LabelledTask:
    # Not where the demo or a data set is read: their test texts stay out of the unlabelled text.
    return task if config.test_score else replace(task, test=())


def _drawn(
    config: TrainConfig, task: LabelledTask, report: ReadReport
) -> tuple[LabelledTask, TrainDraw | None]:
    if config.train_rows is None:
        return task, None
    task, draw = draw_train(task, config.train_rows, config.seed)
    report.note(
        f"{len(draw.rows)} of {draw.of} training rows drawn, stratified by class, seed "
        f"{config.seed}"
    )
    return task, draw


@dataclass(frozen=True)
class _Read:
    """The end task with its columns, and where its in-domain and out-of-domain texts are."""

    task: LabelledTask
    columns: Columns
    domain: tuple[Path, ...]
    out_of_domain: tuple[Path, ...]


def _read(
    config: TrainConfig,
    report: ReadReport,
    in_memory: Mapping[Path, TableInMemory] = NOTHING_IN_MEMORY,
) -> _Read:
    domain = tuple(
        _domain_file(in_memory[Path(place)]) if Path(place) in in_memory else Path(place)
        for place in config.domain
    )
    other = tuple(Path(place) for place in config.out_of_domain)
    columns = Columns(config.text, config.text_pair, config.label)
    options: dict[str, Any] = {
        **column_options(columns),
        "task_type": config.task_type,
        "label_names": config.label_names,
        "seed": config.seed,
        "dev_fraction": config.dev_fraction,
        "skip_bad_rows": config.skip_bad_rows,
        "report": report,
    }
    files = end_task_files(config)
    if files is not None:
        columns = files.columns
        options |= column_options(columns)
        test = files.test if config.test_score else None
        task = load_task(
            in_memory.get(files.train, files.train),
            None if files.dev is None else in_memory.get(files.dev, files.dev),
            None if test is None else in_memory.get(test, test),
            task=columns.task,
            **options,
        )
        return _Read(task, columns, domain, other)
    if config.dataset is not None:
        name, _, part = config.dataset.partition(":")
        return _Read(
            load_dataset_task(name, config=part or None, **options), columns, domain, other
        )
    try:
        demo = load_demo_task()
    except DemoTaskUnavailable as error:
        raise DataError(str(error)) from error
    for package in demo.missing:
        report.add("package of the demo task that this Python lacks", package)
    return _Read(
        _labelled(demo),
        columns,
        domain or (_text_file("stdlib", demo.domain),),
        other or (_text_file("reference", out_of_domain_paragraphs(demo)),),
    )


def _unlabelled(
    config: TrainConfig,
    read: _Read,
    task: LabelledTask,
    report: ReadReport,
    in_memory: Mapping[Path, TableInMemory],
) -> Iterable[Example] | None:
    """Texts like the end task's own; they are read when they are iterated over."""
    if config.unlabelled:
        return UnlabelledTexts(config.unlabelled, read.columns, task, report, in_memory)
    return UnlabelledParagraphs(task) if config.is_demo else None


def _labelled(demo: DemoTask) -> LabelledTask:
    def examples(part: Sequence[DemoExample]) -> tuple[Example, ...]:
        return tuple(Example(e.text, label=e.label) for e in part)

    return LabelledTask(
        DEMO, examples(demo.train), examples(demo.dev), examples(demo.test), demo.labels
    )


def _text_file(name: str, texts: Sequence[str]) -> Path:
    """Write the demo's unlabelled text to a file, one paragraph per line, and return its path."""
    return _cached_file("demo", name, ".txt", "\n".join(texts) + "\n")


def _domain_file(table: TableInMemory) -> Path:
    """Write in-domain text that is in memory to a file, which data primitives can read."""
    return _cached_file("in-memory", "domain", ".jsonl", table.copy((DOMAIN_TEXT,)))


def _cached_file(folder: str, name: str, extension: str, content: str) -> Path:
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    path = cache_folder() / folder / f"{name}-{digest}{extension}"
    if not path.exists():
        with atomic_write(path) as draft:
            draft.write_text(content, encoding="utf-8")
    return path


def _shipped_fine_tuning(metric: str) -> Mapping[str, Any] | None:
    """Scores of ``--weighter single-task`` on the demo, measured when the encoder was made."""
    path = _ASSETS / "demo-fine-tuning.json"
    if not path.is_file():
        return None
    shipped: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return shipped if shipped["metric"] == metric else None
