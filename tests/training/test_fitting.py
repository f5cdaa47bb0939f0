"""Training of a user's own modules."""

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from aang_core import DataError, TensorTask, UnknownNameError, fit


def squared(predicted: Tensor, wanted: Tensor) -> Tensor:
    return (predicted.squeeze(1) - wanted).square()


def line(name: str, head: nn.Module, slope: float, rows: int = 64) -> TensorTask:
    x = torch.linspace(-1, 1, rows).unsqueeze(1)
    return TensorTask(name, head, {"input": x}, slope * x.squeeze(1), squared)


def trained(weighter: str, *, seed: int = 0, gradients: str = "stream") -> dict[str, float]:
    torch.manual_seed(0)
    body, head = nn.Linear(1, 4), nn.Linear(4, 1)
    end = line("end", head, 1.0)

    def evaluate() -> Mapping[str, float]:
        with torch.no_grad():
            error = squared(head(body(end.inputs["input"])), end.targets).mean().item()
        return {"accuracy": -error}

    helpers = [line("same", nn.Linear(4, 1), 2.0), line("other", nn.Linear(4, 1), -1.0)]
    result = fit(
        body,
        end,
        helpers,
        dev=end,
        evaluate=evaluate,
        weighter=weighter,
        steps=60,
        eval_every=20,
        seed=seed,
        gradients=gradients,
    )
    assert result.best_score == pytest.approx(evaluate()["accuracy"]), "the best state is kept"
    return {**result.weights, "score": result.best_score, "rounds": len(result.history)}


@pytest.mark.parametrize(
    "weighter",
    [
        *("single-task", "factored", "meta-tartan", "alpha-vil", "diw"),
        *("autosem", "factored-bandit"),
    ],
)
def test_every_weighter_trains_plain_modules(weighter: str) -> None:
    """The same seed gives the same weights and score."""
    assert trained(weighter) == trained(weighter)


def test_engines_agree_on_plain_modules() -> None:
    """Weights learned through either engine are the same to rounding."""
    stream, packed = (trained("factored", gradients=g) for g in ("stream", "packed"))
    assert packed == pytest.approx(stream, abs=1e-3)


def test_rows_must_match() -> None:
    """Inputs and targets of different numbers of rows are refused with both numbers."""
    with pytest.raises(DataError, match=r"'x': 3.*4"):
        TensorTask("a", nn.Linear(1, 1), {"x": torch.zeros(3, 1)}, torch.zeros(4), squared)


def test_an_unknown_weighter_is_told() -> None:
    """With what is meant instead."""
    with pytest.raises(UnknownNameError, match="factored"):
        trained("factord")
