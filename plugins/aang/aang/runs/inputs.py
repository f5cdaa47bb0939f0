"""What the numbers of a run depend on: recorded when it begins, compared when it is resumed.

``inputs.json`` has options, digests and versions, ``train_rows.json`` the drawn rows, and
``plugins.json`` the plug-ins. Data, encoder, objectives and options must be the same, or the result
would belong to neither version. Other versions, devices and numbers of processes change rounding
and draws, and are noted. The number of threads is restored.
"""

import hashlib
import json
import platform
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import nn
from transformers import PreTrainedConfig

from aang.assembly.assembly import Assembly
from aang.assembly.sources import Sources
from aang.config.paths import NAMES_OF_SOURCES
from aang.corpora.places import find_files, names_of_files
from aang.corpora.tokenizer import tokenizer_digest
from aang.runs.devices import on_usable_cores
from aang.runs.files import part_if_there
from aang.runs.schema import FilePart, PluginsUsed, PluginUsed, TrainRows
from aang_core.errors import DataError
from aang_core.objectives.stages import ReadReport
from aang_core.plugins import Plugins
from aang_core.plugins.loading import plugin_differences
from aang_core.tasks.processes import Processes

_FREE = {*NAMES_OF_SOURCES, "out", "on_nan", "checkpoint_every", "device", "save_memory"}
"""Options that numbers do not depend on, and those that only say where something is read from.

Options of plug-ins declare whether numbers depend on them.
"""

_OF_MEMORY = "micro_batch_size"
"""The option that may change although later draws depend on it: memory may be too small."""

_OF_ALL = ("tokenizer", "data", "classes", "architecture", "encoder", "objectives", "options")
"""What must be the same in all processes; tokenizer first, since another one changes all data."""

_NOT_COMPUTED = {
    *("_name_or_path", "architectures", "dtype", "id2label", "label2id", "problem_type"),
    "transformers_version",
}
"""Settings of an encoder that are recorded elsewhere, or that nothing is computed from."""

_MOST_THREADS = 1024


class Inputs(FilePart):
    """What a run began with: ``inputs.json``.

    Attributes:
        options: the options that numbers depend on, without those that only say where to read.
        objectives: the names of the objectives.
        data: a digest of the tokens and labels of each part of the data, by its name; of a stream,
            of its first block.
        classes: the names of what the end task's head computes.
        encoder: a digest of the encoder's weights.
        tokenizer: a digest of the tokenizer's vocabulary.
        tokenization: a digest of everything that its token ids depend on.
        threads: the number of threads that torch computes with.
        processes: the number of processes that share the training.
        device: the kind of device that they compute on.
        versions: the versions of Python and of the libraries that compute.
        changes: what had changed when the run was resumed with ``--accept-changes``.
        of_space: the options that the space gives to primitives; None in older records.
        architecture: the settings that the encoder computes with; empty in older records.
    """

    file: ClassVar[str] = "inputs.json"

    options: dict[str, Any]
    objectives: list[str]
    data: dict[str, str]
    classes: list[str]
    encoder: str
    tokenizer: str
    tokenization: str
    threads: Annotated[int, Field(ge=1, le=_MOST_THREADS)]
    processes: Annotated[int, Field(ge=1)]
    device: str
    versions: dict[str, str]
    changes: list[str] = Field(default_factory=list)
    of_space: dict[str, dict[str, Any]] | None = None
    architecture: dict[str, Any] = Field(default_factory=dict)


def inputs_of(assembly: Assembly, device: torch.device, processes: Processes) -> Inputs:
    """What a run begins with.

    Args:
        assembly: its model, rows, tasks and weighter, before training.
        device: the device that it computes on.
        processes: the processes that share the training.
    """
    plan, tokenizer = assembly.sources.plan, assembly.model.tokenizer
    vocabulary = json.dumps(sorted(tokenizer.get_vocab().items()))
    stages = [stage.objective for stage in plan.pretraining]
    config = assembly.config
    used = {p.key: p for o in (*stages, *plan.objectives) for p in o.primitives if p.options}
    reporting = {name for name, option in config.plugin_options.items() if option.reporting}
    return Inputs(
        options=config.model_dump(mode="json", exclude={*_FREE, *reporting}),
        objectives=[objective.name for objective in (*stages, *plan.objectives)],
        data=assembly.reader.digests(),
        classes=list(assembly.sources.task.labels),
        encoder=_digest_of_weights(assembly.model.body),
        tokenizer=hashlib.sha256(vocabulary.encode()).hexdigest()[:32],
        tokenization=tokenizer_digest(tokenizer),
        threads=min(torch.get_num_threads(), _MOST_THREADS),
        processes=processes.size,
        device=device.type,
        versions={
            "Python": platform.python_version(),
            **{name: version(name) for name in ("torch", "transformers", "tokenizers")},
        },
        changes=[],
        of_space={key: dict(primitive.options) for key, primitive in used.items()},
        architecture=_architecture(assembly.model.body.base.config),
    )


def recorded_inputs(folder: Path) -> Inputs | None:
    """What the run in ``folder`` began with; None if it stopped before recording that.

    Raises:
        DataError: the record is damaged, or missing although the run has checkpoints.
    """
    recorded = part_if_there(Inputs, folder)
    if recorded is None and any(folder.glob("**/checkpoints/*")):
        raise DataError(
            f"--resume {folder}: {Inputs.file} is missing, so there is no record of the data and "
            "options that the run began with; start a new run"
        )
    return recorded


def accepted(
    folder: Path, before: Inputs, now: Inputs, accept: bool, say: Callable[[str], None]
) -> Inputs | None:
    """Compare what a run is resumed with to what it began with.

    Args:
        folder: the run folder.
        before: what the run began with.
        now: what it is resumed with.
        accept: whether they may differ, except in classes and objectives.
        say: called with each sentence about a difference that does not stop the run.

    Returns:
        What to record now; None if nothing has changed.

    Raises:
        DataError: they differ, and ``accept`` is False or does not cover it.
    """
    for sentence in _notes(before, now):
        say(sentence)
    changes = _changes(before, now)
    if not changes:
        return None
    heads = before.classes != now.classes or before.objectives != now.objectives
    if heads or not accept:
        raise DataError(
            f"--resume {folder}: changed since the run began: {'; '.join(changes)}. The result "
            "would belong to neither version. Restore the old one, or start a new run; "
            + (
                "--accept-changes does not help, because heads are for what there was"
                if heads
                else "--accept-changes continues with the new one"
            )
        )
    for phrase in changes:
        say(f"changed since the run began: {phrase}; the run continues with the new version")
    return now.model_copy(update={"changes": [*before.changes, *changes]})


def scores_differently(before: Inputs, now: Inputs) -> bool:
    """Whether dev scores from before and after the resume are not comparable."""
    metrics = {inputs.options.get("metric") for inputs in (before, now)}
    return len(metrics) > 1 or before.data.get("dev") != now.data.get("dev")


def _changes(before: Inputs, now: Inputs) -> list[str]:
    """The differences that a resumed run must not have, a phrase each."""
    changes = [
        f"--{name.replace('_', '-')} was {value!r} and is {now.options[name]!r}"
        for name, value in before.options.items()
        if name != _OF_MEMORY and name in now.options and now.options[name] != value
    ]
    if before.of_space is not None and (names := _differing(before.of_space, now.of_space or {})):
        changes.append(f"the space gives other options to {', '.join(names)}")
    # Another tokenizer changes all data, and listing that would hide the reason.
    if before.tokenizer != now.tokenizer:
        changes.append("the encoder has another tokenizer")
    elif before.tokenization != now.tokenization:
        changes.append("the encoder's tokenizer has other settings")
    elif changed := _differing(before.data, now.data):
        changes.append(f"the data has changed ({', '.join(changed)})")
    # Other versions of transformers know other settings, whose defaults change nothing.
    known = before.architecture.keys() & now.architecture.keys()
    if names := sorted(n for n in known if before.architecture[n] != now.architecture[n]):
        changes.append(f"the encoder has other settings ({', '.join(names)})")
    compared = {
        "there are other classes": before.classes != now.classes,
        "the encoder has other weights": before.encoder != now.encoder,
        "there are other objectives": before.objectives != now.objectives,
    }
    return [*changes, *(phrase for phrase, differs in compared.items() if differs)]


def _notes(before: Inputs, now: Inputs) -> list[str]:
    """The differences after which the result is not exact, a sentence each."""
    notes = []
    if before.options.get(_OF_MEMORY) != now.options[_OF_MEMORY]:
        notes.append(
            f"--{_OF_MEMORY.replace('_', '-')} was {before.options.get(_OF_MEMORY)} when the run "
            f"began and is {now.options[_OF_MEMORY]}, so masks and dropout are drawn in another "
            "order from here on"
        )
    then, here = (
        {**i.versions, "the device": i.device, "the number of processes": i.processes}
        for i in (before, now)
    )
    notes += [
        f"{name} was {then.get(name)} when the run began and is {value}, so the result may differ "
        "in the last digits from that of a run without an interruption"
        for name, value in here.items()
        if then.get(name) != value
    ]
    return notes


def threads_of(recorded: Inputs | None, device: torch.device) -> AbstractContextManager[str | None]:
    """Compute with as many threads as the run began with, as sums depend on their number.

    A new run uses torch's number, but no more than the cores that it may use.

    Args:
        recorded: what the run began with; None for a new run.
        device: the device that it computes on.

    Returns:
        A context manager; see :func:`~aang.runs.devices.on_usable_cores` for what it yields.
    """
    if recorded is None or device.type != "cpu":
        return on_usable_cores()
    return on_usable_cores(recorded.threads)


def recorded_draw(folder: Path) -> TrainRows | None:
    """The training rows that the run in ``folder`` has drawn; None if it trained on all rows.

    Raises:
        DataError: the record is damaged.
    """
    return part_if_there(TrainRows, folder)


def plugins_used(plugins: Plugins, sources: Sources, changes: Sequence[str]) -> PluginsUsed:
    """Distribution and version of every plug-in, and the primitives and engine that the run uses.

    Args:
        plugins: all plug-ins that were found.
        sources: what the run trains.
        changes: how the plug-ins had changed when the run was resumed, a sentence each.
    """
    plan, engine = sources.plan, sources.named_engine
    used = [plan.weighter, *(p for objective in plan.trained for p in objective.primitives)]
    primitives = {f"{p.stage}/{p.key}": p.origin.distribution for p in used}
    if engine is not None:
        primitives[f"engine/{engine.name}"] = engine.origin.distribution
    return PluginsUsed(
        plugins=[
            PluginUsed(**asdict(record.origin), status=record.status) for record in plugins.records
        ],
        primitives=primitives,
        changes=list(changes),
    )


def plugin_changes(out: Path, installed: Plugins) -> tuple[list[str], list[str]]:
    """How the plug-ins of the run in ``out`` differ from those installed, a sentence each.

    Returns:
        What earlier resumes of the run had found, and what differs now; both are empty if the run
        was interrupted before it had recorded its plug-ins.

    Raises:
        DataError: the run's ``plugins.json`` is damaged.
    """
    try:
        recorded = part_if_there(PluginsUsed, out)
    except DataError as error:
        raise DataError(f"{error}; start a new run") from error
    if recorded is None:
        return [], []
    return recorded.changes, plugin_differences(recorded.document(), installed)


def refuse_other_files(options: Mapping[str, Sequence[Path]], processes: Processes) -> None:
    """Check that every process finds the same files, by name and size, before any is read.

    Args:
        options: files, folders and globs, by the option that named them.
        processes: the processes that read them.

    Raises:
        SharedError: a process finds no files, or other files than the first process.
    """
    if processes.size == 1:
        return
    with processes.all_or_none():
        found = {
            f"{option}: {name.partition('/')[2]}": file.stat().st_size
            for option, places in options.items()
            for file, name in names_of_files(
                places, find_files(places, ("",), option, ReadReport())
            ).items()
        }
    processes.refuse_if_different(json.dumps(found), _other_files)


def _other_files(first: str, other: str) -> str:
    name = next(iter(_differing(json.loads(first), json.loads(other))), "the order of its files")
    return f"{name} is missing, or differs in name or size from that of the first process"


def refuse_other_inputs(now: Inputs, processes: Processes) -> None:
    """Check that every process trains the same encoder on the same data with the same options.

    Args:
        now: the inputs of this process.
        processes: the processes that share the training.

    Raises:
        SharedError: a process's inputs differ from those of the first one.
    """
    processes.refuse_if_different(now.model_dump_json(include=set(_OF_ALL)), _other_inputs)


def _other_inputs(first: str, other: str) -> str:
    expected, found = json.loads(first), json.loads(other)
    what = next(name for name in _OF_ALL if expected[name] != found[name])
    names = ""
    if isinstance(found[what], dict):
        names = f" ({', '.join(_differing(expected[what], found[what]))})"
    return f"it has other {what}{names} than the first process"


def _differing(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The names of what differs."""
    names = dict.fromkeys([*recorded, *now])
    return [name for name in names if recorded.get(name) != now.get(name)]


def _architecture(config: PreTrainedConfig) -> dict[str, Any]:
    """The settings of an encoder without its name, its classes and the software it comes from."""
    content: dict[str, Any] = json.loads(config.to_json_string(use_diff=False))
    return {name: value for name, value in content.items() if name not in _NOT_COMPUTED}


def _digest_of_weights(module: nn.Module) -> str:
    """A checksum for accidental changes, a hundred times faster than training's first step."""
    content = hashlib.sha256()
    for name, value in module.state_dict().items():
        data = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        content.update(f"{name} {tuple(value.shape)} {zlib.crc32(data)}\n".encode())
    return content.hexdigest()[:32]
