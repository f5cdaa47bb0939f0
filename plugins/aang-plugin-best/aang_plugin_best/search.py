"""From labelled rows to a verdict and a model: what ``aang best`` does."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from shutil import copyfile
from typing import Any, Literal

import numpy as np
import torch
from aang.assembly.labelled_tasks import end_task_columns
from aang.assembly.plan import metric_of
from aang.assembly.text_options import check_paths
from aang.config import TrainConfig, resolve_training
from aang.corpora.labelled_task import text_key
from aang.runs import choose_device
from aang.runs.evaluate import intervals_of
from aang_plugin_compare.run_folders import make_root
from aang_plugin_compare.runner import Runs
from aang_plugin_compare.settings import layered
from numpy.typing import NDArray

from aang_core import ConfigError, Example, ReadReport, Registry, did_you_mean
from aang_core.storage import locked, write_file, writing
from aang_plugin_best.board import Board, Logits, Standing, interval_of
from aang_plugin_best.deploy import (
    BEST,
    CLOCK,
    KEPT_OUT,
    MODEL,
    Together,
    deploy_one,
    deploy_several,
    open_model,
    trained_on_all,
)
from aang_plugin_best.next_steps import next_steps
from aang_plugin_best.page import PAGE, write_page
from aang_plugin_best.race import ENOUGH, LEAST_CHANCE, LEAST_ROWS, Candidate, Clock, Race
from aang_plugin_best.rows import Rows, read_labelled, write_examples
from aang_plugin_best.search_objectives import ObjectiveSearch
from aang_plugin_best.together import (
    MOST_MODELS,
    Ensemble,
    Member,
    calibration_error,
    ensemble,
    logs_of,
    probabilities_of,
    temperature_of,
)
from aang_plugin_best.verdict import NOT_ASKED, words

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

DEMO: Mapping[str, Any] = {
    "dataset": "word-order",
    **{"lr": 3e-4, "head_lr": 3e-3, "steps": 100, "eval_every": 25, "max_length": 64},
}
"""The options if no data is given: a task that word order decides, and options that suit it and
the shipped encoder. They were chosen on other draws of rows, not on its test set."""
MINUTES, DEMO_MINUTES = 60.0, 5.0


@dataclass(frozen=True)
class Asked:
    """What a search should do.

    Attributes:
        options: options of ``aang train`` that all candidates share, those of the data included.
        minutes: how long it may take; None for 60, and for 5 without data.
        group: the column whose equal values stay in one fold; None for none.
        keep_dev: whether dev is kept out and scored at the end.
        only: the candidates to try; all if there are none.
        deploy: whether one model or several are trained on all rows.
        answer_at: the accuracy that answers should have, between 0 and 1; None to answer always.
        search_objectives: the space whose objectives are searched; None for no such search.
    """

    options: Mapping[str, Any]
    minutes: float | None = None
    group: str | None = None
    keep_dev: bool = False
    only: tuple[str, ...] = ()
    deploy: Literal["one", "ensemble"] = "one"
    answer_at: float | None = None
    search_objectives: str | None = None


@dataclass
class Search:
    """A search, ready to begin or to go on.

    Attributes:
        asked: what it should do.
        config: the options that name the data.
        rows: the labelled rows.
        held_out: examples that the deployed model is scored on at the end: ``test``, and ``dev`` if
            that is kept out. Their labels decide nothing.
        candidates: the candidates to try, cheap ones first.
        not_tried: why others are left out, by name.
    """

    asked: Asked
    config: TrainConfig
    rows: Rows
    held_out: Mapping[str, Sequence[Example]]
    candidates: list[Candidate]
    not_tried: Mapping[str, str]

    @classmethod
    def prepared(cls, asked: Asked, registry: Registry, report: ReadReport) -> "Search":
        """Read the rows, and look up the candidates.

        Raises:
            AangError: the data or an option cannot be used.
        """
        for name, why in CHOSEN_HERE.items():
            if name in asked.options:
                raise ConfigError(f"--{name.replace('_', '-')}: {why}")
        if asked.answer_at is not None and not 0 < asked.answer_at < 1:
            raise ConfigError(f"--answer-at {asked.answer_at:g}: give an accuracy between 0 and 1")
        without_data = all(asked.options.get(name) is None for name in ("train", "dataset"))
        minutes = asked.minutes or (DEMO_MINUTES if without_data else MINUTES)
        options = {**(DEMO if without_data else {}), **asked.options}
        asked = replace(asked, options=options, minutes=minutes)
        config = resolve_training({}, {**asked.options, "weighter": "single-task"}, registry)
        check_paths(config)
        # An error in test must show now, not after an hour.
        rows, task = read_labelled(config, registry, report, asked.group, asked.keep_dev)
        if config.model is None and not without_data:
            report.note(
                "no --model is given, so the small encoder of the demo is used. It has read only "
                "Python documentation; a general one, such as roberta-base, will do better"
            )
        metric_of(config, rows.kind)
        candidates, not_tried = _candidates(asked, rows, registry)
        for candidate in candidates:
            resolve_training({}, candidate.options, registry)
        held_out = {"dev": task.dev if asked.keep_dev else (), "test": task.test}
        return cls(asked, config, rows, held_out, candidates, not_tried)


def _candidates(
    asked: Asked, rows: Rows, registry: Registry
) -> tuple[list[Candidate], dict[str, str]]:
    """The candidates to try, cheap ones first, and why others are left out."""
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
            not_tried[entry.name] = NOT_ASKED
        elif entry.needs and not asked.options.get(entry.needs):
            not_tried[entry.name] = f"needs --{entry.needs.replace('_', '-')}"
        else:
            its = {"weighter": "single-task"} if entry.target is not None else entry.options
            found.append(Candidate(entry, layered(shared, its)))
    return found, not_tried


def find_best(
    search: Search, runs: Runs, registry: Registry, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Search, choose, train again on all rows, and write the folder of the search.

    Args:
        search: what to do.
        runs: starts trainings, in the folder of the search.
        registry: where recipes and weighters are looked up.
        tell: called with each line for people.

    Returns:
        The content of ``best.json``.

    Raises:
        AangError: the folder holds another search, or no candidate has worked.
    """
    make_root(runs.root)
    with locked(runs.root):
        clock = Clock(runs.root / CLOCK, 60 * (search.asked.minutes or MINUTES))
        _refuse_other(search, clock)
        search.rows.write(runs.root / "data")
        if kept := [e for examples in search.held_out.values() for e in examples]:
            write_examples(runs.root / KEPT_OUT, kept)
        board = Board(search.rows, search.config.metric)
        models = 1 if search.asked.deploy == "one" else MOST_MODELS
        race = Race(board, runs, registry, clock, models, tell)
        space = search.asked.search_objectives
        objectives = ObjectiveSearch(race, search.candidates, space) if space else None
        try:
            race.quick([c for c in search.candidates if c.is_quick])
            if objectives is not None:
                search.candidates += objectives.found()
            race.train([c for c in search.candidates if not c.is_quick])
            return _decided(search, race)
        finally:
            clock.keep()


def _refuse_other(search: Search, clock: Clock) -> None:
    """Refuse the folder of a different search, so that the runs of the two do not mix."""
    asked = {
        "rows": search.rows.digest,
        **({"candidate": str(search.asked.only)} if search.asked.only else {}),
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
    board, root = _deciding(race), race.runs.root
    names = _can_be_chosen(race, board)
    standing = board.standing(names)
    chosen, by_name = standing[0].name, {c.name: c for c in search.candidates}
    together = ensemble(board, names)
    members, logits = _members(search, board, chosen, together)
    temperature = temperature_of(logits, board.rows.truth)
    verdict = {
        "chosen": chosen,
        "metric": board.metric,
        "rows": len(board.rows.truth),
        "labelled": len(search.rows.truth),
        "classes": list(board.rows.kind.labels),
        "columns": end_task_columns(search.config).options(),
        "board": [of.document() for of in standing],
        "against": {n: _against(board, chosen, n) for n in board.found if n != chosen},
        "not_tried": {**search.not_tried, **race.stopped, **race.failed},
        "together": together.document(),
        "deploy": search.asked.deploy,
        "members": [[*member, times] for member, times in members.items()],
        "steps": board.liked_steps(chosen),
        "temperature": temperature,
        **_expected(board, standing[0], members, logits, temperature),
    }
    race.tell(f"training on all {verdict['labelled']} rows")
    for of_earlier in (BEST, "best.yaml"):  # Beside another model they would be wrong.
        (root / of_earlier).unlink(missing_ok=True)
    (first, seed), *several = members
    if several or by_name[first].is_fitted:
        deploy_several(race, by_name, members, root / MODEL, temperature)
    else:
        run = trained_on_all(race, by_name[first], seed)
        deploy_one(run, root / MODEL, temperature, "\n".join(words(verdict)))
        copyfile(run / "config.yaml", root / "best.yaml")
    model = open_model(root / MODEL, choose_device(search.config.device))
    verdict["milliseconds"] = model.milliseconds(
        [(e.text, e.text_pair) for e in board.rows.examples[:20]]
    )
    verdict["parts"] = {
        part: _scored(search, model, part, examples)
        for part, examples in search.held_out.items()
        if examples
    }
    calibrated = probabilities_of(logits, temperature)
    verdict |= next_steps(search, race, board.rows, chosen, model, calibrated)
    write_page(verdict, root / PAGE)
    with writing(root / BEST):
        write_file(root / BEST, json.dumps(verdict, indent=2) + "\n")
    return verdict


def _deciding(race: Race) -> Board:
    """The board that decides, over all rows if possible.

    A candidate without time for all folds is chosen over some of them if it is clearly ahead of
    those that finished: a worse choice would cost more than a wider interval.

    Raises:
        ConfigError: no candidate has predicted enough rows.
    """
    whole = race.board
    complete = _can_be_chosen(race, whole)
    for count in range(whole.rows.count - 1, ENOUGH - 1, -1):
        board = whole.of_folds(count)
        names = _can_be_chosen(race, board)
        if len(board.rows.truth) < LEAST_ROWS or not set(names) - set(complete):
            continue
        first, *others = board.standing(names)
        beaten = [of for of in others if of.name in complete]
        if first.name not in complete and all(
            first.ahead_of(of) >= 1 - LEAST_CHANCE for of in beaten
        ):
            return board
    if not complete:
        reasons = {**race.stopped, **race.failed}
        why = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise ConfigError(f"no candidate has predicted enough rows. {why}")
    return whole


def _can_be_chosen(race: Race, board: Board) -> list[str]:
    """The candidates that have predicted every row, and can be trained again on all."""
    whole = race.board
    able = [n for n in board.found if n not in race.failed or whole.complete(n)]
    return [n for n in able if board.complete(n)]


def _expected(
    board: Board,
    best: Standing,
    members: Mapping[Member, int],
    logits: Logits,
    temperature: float,
) -> dict[str, Any]:
    """The score to expect of the deployed model on new texts, and how far to trust it."""
    score, interval, truth = best.score, best.interval, board.rows.truth
    if len(members) > 1:
        whole = np.ones(len(truth), dtype=bool)
        score = board.score(truth, logits)
        interval = interval_of(score, board.resampled(logits, whole), board.spread(whole))
    calibrated = probabilities_of(logits, temperature)
    return {
        "score": score,
        "interval": list(interval),
        "calibration_error": calibration_error(calibrated, truth),
    }


def _members(
    search: Search, board: Board, chosen: str, together: Ensemble
) -> tuple[Mapping[Member, int], Logits]:
    """The members to deploy, and their out-of-fold logits ``[N, C]``."""
    seeds = board.complete(chosen)
    if search.asked.deploy == "one":
        return {(chosen, seeds[0]): 1}, board.logits(chosen, seeds[0])
    if together.confirmed:
        return together.members, logs_of(together.probabilities)
    # All seeds of a candidate are taken: there is no choice that could fit the rows by chance.
    every = [probabilities_of(board.logits(chosen, seed)) for seed in seeds]
    return dict.fromkeys(((chosen, s) for s in seeds), 1), logs_of(np.mean(every, axis=0))


def _against(board: Board, name: str, other: str) -> dict[str, float]:
    """The chosen candidate beside another one, on the rows that both have predicted."""
    found = {of.name: of for of in board.shared([name, other]).standing([name, other])}
    return {
        "score": found[other].score,
        "chosen": found[name].score,
        "rows": found[other].rows,
        "chance": found[name].better_than(found[other]),
    }


def _scored(
    search: Search, model: Together, part: str, examples: Sequence[Example]
) -> dict[str, Any]:
    """The deployed model's scores on rows that decided nothing.

    If some of their texts are among the labelled rows, ``new`` has its scores on the others, as the
    announced score is for new texts; it is None if there are no others.
    """
    unseen = {str(e.label) for e in examples} - set(search.rows.kind.labels)
    kind = replace(search.rows.kind, unseen=tuple(sorted(unseen)))
    truth = np.array(kind.ids([e.label for e in examples], part))
    probabilities = model.probabilities([(e.text, e.text_pair) for e in examples])

    def of(rows: NDArray[np.bool_]) -> dict[str, Any]:
        chosen = torch.from_numpy(truth[rows]), torch.from_numpy(logs_of(probabilities[rows]))
        return {
            "rows": int(rows.sum()),
            "scores": dict(kind.scores(*chosen)),
            "interval": intervals_of(kind, *chosen)[search.config.metric],
            "calibration_error": calibration_error(probabilities[rows], truth[rows]),
        }

    known = set(map(text_key, search.rows.examples))
    new = np.array([text_key(e) not in known for e in examples])
    found = of(np.ones_like(new))
    return found if new.all() else {**found, "new": of(new) if new.any() else None}
