"""Chooses the end task among the labelled data sets; the others become data primitives."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from aang.assembly.plan import READ_BY, Plan, make_plan, validated
from aang.config import TrainConfig
from aang.corpora.columns import Columns
from aang.corpora.labelled import read_rows
from aang.corpora.labelled_task import new_texts
from aang.corpora.places import task_name
from aang.task_types.cells import mostly_fractions
from aang.task_types.single_label import ONE_CLASS
from aang_core.errors import ConfigError, UnknownNameError
from aang_core.objectives.stages.data import Data, DataContext, Example
from aang_core.plugins.primitive import CORE, Origin, Primitive
from aang_core.plugins.registry import Registry


@dataclass(frozen=True)
class TaskFiles:
    """A labelled data set of the user: its files and its columns.

    Attributes:
        name: the task's name.
        train: its training file.
        dev: its dev file, used only if this is the end task.
        test: its test file, used only if this is the end task.
        columns: names of its columns.
        skip_bad_rows: whether rows that lack a text or label are left out.
    """

    name: str
    train: Path
    dev: Path | None
    test: Path | None
    columns: Columns
    skip_bad_rows: bool = False


class LabelledFile(Data):
    """The data of an auxiliary task: texts with their own labels, from one file.

    Args:
        files: the task; only its training file is read.
        text: column of the text.
        text_pair: column of the second text; None for single texts.
        label: column of the label.
    """

    def __init__(
        self, files: TaskFiles, *, text: str, text_pair: str | None = None, label: str
    ) -> None:
        self._files = files
        self._columns = Columns(text, text_pair, label, task=files.name)
        self._held_out: Callable[[Example], str | None] = lambda example: None

    def leave_out(self, held_out: Callable[[Example], str | None]) -> None:
        """Leave out texts of the end task's dev and test: their labels may reveal those there."""
        self._held_out = held_out

    def examples(self, context: DataContext) -> Iterable[Example]:
        """The examples in file order.

        Raises:
            DataError: the file cannot be used, all its examples are left out, or the others have
                only one label.
        """
        skip, report = self._files.skip_bad_rows, context.report
        rows = read_rows(self._files.train, self._columns, report, skip_bad_rows=skip)
        found = zip(rows.examples, rows.places, strict=True)
        usable = list(new_texts(found, self._held_out, self._files.name, rows.source, report))
        labels = [example.label for example in usable if example.label is not None]
        ONE_CLASS.fitted(labels, rows.source, self._columns.option("label"), report)
        if numbers := mostly_fractions(labels):
            report.note(
                f"{rows.source}: each of its numbers, such as {numbers[0]:g}, is a class of its own"
            )
        return usable


class _AuxiliaryOptions(BaseModel):
    """The options ``--set NAME.…`` of an auxiliary task."""

    model_config = ConfigDict(extra="forbid")

    text: str
    text_pair: str | None
    label: str
    dev: Path | None = None
    test: Path | None = None


def end_task_files(config: TrainConfig) -> TaskFiles | None:
    """The files of the end task; None for a Hugging Face data set and for the demo.

    Raises:
        ConfigError: an option is wrong.
        UnknownNameError: ``--target`` names no task of the run.
    """
    tasks = _tasks(config)
    if config.target in (None, config.task_name):
        return tasks.get(config.task_name) if config.train is not None else None
    if config.target not in tasks:
        known = ", ".join(dict.fromkeys([config.task_name, *tasks]))
        raise UnknownNameError(
            f"--target {config.target}: is not among the tasks of this run, which are {known}"
        )
    return tasks[config.target]


def end_task_columns(config: TrainConfig) -> Columns:
    """The columns of the end task; raises like :func:`end_task_files`."""
    files = end_task_files(config)
    return Columns(config.text, config.text_pair, config.label) if files is None else files.columns


def auxiliary_files(config: TrainConfig) -> list[TaskFiles]:
    """The labelled data sets besides the end task; raises like :func:`end_task_files`."""
    target = end_task_files(config)
    if target is not None and target.name in config.aux_task and config.dataset is not None:
        raise ConfigError(
            f"--target {target.name}: --dataset {config.dataset} would become an auxiliary task, "
            "and only files can be one; leave --dataset out, or give --train"
        )
    return [task for task in _tasks(config).values() if task != target]


def with_auxiliary_data(registry: Registry, tasks: Sequence[TaskFiles]) -> Registry:
    """Return the registry with a data primitive for each auxiliary task.

    Raises:
        ConfigError: a data primitive has the same name as a task.
    """
    taken = {primitive.name for primitive in registry.primitives("data")}
    for task in tasks:
        if task.name in taken:
            raise ConfigError(
                f"--aux-task {task.name}=…: a data primitive is called {task.name}; "
                "give the task another name"
            )
    return registry.with_primitives([_primitive(task) for task in tasks])


def option_owners(config: TrainConfig, registry: Registry) -> dict[str, Primitive | None]:
    """What ``--set NAME.OPTION`` may name in a run.

    Args:
        config: the run's options; those in ``set`` are ignored, except for the columns of its
            tasks.
        registry: where names are looked up.

    Returns:
        The weighter and the primitives by name; None stands for an auxiliary task and for a stage
        of pre-training, whose options belong to no primitive.

    Raises:
        AangError: no run can have these options.
    """
    return _planned(config, registry).owners


def without_unread_text(config: TrainConfig, registry: Registry) -> TrainConfig:
    """The options without those that name text which the run does not read.

    For commands that offer the same text to several methods, some of which do not read it.

    Args:
        config: the run's options.
        registry: where names are looked up.

    Raises:
        AangError: no run can have these options.
    """
    if not any(getattr(config, name) for name in READ_BY):
        return config
    return config.model_copy(update=dict.fromkeys(_planned(config, registry).unread, ()))


def _planned(config: TrainConfig, registry: Registry) -> Plan:
    """The plan of a run without the options set for its primitives."""
    columns = {name: config.set[name] for name in config.aux_task if name in config.set}
    config = config.model_copy(update={"set": columns})
    auxiliary = auxiliary_files(config)
    return make_plan(config, with_auxiliary_data(registry, auxiliary), auxiliary)


def _tasks(config: TrainConfig) -> dict[str, TaskFiles]:
    """All labelled data sets that are files, by name; the one of ``--train`` comes first."""
    columns = Columns(config.text, config.text_pair, config.label)
    tasks = {}
    if config.train is not None:
        name = task_name(config.train)
        tasks[name] = TaskFiles(
            name, config.train, config.dev, config.test, columns, config.skip_bad_rows
        )
    for name, path in config.aux_task.items():
        if name in tasks:
            raise ConfigError(
                f"--aux-task {name}={path}: the end task is called {name} too, after its file; "
                "give the auxiliary task another name"
            )
        given = {**columns.options(), **config.set.get(name, {})}
        options = validated(_AuxiliaryOptions, name, given, "an auxiliary task")
        own = Columns(options.text, options.text_pair, options.label, task=name)
        own.require_different()
        tasks[name] = TaskFiles(name, path, options.dev, options.test, own, config.skip_bad_rows)
    return tasks


def _primitive(task: TaskFiles) -> Primitive:
    return Primitive(
        kind="data",
        name=task.name,
        summary=f"the labelled texts of {task.train}",
        target=partial(LabelledFile, task, **task.columns.options()),
        provides=frozenset({"text", "labels:own"}),
        origin=Origin(CORE, version(CORE), "aux-task"),
    )
