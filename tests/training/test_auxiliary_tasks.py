"""Further labelled data sets as objectives: their own columns, classes and heads."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.support.data import task_name
from tests.training.conftest import Aang

DATA = Path(__file__).parents[2].parent / "shared" / "data"
SENTENCES = ("premise", "claim", "verdict")


@pytest.fixture(scope="session")
def train_options(train_options: list[object]) -> list[object]:
    """Options without a space, so that there are only auxiliary tasks."""
    place = train_options.index("--space")
    return train_options[:place] + train_options[place + 2 :]


@pytest.fixture
def pairs(tmp_path: Path, task_files: Path) -> Path:
    """A task over pairs with two classes, in columns of its own: do the texts belong together?"""
    lines = (task_files / "train.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    path = tmp_path / "pairs.tsv"
    rows = ["\t".join(SENTENCES)]
    for i, text in enumerate(texts[:40]):
        words = text.split()
        middle = len(words) // 2
        other = words if i % 2 else texts[(i + 7) % 40].split()
        rows.append(
            "\t".join((" ".join(words[:middle]), " ".join(other[middle:]) or "none", str(i % 2)))
        )
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def options_of(name: str) -> list[str]:
    columns = zip(("text", "text_pair", "label"), SENTENCES, strict=True)
    return [word for role, column in columns for word in ("--set", f"{name}.{role}={column}")]


@pytest.mark.parametrize(
    "weighter",
    [
        *("factored", "alpha-vil"),
        *(
            pytest.param(name, marks=pytest.mark.full)
            for name in ("single-task", "static", "meta-tartan", "diw", "autosem")
        ),
        pytest.param("factored-bandit", marks=pytest.mark.full),
    ],
)
def test_alone_with_every_weighter(
    aang: Aang, train_options: list[object], tmp_path: Path, pairs: Path, weighter: str
) -> None:
    run = tmp_path / "run"
    by_rounds = ["--set", f"{weighter}.fraction=0.1"] if weighter in ("alpha-vil", "diw") else []
    by_rounds += ["--set", f"{weighter}.k=2"] if weighter in ("autosem", "factored-bandit") else []
    done = aang(
        *("train", *train_options, "--aux-task", f"pairs={pairs}", *options_of("pairs")),
        *("--weighter", weighter, *by_rounds, "--out", run),
    )
    assert done.status == 0, done.err
    result = json.loads((run / "result.json").read_text())
    assert result["objectives"] == (0 if weighter == "single-task" else 1)
    last = json.loads((run / "weights.jsonl").read_text().splitlines()[-1])
    names = [] if weighter == "single-task" else ["pairs/no-op/bidirectional/own-label"]
    assert list(last["weights"]) == names


def test_in_spaces(aang: Aang, train_options: list[object], tmp_path: Path, pairs: Path) -> None:
    """A space may list it like any data, and its head has its own two classes."""
    space = tmp_path / "mine.yaml"
    space.write_text(
        "name: mine\ndata: [task, pairs]\ntransform: [mask, no-op]\n"
        "representation: [bidirectional]\noutput: [denoise, end-task, own-label]\n"
    )
    run = tmp_path / "run"
    done = aang(
        *("train", *train_options, "--aux-task", f"pairs={pairs}", *options_of("pairs")),
        *("--space", space, "--out", run),
    )
    assert done.status == 0, done.err
    last = json.loads((run / "weights.jsonl").read_text().splitlines()[-1])
    assert set(last["weights"]) == {
        f"{data}/{transform}/bidirectional/{output}"
        for data, label in (("task", "end-task"), ("pairs", "own-label"))
        for transform in ("mask", "no-op")
        for output in ("denoise", label)
    }
    tensors = load_file(next((run / "checkpoints").iterdir()) / "state.safetensors")
    classes = {
        name.split("|")[1]: len(tensor)
        for name, tensor in tensors.items()
        if name.startswith("module|") and name.endswith("model.classifier.weight")
    }
    assert classes["pairs/mask/bidirectional/own-label"] == 2
    assert classes["end-task"] == classes["task/mask/bidirectional/end-task"] > 2


def test_beside_a_space_that_does_not_list_it(
    aang: Aang, train_options: list[object], tmp_path: Path, pairs: Path
) -> None:
    run = tmp_path / "run"
    done = aang(
        *("train", *train_options, "--aux-task", f"pairs={pairs}", *options_of("pairs")),
        *("--space", "tapt", "--out", run),
    )
    assert done.status == 0, done.err
    last = json.loads((run / "weights.jsonl").read_text().splitlines()[-1])
    assert set(last["weights"]) == {
        "task/bert-op/bidirectional/denoise",
        "pairs/no-op/bidirectional/own-label",
    }


def test_target(aang: Aang, train_options: list[object], tmp_path: Path, pairs: Path) -> None:
    """The auxiliary task becomes the end task, and that of --train helps."""
    run = tmp_path / "run"
    done = aang(
        *("train", *train_options, "--aux-task", f"pairs={pairs}", *options_of("pairs")),
        *("--set", f"pairs.test={pairs}", "--target", "pairs", "--out", run),
    )
    assert done.status == 0, done.err
    last = json.loads((run / "weights.jsonl").read_text().splitlines()[-1])
    (helper,) = last["weights"]
    assert helper.endswith("/no-op/bidirectional/own-label")
    assert json.loads((run / "model" / "config.json").read_text())["label2id"] == {"0": 0, "1": 1}
    assert json.loads((run / "result.json").read_text())["metric"]["test"] is not None
    # The run knows its target's columns again.
    done = aang("evaluate", run, "--data", pairs)
    assert done.status == 0, done.err


@pytest.mark.parametrize("target", [False, True])
def test_texts_of_dev_and_test_are_left_out(
    aang: Aang, train_options: list[object], tmp_path: Path, task_files: Path, target: bool
) -> None:
    """Those of the end task, whichever of the two data sets that is."""
    train, dev, test = (
        [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
        for path in (task_files / f"{part}.jsonl" for part in ("train", "dev", "test"))
    )
    for name, texts in (
        ("other", [*train[:20], *(text.upper() + " " for text in dev[:3]), *test[:2]]),
        ("other-dev", train[20:24]),
    ):
        rows = [{"text": text, "label": f"{i % 2}.5"} for i, text in enumerate(texts)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        write(tmp_path, f"{name}.jsonl", lines)
    run, swapped = tmp_path / "run", ["--set", f"other.dev={tmp_path / 'other-dev.jsonl'}"]
    done = aang(
        *("train", *train_options, "--aux-task", f"other={tmp_path / 'other.jsonl'}"),
        *([*swapped, "--target", "other"] if target else []),
        *("--weighter", "static", "--steps", 1, "--out", run),
    )
    assert done.status == 0, done.err
    notes = json.loads((run / "data.json").read_text())["notes"]
    assert any("such as 0.5, is a class of its own" in note for note in notes) != target
    found = [note for note in notes if "also in the end task's" in note]
    named = task_name(task_files / "train.jsonl")
    assert [note.partition(" (first: ")[0] for note in found] == (
        [f"4 × text of {named} that is also in the end task's dev, left out"]
        if target
        else [
            "3 × text of other that is also in the end task's dev, left out",
            "2 × text of other that is also in the end task's test, left out",
        ]
    )


def test_a_task_whose_texts_are_all_left_out(
    aang: Aang, train_options: list[object], tmp_path: Path, task_files: Path
) -> None:
    done = aang(
        *("train", *train_options, "--aux-task", f"other={task_files / 'dev.jsonl'}"),
        *("--weighter", "static", "--steps", 1, "--out", tmp_path / "run"),
    )
    assert done.status == 2
    assert "every text is also in dev or test of the end task" in done.err


ROW = "text\tlabel\nsome text\tx\n"
UNLABELLED = "text\tclass\na\tb\n"

BAD: dict[str, tuple[Callable[[Path], list[object]], list[str]]] = {
    "one class": (
        lambda d: ["--aux-task", f"one={write(d, 'one.tsv', ROW)}"],
        ["one.tsv", "'x'", "--set one.label"],
    ),
    "no label column": (
        lambda d: ["--aux-task", f"a={write(d, 'a.tsv', UNLABELLED)}"],
        ["a.tsv", "'label'", "'class'", "--set a.label"],
    ),
    "no file": (lambda d: ["--aux-task", f"a={d / 'none.tsv'}"], ["none.tsv"]),
    "no equals sign": (lambda d: ["--aux-task", "wnli.tsv"], ["wnli.tsv", "NAME=FILE"]),
    "a name for no factor": (lambda d: ["--aux-task", "A/B=x.tsv"], ["--aux-task", "A/B"]),
    "a primitive's name": (
        lambda d: ["--aux-task", f"task={write(d, 'x.tsv', ROW)}"],
        ["data primitive", "task"],
    ),
    "a target that is no task": (
        lambda d: ["--aux-task", f"a={write(d, 'a.tsv', ROW)}", "--target", "rte"],
        ["--target rte", "a"],
    ),
    "a text that is its own label": (
        lambda d: ["--aux-task", f"a={write(d, 'a.tsv', ROW)}", "--set", "a.text=label"],
        ["--set a.label label is a column of texts, too"],
    ),
    "a text that is its own second": (
        lambda d: ["--aux-task", f"a={write(d, 'a.tsv', ROW)}", "--set", "a.text_pair=text"],
        ["--set a.text and --set a.text_pair both name the column text"],
    ),
    "an option that it has not": (
        lambda d: ["--aux-task", f"a={write(d, 'a.tsv', ROW)}", "--set", "a.txt=b"],
        ["--set a.txt", "text_pair"],
    ),
}


def write(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize("case", BAD)
def test_bad_input(aang: Aang, train_options: list[object], tmp_path: Path, case: str) -> None:
    options, names = BAD[case]
    run = tmp_path / "run"
    done = aang("train", *train_options, "--out", run, *options(tmp_path))
    assert done.status == 2
    assert "Traceback" not in done.err
    for name in names:
        assert name in done.err
    assert not run.exists()


@pytest.mark.full
@pytest.mark.skipif(not DATA.exists(), reason="../shared/data is not here")
@pytest.mark.parametrize(("target", "helper"), [("rte", "wnli"), ("wnli", "rte")])
def test_sentence_pairs_of_glue(
    aang: Aang, encoder: Path, tmp_path: Path, target: str, helper: str
) -> None:
    """RTE and WNLI, each with the other's help, as in αVIL's table 2."""
    run = tmp_path / "run"
    done = aang(
        *("train", "--train", DATA / target / "train.tsv", "--test", DATA / target / "dev.tsv"),
        *("--text", "sentence1", "--text-pair", "sentence2", "--model", encoder),
        *("--aux-task", f"{helper}={DATA / helper / 'train.tsv'}", "--metric", "accuracy"),
        *("--max-length", 32, "--steps", 2, "--eval-every", 2, "--batch-size", 4),
        *("--weighter", "static", "--out", run, "--json", "--quiet"),
    )
    assert done.status == 0, done.err
    assert json.loads(done.out)["majority"]["test"] == pytest.approx(
        {"rte": 0.527, "wnli": 0.563}[target], abs=0.001
    )
