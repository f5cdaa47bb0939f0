"""SetFit on the smallest encoder; to import its library takes seconds."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from aang.config import TrainConfig
from aang_plugin_best.quick import frozen_encoder, load_fitted, save_fitted
from transformers.utils import logging

from aang_core import ConfigError, load_plugins
from tests import in_process
from tests.one_layer_encoder import write_one_layer_encoder

pytestmark = pytest.mark.full

# Two words of the same letters, which this encoder hardly tells apart, so that no seed is added.
TEXTS = [f"{'listen' if i % 2 else 'silent'} and number {i}" for i in range(60)]
LABELS = np.arange(60) % 2


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    write_one_layer_encoder(folder)
    return folder


@pytest.fixture
def config(encoder: Path) -> TrainConfig:
    return TrainConfig(model=str(encoder), steps=2, max_length=16)


def test_fits_do_not_influence_each_other_and_a_saved_one_predicts_the_same(
    config: TrainConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Nothing is printed or left in the working directory, and no global switch is changed."""
    setfit = load_plugins().registry.candidates.find("setfit").load()
    monkeypatch.chdir(tmp_path)

    def switches() -> list[object]:
        drawn = torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()
        return [*drawn, logging.get_verbosity(), logging.is_progress_bar_enabled()]

    before = switches()
    model = setfit(config).fit(TEXTS, LABELS)
    found = model.predict_proba(TEXTS)
    # The same again, from the encoder as it was, in the same step and in another one.
    assert np.array_equal(model.fit(TEXTS, LABELS).predict_proba(TEXTS), found)
    assert np.array_equal(setfit(config).fit(TEXTS, LABELS).predict_proba(TEXTS), found)
    other = config.model_copy(update={"seed": 1})
    assert not np.array_equal(setfit(other).fit(TEXTS, LABELS).predict_proba(TEXTS), found)
    assert switches() == before
    assert not list(tmp_path.iterdir())
    save_fitted(model, tmp_path / "saved")
    assert np.array_equal(load_fitted(tmp_path / "saved", 16).predict_proba(TEXTS), found)
    frozen = frozen_encoder(config)[0].transform(TEXTS)
    assert np.abs(model[0].transform(TEXTS) - frozen).max() > 1e-4
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "said"),
    [({"text_pair": "other"}, "two texts each"), ({"from_scratch": True}, "--from-scratch")],
)
def test_what_it_cannot_be_trained_on_is_refused(
    config: TrainConfig, options: dict[str, object], said: str
) -> None:
    setfit = load_plugins().registry.candidates.find("setfit").load()
    with pytest.raises(ConfigError, match=said):
        setfit(config.model_copy(update=options))


def test_a_search_tries_it_and_fits_no_fold_twice(encoder: Path, tmp_path: Path) -> None:
    train, root = tmp_path / "train.jsonl", tmp_path / "best"
    rows = [{"text": t, "label": str(n)} for t, n in zip(TEXTS, LABELS, strict=True)]
    train.write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = ("--candidate", "tf-idf", "--candidate", "setfit")
    size = ("--", "--steps", "2", "--max-length", "16")
    command = ("best", "--train", train, "--model", encoder, *names, "--out", root, *size)
    done = in_process.aang(*command)
    assert done.returncode == 0, done.stderr
    verdict = json.loads((root / "best.json").read_text())
    assert {of["name"] for of in verdict["board"]} == {"tf-idf", "setfit"}
    folds = sorted(root.glob("runs/setfit/seed-0/fold-?.safetensors"))
    assert len(folds) == 5
    assert len(json.loads((root / "clock.json").read_text())["runs"]["setfit"]) >= 5
    times = [file.stat().st_mtime_ns for file in folds]
    done = in_process.aang(*command)
    assert done.returncode == 0, done.stderr
    assert [file.stat().st_mtime_ns for file in folds] == times
    again = json.loads((root / "best.json").read_text())
    assert {**again, "milliseconds": 0} == {**verdict, "milliseconds": 0}
