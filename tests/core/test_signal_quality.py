"""What signals are worth, where it can be worked out by hand."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from aang_core import DataError
from tests.support.diagnosis import (
    Figure,
    ObjectiveQuality,
    Reference,
    Sample,
    SignalQuality,
    agreements,
    read_scores,
    scores_of,
)

P, Q = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))


def gradient(a: float, b: float, c: float | None = None) -> dict[nn.Parameter, Tensor]:
    kind = torch.float64
    of_q = {} if c is None else {Q: torch.tensor([c], dtype=kind)}
    return {P: torch.tensor([a, b], dtype=kind)} | of_q


def test_cosines_worked_out_by_hand() -> None:
    """v = (3, 4), g = (1, 0): 3/5; less v's part along (0, 1) it is 1; Adam divides by 1 and 4."""
    reference = Reference(
        {"base": gradient(3, 4), "other": gradient(0, 2, 0)},
        "base",
        moments=gradient(1, 16),
        beta=1.0,
        end_task=gradient(0, 7),
    )
    found = reference.cosines(gradient(1, 0))
    assert found["base"] == pytest.approx(0.6)
    assert found["other"] == 0.0
    assert found["beyond-end-task"] == pytest.approx(1.0)
    assert found["adam-step"] == pytest.approx(0.6)
    # d = (2 / 1, 4 / 4) = (2, 1) up to its length.
    along = reference.cosines(gradient(2, 4))["adam-step"]
    assert along == pytest.approx((2 * 3 + 1 * 4) / (math.sqrt(5) * 5))
    nothing = reference.cosines(gradient(0, 0))
    assert set(nothing.values()) == {0.0}


def test_adam_divides_by_the_gradient_itself_where_it_knows_no_other() -> None:
    """A coordinate that had no gradient so far is moved by 1 / √(1 − β) and not by 1 / ε."""
    reference = Reference({"base": gradient(0, 1)}, "base", moments=gradient(25, 0), beta=0.75)
    # g scaled to ‖g‖ = 5 is (4, 3): d = (4 / √(18.75 + 4), 3 / √(0.25 · 9)).
    d = (4 / math.sqrt(18.75 + 4), 2.0)
    assert reference.cosines(gradient(8, 6))["adam-step"] == pytest.approx(d[1] / math.hypot(*d))


def test_on_a_quadratic_the_known_signal_and_noise_come_back() -> None:
    """g = μ + σ ε over n coordinates: reliability ‖μ‖² / (‖μ‖² + n σ²), and cos(μ, v) behind it."""
    n, sigma, draws = 50, 0.3, 400
    generator = torch.Generator().manual_seed(0)
    parameter = nn.Parameter(torch.zeros(n))
    v = torch.zeros(n)
    v[0] = 2.0
    mu = torch.zeros(n)
    mu[:2] = torch.tensor([0.6, 0.8])
    reference = Reference({"base": {parameter: v}}, "base")

    def noisy() -> dict[nn.Parameter, Tensor]:
        return {parameter: mu + sigma * torch.randn(n, generator=generator)}

    samples = [Sample.of(reference, [noisy(), noisy()]) for _ in range(draws)]
    found = ObjectiveQuality.of("noisy", samples, "base")
    share = 1 / (1 + n * sigma**2)
    assert found.reliability == pytest.approx(share, rel=0.1)
    base = found.figures["base"]
    assert base.value == pytest.approx(0.6 * math.sqrt(share), rel=0.05)
    assert found.figures["own-noise"].value == pytest.approx(0.6, rel=0.06)
    # The mean of two cosines, each about g_1 / ‖g‖ with g_1 of spread σ.
    spread = sigma * math.sqrt(share) / math.sqrt(2)
    assert base.t == pytest.approx(0.6 * math.sqrt(share) / (spread / math.sqrt(draws)), rel=0.1)
    assert found.figures["own-spread"].value == pytest.approx(0.6 / sigma * math.sqrt(2), rel=0.1)


def test_noise_alone_has_no_corrected_cosine() -> None:
    sample = Sample({"base": 0.1}, shared=-1.0, square=4.0)
    found = ObjectiveQuality.of("noise", [sample, sample], "base")
    assert found.reliability == -0.25
    assert found.figures["own-noise"].value is None
    assert found.figures["base"] == Figure(0.1, None, 2)


def quality(values: dict[str, list[float | None]]) -> SignalQuality:
    """Three or more objectives a/…, b/…, …; a list of values for each variant."""
    count = len(next(iter(values.values())))
    objectives = [
        ObjectiveQuality(
            f"task/{chr(97 + i)}/denoise",
            1.0,
            {variant: Figure(column[i], None, 1) for variant, column in values.items()},
        )
        for i in range(count)
    ]
    return SignalQuality(objectives[0], objectives, dict.fromkeys(values, ""), "up", 1, [1])


def test_rankings_are_compared_with_scores(tmp_path: Path) -> None:
    """In every form that scores come in; the mean of the seeds."""
    entries = [
        {"task": "t", "method": f"task.{name}.denoise", "dev": dev, "test": [0.0]}
        for name, dev in (("a", [0.1, 0.3]), ("b", [0.5]), ("c", [0.4]), ("d", [0.9]))
    ]
    (tmp_path / "table.json").write_text(json.dumps(entries))
    lines = ["objective,dev", "task/a/denoise,.1", "task/a/denoise,.3", "task/b/denoise,.5"]
    lines += ["task/c/denoise,.4", "task/d/denoise,.9"]
    (tmp_path / "scores.csv").write_text("\n".join(lines))
    mapping = {"task/a/denoise": 0.2, "task/b/denoise": 0.5, "task-c-denoise": 0.4}
    (tmp_path / "scores.json").write_text(json.dumps({**mapping, "task/d/denoise": [0.8, 1.0]}))
    measured = quality(
        {
            "up": [1.0, 3.0, 2.0, 4.0],
            "down": [4.0, 2.0, 3.0, 1.0],
            "some": [1.0, None, 3.0, 2.0],
            "flat": [1.0, 1.0, 1.0, 1.0],
        }
    )
    for name in ("table.json", "scores.csv", "scores.json"):
        names = [objective.name for objective in measured.objectives]
        found = agreements(measured, scores_of(names, read_scores(tmp_path / name), name))
        assert [(a.variant, a.correlation, a.objectives) for a in found] == [
            ("up", pytest.approx(1.0), 4),
            ("down", pytest.approx(-1.0), 4),
            ("some", pytest.approx(0.5), 3),
            ("flat", None, 4),
        ]


def test_scores_of_names_with_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_bytes(b'objective,dev\r\n"a\rb\r\nc",.5\r\n"d\x0be",.25\r\n')
    assert read_scores(path) == {"a\rb\r\nc": 0.5, "d\x0be": 0.25}


def test_bad_scores(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    with pytest.raises(DataError, match="cannot be read"):
        read_scores(path)
    for content in (
        "[1]",
        '[{"objective": "a"}]',
        '{"a": "b"}',
        "{",
        '[{"method": "a", "dev": []}]',
    ):
        path.write_text(content)
        with pytest.raises(DataError, match="columns objective and dev"):
            read_scores(path)
    path.write_text(json.dumps([{"task": t, "method": "a", "dev": [1]} for t in "xy"]))
    with pytest.raises(DataError, match="several tasks"):
        read_scores(path)
    with pytest.raises(DataError, match="has scores of 2 of the 3 objectives"):
        scores_of(["a/x", "b/x", "c/x"], {"a-x": 1, "b-x": 2, "d-x": 3}, path)
