"""Chooses the end task among the labelled data sets; the others become data primitives."""

from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from aang.assembly.plan import READ_BY, Plan, make_plan, validated
from aang.config import TrainConfig
from aang.corpora.labelled import Columns
from aang.corpora.places import task_name
from aang.corpora.task_files import LabelledFile, TaskFiles
from aang_core.errors import ConfigError, UnknownNameError
from aang_core.plugins.primitive import CORE, Origin, Primitive
from aang_core.plugins.registry import Registry


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
        config: the run's options; those in ``set`` are ignored, but for the columns of its tasks.
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
        tasks[name] = _auxiliary(name, path, columns, config)
    return tasks


def _auxiliary(name: str, path: Path, columns: Columns, config: TrainConfig) -> TaskFiles:
    given = {**columns.options(), **config.set.get(name, {})}
    options = validated(_AuxiliaryOptions, name, given, "an auxiliary task")
    own = Columns(options.text, options.text_pair, options.label, task=name)
    return TaskFiles(name, path, options.dev, options.test, own, config.skip_bad_rows)


def _primitive(task: TaskFiles) -> Primitive:
    return Primitive(
        kind="data",
        name=task.name,
        summary=f"the labelled texts of {task.train}",
        target=partial(LabelledFile, task, **task.columns.options()),
        provides=frozenset({"text", "labels:own"}),
        origin=Origin(CORE, version(CORE), "aux-task"),
    )
