"""The race: fold by fold, all candidates on the same rows, until time or doubt has ended."""

import itertools
import json
import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from aang.config import TrainConfig, resolve_training
from aang.runs import read_lines, read_part, shown_score
from aang.runs.schema import Evaluation, LogitsOnTest
from aang.runs.summary import duration
from aang_plugin_compare.cells import Job
from aang_plugin_compare.runner import Ended, Runner, Runs
from aang_plugin_compare.settings import layered

from aang_core import AangError, Registry
from aang_core.storage import whole_file, write_file, writing
from aang_plugin_best.board import Board
from aang_plugin_best.quick import log_probabilities

LEAST_CHANCE = 0.05
"""A candidate with a lower chance of being the best stops."""
MOST_SEEDS = 3
"""Seeds that a candidate is trained with while it cannot be told apart from others."""


@dataclass(frozen=True)
class Candidate:
    """A way to a classifier.

    Attributes:
        name: its name.
        summary: what it is, for people.
        cost: about how long it takes, in units of plain fine-tuning.
        options: the options of its trainings; for a quick one, of what loads its encoder.
        model: makes the classifier of a quick one; None for one that is trained.
    """

    name: str
    summary: str
    cost: float
    options: Mapping[str, Any]
    model: Callable[[TrainConfig], Any] | None = None


@dataclass
class Clock:
    """The seconds that a search has taken over all calls, kept in a file.

    Attributes:
        file: the file.
        limit: seconds that it may take.
        record: what else the file holds.
    """

    file: Path
    limit: float
    record: dict[str, Any] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)
    _before: float = 0.0

    def __post_init__(self) -> None:
        if self.file.is_file():
            self.record = json.loads(self.file.read_text(encoding="utf-8"))
            self._before = self.record["seconds"]

    @property
    def spent(self) -> float:
        """Seconds so far."""
        return self._before + time.monotonic() - self._began

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.limit - self.spent

    def keep(self, **record: Any) -> None:
        """Write the seconds so far, and what else is to be kept."""
        self.record |= {**record, "seconds": round(self.spent, 1)}
        with writing(self.file):
            write_file(self.file, json.dumps(self.record, indent=2) + "\n")


@dataclass
class Race:
    """Everything that one search for the best candidate works with.

    Attributes:
        board: the predictions.
        runs: what starts trainings; this process has locked their folder.
        registry: where recipes and weighters are looked up.
        clock: the time.
        tell: called with each line for people.
        failed: why a candidate failed, by its name.
        stopped: why a candidate did not go on, by its name.
    """

    board: Board
    runs: Runs
    registry: Registry
    clock: Clock
    tell: Callable[[str], None]
    failed: dict[str, str] = field(default_factory=dict)
    stopped: dict[str, str] = field(default_factory=dict)

    def quick(self, candidates: Sequence[Candidate]) -> None:
        """Fit the candidates that take seconds on all folds; results are kept."""
        for candidate in candidates:
            file = self.runs.root / "quick" / f"{candidate.name}.npy"
            if not file.is_file():
                try:
                    found = self._predicted(candidate)
                except (AangError, ValueError) as error:
                    self._has_failed(candidate.name, str(error))
                    continue
                with writing(file):
                    file.parent.mkdir(exist_ok=True)
                    with whole_file(file) as draft, draft.open("wb") as opened:
                        np.save(opened, found)
            self.board.add(candidate.name, 0, (0,), None, np.load(file)[None])
            score = self.board.standing([candidate.name])[0].score
            self.tell(f"{candidate.name}: {shown_score(score, self.board.metric)}")
            self.clock.keep()

    def _predicted(self, candidate: Candidate) -> Any:
        """Out-of-fold log-probabilities of a quick candidate, ``[N, C]``."""
        rows = self.board.rows
        assert candidate.model is not None
        model = candidate.model(self.config(candidate))
        texts = np.asarray(rows.texts, dtype=object)
        found = np.empty((len(rows.truth), len(rows.kind.labels)), dtype=np.float32)
        for k in range(rows.count):
            held_out = rows.folds == k
            model.fit(texts[~held_out], rows.truth[~held_out])
            found[held_out] = log_probabilities(model, texts[held_out], found.shape[1])
        return found

    def train(self, candidates: Sequence[Candidate], seeds: int) -> None:
        """Train candidates fold by fold until time has run out or only one can be the best.

        Args:
            candidates: those that are trained, cheap ones first.
            seeds: with how many seeds even a single one goes on.
        """
        self._costs = {c.name: c.cost for c in candidates}
        alive = list(candidates)
        while alive:
            seed, fold = self._next(alive)
            if seed >= MOST_SEEDS or (seed >= seeds and len(self.in_doubt(alive)) < 2):
                return
            alive = self._affordable(alive, seed)
            todo = [c for c in alive if not self._has(c, seed, fold)]
            if not self.clock.record.get("runs"):
                todo = todo[:1]  # what the others take is unknown until one has been measured
            if todo and not self._train_fold(todo, seed, fold):
                return
            alive = [c for c in alive if c.name not in self.failed]
            if todo and all(self._has(c, seed, fold) for c in alive):
                alive = self._promising(alive)

    def _next(self, alive: Sequence[Candidate]) -> tuple[int, int]:
        """The first seed and fold that one of them has not been trained on."""
        pairs = ((seed, k) for seed in itertools.count() for k in range(self.board.rows.count))
        return next(p for p in pairs if not all(self._has(c, *p) for c in alive))

    def _has(self, candidate: Candidate, seed: int, fold: int) -> bool:
        of = self.board.found.get(candidate.name, {}).get(seed)
        return of is not None and bool(of.rows[self.board.rows.folds == fold].all())

    def in_doubt(self, alive: Sequence[Candidate]) -> list[str]:
        """The candidates of which each may still be the best."""
        names = [c.name for c in alive if c.name in self.board.found]
        names += [n for n in self.board.found if n not in names and self.board.complete(n)]
        standing = self.board.standing(names) if names else []
        return [of.name for of in standing if of.chance >= LEAST_CHANCE]

    def _affordable(self, alive: Sequence[Candidate], seed: int) -> list[Candidate]:
        """Those that can complete this seed in the time that is left; the best come first.

        Without a complete seed a candidate cannot be chosen, so few that finish are better than
        many that do not.
        """
        begun = [c.name for c in alive if c.name in self.board.found]
        place = {of.name: i for i, of in enumerate(self.board.standing(begun))} if begun else {}
        kept: list[Candidate] = []
        needed = 0.0
        for candidate in sorted(alive, key=lambda c: place.get(c.name, len(place))):
            if (one := self.seconds(candidate)) is None:
                kept.append(candidate)
                continue
            left = sum(not self._has(candidate, seed, k) for k in range(self.board.rows.count))
            needed += left * one / self.runs.launcher.at_once
            refit = max(self.seconds(c) or 0.0 for c in [*kept, candidate])
            if needed + refit <= self.clock.left:
                kept.append(candidate)
                continue
            if seed == 0:
                minutes = (self.clock.limit + needed + refit - self.clock.left) / 60
                self._stop(candidate, f"no time: it would need --minutes {math.ceil(minutes)}")
            needed -= left * one / self.runs.launcher.at_once
        return [c for c in alive if c in kept]

    def _promising(self, alive: Sequence[Candidate]) -> list[Candidate]:
        """Those that may still be the best; the others stop."""
        doubted = self.in_doubt(alive)
        self.show(alive)
        for candidate in alive:
            if candidate.name not in doubted:
                rows = int(self.board.predicted([candidate.name]).sum())
                self._stop(
                    candidate, f"a chance below {LEAST_CHANCE:.0%} to be the best, over {rows} rows"
                )
        return [c for c in alive if c.name in doubted]

    def show(self, alive: Sequence[Candidate]) -> None:
        """Print the board: everything that is compared at this moment, best first."""
        names = [c.name for c in alive]
        names += [n for n in self.board.found if n not in names and self.board.complete(n)]
        rows = int(self.board.predicted(names).sum())
        self.tell(
            f"{rows} of {len(self.board.rows.truth)} rows predicted, "
            f"{duration(max(0.0, self.clock.left))} left"
        )
        for of in self.board.standing(names):
            self.tell("  " + of.text(self.board.metric))

    def seconds(self, candidate: Candidate) -> float | None:
        """How long a run of a candidate takes; None before anything has been measured."""
        walls: dict[str, list[float]] = self.clock.record.get("runs", {})
        if candidate.name in walls:
            return float(np.mean(walls[candidate.name]))
        costs = self._costs
        units = [w / costs[name] for name, of in walls.items() if name in costs for w in of]
        return candidate.cost * float(np.mean(units)) if units else None

    def _train_fold(self, todo: Sequence[Candidate], seed: int, fold: int) -> bool:
        """Train on one fold, and read what was predicted; returns whether there was time."""
        jobs = {Path("runs", c.name, f"seed-{seed}", f"fold-{fold}"): c for c in todo}
        known = [s for c in todo if (s := self.seconds(c)) is not None]
        # A first run that takes half of the time could not be repeated on the other folds.
        limit = self.clock.left - max(known) if known else self.clock.left / 2
        asked = [Job(folder, self.fold_config(c, seed, fold)) for folder, c in jobs.items()]
        over = self.run(asked, limit, {folder: c.name for folder, c in jobs.items()})
        for job in over:
            self.read(jobs[job.folder], seed, fold, self.runs.root / job.folder)
        if len(over) + sum(c.name in self.failed for c in todo) == len(asked):
            return True
        for candidate in todo:
            if not self._has(candidate, seed, fold) and candidate.name not in self.failed:
                self._stop(candidate, "no time to finish a fold")
        return False

    def run(self, jobs: Sequence[Job], limit: float, names: Mapping[Path, str]) -> list[Job]:
        """Train, and measure how long each run takes; returns those that finished.

        Args:
            jobs: the runs.
            limit: seconds after which they are stopped, with a checkpoint.
            names: the candidate of each run, by its folder.
        """
        began: dict[Path, float] = {}
        finished = []

        def ended(run: Ended) -> None:
            folder = run.job.folder
            if run.error is not None:
                self.failed[names[folder]] = run.error
                self.tell(f"{run.name}: failed: {run.error}")
                return
            if run.state == "new":
                walls = self.clock.record.setdefault("runs", {})
                took = round(time.monotonic() - began[folder], 1)
                walls.setdefault(names[folder], []).append(took)
            finished.append(run.job)
            self.clock.keep()

        def starts(job: Job) -> None:
            began[job.folder] = time.monotonic()

        Runner(self.runs, ended, starts).run(jobs, max(0.0, limit))
        return finished

    def read(self, candidate: Candidate, seed: int, fold: int, folder: Path) -> None:
        """Add what a run has predicted to the board, and remove its models."""
        lines = read_lines(LogitsOnTest, folder)
        labels = read_part(Evaluation, folder).labels
        order = [labels.index(name) for name in self.board.rows.kind.labels]
        logits = np.array([line.logits for line in lines], dtype=np.float32)[:, :, order]
        self.board.add(candidate.name, seed, [line.step for line in lines], fold, logits)
        for name in ("model", "pretraining"):
            shutil.rmtree(folder / name, ignore_errors=True)

    def fold_config(self, candidate: Candidate, seed: int, fold: int) -> TrainConfig:
        """The options of a training on all folds but one."""
        folder = self.runs.root / "data" / f"fold-{fold}"
        return self.config(
            candidate,
            train=str(folder / "train.jsonl"),
            test=str(folder / "held-out.jsonl"),
            seed=seed,
            test_predictions=True,
        )

    def config(self, candidate: Candidate, **over: Any) -> TrainConfig:
        """The options of a training of a candidate, with some replaced."""
        return resolve_training({}, layered(candidate.options, over), self.registry)

    def _stop(self, candidate: Candidate, why: str) -> None:
        self.stopped[candidate.name] = why
        self.tell(f"{candidate.name}: stops here, {why}")

    def _has_failed(self, name: str, error: str) -> None:
        self.failed[name] = error
        self.tell(f"{name}: failed: {error}")
