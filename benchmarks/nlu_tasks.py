"""αVIL's language tasks (section 4.2): CB, CoPA, MRPC, RTE and WNLI, one of them the target.

    python -m benchmarks.nlu_tasks DATA MODEL --target cb --weighter alpha-vil --predictions OUT

DATA holds the folders CB, COPA, MRPC, RTE and WNLI, or some of them, as SuperGLUE and GLUE
distribute them; MODEL is the folder of an encoder, RoBERTa-base in the paper. The target is trained
with the help of all other tasks that are there. Like table 2, the script gives the dev accuracy of
each seed and their mean; and it gives that of the ensemble, the mean of the seeds' probabilities.
With OUT, the ensemble's predictions for the test set, whose labels are not public, are written as
the two benchmarks take them.

The heads are the paper's, one for each task: 768 × 256, ReLU, 256 × classes. No class of
transformers has them on RoBERTa, so that a model with such a head could not be saved as an ordinary
folder; ``aang train`` uses RoBERTa's own.

The paper leaves open, and the script decides: CoPA is the premise with the question, paired with
both choices as one text; texts are cut to 256 tokens; the heads have the rate of the encoder. A run
of ``diw`` ends after as many steps as 20 rounds take if each improves at once.
"""

import csv
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import torch
from aang.corpora.tables import stream_table
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

from aang_core import DataError, OptimizerSettings, TensorTask, fit

NAMES = ("cb", "copa", "mrpc", "rte", "wnli")
FILES = {"train": ("train",), "dev": ("val", "dev"), "test": ("test",)}
PAIRS = (("premise", "hypothesis"), ("sentence1", "sentence2"), ("#1 String", "#2 String"))
QUESTIONS = {"cause": "What was the cause of this?", "effect": "What happened as a result?"}

MAX_LENGTH = 256

BATCH, FRACTION = 8, 0.25
"""Rows of a task in a step, and the part of its training rows that an epoch shows."""

OPTIONS = {"alpha-vil": {"lr": 0.001, "fraction": FRACTION}, "diw": {"fraction": FRACTION}}
ADAMW = OptimizerSettings(lr=5e-6, head_lr=5e-6, eps=1e-6, warmup=0.0, schedule="constant")

Inputs = Mapping[str, Tensor]


def read(file: Path, separator: str) -> tuple[list[tuple[str, str]], list[Any]]:
    """Pairs of texts, and the labels; those of a test set are None.

    Args:
        file: .tsv of GLUE or .jsonl of SuperGLUE.
        separator: the token that stands between CoPA's two choices.

    Raises:
        DataError: the file is of another task, or damaged.
    """
    pairs, labels = [], []
    table = stream_table(file)
    for number, row in table.rows:
        if "choice1" in row:
            question = QUESTIONS[str(row["question"])]
            choices = f"{row['choice1']} {separator} {row['choice2']}"
            pairs.append((f"{row['premise']} {question}", choices))
        else:
            found = [(row[a], row[b]) for a, b in PAIRS if a in row and b in row]
            if not found:
                raise DataError(f"{table.where(number)}: no pair of texts among {', '.join(row)}")
            pairs.append((str(found[0][0]), str(found[0][1])))
        labels.append(row.get("label", row.get("Quality")))
    return pairs, labels


@dataclass(frozen=True)
class NluTask:
    """A task as tensors.

    Attributes:
        classes: as the files name them.
        inputs: the encoder's inputs, by part.
        labels: int64 ``[N]``, by part; a test set has none.
        test_file: the test set's file, if there is one.
    """

    classes: Sequence[Any]
    inputs: Mapping[str, Inputs]
    labels: Mapping[str, Tensor]
    test_file: Path | None


def read_task(folder: Path, tokenizer: Any) -> NluTask:
    """Read and tokenise the parts of a task.

    Raises:
        DataError: the training or dev set is missing, or has a row without a label.
    """
    files: dict[str, Path] = {}
    for part, stems in FILES.items():
        names = [f"{stem}{extension}" for stem in stems for extension in (".jsonl", ".tsv")]
        if there := [folder / name for name in names if (folder / name).exists()]:
            files[part] = there[0]
        elif part != "test":
            raise DataError(f"{folder}: there is none of {', '.join(names)}")
    rows = {part: read(file, tokenizer.sep_token) for part, file in files.items()}
    if None in rows["train"][1] + rows["dev"][1]:
        raise DataError(f"{folder}: a row of train or dev has no label")
    classes = sorted(set(rows["train"][1]))
    inputs = {
        part: dict(
            tokenizer(
                *([pair[i] for pair in pairs] for i in (0, 1)),
                truncation=True,
                max_length=min(MAX_LENGTH, tokenizer.model_max_length),
                padding=True,
                return_tensors="pt",
            )
        )
        for part, (pairs, _) in rows.items()
    }
    labels = {
        part: torch.tensor([classes.index(label) for label in rows[part][1]])
        for part in ("train", "dev")
    }
    return NluTask(classes, inputs, labels, files.get("test"))


class FirstToken(nn.Module):
    """The shared body: an encoder's output for the first token, ``[B, H]``."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.encoder = AutoModel.from_pretrained(folder, add_pooling_layer=False)

    def forward(self, attention_mask: Tensor, **inputs: Tensor) -> Tensor:
        """Features of rows ``[B, T]``, whose common padding is cut off."""
        longest = int(attention_mask.sum(dim=1).max())
        cut = {name: value[:, :longest] for name, value in inputs.items()}
        hidden = self.encoder(attention_mask=attention_mask[:, :longest], **cut).last_hidden_state
        features: Tensor = hidden[:, 0]
        return features


def head(width: int, classes: int) -> nn.Module:
    """αVIL's head (section 4.2)."""
    return nn.Sequential(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, classes))


def probabilities(body: nn.Module, head: nn.Module, inputs: Inputs) -> Tensor:
    """Probabilities of the classes, ``[N, classes]``, on the CPU."""
    body.eval()
    device = next(body.parameters()).device
    parts = zip(*(value.split(64) for value in inputs.values()), strict=True)
    with torch.no_grad():
        logits = [
            head(body(**{name: v.to(device) for name, v in zip(inputs, part, strict=True)}))
            for part in parts
        ]
    return torch.cat(logits).float().softmax(dim=1).cpu()


def accuracy(probabilities: Tensor, labels: Tensor) -> float:
    """The share of rows whose most probable class is right."""
    return (probabilities.argmax(dim=1) == labels).float().mean().item()


def train(
    tasks: Mapping[str, NluTask],
    target: str,
    weighter: str,
    model: Path,
    *,
    seed: int,
    epochs: int,
    device: str,
) -> Callable[[str], Tensor]:
    """Train for ``target``; returns a function from one of its parts to probabilities."""
    torch.manual_seed(seed)
    body = FirstToken(model).to(device)
    width = body.encoder.config.hidden_size
    heads = {name: head(width, len(task.classes)) for name, task in tasks.items()}

    def loss(logits: Tensor, labels: Tensor) -> Tensor:
        return functional.cross_entropy(logits, labels, reduction="none")

    def rows(name: str, part: str) -> TensorTask:
        task = tasks[name]
        return TensorTask(name, heads[name], task.inputs[part], task.labels[part], loss)

    def predicted(part: str) -> Tensor:
        return probabilities(body, heads[target], tasks[target].inputs[part])

    helpers = [name for name in tasks if name != target]
    epoch, whole = steps_of_epoch(tasks, target, weighter)
    fit(
        *(body, rows(target, "train"), [rows(name, "train") for name in helpers]),
        dev=rows(target, "dev"),
        evaluate=lambda: {"accuracy": accuracy(predicted("dev"), tasks[target].labels["dev"])},
        weighter=weighter,
        options=OPTIONS.get(weighter, {}),
        steps=epochs * epoch,
        eval_every=1 if whole else epoch,
        patience=epochs,
        batch_size=BATCH,
        dev_batch_size=BATCH,
        aux_batch_size=BATCH * max(len(helpers), 1),
        optimizer=ADAMW,
        seed=seed,
    )
    return predicted


def steps_of_epoch(tasks: Mapping[str, NluTask], target: str, weighter: str) -> tuple[int, bool]:
    """Steps of an epoch, and whether the weighter's rounds are epochs."""
    quarters = {
        name: math.ceil(FRACTION * len(task.labels["train"]) / BATCH)
        for name, task in tasks.items()
    }
    alone, longest = sum(quarters.values()), max(quarters.values())
    rounds = {"alpha-vil": alone, "diw": alone + longest}
    if weighter in rounds:
        return rounds[weighter], True
    return quarters[target] if weighter == "single-task" else longest, False


def write_predictions(folder: Path, name: str, task: NluTask, probabilities: Tensor) -> None:
    """Write a test set's predictions as GLUE (.tsv) and SuperGLUE (.jsonl) take them."""
    assert task.test_file is not None
    labels = [task.classes[i] for i in probabilities.argmax(dim=1)]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name.upper()}{task.test_file.suffix}"
    with file.open("w", encoding="utf-8", newline="") as out:
        if file.suffix == ".jsonl":
            out.writelines(json.dumps({"idx": i, "label": v}) + "\n" for i, v in enumerate(labels))
        else:
            lines = csv.writer(out, delimiter="\t", lineterminator="\n")
            lines.writerows([("index", "prediction"), *enumerate(labels)])


@click.command(help=__doc__, context_settings={"show_default": True})
@click.argument("data", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("model", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--target", required=True, type=click.Choice(NAMES))
@click.option("--weighter", default="alpha-vil", help="static is the standard multitask baseline")
@click.option("--seeds", default=4)
@click.option("--epochs", default=20)
@click.option("--device", default="cpu")
@click.option("--predictions", type=click.Path(path_type=Path, file_okay=False))
def main(
    data: Path,
    model: Path,
    target: str,
    weighter: str,
    seeds: int,
    epochs: int,
    device: str,
    predictions: Path | None,
) -> None:
    """Train the seeds, one after the other, and print one line of JSON."""
    folders = {folder.name.lower(): folder for folder in sorted(data.iterdir())}
    if target not in folders:
        raise click.UsageError(f"{data} has no folder {target.upper()}")
    tokenizer = AutoTokenizer.from_pretrained(model)
    tasks = {name: read_task(folders[name], tokenizer) for name in NAMES if name in folders}
    own = tasks[target]
    if predictions is not None and own.test_file is None:
        raise click.UsageError(f"--predictions: {folders[target]} has no test set")
    parts = ["dev"] if predictions is None else ["dev", "test"]
    found: dict[str, list[Tensor]] = {part: [] for part in parts}
    for seed in range(seeds):
        predicted = train(
            *(tasks, target, weighter, model), seed=seed, epochs=epochs, device=device
        )
        for part in parts:
            found[part].append(predicted(part))
    ensemble = {part: torch.stack(seen).mean(dim=0) for part, seen in found.items()}
    if predictions is not None:
        write_predictions(predictions, target, own, ensemble["test"])
    dev = [accuracy(seen, own.labels["dev"]) for seen in found["dev"]]
    line = {
        "target": target,
        "weighter": weighter,
        "dev": dev,
        "mean": sum(dev) / seeds,
        "ensemble": accuracy(ensemble["dev"], own.labels["dev"]),
    }
    click.echo(json.dumps(line))


if __name__ == "__main__":
    main()
