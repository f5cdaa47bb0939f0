"""What a comparison file may say, and where its mistakes are."""

from pathlib import Path

import pytest
from aang_plugin_compare.planning import read_comparison, short_form

from aang_core import ConfigError, load_plugins

REGISTRY = load_plugins(environ={}).registry
GOOD = """\
tasks:
  a: {train: a.jsonl, lr: 1e-5}
  b: {train: b.jsonl}
methods:
  plain: {weighter: single-task}
  aang: {weighter: factored, set: {factored: {n: 2}}}
  tapt: {recipe: tapt}
seeds: [0, 3]
baseline: plain
options: {steps: 7, eval-every: 2, set: {factored: {lr: 0.5}}}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_run_with_its_options(tmp_path: Path) -> None:
    """Common options, those of the task, those of the method: the later wins."""
    comparison = read_comparison(write(tmp_path, GOOD), REGISTRY)
    assert len(comparison.cells) == 2 * 3 * 2
    cells = {(c.task, c.method, c.seed): c for c in comparison.cells}
    config = cells["a", "aang", 3].config
    assert (config.seed, config.steps, config.eval_every, config.lr) == (3, 7, 2, 1e-5)
    assert config.set == {"factored": {"lr": 0.5, "n": 2}}
    assert cells["b", "tapt", 0].config.weighter == "single-task"
    assert cells["b", "tapt", 0].folder == Path("runs/b/tapt/seed-0")


def test_a_method_wins_however_an_option_is_spelt(tmp_path: Path) -> None:
    text = GOOD.replace("steps: 7, eval-every: 2", "eval_every: 2, steps: 7")
    text = text.replace("b: {train: b.jsonl}", "b: {train: b.jsonl, eval-every: 3}")
    text = text.replace("{weighter: single-task}", "{weighter: single-task, eval_every: 4}")
    comparison = read_comparison(write(tmp_path, text), REGISTRY, seeds=1)
    every = {(c.task, c.method): c.config.eval_every for c in comparison.cells}
    assert every["b", "plain"] == 4
    assert every["b", "tapt"] == 3
    assert every["a", "tapt"] == 2
    text = text.replace(", eval_every: 4", "")
    comparison = read_comparison(
        write(tmp_path, text + "grid: {eval-every: [5]}\n"), REGISTRY, seeds=1
    )
    assert {c.config.eval_every for c in comparison.cells} == {5}


def test_a_grid_concerns_those_who_have_its_options(tmp_path: Path) -> None:
    text = GOOD + "grid: {lr: [1e-4, 1e-3], factored.lr: [0.1, 1.0, 2.0]}\n"
    comparison = read_comparison(write(tmp_path, text), REGISTRY, seeds=1)
    counts: dict[str, int] = {}
    for cell in comparison.cells:
        counts[cell.method] = counts.get(cell.method, 0) + 1
    assert counts == {"plain": 2 * 2, "aang": 2 * 6, "tapt": 2 * 2}
    (cell,) = (
        c
        for c in comparison.cells
        if (c.task, c.method, c.setting) == ("a", "aang", "lr=0.001, factored.lr=2.0")
    )
    assert cell.config.lr == 1e-3
    assert cell.config.set["factored"] == {"lr": 2.0, "n": 2}


def test_a_grid_has_options_of_primitives(tmp_path: Path) -> None:
    """Of those that a method trains; the others need not know them."""
    text = GOOD + "grid: {mask.rate: [0.1, 0.2], tapt.steps: [5, 6]}\n"
    comparison = read_comparison(write(tmp_path, text), REGISTRY, seeds=1)
    cells = [cell for cell in comparison.cells if cell.task == "a"]
    assert [(cell.method, cell.setting) for cell in cells] == [
        ("plain", ""),
        ("aang", "mask.rate=0.1"),
        ("aang", "mask.rate=0.2"),
        ("tapt", "tapt.steps=5"),
        ("tapt", "tapt.steps=6"),
    ]
    assert cells[2].config.set == {"factored": {"lr": 0.5, "n": 2}, "mask": {"rate": 0.2}}


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ("factord.lr: [1, 2]", ["factord.lr is in the grid, but no run uses", "factored"]),
        ("factored.lrr: [1, 2]", ["weighter factored has no option 'lrr'", "did you mean lr"]),
        ("electra.rate: [1, 2]", ["no run uses a primitive or weighter 'electra'"]),
        ("factored.n: [1, 2]", ["factored.n is in the grid", "a fixed value in the method aang"]),
        ("recipe: [tapt, aang-td]", ["a fixed value in the method tapt"]),
        ("seed: [5, 6]", ["seed: every method has the same seeds"]),
        ("push-to-hub: [x, y]", ["push-to-hub: one run of several would be pushed"]),
    ],
)
def test_a_grid_that_would_change_nothing_or_too_much(
    tmp_path: Path, grid: str, said: list[str]
) -> None:
    with pytest.raises(ConfigError) as refused:
        read_comparison(write(tmp_path, GOOD + f"grid: {{lr: [0.1, 1], {grid}}}\n"), REGISTRY)
    for words in ("spec.yaml:11: ", *said):
        assert words in str(refused.value)


def test_a_grid_of_a_plugin(tmp_path: Path) -> None:
    """Grids are registered, and looked up by name as everything else is."""
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "from aang_core import hookimpl\n"
        "@hookimpl\n"
        "def aang_register_grids(register):\n"
        "    register('mine', 'rates of my own', {'lr': [1e-4, 1e-3], 'factored.n': (2,)})\n",
        encoding="utf-8",
    )
    registry = load_plugins(local=[str(plugin)], environ={}).registry
    text = GOOD.replace(", set: {factored: {n: 2}}", "")
    comparison = read_comparison(write(tmp_path, text), registry, seeds=1, grid="mine")
    settings = {c.setting for c in comparison.cells if c.method == "aang"}
    assert settings == {"lr=0.0001, factored.n=2", "lr=0.001, factored.n=2"}
    without = load_plugins(disable=("aang-plugin-factored",), environ={}).registry
    with pytest.raises(ConfigError, match=r"no grid paper-td; .*aang-plugin-factored is disabled"):
        read_comparison(write(tmp_path, GOOD), without, grid="paper-td")


def test_the_papers_grid(tmp_path: Path) -> None:
    text = GOOD.replace(", set: {factored: {n: 2}}", "")
    comparison = read_comparison(write(tmp_path, text), REGISTRY, seeds=1, grid="paper-td")
    assert sum(c.method == "aang" for c in comparison.cells) == 2 * 16
    assert sum(c.method == "plain" for c in comparison.cells) == 2 * 2
    assert {c.config.lr for c in comparison.cells} == {1e-4}
    assert {c.config.head_lr for c in comparison.cells} == {1e-3, 1e-4}


@pytest.mark.parametrize(
    ("grid", "recipe", "settings"),
    [
        ("paper-td-ed", "aang-td+ed", 3 * 3),
        ("paper-one-task", "bert-style", 3 * 3),
        ("paper-mt-tartan", "tartan-mt", 3 * 3 * 2),
        ("paper-meta-tartan", "tartan-meta", 3 * 3 * 2 * 4 * 2),
    ],
)
def test_the_grids_of_the_papers_go_with_their_recipes(
    grid: str, recipe: str, settings: int
) -> None:
    """Every setting is another one, and replaces what the recipe sets."""
    cells = short_form(REGISTRY, [recipe], [], grid=grid, seeds=1).cells
    assert len(cells) == settings
    assert len({str(cell.config.by_name) for cell in cells}) == settings
    assert {cell.config.lr for cell in cells} == {1e-4}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{weighter: factored,", "{weighter: factord,", ["spec.yaml:6", "did you mean factored"]),
        ("{recipe: tapt}", "{recipe: tap}", ["spec.yaml:7", "no recipe tap"]),
        ("seeds:", "seed:", ["spec.yaml:8", "seed: there is no such key", "did you mean seeds"]),
        ("lr: 1e-5", "leer: 1", ["spec.yaml:2", "leer"]),
        ("  tapt:", "  plain:", ["spec.yaml:7", "plain is given twice"]),
        ("baseline: plain", "baseline: plan", ["spec.yaml:9", "did you mean plain"]),
        ("  aang:", "  a/b:", ["spec.yaml:6", "a/b: is not a name"]),
        ("seeds: [0, 3]", "seeds: []", ["spec.yaml:8", "seeds: is empty"]),
        ("steps: 7", "steps: -7", ["spec.yaml:10", "--steps"]),
        ("steps: 7", "out: here", ["spec.yaml:10", "folder of its own"]),
        ("{weighter: single-task}", "{train: b.jsonl}", ["spec.yaml:5", "train on the same rows"]),
        ("{weighter: single-task}", "{seed: 3}", ["spec.yaml:5", "give them under seeds"]),
        ("steps: 7", "seed: 7", ["spec.yaml:10", "give them under seeds"]),
        ("lr: 1e-5", "push-to-hub: me/x", ["spec.yaml:2", "push the one you choose"]),
        ("steps: 7", "hub_private: true", ["spec.yaml:10", "push the one you choose"]),
        ("seeds: [0, 3]", "grid: paper", ["spec.yaml:8", "paper-td"]),
        ("methods:", "methods: [", ["spec.yaml", "not valid YAML"]),
    ],
)
def test_mistakes_are_told_with_their_line(
    tmp_path: Path, old: str, new: str, said: list[str]
) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        read_comparison(write(tmp_path, GOOD.replace(old, new, 1)), REGISTRY)
    for words in said:
        assert words in str(caught.value)


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml"):
        read_comparison(tmp_path / "none.yaml", REGISTRY)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--lr", "1e-4", "mine.yaml"], "mine.yaml: is for aang train alone"),
        (["--dry-run"], "--dry-run: is for aang train alone"),
        (["--resume", "runs/a"], "--resume: is for aang train alone"),
        (["--accept-changes"], "--accept-changes: is for aang train alone"),
        (["--out", "here"], "--out: goes before the --"),
        (["--seed", "3"], "--seed: give --seeds before the --"),
        (["--push-to-hub", "me/x"], "push_to_hub: one run of several would be pushed"),
    ],
)
def test_what_cannot_follow_the_dashes(arguments: list[str], told: str) -> None:
    """What the runs would not have is not silently left out."""
    with pytest.raises(ConfigError) as refused:
        short_form(REGISTRY, ["single-task"], arguments)
    assert told in str(refused.value)
