"""The plan of the long table is made of comparisons, and results grow as its draws finish."""

import json
from pathlib import Path

import pytest
import yaml
from aang_plugin_compare.planning import read_comparison
from click.testing import CliRunner

from aang_core import load_plugins
from benchmarks.base_size import (
    BASELINE,
    ENCODERS,
    SETTINGS,
    Encoder,
    Setting,
    comparison,
    main,
    parts,
)
from benchmarks.does_it_help import Stage
from benchmarks.small_task import write_task

pytestmark = pytest.mark.release

REGISTRY = load_plugins(environ={}).registry
MACHINE = {"precision": "bf16", "device": "cpu"}


def test_each_part_is_planned(tmp_path: Path) -> None:
    """Each part names known options, and both sides have the same rows, length and weights."""
    encoders = dict.fromkeys(ENCODERS, tmp_path)
    file = tmp_path / "comparison.yaml"
    planned = set()
    for part in parts():
        setting = SETTINGS[part.setting]
        file.write_text(
            yaml.safe_dump(comparison(part, tmp_path, encoders, MACHINE), sort_keys=False)
        )
        cells = read_comparison(file, REGISTRY).cells
        assert [(cell.method, cell.seed) for cell in cells] == [
            (method, *part.draws) for method in part.methods
        ]
        for config in (cell.config for cell in cells):
            assert config.train_rows == setting.rows
            assert config.class_weights == ("balanced" if setting.balanced else None)
            assert config.precision == "bf16"
        plain, contrast = (cell.config for cell in cells[:2])
        assert plain.batch_size == contrast.batch_size == 32
        planned.add(part.setting)
    assert planned == set(SETTINGS)


def test_minilm_is_trained_as_aang_train_does(tmp_path: Path) -> None:
    part = next(part for part in parts() if part.setting == "minilm-scierc-50")
    file = tmp_path / "comparison.yaml"
    file.write_text(
        yaml.safe_dump(comparison(part, tmp_path, {"minilm": tmp_path}, MACHINE), sort_keys=False)
    )
    config = read_comparison(file, REGISTRY).cells[0].config
    for name in ("steps", "max_length", "lr", "head_lr", "batch_size", "eval_every", "patience"):
        assert getattr(config, name) == type(config).model_fields[name].default


def test_an_encoder_that_the_plan_needs_is_asked_for(tmp_path: Path) -> None:
    """Before anything is trained."""
    given = ["train", str(tmp_path), str(tmp_path / "out"), "--mpnet", str(tmp_path)]
    refused = CliRunner().invoke(main, given)
    assert refused.exit_code == 2
    assert "minilm-scierc-500-balanced needs the folder of its encoder: --minilm" in refused.output
    assert not (tmp_path / "out").exists()


def test_another_machine_goes_on_from_the_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It trains the draws and methods that the results lack, and its runs join theirs."""
    write_task(tmp_path / "scierc")
    small = Setting("minilm", "scierc", 8)
    monkeypatch.setattr("benchmarks.base_size.SETTINGS", {small.name: small})
    tiny = Encoder({"steps": 1, "batch_size": 4}, 0.0)
    monkeypatch.setattr("benchmarks.base_size.ENCODERS", {"minilm": tiny})
    both = (BASELINE, "contrast")
    results = tmp_path / "results"

    def run(out: str, draws: int, *options: str) -> dict[str, list[int]]:
        stages = (Stage("Does it train?", [small.name], both, draws),)
        monkeypatch.setattr("benchmarks.base_size.STAGES", stages)
        encoder = ["--minilm", str(tmp_path / "scierc" / "encoder"), "--precision", "fp32"]
        given = ["train", str(tmp_path), str(tmp_path / out), *encoder, *options]
        for command in (given, ["collect", str(tmp_path / out), str(results)]):
            done = CliRunner().invoke(main, command)
            assert done.exit_code == 0, done.output
        entries = json.loads((results / small.name / "table.json").read_text())
        assert small.name in (results / "table.md").read_text()
        return {entry["method"]: entry["seeds"] for entry in entries if not entry["quick"]}

    assert run("out", 1) == {method: [0] for method in both}
    known = ["--known", str(results)]
    assert run("other", 2, *known) == {method: [0, 1] for method in both}
    assert {path.parent.name for path in tmp_path.glob("other/**/result.json")} == {"seed-1"}
    planned = CliRunner().invoke(main, ["plan", str(results)])
    assert f"| {small.name} | 2 | 4 | 0.0 | 4 of 4 |" in planned.output
