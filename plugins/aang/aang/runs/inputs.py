"""What the numbers of a run depend on: recorded when it begins, compared when it is resumed.

The record is ``inputs.json``. Data, encoder, objectives and options must be the same, or the result
would be that of neither the old nor the new ones. Other versions, devices and numbers of processes
change rounding and draws, and are notes. The number of threads is restored.
"""

import hashlib
import json
import platform
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import nn

from aang.assembly.assembly import Assembly
from aang.assembly.source_rows import SourceReader
from aang.assembly.sources import Sources
from aang.config import TrainConfig
from aang.config.paths import NAMES_OF_SOURCES
from aang.config.schema import HUB
from aang.corpora.tokenizer_definition import tokenizer_digest
from aang.runs.run_files import read_part
from aang.runs.schema import FilePart
from aang_core.errors import DataError
from aang_core.tasks.processes import Processes
from aang_core.training.devices import on_usable_cores

_FREE = frozenset(
    {
        *(*NAMES_OF_SOURCES, "out", "on_nan", "checkpoint_every", "log", "device", "push_to_hub"),
        *("save_memory", *HUB),
    }
)
"""Options that numbers do not depend on, and those that only say where something is read from."""

_OF_MEMORY = ("micro_batch_size",)
"""Options that change what is drawn from then on, and may change: memory may be too small."""

_MOST_THREADS = 1024


class Inputs(FilePart):
    """What a run began with: ``inputs.json``.

    Attributes:
        options: the options that numbers depend on, except where something is read from.
        objectives: the names of the objectives.
        data: a digest of the tokens and labels of each part of the data, by its name.
        classes: the names of what the end task's head computes.
        encoder: a digest of the encoder's weights.
        tokenizer: a digest of the tokenizer's vocabulary.
        tokenization: a digest of all that its token ids depend on; empty in runs that began before
            it was recorded.
        threads: the number of threads that torch computes with.
        processes: the number of processes that share the training.
        device: the kind of device that they compute on.
        versions: the versions of Python and of the libraries that compute.
        changes: what had changed when the run was resumed with ``--accept-changes``.
    """

    file: ClassVar[str] = "inputs.json"

    options: dict[str, Any]
    objectives: list[str]
    data: dict[str, str]
    classes: list[str]
    encoder: str
    tokenizer: str
    tokenization: str = ""
    threads: Annotated[int, Field(ge=1, le=_MOST_THREADS)]
    processes: Annotated[int, Field(ge=1)]
    device: str
    versions: dict[str, str]
    changes: list[str] = Field(default_factory=list)


@dataclass(frozen=True)
class Comparison:
    """How what a run is resumed with differs from what it began with.

    Attributes:
        errors: differences that make the result one of neither, a phrase each.
        notes: differences after which the result is not exact, a sentence each.
    """

    errors: Sequence[str]
    notes: Sequence[str]


def inputs_of(
    config: TrainConfig,
    sources: Sources,
    assembly: Assembly,
    reader: SourceReader,
    device: torch.device,
    processes: Processes,
) -> Inputs:
    """What a run begins with.

    Args:
        config: its options.
        sources: its sources.
        assembly: its model, rows, tasks and weighter, before training.
        reader: the reader that has read its data.
        device: the device that it computes on.
        processes: the processes that share the training.
    """
    streamed = {name: rows.digest for name, rows in assembly.streams.items()}
    stages = [stage.objective for stage in sources.pretraining]
    return Inputs(
        options=config.model_dump(mode="json", exclude=set(_FREE)),
        objectives=[objective.name for objective in (*stages, *sources.objectives)],
        data=reader.digests() | streamed,
        classes=list(sources.task.labels),
        encoder=_digest_of_weights(assembly.model.body),
        tokenizer=_digest_of_text(json.dumps(sorted(assembly.model.tokenizer.get_vocab().items()))),
        tokenization=tokenizer_digest(assembly.model.tokenizer),
        threads=min(torch.get_num_threads(), _MOST_THREADS),
        processes=processes.size,
        device=device.type,
        versions={
            "Python": platform.python_version(),
            **{name: version(name) for name in ("torch", "transformers", "tokenizers")},
        },
        changes=[],
    )


def recorded_inputs(folder: Path) -> Inputs | None:
    """What the run in ``folder`` began with; None if it ended before it had recorded that.

    Raises:
        DataError: the record is damaged, or missing although the run has checkpoints.
    """
    try:
        return read_part(Inputs, folder)
    except FileNotFoundError:
        if any(folder.glob("**/checkpoints/*")):
            raise DataError(
                f"--resume {folder}: {Inputs.file} is missing, so nobody can tell whether data and "
                "options are still those that it began with; start a new run"
            ) from None
        return None


def compared(recorded: Inputs, now: Inputs) -> Comparison:
    """How ``now`` differs from what the run began with."""
    errors = [
        f"--{name.replace('_', '-')} was {before!r} and is {now.options[name]!r}"
        for name, before in recorded.options.items()
        if name not in _OF_MEMORY and name in now.options and now.options[name] != before
    ]
    # With another tokenizer all data differs, which would only hide the reason.
    if recorded.tokenizer != now.tokenizer:
        errors.append("the encoder has another tokenizer")
    elif recorded.tokenization not in ("", now.tokenization):
        errors.append("the encoder's tokenizer has other settings")
    elif changed := differing(recorded.data, now.data):
        errors.append(f"the data has changed ({', '.join(changed)})")
    for what, before, after in (
        ("the classes are others", recorded.classes, now.classes),
        ("the encoder has other weights", recorded.encoder, now.encoder),
        ("the objectives are others", recorded.objectives, now.objectives),
    ):
        if before != after:
            errors.append(what)
    surroundings = [
        *((name, recorded.versions.get(name), now.versions[name]) for name in now.versions),
        ("the device", recorded.device, now.device),
        ("the number of processes", recorded.processes, now.processes),
    ]
    draws = [
        f"--{name.replace('_', '-')} was {recorded.options.get(name)} when the run began and is "
        f"{now.options[name]}, so masks and dropout are drawn in another order from here on"
        for name in _OF_MEMORY
        if recorded.options.get(name) != now.options[name]
    ]
    notes = [
        f"{name} was {before} when the run began and is {after}, so the result may differ in the "
        "last digits from that of a run without an interruption"
        for name, before, after in surroundings
        if before != after
    ]
    return Comparison(errors, [*draws, *notes])


def accepted(
    folder: Path, before: Inputs, now: Inputs, accept: bool, say: Callable[[str], None]
) -> Inputs | None:
    """Check what a run is resumed with.

    Args:
        folder: the run folder.
        before: what the run began with.
        now: what it is resumed with.
        accept: whether it may be something else.
        say: called with each sentence about a difference that does not stop the run.

    Returns:
        What to record now; None if it is the same.

    Raises:
        DataError: it is something else, and that is not accepted.
    """
    comparison = compared(before, now)
    for sentence in comparison.notes:
        say(sentence)
    if not comparison.errors:
        return None
    if not accept:
        raise DataError(
            f"--resume {folder}: not everything is as it was when the run began: "
            f"{'; '.join(comparison.errors)}. The result would be that of neither. Restore what it "
            "was, or start a new run; --accept-changes goes on with what there is now"
        )
    for phrase in comparison.errors:
        say(f"since the run began, {phrase}; it goes on with what there is now")
    return now.model_copy(update={"changes": [*before.changes, *comparison.errors]})


@contextmanager
def threads_of(recorded: Inputs | None, device: torch.device) -> Iterator[str | None]:
    """Compute with as many threads as the run began with, as sums depend on their number.

    A new run has as many as torch takes, and no more than there are cores that it may use.

    Args:
        recorded: what the run began with; None for a new run.
        device: the device that it computes on.

    Yields:
        A sentence if their number is another one than it would be; else None.
    """
    with on_usable_cores() as told:
        ours = torch.get_num_threads()
        if recorded is None or device.type != "cpu" or recorded.threads == ours:
            yield told
            return
        torch.set_num_threads(recorded.threads)
        try:
            yield (
                f"the run began with {recorded.threads} threads, which the last digits depend on, "
                f"so it goes on with {recorded.threads} and not {ours}"
            )
        finally:
            torch.set_num_threads(ours)


def differing(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The names of what differs."""
    names = dict.fromkeys([*recorded, *now])
    return [name for name in names if recorded.get(name) != now.get(name)]


def _digest_of_weights(module: nn.Module) -> str:
    """A checksum for changes by accident, a hundred times faster than training's first step."""
    content = hashlib.sha256()
    for name, value in module.state_dict().items():
        data = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        content.update(f"{name} {tuple(value.shape)} {zlib.crc32(data)}\n".encode())
    return content.hexdigest()[:32]


def _digest_of_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
