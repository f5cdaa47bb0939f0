"""From labelled rows to a verdict and a model: what ``aang best`` does."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from shutil import copyfile
from typing import Any, Literal

import numpy as np
import torch
from aang.assembly import read_end_task
from aang.assembly.labelled_tasks import end_task_columns
from aang.config import TrainConfig, resolve_training
from aang.runs import choose_device
from aang.runs.evaluate import intervals_of
from aang_plugin_compare.run_folders import make_root
from aang_plugin_compare.runner import Runs
from aang_plugin_compare.settings import layered

from aang_core import ConfigError, ReadReport, Registry, did_you_mean
from aang_core.storage import locked, write_file, writing
from aang_plugin_best.board import Board, Logits, chance_ahead
from aang_plugin_best.deploy import (
    BEST,
    MODEL,
    deploy_one,
    deploy_several,
    open_model,
    trained_on_all,
)
from aang_plugin_best.race import Candidate, Clock, Race
from aang_plugin_best.rows import Rows, read_labelled
from aang_plugin_best.search_objectives import ObjectiveSearch
from aang_plugin_best.together import (
    Ensemble,
    Member,
    calibration_error,
    ensemble,
    logs_of,
    probabilities_of,
    temperature_of,
)
from aang_plugin_best.verdict import words

OF_DATA = (
    *("train", "dev", "test", "dataset", "text", "text_pair", "label", "label_names"),
    *("skip_bad_rows", "dev_fraction", "task_type"),
)
"""Options that name the labelled rows; folds have files of their own."""

CHOSEN_HERE = {
    **dict.fromkeys(("recipe", "space", "weighter"), "it is what is chosen; see --candidate"),
    **dict.fromkeys(("train_on_dev", "stop_after", "test_predictions"), "the search sets it"),
    **dict.fromkeys(
        ("train_rows", "test_score", "aux_task", "target"), "give the rows with --train"
    ),
    "out": "give --out before --",
}
"""Options of ``aang train`` that a search does not take, each with the reason."""


@dataclass(frozen=True)
class Asked:
    """What a search is asked for.

    Attributes:
        options: options of ``aang train`` that all candidates share, those of the data included.
        minutes: how long it may take.
        group: the column whose equal values stay in one fold; None for none.
        keep_dev: whether dev is kept out and scored at the end.
        only: the candidates to try; all if there are none.
        deploy: whether one model or several are trained on all rows.
        search_objectives: the space whose objectives are searched; None for no such search.
    """

    options: Mapping[str, Any]
    minutes: float = 60.0
    group: str | None = None
    keep_dev: bool = False
    only: tuple[str, ...] = ()
    deploy: Literal["one", "ensemble"] = "one"
    search_objectives: str | None = None


@dataclass
class Search:
    """A search, ready to begin or to go on.

    Attributes:
        asked: what it is asked for.
        config: the options that name the data.
        rows: the labelled rows.
        candidates: what is tried, cheap ones first.
        not_tried: why others are not, by name.
    """

    asked: Asked
    config: TrainConfig
    rows: Rows
    candidates: list[Candidate]
    not_tried: dict[str, str]

    @classmethod
    def prepared(cls, asked: Asked, registry: Registry, report: ReadReport) -> "Search":
        """Read the rows, and look up the candidates.

        Raises:
            AangError: the data or an option cannot be used.
        """
        for name, why in CHOSEN_HERE.items():
            if name in asked.options:
                raise ConfigError(f"--{name.replace('_', '-')}: {why}")
        config = resolve_training({}, {**asked.options, "weighter": "single-task"}, registry)
        rows = read_labelled(config, registry, report, asked.group, asked.keep_dev)
        candidates, not_tried = _candidates(asked, rows, registry)
        return cls(asked, config, rows, candidates, not_tried)


def _candidates(
    asked: Asked, rows: Rows, registry: Registry
) -> tuple[list[Candidate], dict[str, str]]:
    entries = sorted(registry.candidates, key=lambda entry: entry.cost)
    names = [entry.name for entry in entries]
    if unknown := [name for name in asked.only if name not in names]:
        raise ConfigError(
            f"--candidate {unknown[0]}: {did_you_mean(unknown[0], names, 'they are')}"
        )
    own = {n: v for n, v in asked.options.items() if n not in OF_DATA}
    if rows.examples[0].text_pair is not None:
        own["text_pair"] = "text_pair"
    shared = {"task_type": "single-label", "train_on_dev": True, **own}
    found, not_tried = [], {}
    for entry in entries:
        if asked.only and entry.name not in asked.only:
            not_tried[entry.name] = "not asked for"
        elif entry.needs and not asked.options.get(entry.needs):
            not_tried[entry.name] = f"needs --{entry.needs.replace('_', '-')}"
        else:
            quick = entry.target is not None
            options = layered(shared, {"weighter": "single-task"} if quick else entry.options)
            model = entry.load() if quick else None
            found.append(Candidate(entry.name, entry.summary, entry.cost, options, model))
    return found, not_tried


def find_best(
    search: Search, runs: Runs, registry: Registry, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Search, choose, train again on all rows, and write the folder of the search.

    Args:
        search: what to do.
        runs: what starts trainings, in the folder of the search.
        registry: where recipes and weighters are looked up.
        tell: called with each line for people.

    Returns:
        The content of ``best.json``.

    Raises:
        AangError: the folder holds another search, or nothing has worked.
    """
    make_root(runs.root)
    with locked(runs.root):
        clock = Clock(runs.root / "clock.json", 60 * search.asked.minutes)
        _refuse_other(search, clock)
        search.rows.write(runs.root / "data")
        race = Race(Board(search.rows, search.config.metric), runs, registry, clock, tell)
        space = search.asked.search_objectives
        objectives = ObjectiveSearch(race, search.candidates, space) if space else None
        try:
            race.quick([c for c in search.candidates if c.model is not None])
            if objectives is not None:
                search.candidates += objectives.found()
            trained = [c for c in search.candidates if c.model is None]
            race.train(trained, 1 if search.asked.deploy == "one" else 3)
            return _decided(search, race)
        finally:
            clock.keep()


def _refuse_other(search: Search, clock: Clock) -> None:
    """Refuse the folder of a search for something else, whose runs would be mixed with its own."""
    asked = {
        "rows": search.rows.digest,
        **{n: str(v) for n, v in search.asked.options.items() if n not in OF_DATA},
    }
    before = clock.record.get("asked", asked)
    names = sorted(n for n in {*asked, *before} if asked.get(n) != before.get(n))
    if names:
        what = "labelled rows" if names[0] == "rows" else f"--{names[0].replace('_', '-')}"
        raise ConfigError(
            f"{clock.file.parent}: holds a search with other {what}; give another folder with "
            "--out, or remove this one"
        )
    clock.keep(asked=asked)


def _decided(search: Search, race: Race) -> dict[str, Any]:
    """Choose, train the choice again on all rows, and write model and verdict."""
    board, root = race.board, race.runs.root
    names = [name for name in board.found if board.complete(name)]
    if not names:
        why = "; ".join(f"{name}: {error}" for name, error in race.failed.items())
        raise ConfigError(f"no candidate has predicted every row. {why}")
    standing = board.standing(names)
    chosen, by_name = standing[0].name, {c.name: c for c in search.candidates}
    together = ensemble(board, names)
    members, logits = _members(search, board, chosen, together)
    temperature = temperature_of(logits, board.rows.truth)
    verdict = {
        "chosen": chosen,
        "metric": board.metric,
        "score": standing[0].score,
        "interval": list(standing[0].interval),
        "rows": standing[0].rows,
        "steps": 0 if by_name[chosen].model is not None else board.liked_steps(chosen),
        "classes": list(board.rows.kind.labels),
        "columns": end_task_columns(search.config).options(),
        "board": [asdict(of) for of in standing],
        "against": {n: _against(board, chosen, n) for n in board.found if n != chosen},
        "not_tried": search.not_tried | race.stopped | race.failed,
        "deploy": search.asked.deploy,
        "members": [[*member, times] for member, times in members.items()],
        "temperature": temperature,
        "calibration_error": calibration_error(
            probabilities_of(logits, temperature), board.rows.truth
        ),
        "together": together.document(),
    }
    race.tell(f"training on all {len(board.rows.truth)} rows")
    (first, seed), *several = members
    if several or by_name[first].model is not None:
        deploy_several(race, by_name, members, root / MODEL, temperature)
    else:
        run = trained_on_all(race, by_name[first], seed)
        deploy_one(run, root / MODEL, temperature, "\n".join(words(verdict)))
        copyfile(run / "config.yaml", root / "best.yaml")
    verdict["parts"] = {part: _scored(search, race, part) for part in ("dev", "test")}
    with writing(root / BEST):
        write_file(root / BEST, json.dumps(verdict, indent=2) + "\n")
    return verdict


def _members(
    search: Search, board: Board, chosen: str, together: Ensemble
) -> tuple[Mapping[Member, int], Logits]:
    """What is deployed, and its out-of-fold logits ``[N, C]``."""
    seeds = board.complete(chosen)
    if search.asked.deploy == "one":
        return {(chosen, seeds[0]): 1}, board.logits(chosen, seeds[0])
    if together.confirmed:
        return together.members, logs_of(together.probabilities)
    # Seeds of one candidate need no choice that could fit the rows by chance.
    every = [probabilities_of(board.logits(chosen, seed)) for seed in seeds]
    return dict.fromkeys(((chosen, s) for s in seeds), 1), logs_of(np.mean(every, axis=0))


def _against(board: Board, name: str, other: str) -> dict[str, float]:
    """The chosen candidate beside another one, on the rows that both have predicted."""
    samples = board.samples([name, other])
    found = {of.name: of for of in board.standing([name, other])}
    return {
        "score": found[other].score,
        "chosen": found[name].score,
        "rows": found[other].rows,
        "chance": chance_ahead(samples, name, other),
    }


def _scored(search: Search, race: Race, part: str) -> dict[str, Any] | None:
    """The deployed model's score on rows that had no part in anything; None without such rows.

    Read when everything is decided, so that nobody can choose by it.
    """
    if part == "dev" and not search.asked.keep_dev:
        return None
    task, _ = read_end_task(search.config, ReadReport(), race.registry)
    examples = task.test if part == "test" else task.dev
    if not examples:
        return None
    board = race.board
    model = open_model(race.runs.root / MODEL, choose_device(search.config.device))
    unseen = {str(e.label) for e in examples} - set(board.rows.kind.labels)
    kind = replace(board.rows.kind, unseen=tuple(sorted(unseen)))
    truth = torch.tensor(kind.ids([e.label for e in examples], part))
    probabilities = model.probabilities([(e.text, e.text_pair) for e in examples])
    logits = torch.from_numpy(logs_of(probabilities))
    known = (truth < len(board.rows.kind.labels)).numpy()
    return {
        "rows": len(examples),
        "scores": dict(kind.scores(truth, logits)),
        "interval": intervals_of(kind, truth, logits)[board.metric],
        "calibration_error": calibration_error(probabilities[known], truth.numpy()[known]),
    }
