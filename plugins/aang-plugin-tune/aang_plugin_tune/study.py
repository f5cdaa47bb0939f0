"""The study: Optuna's record of a search, in the search's folder."""

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import optuna
from aang_plugin_compare.control_results import read_record
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner, MedianPruner, NopPruner
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, Trial, TrialState

from aang_core import ConfigError, DataError
from aang_core.storage import write_file, writing
from aang_plugin_tune.search import Search

JOURNAL = "journal.log"
_NAME = "aang tune"

Sampler = Literal["grid", "tpe", "random"]
State = Literal["finished", "pruned", "failed", "unfinished"]

_STATES: Mapping[TrialState, State] = {
    TrialState.COMPLETE: "finished",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}


@dataclass(frozen=True)
class Tried:
    """A trial so far.

    Attributes:
        number: its number, from 0.
        state: how it ended; ``unfinished`` if it has not.
        setting: its setting.
        score: its dev score; the best one so far if it was pruned or has not finished.
        step: the last step whose score is known.
        error: why it failed.
        same_as: the number of an earlier trial with the same setting, which was not repeated.
    """

    number: int
    state: State
    setting: Mapping[str, Any]
    score: float | None
    step: int | None
    error: str | None
    same_as: int | None


def trial_folder(number: int) -> Path:
    """The run folder of a trial, relative to that of the search."""
    return Path("runs", f"trial-{number}")


def all_failed(which: str, last: Tried, root: Path) -> ConfigError:
    """The error if all runs have failed, so that nothing of the search is worth keeping.

    Args:
        which: the runs, such as ``the first 3 runs``.
        last: the last of them.
        root: the folder of the search.
    """
    return ConfigError(
        f"{which} have failed, the last with: {last.error}. Failed runs are not tried again; when "
        f"the cause is fixed, remove {root} and call aang tune again"
    )


class Study:
    """The trials of a search. Call it from one thread at a time.

    Args:
        root: the search's folder, which this process has locked.
        search: the search.
        sampler: how settings are proposed: ``grid`` takes every listed setting in a random order.
        seed: seed of the proposals.
        prune_after: number of finished trials before others are pruned; None to prune none.

    Raises:
        DataError: the record is damaged.
    """

    def __init__(
        self, root: Path, search: Search, sampler: Sampler, seed: int, prune_after: int | None
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._search = search
        self._order: list[dict[str, Any]] | None = None
        if sampler == "grid":
            self._order = search.listed() or []
            random.Random(seed).shuffle(self._order)
        pruner = NopPruner() if prune_after is None else _BelowMedian(prune_after)
        path = root / JOURNAL
        try:
            with writing(path):
                _mend(path)
                self._study = optuna.create_study(
                    storage=JournalStorage(
                        JournalFileBackend(str(path), JournalFileOpenLock(str(path)))
                    ),
                    sampler=_Proposals(sampler, seed, self._order or ()),
                    pruner=pruner,
                    study_name=_NAME,
                    direction="maximize",
                    load_if_exists=True,
                )
        except (ValueError, KeyError) as error:
            raise DataError(f"{path}: is damaged: {error}; remove {root}") from error

    @property
    def trials(self) -> list[Tried]:
        """All trials, by number."""
        return [_tried(trial) for trial in self._study.get_trials(deepcopy=False)]

    @property
    def seconds(self) -> float:
        """Seconds that the search has taken so far."""
        return float(self._study.user_attrs.get("seconds", 0.0))

    def add_seconds(self, seconds: float) -> None:
        """Record that the search has taken longer."""
        self._study.set_user_attr("seconds", self.seconds + seconds)

    def exhausted(self) -> bool:
        """Whether every setting of a grid has a trial."""
        return self._order is not None and len(self.trials) >= len(self._order)

    def new_trial(self) -> Trial:
        """A new trial; :meth:`setting` returns its setting."""
        return self._study.ask()

    def trial(self, number: int) -> Trial:
        """A trial that has not ended, from an earlier process."""
        return Trial(self._study, self._study.get_trials(deepcopy=False)[number]._trial_id)

    def setting(self, trial: Trial) -> dict[str, Any]:
        """The setting of a trial: proposed the first time, recorded after that."""
        setting = self._search.setting(trial)
        trial.set_user_attr("setting", json.dumps(setting))
        return setting

    def end(self, trial: Trial, outcome: float | str | None) -> Tried:
        """Record how a trial ended: its dev score, why it failed, or None if it was pruned."""
        if isinstance(outcome, str):
            trial.set_user_attr("error", outcome)
            self._study.tell(trial, state=TrialState.FAIL)
        elif outcome is None:
            self._study.tell(trial, state=TrialState.PRUNED)
        else:
            self._study.tell(trial, outcome)
        return self.trials[trial.number]

    def repeat(self, trial: Trial, of: Tried) -> None:
        """Record that a trial has the setting of an earlier one, and therefore its outcome."""
        trial.set_user_attr("same_as", of.number)
        if of.state == "finished" and of.score is not None:
            self._study.tell(trial, of.score)
        else:
            self._study.tell(trial, state=TrialState.FAIL)


def claim_folder(root: Path, search: Search, **how: Any) -> None:
    """Write down which search a folder belongs to, or check that it belongs to this one.

    A budget is not part of a search, so a search can go on with a larger one.

    Args:
        root: the folder, which this process has locked.
        search: the search.
        **how: how it proposes and prunes.

    Raises:
        ConfigError: the folder belongs to another search.
        DataError: the record there is damaged.
        StorageError: it cannot be written.
    """
    path = root / "search.json"
    document = {
        "options": dict(search.options),
        "methods": {name: dict(of) for name, of in search.methods.items()},
        # In order, because methods are formed and settings are listed in it.
        "search": [f"{name} = {of}" for name, of in search.dimensions.items()],
        **how,
    }
    asked = json.loads(json.dumps(document, default=str))
    there = read_record(path, lambda content: dict(json.loads(content)), f"remove {root}")
    if there is None:
        if any((root / "runs").iterdir()):
            raise ConfigError(
                f"--out {root}: has runs in it that no search made; give another folder"
            )
        with writing(path):
            write_file(path, json.dumps(asked, indent=2) + "\n")
        return
    if other := [key for key in {**asked, **there} if there.get(key) != asked.get(key)]:
        had, now = (json.dumps(of.get(other[0])) for of in (there, asked))
        raise ConfigError(
            f"--out {root}: belongs to a search that differs in {' and '.join(other)}: {had} and "
            f"not {now}. Give another folder"
        )


class _BelowMedian(BasePruner):
    """Prunes trials below the median of the others at the same step.

    Optuna's own pruner also counts trials that repeat a setting, which are not trained.

    Args:
        after: the number of runs that have to finish before any trial is pruned.
    """

    def __init__(self, after: int) -> None:
        self._after = after
        self._median = MedianPruner(after, 1)

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        ended = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        finished = sum("same_as" not in other.user_attrs for other in ended)
        return finished >= self._after and self._median.prune(study, trial)


class _Proposals(RandomSampler):
    """Proposes values that depend on the seed, the trial, the option and the ended trials alone.

    A generator kept from trial to trial would be lost with the process: a search that goes on after
    a kill would propose other settings than one that was never stopped.

    Args:
        kind: how values are proposed.
        seed: the seed.
        order: the settings of a grid, in the order of the trials.
    """

    def __init__(self, kind: Sampler, seed: int, order: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(seed)
        self._kind = kind
        self._seed = seed
        self._order = order

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        if self._kind == "grid":
            return json.dumps(self._order[trial.number][param_name])
        text = f"{self._seed} {trial.number} {param_name}".encode()
        seed = int.from_bytes(hashlib.sha256(text).digest()[:4], "big")
        sampler: BaseSampler = RandomSampler(seed)
        if self._kind == "tpe":
            sampler = TPESampler(multivariate=False, seed=seed)
        return sampler.sample_independent(study, trial, param_name, param_distribution)


def _tried(trial: FrozenTrial) -> Tried:
    known = trial.intermediate_values
    best = max(known.values(), default=None)
    return Tried(
        number=trial.number,
        state=_STATES.get(trial.state, "unfinished"),
        setting=json.loads(trial.user_attrs.get("setting", "{}")),
        score=trial.value if trial.state == TrialState.COMPLETE else best,
        step=max(known, default=None),
        error=trial.user_attrs.get("error"),
        same_as=trial.user_attrs.get("same_as"),
    )


def _mend(path: Path) -> None:
    """Remove the half line and the lock of a process that was killed while it wrote.

    Optuna would append to the half line, and could no longer read the record.
    """
    with suppress(FileNotFoundError):
        content = path.read_bytes()
        if not content.endswith(b"\n"):
            with path.open("r+b") as file:
                file.truncate(content.rfind(b"\n") + 1)
    path.with_name(f"{path.name}.lock").unlink(missing_ok=True)
