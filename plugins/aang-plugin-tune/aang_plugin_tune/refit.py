"""The best setting of a search, trained again with test data."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aang_plugin_compare.launcher import Launcher, wait_for, write_order
from aang_plugin_compare.run_folders import run_state

from aang_core import ConfigError, DataError
from aang_core.runs import Result, read_part
from aang_core.storage import write_file, writing
from aang_plugin_tune.search import Search
from aang_plugin_tune.study import Tried

FILE = "chosen.json"


@dataclass(frozen=True)
class Chosen:
    """What a search has chosen, written before test data is read for the first time.

    A search that went on after that could be stopped when test looks good. So it is over.

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
    """The finished trial with the best dev score, the first of several; None if none finished."""
    finished = [t for t in trials if t.state == "finished" and t.score is not None]
    return max(finished, key=lambda t: (t.score or 0.0, -t.number), default=None)


def read_chosen(root: Path) -> Chosen | None:
    """What the search in a folder has chosen; None if it is not over.

    Raises:
        DataError: the record is damaged.
    """
    path = root / FILE
    try:
        return Chosen(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path}: is damaged: {error}; remove it, or the whole folder") from error


def write_chosen(root: Path, chosen: Chosen) -> None:
    """Record what a search has chosen; raises StorageError if that cannot be written."""
    with writing(root / FILE):
        write_file(root / FILE, json.dumps(asdict(chosen), indent=2) + "\n")


def refuse_longer(chosen: Chosen, runs: int | None, minutes: float | None) -> None:
    """Check that a search that is over is not asked for more.

    Raises:
        ConfigError: it is.
    """
    for option, asked, had in (("runs", runs, chosen.runs), ("minutes", minutes, chosen.minutes)):
        if had is not None and asked is not None and asked > had:
            raise ConfigError(
                f"--{option} {asked:g}: this search ended with {had:g}; its best setting was "
                "refitted, and its test score is known, so a longer search would no longer choose "
                "on dev alone. Give another folder with --out. --no-refit leaves a search open"
            )


def refit_folder(seed: int) -> Path:
    """The run folder of a refit, relative to that of the search."""
    return Path("runs", f"refit-seed-{seed}")


def refit(
    root: Path,
    search: Search,
    chosen: Chosen,
    seeds: int,
    launcher: Launcher,
    ended: Callable[[str, str | None], None],
    *,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
) -> None:
    """Train the chosen setting with several seeds and with test data; finished runs are kept.

    Args:
        root: the folder of the search, which this process has locked.
        search: the search.
        chosen: what it has chosen.
        seeds: how many seeds, from that of the trials on.
        launcher: trains the runs.
        ended: called with the name of each run and the error that it has failed with.
        before: options of ``aang``, written before the command.
        after: options of ``aang train`` that a file cannot give.

    Raises:
        ConfigError: a run has failed.
    """

    def one(seed: int) -> str | None:
        config = search.config(chosen.setting, test=True, seed=seed)
        folder = refit_folder(seed)
        if run_state(root / folder, config, search.registry) == "finished":
            return None
        order = write_order(root, folder, config, before=before, after=after)
        failure = launcher.train(order)
        ended(order.name, failure)
        return failure

    first = search.config(chosen.setting).seed
    pool = ThreadPoolExecutor(max(1, min(launcher.at_once, seeds)))
    try:
        failures = list(pool.map(one, range(first, first + seeds)))
    except BaseException:
        launcher.stop()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    finally:
        wait_for(pool, launcher.stop)
    if failed := [failure for failure in failures if failure]:
        raise ConfigError(f"{len(failed)} of {seeds} refits failed: {failed[0]}")


def refitted(root: Path, search: Search, chosen: Chosen) -> list[Result]:
    """The results of the refits that have finished, by seed."""
    first = search.config(chosen.setting).seed
    results = []
    seed = first
    while (root / refit_folder(seed) / "result.json").is_file():
        results.append(read_part(Result, root / refit_folder(seed)))
        seed += 1
    return results
