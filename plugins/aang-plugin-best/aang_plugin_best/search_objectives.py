"""The choice of objectives by outcome: successive halving over small sets of them.

A gradient cosine says how an objective agrees with the dev gradient, not what score training
beside it reaches. Here the end task is trained beside small sets of objectives, and the resulting
encoder is scored on rows of a fold that the training has not seen.
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from aang.runs import Result, read_part
from aang_plugin_compare.cells import Job
from aang_plugin_compare.settings import layered

from aang_core import ConfigError, load_space
from aang_core.storage import write_file, writing
from aang_plugin_best.primitive_estimates import Estimates, Outcome, Set
from aang_plugin_best.quick import read_logits, write_logits
from aang_plugin_best.race import Candidate, Race

FILE = "objectives.json"
NAME = "objectives"
FOLDER = "search-of-objectives"
PROBE = "probe.safetensors"
RUNGS = 2
"""The first trains for a quarter of the steps, the last for a half, the race for all of them."""
MOST_SETS, FEWEST_SETS = 32, 2
"""Sets of a rung. All rungs have the same time, so twice the steps leave about half the sets."""
TIMES_CONTRAST = 3.0
"""The time that a search may take, in trainings of contrast on all folds."""
END_TASK_WEIGHT = 0.5


class ObjectiveSearch:
    """A search for objectives within a race, whose files, runs and clock it uses.

    It resumes from ``objectives.json``, which records the sets of each rung before they are
    trained, then their scores.

    Args:
        race: the race.
        candidates: those of the race; the time of contrast sets the budget of the search.
        space: the space.

    Raises:
        ConfigError: there is no such space, contrast is not tried, or the folder has a search over
            another space.
    """

    def __init__(self, race: Race, candidates: Sequence[Candidate], space: str) -> None:
        by_name = {candidate.name: candidate for candidate in candidates}
        if "contrast" not in by_name:
            raise ConfigError(
                "--search-objectives: may take three times the time of contrast, which is not "
                "tried; add --candidate contrast"
            )
        self._race, self._contrast = race, by_name["contrast"]
        self._space = load_space(space, race.registry)
        self._file = race.runs.root / FILE
        self._record: dict[str, Any] = {"space": space, "rungs": []}
        if self._file.is_file():
            self._record = json.loads(self._file.read_text(encoding="utf-8"))
        if self._record["space"] != space:
            raise ConfigError(
                f"{self._file}: is of a search over {self._record['space']}; give another folder "
                "with --out, or remove the file"
            )

    def found(self) -> list[Candidate]:
        """Search, and return the best set as a candidate.

        Empty if time is too short, or if contrast trains the same set. The results are printed.
        """
        if self._measured():
            for number in range(RUNGS):
                if not self._rung(number):
                    break
        if not (outcomes := self._outcomes()):
            self._race.stopped[NAME] = "no time to search for objectives"
            return []
        estimates = Estimates.of(self._space, outcomes)
        best = max(estimates.sets, key=estimates.value)
        gain = estimates.value(best)
        times = TIMES_CONTRAST * self._spent() / self._record["budget"]
        self._keep(estimates=estimates.table(), best=best, gain=gain, times_contrast=times)
        for line in (
            f"what {len(outcomes)} trainings beside objectives say, in points of the score:",
            *estimates.lines(),
            f"the best set: {', '.join(best)}, {100 * gain:+.2f} expected over plain fine-tuning",
            f"the search took {times:.1f} times what contrast takes on all folds",
        ):
            self._race.tell(line)
        its = load_space(self._race.config(self._contrast).space, self._race.registry)
        if best == tuple(objective.name for objective in its.objectives):
            self._race.stopped[NAME] = f"the best set is what {self._contrast.name} trains"
            return []
        return [self._candidate(NAME, best)]

    def _candidate(self, name: str, objectives: Set, **over: Any) -> Candidate:
        """A training beside a set, or without one, with some options of the search replaced."""
        options = layered(self._contrast.options, {"recipe": None, "weighter": "single-task"}, over)
        if objectives:
            of_space = {
                p.key: p.options
                for objective in self._space.objectives
                for p in objective.primitives
                if objective.name in objectives and p.options
            }
            static = {"static": {"end_task_weight": END_TASK_WEIGHT}}
            beside = {"space": ",".join(objectives), "weighter": "static", "set": static}
            options = layered({"set": of_space}, options, beside)
        entry = replace(
            self._contrast.entry, name=name, summary=f"beside {', '.join(objectives)}", cost=2.0
        )
        return Candidate(entry, options)

    def _measured(self) -> bool:
        """Train contrast on the first fold, as the race will, and derive the budget from it."""
        race, name = self._race, self._contrast.name
        folder = Path("runs", name, "seed-0", "fold-0")
        job = Job(folder, race.fold_config(self._contrast, 0, 0))
        if not race.run([job], race.clock.left / 2, {folder: name}):
            return False
        if "budget" not in self._record:
            one = float(np.mean(race.clock.record["runs"][name]))
            self._keep(budget=TIMES_CONTRAST * one * race.board.rows.count)
        return True

    def _rung(self, number: int) -> bool:
        """Choose the sets of a rung and train beside them; returns whether any has a score."""
        rungs = self._record["rungs"]
        if number == len(rungs):
            if not (sets := self._sets(number)):
                return False
            self._keep(rungs=[*rungs, {"sets": sets}])
        rung = self._record["rungs"][number]
        if "scores" not in rung:
            sets = [tuple(objectives) for objectives in rung["sets"]]
            rung["scores"] = self._scores(number, sets)
            self._keep()
        return any(outcome.rung == number for outcome in self._outcomes())

    def _sets(self, number: int) -> list[Set]:
        """The sets of a rung: half of them the best so far, the others drawn from the estimates."""
        race, estimates = self._race, Estimates.of(self._space, self._outcomes())
        generator = np.random.default_rng([race.config(self._contrast).seed, number])
        if number == 0:
            sets = estimates.drawn(generator, MOST_SETS, ())
            # How long a set takes is unknown until one has been trained.
            self._scores(0, sets[:1])
            count = self._affordable(0, measured=0)
            return sets[:count] if count >= FEWEST_SETS else []
        count = min(
            len(self._record["rungs"][-1]["sets"]) // 2, self._affordable(number, number - 1)
        )
        best = sorted(estimates.sets, key=estimates.value, reverse=True)
        return estimates.drawn(generator, count, best[: (count + 1) // 2]) if count > 0 else []

    def _affordable(self, number: int, measured: int) -> int:
        """How many sets a rung has time for, if each later rung gets as much time.

        Args:
            number: the rung.
            measured: the rung that showed how long a set takes, this one or the one before.
        """
        race, walls = self._race, self._race.clock.record["runs"]
        took = {}
        for place in range(MOST_SETS + 1):
            if wall := walls.get(name := _name(measured, place)):
                steps = read_part(Result, race.runs.root / "runs" / name).train_seconds
                # Twice the steps, but starting takes as long as before.
                took[place] = wall[0] + (number - measured) * steps
        plain = took.pop(0, 0.0)
        # The race still trains every candidate on all folds, and the chosen one again.
        left = min(self._left(), race.clock.left * race.runs.launcher.at_once / 3)
        share = left / (RUNGS - number) - plain
        return min(MOST_SETS, int(share / np.mean([*took.values()]))) if took else 0

    def _scores(self, number: int, sets: Sequence[Set]) -> list[float | None]:
        """Train without a set and beside each; returns scores, None for unfinished trainings."""
        race = self._race
        steps = max(1, race.config(self._contrast).steps >> (RUNGS - number))
        # The race has other seeds, so that it does not inherit a lucky one.
        seed, fold = 1000 + number, number % race.board.rows.count
        train = str(race.runs.root / "data" / f"fold-{fold}" / "train.jsonl")
        tried = [
            self._candidate(_name(number, i), of, steps=steps) for i, of in enumerate([(), *sets])
        ]
        jobs = [Job(Path("runs", c.name), race.config(c, train=train, seed=seed)) for c in tried]
        names = {job.folder: c.name for job, c in zip(jobs, tried, strict=True)}
        ended = {job.folder for job in race.run(jobs, min(self._left(), race.clock.left), names)}
        return [self._score(job, fold) if job.folder in ended else None for job in jobs]

    def _score(self, job: Job, fold: int) -> float:
        """How well the classes of a fold's rows can be read off a trained encoder.

        The score of logistic regression on the mean of its tokens. After so few steps the
        classifier's own head predicts the largest class, whatever it is trained beside.
        """
        race, rows = self._race, self._race.board.rows
        folder, file = race.runs.root / job.folder, race.runs.root / job.folder / PROBE
        if not file.is_file():
            options = {**self._contrast.options, "weighter": "single-task", "recipe": None}
            frozen = race.registry.candidates.find("frozen-encoder")
            trained = {"model": str(folder / "model"), "from_scratch": False}
            probe = Candidate(frozen, {**options, **trained})
            _, found = race.fit(probe, 0, fold, rows.folds != fold)
            write_logits(file, found)
            for name in ("model", "pretraining"):
                shutil.rmtree(folder / name, ignore_errors=True)
        return race.board.score(rows.truth[rows.folds == fold], read_logits(file))

    def _outcomes(self) -> list[Outcome]:
        return [
            Outcome(tuple(objectives), number, score - rung["scores"][0])
            for number, rung in enumerate(self._record["rungs"])
            if rung.get("scores", [None])[0] is not None
            for objectives, score in zip(rung["sets"], rung["scores"][1:], strict=True)
            if score is not None
        ]

    def _spent(self) -> float:
        """Seconds of all its trainings, without those of contrast, which are the race's."""
        walls = self._race.clock.record["runs"]
        return float(sum(sum(of) for name, of in walls.items() if name.startswith(FOLDER)))

    def _left(self) -> float:
        left: float = self._record["budget"] - self._spent()
        return left

    def _keep(self, **record: Any) -> None:
        self._record |= record
        with writing(self._file):
            write_file(self._file, json.dumps(self._record, indent=2) + "\n")


def _name(rung: int, place: int) -> str:
    """The name of a training; place 0 is plain fine-tuning."""
    return f"{FOLDER}/rung-{rung}/{'plain' if place == 0 else f'set-{place}'}"
