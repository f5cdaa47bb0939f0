"""Trainings from Python beside other things of their process: its threads, generators, switches."""

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from aang import AangClassifier, Run, train
from torch import Tensor, nn

from aang_core import AangError, FitResult, TensorTask, fit
from tests.training.callers_world import changed, unusual_world, world

TEXTS = ["It rains again.", "What a fine day!", "Grey clouds come.", "Sun and joy."] * 4
LABELS = ["bad", "good"] * 8

FAILING = """
import random

import numpy as np
import torch

from aang_core import StepwiseWeighter, hookimpl


class Failing(StepwiseWeighter):
    def __init__(self, end_task, auxiliaries):
        self.names = [end_task.name, *(card.name for card in auxiliaries)]
        self.steps = 0

    def coefficients(self, sampled):
        print("it is asked")
        torch.rand(1), np.random.rand(), random.random()
        self.steps += 1
        if self.steps > 1:
            raise RuntimeError("it fails in its second step")
        return self.weights()

    def weights(self):
        return {name: 1 / len(self.names) for name in self.names}

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


@hookimpl
def aang_register_weighters(register):
    print("it is imported")
    register("failing", "fails", Failing)
"""


@pytest.fixture(scope="module")
def options(encoder: Path) -> dict[str, Any]:
    return {
        **{"model": str(encoder), "weighter": "single-task", "max_length": 16, "steps": 2},
        **{"eval_every": 1, "batch_size": 8, "precision": "fp32", "device": "cpu"},
    }


@pytest.fixture(scope="module")
def run(options: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run; it has also imported what trainings import."""
    folder = tmp_path_factory.mktemp("one-process") / "run"
    return train(**options, train=(TEXTS, LABELS), out=folder, quiet=True)


def evaluated() -> Mapping[str, float]:
    return {"accuracy": 0.5}


def small_fit(
    evaluate: Callable[[], Mapping[str, float]] | None = None, **arguments: Any
) -> tuple[FitResult, list[Tensor]]:
    """Train a few weights with dropout; the result, and the weights."""
    return small_training(evaluate, **arguments)()


def small_training(
    evaluate: Callable[[], Mapping[str, float]] | None = None, **arguments: Any
) -> Callable[[], tuple[FitResult, list[Tensor]]]:
    """What trains a few weights with dropout; new modules draw from the generator of all threads.

    Without scores of its own every evaluation is better, so that the last weights are kept.
    """
    better = count()
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(32, 4, generator=generator)
    with torch.random.fork_rng():
        body = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5))
        heads = [nn.Linear(8, 2), nn.Linear(8, 2)]
    for parameter in (p for module in (body, *heads) for p in module.parameters()):
        with torch.no_grad():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    loss = nn.CrossEntropyLoss(reduction="none")
    end, other = (
        TensorTask(name, head, {"input": x}, (x[:, column] > 0).long(), loss)
        for column, (name, head) in enumerate(zip(("end", "other"), heads, strict=True))
    )
    given: dict[str, Any] = {"weighter": "static", "steps": 4, "eval_every": 1, **arguments}
    scores = evaluate or (lambda: {"accuracy": float(next(better))})

    def trained() -> tuple[FitResult, list[Tensor]]:
        result = fit(body, end, [other], dev=end, evaluate=scores, **given)
        return result, [parameter.detach().clone() for parameter in body.parameters()]

    return trained


def fails() -> Mapping[str, float]:
    raise RuntimeError("the scores fail")


def attempts(options: dict[str, Any], run: Run, out: Path) -> dict[str, Callable[[], object]]:
    """What a program may call, well or badly, and the error that it then gets."""
    data = (TEXTS, LABELS)
    fresh = Run.open(run.folder)
    diverging = {**options, "lr": 1e30, "steps": 20}
    failing = {**options, "weighter": "failing", "space": "x+y+z"}
    nowhere = {**options, "model": "/no/such/model"}
    return {
        "train": lambda: train(**options, train=data, out=out / "run"),
        "train, wrong data": lambda: train(**options, train=(TEXTS, LABELS[:3])),
        "train, no model": lambda: train(**nowhere, train=data, out=out / "none", quiet=True),
        "train, diverging": lambda: train(**diverging, train=data, out=out / "nan", quiet=True),
        "train, a plug-in fails": lambda: train(**failing, train=data, out=out / "f", quiet=True),
        "fit": small_fit,
        "fit, wrong number": lambda: small_fit(steps=-1),
        "fit, its scores fail": lambda: small_fit(fails),
        "estimator": lambda: AangClassifier(**options).fit(TEXTS, LABELS).predict(TEXTS),
        "estimator, wrong data": lambda: AangClassifier(**options).fit(TEXTS, LABELS[:3]),
        "estimator, diverging": lambda: AangClassifier(**diverging).fit(TEXTS, LABELS),
        "predict": lambda: fresh.predict(TEXTS),
        "predict, wrong data": lambda: run.predict([3, 4]),
        "evaluate": lambda: run.evaluate(data),
        "evaluate, wrong data": lambda: run.evaluate((TEXTS, ["other"] * 16)),
    }


def test_the_callers_world_is_left_as_it_was(
    options: dict[str, Any], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by what fails, wherever it fails."""
    (tmp_path / "failing.py").write_text(FAILING, encoding="utf-8")
    monkeypatch.setenv("AANG_LOAD_PLUGINS", str(tmp_path / "failing.py"))
    failed, wrong = set(), dict[str, list[str]]()
    with unusual_world():
        for name, attempt in attempts(options, run, tmp_path).items():
            before = world()
            try:
                attempt()
            except (AangError, RuntimeError, ValueError):
                failed.add(name)
            if found := changed(before):
                wrong[name] = sorted(found)
    assert wrong == {}
    assert failed == {name for name in attempts(options, run, tmp_path) if ", " in name}


def test_gpus_not_started_keep_the_callers_seed() -> None:
    """CUDA is not started to ask for its generators; when it starts, it has the caller's seed."""
    seeds: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "manual_seed_all", seeds.append)
        torch.manual_seed(23)
        small_fit(seed=5)
    assert seeds[-2:] == [5, 23]


def weights_of(options: dict[str, Any], seed: int) -> dict[str, Tensor]:
    classifier = AangClassifier(**options, seed=seed).fit(TEXTS, LABELS)
    return dict(classifier.predictor_.model.state_dict())


def in_threads(*calls: Callable[[], None]) -> None:
    """Call all of them, each in a thread of its own; raise what one of them raises."""
    errors: list[BaseException] = []
    together = threading.Barrier(len(calls))

    def called(call: Callable[[], None]) -> None:
        together.wait()
        try:
            call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=called, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


def test_trainings_in_threads_are_those_of_one_after_the_other() -> None:
    """They take turns with what they share, such as the generator of dropout."""
    alone = {seed: small_fit(seed=seed)[1] for seed in range(3)}
    ready = {seed: small_training(seed=seed) for seed in alone}
    found: dict[int, list[Tensor]] = {}
    before = world()
    in_threads(*(lambda seed=seed: found.update({seed: ready[seed]()[1]}) for seed in alone))
    assert changed(before) == {}
    for seed, weights in alone.items():
        assert all(map(torch.equal, found[seed], weights))
    assert not all(map(torch.equal, alone[0], alone[1]))


@pytest.mark.full
def test_fits_in_threads_are_those_of_one_after_the_other(
    options: dict[str, Any], run: Run
) -> None:
    """With the same weights, and nothing of the process has changed."""
    alone = {seed: weights_of(options, seed) for seed in range(2)}
    found: dict[int, dict[str, Tensor]] = {}
    before = world()
    in_threads(
        *(lambda seed=seed: found.update({seed: weights_of(options, seed)}) for seed in alone)
    )
    assert changed(before) == {}
    for seed, weights in alone.items():
        assert found[seed].keys() == weights.keys()
        assert all(torch.equal(found[seed][name], value) for name, value in weights.items())


def test_a_model_is_loaded_while_another_thread_trains(run: Run) -> None:
    """Between two rounds, which draw the same as without it."""
    _, alone = small_fit(steps=200, eval_every=200)
    predicted: list[str] = []

    def predict() -> None:
        predicted.extend(Run.open(run.folder).predict(TEXTS)["predicted"])

    thread = threading.Thread(target=predict)

    class Watch:
        def after_round(self, step: int, record: Mapping[str, Any]) -> None:
            if step == 1:
                thread.start()
            if thread.is_alive():
                time.sleep(0.05)
            self.done = not thread.is_alive()

        def after_evaluation(self, *scores: object) -> None: ...

    watch = Watch()
    _, beside = small_fit(steps=200, eval_every=200, observers=[watch])
    assert watch.done, "it waited for the end of the training"
    assert len(predicted) == len(TEXTS)
    assert all(map(torch.equal, alone, beside))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt; a shell that starts tests in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_waiting_for_a_turn(caplog: pytest.LogCaptureFixture) -> None:
    """It is announced and can be interrupted, and a training may start another one."""
    begun, over = threading.Event(), threading.Event()

    def wait() -> Mapping[str, float]:
        small_fit()
        begun.set()
        over.wait(60)
        return evaluated()

    other = threading.Thread(target=lambda: small_fit(wait))
    other.start()
    assert begun.wait(30)
    announced = "another training runs in this process; this one waits until it ends"

    def interrupt_the_wait() -> None:
        end = time.monotonic() + 20
        while announced not in caplog.text and time.monotonic() < end:
            time.sleep(0.05)
        # To the thread that waits; sent to the process, another one may take it.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    impatient = threading.Thread(target=interrupt_the_wait)
    impatient.start()
    try:
        with caplog.at_level(logging.WARNING), pytest.raises(KeyboardInterrupt):
            small_fit()
    finally:
        impatient.join(30)
        over.set()
        other.join(30)
    assert announced in caplog.text
    assert not other.is_alive()
    assert small_fit()[0].steps == 4
