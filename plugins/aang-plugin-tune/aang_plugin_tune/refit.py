"""The best setting of a search, trained again with test data."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aang.runs import Result, read_part
from aang_plugin_compare.cells import Job
from aang_plugin_compare.control_results import read_record
from aang_plugin_compare.runner import Ended, Runner, Runs

from aang_core import ConfigError
from aang_core.storage import write_file, writing
from aang_plugin_tune.search import Search
from aang_plugin_tune.study import Tried, all_failed

FILE = "chosen.json"


@dataclass(frozen=True)
class Chosen:
    """What a search has chosen, written before test data is read for the first time.

    A search that went on could be stopped once test looks good, so it is over.

    Attributes:
        trial: the best trial.
        setting: its setting.
        runs: the number of runs that the search was allowed; None for no limit.
        minutes: the minutes that it was allowed; None for no limit.
    """

    trial: int
    setting: dict[str, Any]
    runs: int | None
    minutes: float | None


def best_of(trials: Sequence[Tried]) -> Tried | None:
    """The finished trial with the best dev score, the first of equals; None if none finished."""
    finished = [t for t in trials if t.state == "finished" and t.score is not None]
    return max(finished, key=lambda t: (t.score or 0.0, -t.number), default=None)


def best_or_why_none(trials: Sequence[Tried], root: Path) -> Tried:
    """The best trial of a search whose budget is spent.

    Args:
        trials: its trials.
        root: its folder.

    Raises:
        ConfigError: no trial has finished.
    """
    if (best := best_of(trials)) is not None:
        return best
    runs = [trial for trial in trials if trial.same_as is None]
    if runs and all(trial.state == "failed" for trial in runs):
        raise all_failed(f"{len(runs)} of {len(runs)} runs", runs[-1], root)
    raise ConfigError("no run of the search has finished; give it a larger budget")


def read_chosen(root: Path) -> Chosen | None:
    """What the search in a folder has chosen; None if it is not over.

    Raises:
        DataError: the record is damaged.
    """
    remedy = "remove it, or the whole folder"
    return read_record(root / FILE, lambda content: Chosen(**json.loads(content)), remedy)


def write_chosen(root: Path, chosen: Chosen) -> None:
    """Record what a search has chosen; raises StorageError if that cannot be written."""
    with writing(root / FILE):
        write_file(root / FILE, json.dumps(asdict(chosen), indent=2) + "\n")


def refuse_longer(chosen: Chosen, runs: int | None, minutes: float | None) -> None:
    """Check that a search that is over is not given a larger budget.

    Raises:
        ConfigError: it is.
    """
    given = {name: of for name, of in (("runs", runs), ("minutes", minutes)) if of is not None}
    for name, had in (("runs", chosen.runs), ("minutes", chosen.minutes)):
        # Dropping one of its limits could make it longer as well.
        if given and had is not None and given.get(name, math.inf) > had:
            option = name if name in given else next(iter(given))
            limit = f"{had:g}" if name in given else f"--{name} {had:g}"
            raise ConfigError(
                f"--{option} {given[option]:g}: this search ended with {limit}; its best setting "
                "was refitted, and its test score is known, so a longer search would no longer "
                "choose on dev alone. Give another folder with --out. --no-refit leaves a search "
                "open"
            )


def refit_folder(seed: int) -> Path:
    """The run folder of a refit, relative to that of the search."""
    return Path("runs", f"refit-seed-{seed}")


def refit(
    runs: Runs, search: Search, chosen: Chosen, seeds: int, ended: Callable[[Ended], None]
) -> None:
    """Train the chosen setting with several seeds and with test data; finished runs are kept.

    Args:
        runs: starts the runs; this process has locked their folder.
        search: the search.
        chosen: what it has chosen.
        seeds: how many seeds, starting from that of the trials.
        ended: called with each run that has ended.

    Raises:
        ConfigError: a run has failed.
    """
    first = search.config(chosen.setting).seed
    jobs = [
        Job(refit_folder(seed), search.config(chosen.setting, test=True, seed=seed))
        for seed in range(first, first + seeds)
    ]
    if failed := [of.error for of in Runner(runs, ended).run(jobs) if of.error]:
        raise ConfigError(f"{len(failed)} of {seeds} refits failed: {failed[0]}")


def refitted(root: Path) -> list[Result]:
    """The results of the refits that have finished, by seed."""
    finished = root.glob("runs/refit-seed-*/result.json")
    results = [read_part(Result, path.parent) for path in finished]
    return sorted(results, key=lambda result: result.seed)
