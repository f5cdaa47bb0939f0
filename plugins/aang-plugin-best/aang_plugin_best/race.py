"""The race: candidates train fold by fold on the same rows, until time runs out or one wins."""

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
from aang.assembly import without_unread_text
from aang.config import TrainConfig, resolve_training
from aang.runs import Result, read_lines, read_part, shown_score
from aang.runs.schema import Evaluation, LogitsOnTest
from aang.runs.summary import duration
from aang_plugin_compare.cells import Job
from aang_plugin_compare.runner import Ended, Runner, Runs
from aang_plugin_compare.settings import layered
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from aang_core import AangError, CandidateEntry, Registry
from aang_core.storage import write_file, writing
from aang_plugin_best.board import Board, Logits, Standing
from aang_plugin_best.quick import Calibrated, log_probabilities, read_logits, write_logits
from aang_plugin_best.rows import Rows

LEAST_CHANCE = 0.05
"""A candidate with a lower chance of being the best stops."""
SHARES = (0.25, 0.5, 0.75)
"""Shares of a fold's training rows at the points of a learning curve, after the race."""
LEAST_ROWS = 50
"""No candidate is stopped over fewer predicted rows."""
ENOUGH = 2
"""Folds that a candidate needs to be chosen if there is no time for all."""
MOST_SEEDS = 3
"""The most seeds for a candidate that cannot be told apart from others."""


@dataclass(frozen=True)
class Candidate:
    """A way to a classifier.

    Attributes:
        entry: its registration.
        options: the options of its trainings; for a fitted one, those passed to its target.
    """

    entry: CandidateEntry
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its name."""
        return self.entry.name

    @property
    def is_fitted(self) -> bool:
        """Whether it is fitted within this process instead of trained in a run."""
        return self.entry.target is not None

    @property
    def is_quick(self) -> bool:
        """Whether it is fitted in seconds, before the race."""
        return self.is_fitted and self.entry.cost == 0

    def fitted(
        self, config: TrainConfig, rows: Rows, chosen: NDArray[np.bool_], model: Any = None
    ) -> Any:
        """Fit its classifier to the chosen rows, a mask ``[N]``.

        A ``model`` from an earlier call is fitted again, not rebuilt.

        Raises:
            PluginError: the plug-in's code has failed.
        """
        with self.entry.blamed("fitting it"):
            model = self.entry.load()(config) if model is None else model
            texts = np.asarray(rows.texts, dtype=object)[chosen]
            groups = {}
            if isinstance(model, Pipeline) and isinstance(model.steps[-1][1], Calibrated):
                groups = {f"{model.steps[-1][0]}__groups": rows.groups[chosen]}
            model.fit(texts, rows.truth[chosen], **groups)
        return model


@dataclass
class Clock:
    """The seconds that a search has taken over all calls, kept in a file.

    Attributes:
        file: the file.
        limit: seconds that it may take.
        record: the content of the file.
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
        """Write the seconds so far, and ``record``."""
        self.record |= {**record, "seconds": round(self.spent, 1)}
        with writing(self.file):
            write_file(self.file, json.dumps(self.record, indent=2) + "\n")


@dataclass
class Race:
    """Everything that one search for the best candidate works with.

    Attributes:
        board: the predictions.
        runs: starts trainings; this process has locked their folder.
        registry: where recipes and weighters are looked up.
        clock: the time.
        models: how many models will be trained on all rows, which time is reserved for; also the
            least number of seeds, even for a single candidate.
        tell: called with each line for people.
        failed: why a candidate failed, by its name.
        stopped: why a candidate was stopped, by its name.
    """

    board: Board
    runs: Runs
    registry: Registry
    clock: Clock
    models: int
    tell: Callable[[str], None]
    failed: dict[str, str] = field(default_factory=dict)
    stopped: dict[str, str] = field(default_factory=dict)
    _costs: dict[str, float] = field(default_factory=dict)

    def quick(self, candidates: Sequence[Candidate]) -> None:
        """Fit the candidates that take seconds on all folds; results are kept."""
        for candidate in candidates:
            model = None
            try:
                for fold in range(self.board.rows.count):
                    model = self._out_of_fold(candidate, 0, fold, model)
            except AangError as error:
                self._has_failed(candidate.name, str(error))
                continue
            score = self.board.scores([candidate.name])[candidate.name]
            self.tell(f"{candidate.name}: {shown_score(score, self.board.metric)}")
            self.clock.keep()

    def _out_of_fold(self, candidate: Candidate, seed: int, fold: int, model: Any = None) -> Any:
        """Fit a candidate to all folds but one and predict that one, or read its saved predictions.

        Returns:
            The classifier, for the next fold.
        """
        file = self.logits_file(candidate, seed, fold)
        if not file.is_file():
            others = self.board.rows.folds != fold
            model, logits = self.fit(candidate, seed, fold, others, model)
            write_logits(file, logits)
        else:
            self.runs.note_newer(self.config(candidate, seed=seed), file, file)
        self.board.add(candidate.name, seed, (0,), fold, read_logits(file)[None])
        return model

    def logits_file(self, candidate: Candidate, seed: int, fold: int, part: str = "") -> Path:
        """The file of a fitted candidate's predictions for a fold, complete or not there."""
        folder = self.runs.root / fold_folder(candidate, seed, fold)
        return folder.with_name(f"{folder.name}{part}.safetensors")

    def fit(
        self,
        candidate: Candidate,
        seed: int,
        fold: int,
        chosen: NDArray[np.bool_],
        model: Any = None,
    ) -> tuple[Any, Logits]:
        """Fit a candidate to the chosen rows, a mask ``[N]``, and predict the n rows of a fold.

        Returns:
            The classifier, and log-probabilities, float32 ``[n, C]``.

        Raises:
            AangError: it cannot be fitted, or its plug-in's code has failed.
        """
        rows, config = self.board.rows, self.config(candidate, seed=seed)
        model = candidate.fitted(config, rows, chosen, model)
        held_out = np.asarray(rows.texts, dtype=object)[rows.folds == fold]
        with candidate.entry.blamed("predicting"):
            logits = log_probabilities(model, held_out, len(rows.kind.labels))
        if not np.isfinite(logits).all():
            raise candidate.entry.fault("it predicts NaN or infinity as a probability")
        return model, logits

    def train(self, candidates: Sequence[Candidate]) -> None:
        """Train candidates fold by fold until time has run out or only one can be the best.

        Args:
            candidates: those that are not quick, cheap ones first.
        """
        seeds = self.models
        self._costs = {c.name: c.entry.cost for c in candidates}
        self._restore(candidates)
        alive = [c for c in candidates if c.name not in self.stopped]
        while alive:
            seed, fold = self._next(alive)
            if seed >= MOST_SEEDS or (seed >= seeds and len(_in_doubt(self._standing(alive))) < 2):
                return
            alive = self._affordable(alive, seed)
            todo = self._todo(alive, seed, fold)
            if todo and not self._train(todo, seed):
                for candidate in alive:
                    if candidate.name not in {*self.stopped, *self.failed, *self.board.found}:
                        self._stop(candidate, "no time to begin")
                return
            alive = [c for c in alive if c.name not in self.failed]
            if todo and alive and all(self._has(c, seed, fold) for c in alive):
                alive = self._promising(alive)

    def _todo(
        self, alive: Sequence[Candidate], seed: int, fold: int
    ) -> list[tuple[Candidate, int]]:
        """What to train next: candidates on one fold, and on more if places would stay empty.

        Once the trainings have predicted the fold, fitted candidates follow one at a time: they
        cannot be stopped at a limit, so their time is checked first.
        """
        missing = [c for c in alive if not self._has(c, seed, fold)]
        if missing and all(c.is_fitted for c in missing):
            return [(missing[0], fold)]
        found: list[tuple[Candidate, int]] = []
        for k in range(fold, self.board.rows.count):
            if len(found) < self.runs.launcher.at_once:
                found += [(c, k) for c in alive if not (c.is_fitted or self._has(c, seed, k))]
        # How long the others take is unknown until one has been measured.
        return found if self.clock.record.get("runs") else found[:1]

    def _restore(self, candidates: Sequence[Candidate]) -> None:
        """Read the results of earlier processes."""
        self.stopped |= self.clock.record.get("behind", {})
        for candidate in candidates:
            for seed, fold in itertools.product(range(MOST_SEEDS), range(self.board.rows.count)):
                if candidate.is_fitted:
                    if self.logits_file(candidate, seed, fold).is_file():
                        self._out_of_fold(candidate, seed, fold)
                    continue
                if not (self.runs.root / fold_folder(candidate, seed, fold)).is_dir():
                    continue
                job = self._job(candidate, seed, fold)
                if self.runs.state(job) == "finished":
                    self.read(candidate, seed, fold, self.runs.root / job.folder, self.board)

    def _job(self, candidate: Candidate, seed: int, fold: int) -> Job:
        folder = fold_folder(candidate, seed, fold)
        return Job(folder, self.fold_config(candidate, seed, fold))

    def _next(self, alive: Sequence[Candidate]) -> tuple[int, int]:
        """The first seed and fold that one of them has not been trained on."""
        pairs = ((seed, k) for seed in itertools.count() for k in range(self.board.rows.count))
        return next(p for p in pairs if not all(self._has(c, *p) for c in alive))

    def _has(self, candidate: Candidate, seed: int, fold: int) -> bool:
        of = self.board.found.get(candidate.name, {}).get(seed)
        return of is not None and bool(of.rows[self.board.rows.folds == fold].all())

    def _standing(self, alive: Sequence[Candidate]) -> list[Standing]:
        """Compare the candidates still racing, and those that are complete, best first."""
        names = [c.name for c in alive if c.name in self.board.found]
        names += [n for n in self.board.found if n not in names and self.board.complete(n)]
        return self.board.standing(names) if names else []

    def _affordable(self, alive: Sequence[Candidate], seed: int) -> list[Candidate]:
        """The candidates that the time left is enough for; new ones get it first, then the best.

        A candidate begins if there is time for ENOUGH folds, without which it cannot be chosen.
        After those, it continues only if it can complete the seed, because few that finish are
        better than many that do not; the leader continues for as many folds as fit.
        """
        begun = [c.name for c in alive if c.name in self.board.found]
        scores = self.board.scores(begun) if begun else {}
        leader = max(begun, key=scores.__getitem__, default=None)
        folds = range(self.board.rows.count)
        missing = {c.name: sum(not self._has(c, seed, k) for k in folds) for c in alive}
        least = {n: ENOUGH - len(folds) + of if seed == 0 else 0 for n, of in missing.items()}
        kept: list[Candidate] = []
        needed = 0.0
        for candidate in sorted(
            alive, key=lambda c: (least[c.name] <= 0, -scores.get(c.name, -math.inf))
        ):
            name = candidate.name
            if (one := self.seconds(candidate)) is None or not missing[name]:
                kept.append(candidate)
                continue
            at_once = 1 if candidate.is_fitted else self.runs.launcher.at_once
            takes = one * (least[name] if least[name] > 0 else missing[name]) / at_once
            refit = self.models * max(self.seconds(c) or 0.0 for c in [*kept, candidate])
            if seed > 0:
                refit += len(SHARES) * one  # a learning curve says more than another seed
            short = needed + takes + refit - self.clock.left
            leads = seed == 0 and name == leader
            if short <= 0 or (leads and one + refit <= self.clock.left):
                kept.append(candidate)
                needed += takes
            elif seed == 0:
                whole = short - takes + one * missing[name] / at_once
                minutes = math.ceil((self.clock.limit + whole) / 60)
                what = " for all folds" if name in begun else ""
                self._stop(candidate, f"no time{what}: it needs --minutes {minutes}")
        return [c for c in alive if c in kept]

    def _promising(self, alive: Sequence[Candidate]) -> list[Candidate]:
        """The candidates that may still be the best; the others are stopped."""
        standing = self._standing(alive)
        self._show(standing)
        doubted, rows = _in_doubt(standing), standing[0].rows
        if rows < min(LEAST_ROWS, len(self.board.rows.truth)):
            return list(alive)
        for candidate in alive:
            if candidate.name not in doubted:
                why = f"a chance below {LEAST_CHANCE:.0%} to be the best, over {rows} rows"
                self._stop(candidate, why)
                # When the search goes on in another process, more rows must not revive it.
                self.clock.keep(behind={**self.clock.record.get("behind", {}), candidate.name: why})
        return [c for c in alive if c.name in doubted]

    def _show(self, standing: Sequence[Standing]) -> None:
        """Print the board."""
        self.tell(
            f"{standing[0].rows} of {len(self.board.rows.truth)} rows predicted, "
            f"{duration(max(0.0, self.clock.left))} left"
        )
        for of in standing:
            self.tell("  " + of.text(self.board.metric))

    def seconds(self, candidate: Candidate) -> float | None:
        """How long a run of a candidate takes; None before anything has been measured."""
        walls: dict[str, list[float]] = self.clock.record.get("runs", {})
        if candidate.name in walls:
            return float(np.mean(walls[candidate.name]))
        units = [w / self._costs[n] for n, of in walls.items() if n in self._costs for w in of]
        return candidate.entry.cost * float(np.mean(units)) if units else None

    def _train(self, todo: Sequence[tuple[Candidate, int]], seed: int) -> bool:
        """Train on folds, and read the predictions; returns whether there was time."""
        if todo[0][0].is_fitted:
            return self._fit_in_turn(*todo[0], seed)
        jobs = [(self._job(c, seed, k), c, k) for c, k in todo]
        known = [s for c, _ in todo if (s := self.seconds(c)) is not None]
        # A first run that takes half of the time could not be repeated on the other folds.
        limit = self.clock.left - self.models * max(known) if known else self.clock.left / 2
        names = {job.folder: c.name for job, c, _ in jobs}
        over = {job.folder for job in self.run([job for job, _, _ in jobs], limit, names)}
        late = False
        for job, candidate, fold in jobs:
            if job.folder in over:
                self.read(candidate, seed, fold, self.runs.root / job.folder, self.board)
            elif candidate.name not in self.failed:
                late = True
                if seed == 0 and candidate.name not in self.stopped:
                    self._stop(candidate, "no time to finish a fold")
        return not late

    def _fit_in_turn(self, candidate: Candidate, fold: int, seed: int) -> bool:
        """Fit a candidate between the trainings, and measure it; returns whether there was time."""
        if self.clock.left <= 0:
            self._stop(candidate, "no time to begin")
            return False
        began = time.monotonic()
        try:
            self._out_of_fold(candidate, seed, fold)
        except AangError as error:
            self._has_failed(candidate.name, str(error))
        else:
            self._took(candidate.name, time.monotonic() - began)
            self.clock.keep()
        return True

    def run(self, jobs: Sequence[Job], limit: float | None, names: Mapping[Path, str]) -> list[Job]:
        """Train, and measure how long each run takes; returns those that finished.

        Args:
            jobs: the runs.
            limit: seconds after which they are stopped, with a checkpoint; None for no limit.
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
            name = names[folder]
            if run.state == "new":
                self._took(name, time.monotonic() - began[folder])
            elif name not in self.clock.record.get("runs", {}):
                # Interrupted and resumed: what it would have taken in one go, but for its start.
                self._took(name, read_part(Result, self.runs.root / folder).all_seconds)
            finished.append(run.job)
            self.clock.keep()

        def starts(job: Job) -> None:
            began[job.folder] = time.monotonic()

        Runner(self.runs, ended, starts).run(jobs, None if limit is None else max(0.0, limit))
        return finished

    def _took(self, name: str, seconds: float) -> None:
        walls = self.clock.record.setdefault("runs", {})
        walls.setdefault(name, []).append(round(seconds, 1))

    def read(self, candidate: Candidate, seed: int, fold: int, folder: Path, board: Board) -> None:
        """Add a run's predictions to a board, and remove its models."""
        # The untrained model of step 0 cannot be chosen.
        lines = [line for line in read_lines(LogitsOnTest, folder) if line.step > 0]
        labels = read_part(Evaluation, folder).labels
        order = [labels.index(name) for name in board.rows.kind.labels]
        logits = np.array([line.logits for line in lines], dtype=np.float32)[:, :, order]
        board.add(candidate.name, seed, [line.step for line in lines], fold, logits)
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
        config = resolve_training({}, layered(candidate.options, over), self.registry)
        return without_unread_text(config, self.registry)

    def _stop(self, candidate: Candidate, why: str) -> None:
        self.stopped[candidate.name] = why
        self.tell(f"{candidate.name}: stopped, {why}")

    def _has_failed(self, name: str, error: str) -> None:
        self.failed[name] = error
        self.tell(f"{name}: failed: {error}")


def fold_folder(candidate: Candidate, seed: int, fold: int) -> Path:
    """The run folder of a training on all folds but one, relative to that of the search."""
    return Path("runs", candidate.name, f"seed-{seed}", f"fold-{fold}")


def _in_doubt(standing: Sequence[Standing]) -> list[str]:
    """The candidates that may still be the best."""
    return [of.name for of in standing if of.chance >= LEAST_CHANCE]
