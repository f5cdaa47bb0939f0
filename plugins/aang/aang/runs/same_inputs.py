"""What the processes of a training must have in common, as each of them reads all of it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from aang.corpora.places import find_files, names_of_files
from aang.runs.inputs import Inputs, differing
from aang_core.objectives.stages import ReadReport
from aang_core.tasks.processes import Processes


def refuse_other_files(options: Mapping[str, Sequence[Path]], processes: Processes) -> None:
    """Check that every process finds the same files, by name and size, before any is read.

    Args:
        options: files, folders and globs, by the option that named them.
        processes: the processes that read them.

    Raises:
        SharedError: a process finds none, or others than the first one.
    """
    if processes.size == 1:
        return
    with processes.all_or_none():
        found = {option: _sizes(places, option) for option, places in options.items()}
    processes.refuse_if_different(json.dumps(found), _other_files)


def refuse_other_inputs(now: Inputs, processes: Processes) -> None:
    """Check that every process trains the same encoder on the same data with the same options.

    Args:
        now: what this process has.
        processes: the processes that share the training.

    Raises:
        SharedError: a process has something else than the first one.
    """
    processes.refuse_if_different(
        now.model_dump_json(
            include={"options", "objectives", "data", "classes", "encoder", "tokenizer"}
        ),
        _other_inputs,
    )


def _sizes(places: Sequence[Path], option: str) -> dict[str, int]:
    """How many bytes the files have, by what they are called on every machine."""
    files = find_files(places, ("",), option, ReadReport())
    return {name: file.stat().st_size for file, name in names_of_files(places, files).items()}


def _other_files(first: str, other: str) -> str:
    """How the files of another process differ from those of the first, by the first difference."""
    expected, found = json.loads(first), json.loads(other)
    for option, before in expected.items():
        now = found[option]
        for name in dict.fromkeys([*before, *now]):
            if name not in now:
                return f"{option}: there is no {_path(name)}, which the first process has"
            if name not in before:
                return f"{option}: there is {_path(name)}, which the first process does not have"
            if before[name] != now[name]:
                return (
                    f"{option}: {_path(name)} has {now[name]} bytes, and {before[name]} in the "
                    "first process"
                )
    return "it finds the same files in another order"


def _path(name: str) -> str:
    """A file's path from its place, without the number of the place."""
    return name.partition("/")[2]


def _other_inputs(first: str, other: str) -> str:
    expected, found = json.loads(first), json.loads(other)
    parts = differing(expected["data"], found["data"])
    options = differing(expected["options"], found["options"])
    named = {
        "another tokenizer": expected["tokenizer"] != found["tokenizer"],
        f"other data ({', '.join(parts)})": bool(parts),
        "other classes": expected["classes"] != found["classes"],
        "another encoder": expected["encoder"] != found["encoder"],
        "other objectives": expected["objectives"] != found["objectives"],
        f"other options ({', '.join(options)})": bool(options),
    }
    # With another tokenizer, all data differs.
    what = [phrase for phrase, holds in named.items() if holds]
    return f"it has {what[0]} than the first process"
