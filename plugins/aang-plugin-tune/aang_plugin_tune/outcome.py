"""The outcome of a search: how many settings each method tried, and how good its best was."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aang.config import TrainConfig, recorded_config
from aang.runs import Result
from aang_plugin_compare.tables import plain_table, score_text

from aang_core.storage import write_file, writing
from aang_plugin_tune.refit import Chosen, best_of, read_chosen, refit_folder, refitted
from aang_plugin_tune.search import FORMING, METHOD, Search, Setting, shown
from aang_plugin_tune.study import Study, Tried, trial_folder

FORMATS = {"text": "txt", "markdown": "md", "json": "json"}
"""The forms of the table, each with the ending of its file."""


@dataclass(frozen=True)
class Row:
    """A method in the table.

    Attributes:
        method: its name.
        tried: how many of its settings were run, to the end or not.
        pruned: how many of those runs were pruned.
        failed: how many of them failed.
        unfinished: how many have not ended yet.
        dev: the best dev score of a run that has finished; None if none has.
        setting: the setting with that score, without the options that name the method.
        trial: the number of that trial.
    """

    method: str
    tried: int
    pruned: int
    failed: int
    unfinished: int
    dev: float | None
    setting: str
    trial: int | None


@dataclass(frozen=True)
class Outcome:
    """The table of a search.

    Attributes:
        metric: name of the metric.
        methods: a row for each method, best first.
        trials: all trials that were run, by number.
        seconds: seconds that the search has taken.
        chosen: what it has chosen; None while it goes on.
        refits: the results of the chosen setting with each seed.
    """

    metric: str
    methods: Sequence[Row]
    trials: Sequence[Tried]
    seconds: float
    chosen: Chosen | None
    refits: Sequence[Result]


def read_outcome(root: Path, search: Search, study: Study) -> Outcome:
    """The outcome so far, from what is in the folder of the search.

    Raises:
        DataError: a file of a run, or what the search has chosen, is damaged.
    """
    # A process that was killed may have left a trial that has no setting yet.
    trials = [trial for trial in study.trials if trial.same_as is None and trial.setting]
    recorded = _recorded(root, trials)
    chosen = read_chosen(root)
    return Outcome(
        metric=(recorded or search.config(next(search.methods_chosen()))).metric,
        methods=rows_of(search, trials, recorded),
        trials=trials,
        seconds=study.seconds,
        chosen=chosen,
        refits=[] if chosen is None else refitted(root),
    )


def _recorded(root: Path, trials: Sequence[Tried]) -> TrainConfig | None:
    """The recorded options of a run, including those chosen by the kind of its end task."""
    for trial in trials:
        recorded = root / trial_folder(trial.number) / "config.yaml"
        if recorded.is_file():
            return recorded_config(recorded)
    return None


def rows_of(
    search: Search, trials: Sequence[Tried], recorded: TrainConfig | None = None
) -> list[Row]:
    """A row for each method that can be chosen, best first; those without a score come last.

    Args:
        search: the search.
        trials: its trials.
        recorded: options that a run of the search has recorded; None if there is no run yet.
    """
    by_method: dict[str, list[Tried]] = {
        search.method(chosen, recorded): [] for chosen in search.methods_chosen()
    }
    for trial in trials:
        by_method.setdefault(search.method(_forming(trial.setting), recorded), []).append(trial)
    rows = [_row(method, of) for method, of in by_method.items()]
    return sorted(rows, key=lambda row: -math.inf if row.dev is None else row.dev, reverse=True)


def _forming(setting: Setting) -> dict[str, Any]:
    return {name: value for name, value in setting.items() if name in (METHOD, *FORMING)}


def _row(method: str, trials: Sequence[Tried]) -> Row:
    states = [trial.state for trial in trials]
    best = best_of(trials)
    setting = {} if best is None else best.setting
    rest = {name: value for name, value in setting.items() if name not in _forming(setting)}
    return Row(
        method=method,
        tried=len(trials) - states.count("unfinished"),
        pruned=states.count("pruned"),
        failed=states.count("failed"),
        unfinished=states.count("unfinished"),
        dev=None if best is None else best.score,
        setting=shown(rest),
        trial=None if best is None else best.number,
    )


def text_of(outcome: Outcome, kind: str) -> str:
    """The outcome as text.

    Args:
        outcome: the outcome.
        kind: one of :data:`FORMATS`.
    """
    if kind == "json":
        return json.dumps(_document(outcome), indent=2) + "\n"
    markdown = kind == "markdown"
    unfinished = any(row.unfinished for row in outcome.methods)
    header = ["method", f"dev {outcome.metric}", "tried", "pruned", "failed"]
    header += ["unfinished"] * unfinished + ["best setting"]
    rows = [
        [
            row.method,
            _score(row.dev),
            *map(str, (row.tried, row.pruned, row.failed)),
            *([str(row.unfinished)] * unfinished),
            row.setting or "–",
        ]
        for row in outcome.methods
    ]
    text = plain_table(header, rows, markdown=markdown)
    if outcome.chosen is None:
        return text
    return f"{text}\n{_refits(outcome, outcome.chosen, markdown)}"


def _refits(outcome: Outcome, chosen: Chosen, markdown: bool) -> str:
    tried = sum(row.tried for row in outcome.methods)
    chosen_of = f"Of {tried} settings, that of trial {chosen.trial} is the best on dev"
    lead = chosen_of if tried > 1 else "One setting was tried"
    lead += f": {shown(chosen.setting)}."
    if not outcome.refits:
        return f"{lead}\n"
    tests = [r.metric.test for r in outcome.refits if r.metric.test is not None]
    seeds = ", ".join(str(r.seed) for r in outcome.refits)
    row = [seeds, score_text([r.metric.dev for r in outcome.refits]), score_text(tests)]
    table = plain_table(["refitted with seed", "dev", "test"], [row], markdown=markdown)
    return f"{lead}\n\n{table}"


def _score(score: float | None) -> str:
    return "–" if score is None else f"{100 * score:.2f}"


def _document(outcome: Outcome) -> dict[str, Any]:
    document = asdict(outcome)
    refits = [
        {
            "seed": result.seed,
            "dev": result.metric.dev,
            "test": result.metric.test,
            "run": str(refit_folder(result.seed)),
        }
        for result in outcome.refits
    ]
    return document | {"seconds": round(outcome.seconds, 1), "refits": refits}


def write_outcome(root: Path, outcome: Outcome) -> None:
    """Write the table in all formats.

    Raises:
        StorageError: a file cannot be written.
    """
    for kind, ending in FORMATS.items():
        path = root / f"table.{ending}"
        with writing(path):
            write_file(path, text_of(outcome, kind))
