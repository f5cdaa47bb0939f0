"""A source is tokenised once, however many stages use it, and no encoder is loaded in vain."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.runs import assembly, source_rows
from tests.training.conftest import Aang

STAGES = ("--set", "dapt.steps=2", "--set", "tapt.steps=2")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each encoder was loaded, by the name of its folder, and each source tokenised."""
    times: Counter[str] = Counter()

    def count(module: Any, function: str, name: Callable[..., str]) -> None:
        real = getattr(module, function)

        def counting(*arguments: Any, **options: Any) -> Any:
            times[name(*arguments, **options)] += 1
            return real(*arguments, **options)

        monkeypatch.setattr(module, function, counting)

    def folder(source: str, *_: Any, **__: Any) -> str:
        return f"load {Path(source).parent.name if 'pretraining' in source else 'encoder'}"

    count(assembly, "load_text_model", folder)
    count(source_rows, "tokenize", lambda *_, source, **__: f"tokenise {source}")
    return times


@pytest.mark.parametrize("space", [pytest.param("td", marks=pytest.mark.full), "td+ed"])
def test_a_chain_of_stages(
    aang: Aang,
    train_options: list[object],
    domain: list[object],
    tmp_path: Path,
    counted: Counter[str],
    space: str,
) -> None:
    done = aang(
        *("train", *train_options, *domain, "--recipe", "dapt+tapt", *STAGES, "--space", space),
        *("--weighter", "static", "--set", "static.n=3", "--steps", 2, "--out", tmp_path / "run"),
    )
    assert done.status == 0, done.err
    assert counted == {
        "load encoder": 2,  # to try everything, and to train the first stage
        "load dapt": 1,
        "load tapt": 1,
        "tokenise train": 1,
        "tokenise dev": 1,
        "tokenise test": 1,
        "tokenise s2orc": 1,
    }


def test_a_training_without_stages(
    aang: Aang, train_options: list[object], tmp_path: Path, counted: Counter[str]
) -> None:
    done = aang("train", *train_options, "--steps", 2, "--out", tmp_path / "run")
    assert done.status == 0, done.err
    assert counted == {
        "load encoder": 1,
        "tokenise train": 1,
        "tokenise dev": 1,
        "tokenise test": 1,
    }
