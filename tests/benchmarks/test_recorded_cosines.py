"""The cosines that runs have recorded are averaged by kind of objective."""

from pathlib import Path

import pytest
from aang import train
from click.testing import CliRunner

from benchmarks.recorded_cosines import by_kind, main
from tests.support.diagnosis import Figure

pytestmark = pytest.mark.release


def test_a_step_counts_once_however_many_objectives_of_a_kind_it_measured() -> None:
    steps = [
        {"end-task": -0.1, "task/mask/bidirectional/denoise": 0.2},
        {
            "task/mask/bidirectional/denoise": 0.1,
            "task/replace/bidirectional/denoise": 0.3,
            "task/no-op/left-to-right/denoise": 0.5,
        },
        {},
    ]
    found = by_kind(steps)
    assert found.keys() == {"end task", "denoise, bidirectional", "denoise, left-to-right"}
    assert found["end task"] == [-0.1]
    assert found["denoise, bidirectional"] == pytest.approx([0.2, 0.2])
    assert found["denoise, left-to-right"] == [0.5]


def test_t_is_the_mean_over_its_standard_error() -> None:
    figure = Figure.of([1.0, 2.0, 3.0])  # standard deviation 1
    assert figure.value == 2.0
    assert figure.t == pytest.approx(2.0 * 3**0.5)
    assert Figure.of([0.5]) == Figure(0.5, None, 1)
    assert Figure.of([0.5, 0.5]) == Figure(0.5, None, 2)


def test_the_table_has_a_column_for_each_real_run(tmp_path: Path) -> None:
    lines = ["text,label"] + 12 * ["It rains again.,bad", "What a fine day!,good"]
    (tmp_path / "mood.csv").write_text("\n".join(lines), encoding="utf-8")
    for weighter, seeds in (("factored", (0, 1)), ("static", (0,))):
        for seed in seeds:
            run = train(
                train=str(tmp_path / "mood.csv"),
                space="td-labels",
                weighter=weighter,
                steps=4,
                seed=seed,
                max_length=16,
                batch_size=4,
                dev_batch_size=4,
                aux_batch_size=6,
                out=str(tmp_path / weighter / f"seed-{seed}"),
            )
    done = CliRunner().invoke(main, [str(tmp_path / "factored")])
    assert done.exit_code == 0, done.output
    head, _, *rows = done.output.splitlines()
    assert head == "| kind | seed-0 | seed-1 |"
    kinds = [row.split(" | ")[0].removeprefix("| ") for row in rows]
    assert kinds == ["end task", "end-task, bidirectional", "end-task, random-factorized"]
    assert all(row.count("(") == 2 for row in rows)
    parts = [("--until", "3"), ("--after", "3")]
    early, last = (CliRunner().invoke(main, [str(tmp_path / "factored"), *p]) for p in parts)
    assert early.exit_code == last.exit_code == 0
    assert len({done.output, early.output, last.output}) == 3
    assert last.output.splitlines()[2].count("(–)") == 2  # one step has no standard error
    assert not any(line.cosines for line in run.records.rounds)  # static measures none
    refused = CliRunner().invoke(main, [str(tmp_path / "static")])
    assert refused.exit_code == 1
    assert "no run measured cosines" in refused.output
    (tmp_path / "factored" / "seed-1" / "result.json").unlink()
    for folder, said in (("factored", "seed-1: the run did not finish"), ("", "has no folder")):
        refused = CliRunner().invoke(main, [str(tmp_path / folder)])
        assert refused.exit_code == 1
        assert said in refused.output
