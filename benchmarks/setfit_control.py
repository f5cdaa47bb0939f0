"""SetFit (Tunstall et al., 2022) as a control of a comparison.

    python -m benchmarks.setfit_control COMPARISON.yaml OUT

COMPARISON.yaml is a file of ``aang compare`` and OUT its folder, the one given with ``--out``. For
every task and seed, SetFit gets the encoder, the data and the drawn rows of the baseline. The
result goes to OUT, where the table of ``aang compare`` shows it in the row ``setfit``. Existing
results are kept, so the command can be stopped and called again. It needs the package setfit, which
``pip install 'aang-core[benchmark]'`` installs.

SetFit tunes the encoder on pairs of texts, so that texts of one class get similar embeddings:
``--iterations`` pairs of each kind for each text. Then a logistic regression is fitted to the
embeddings, which are means over tokens. SetFit does not need dev. With several values of
``--iterations``, the best of them on dev is used, and the table shows how many were tried.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from aang.assembly.sources import encoder_of, read_end_task
from aang.config import TrainConfig
from aang.corpora.labelled_task import LabelledTask
from aang.runs import ChosenScores
from aang.task_types.metrics import scores
from aang_plugin_compare.cells import Cell
from aang_plugin_compare.control_results import (
    FOLDER,
    ControlResult,
    read_result,
    result_file,
    write_result,
)
from aang_plugin_compare.planning import read_comparison
from aang_plugin_compare.run_folders import make_root
from datasets import Dataset
from sklearn.linear_model import LogisticRegression

from aang_core.errors import ConfigError
from aang_core.objectives.stages import Example, ReadReport
from aang_core.plugins import load_plugins
from aang_core.storage.lock import locked

NAME = "setfit"


def asked(config: TrainConfig, iterations: Sequence[int], limit: int) -> dict[str, Any]:
    """The options that the result depends on."""
    leave = {"space", "weighter", "recipe", "set", "out", "steps", "eval_every", "patience"}
    given = config.model_dump(mode="json", exclude=leave, exclude_none=True)
    return {**given, "iterations": list(iterations), "max_steps": limit}


def trained(task: LabelledTask, config: TrainConfig, iterations: int, limit: int) -> Any:
    """Train a SetFit model on the task's training rows.

    The argument ``limit`` is the largest number of optimiser steps for the embeddings; -1 for as
    many as there are pairs.

    Raises:
        ConfigError: setfit is not installed.
    """
    # An optional package that takes seconds to import.
    try:
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
        from setfit import SetFitModel, Trainer, TrainingArguments
    except ImportError as error:
        raise ConfigError("needs setfit; pip install 'aang-core[benchmark]'") from error
    words = Transformer(encoder_of(config), max_seq_length=config.max_length)
    pooling = Pooling(words.get_embedding_dimension(), "mean")
    model = SetFitModel(
        model_body=SentenceTransformer(modules=[words, pooling], device="cpu"),
        model_head=LogisticRegression(max_iter=1000),
        labels=list(task.labels),
    )
    with tempfile.TemporaryDirectory() as scratch:
        trainer = Trainer(
            model=model,
            args=TrainingArguments(
                output_dir=scratch,
                batch_size=16,
                num_epochs=1,
                num_iterations=iterations,
                max_steps=limit,
                seed=config.seed % 2**32,
                report_to="none",
                save_strategy="no",
                show_progress_bar=False,
            ),
            train_dataset=Dataset.from_dict(
                {"text": texts(task.train), "label": label_ids(task, task.train)}
            ),
        )
        trainer.train()
    return model


def texts(examples: Sequence[Example]) -> list[str]:
    """The texts; both texts of a pair are joined."""
    return [" ".join(filter(None, (e.text, e.text_pair))) for e in examples]


def label_ids(task: LabelledTask, examples: Sequence[Example]) -> list[int]:
    """The classes as numbers."""
    return [task.labels.index(str(e.label)) for e in examples]


def score(model: Any, task: LabelledTask, part: Sequence[Example], metric: str) -> float:
    """The model's score on a part of the task."""
    predicted = model.predict(texts(part), use_labels=False, show_progress_bar=False)
    return float(scores(label_ids(task, part), [int(label) for label in predicted])[metric])


def result_of(cell: Cell, iterations: Sequence[int], limit: int) -> ControlResult:
    """Train with each value of ``iterations`` and return the best on dev."""
    config, begin = cell.config, time.perf_counter()
    task, draw = read_end_task(config, ReadReport())
    found = []
    for count in iterations:
        model = trained(task, config, count, limit)
        found.append((score(model, task, task.dev, config.metric), count, model))
    dev, count, model = max(found, key=lambda one: one[0])
    test = score(model, task, task.test, config.metric) if task.test else None
    return ControlResult(
        control=NAME,
        quick=False,
        seed=cell.seed,
        metric=ChosenScores(name=config.metric, dev=dev, test=test),
        setting=f"iterations={count}",
        tried=len(iterations),
        seconds=round(time.perf_counter() - begin, 3),
        asked=asked(config, iterations, limit),
        rows=None if draw is None else draw.digest,
    )


@click.command()
@click.argument("spec", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--iterations", multiple=True, default=(10,), show_default=True, type=click.IntRange(1)
)
@click.option("--max-steps", default=-1, help="most steps of the embeddings; default: no limit")
def main(spec: Path, out: Path, iterations: tuple[int, ...], max_steps: int) -> None:
    """Compute the missing results."""
    comparison = read_comparison(spec, load_plugins().registry)
    make_root(out)
    # Not the comparison's own lock, because the comparison may be training at the same time.
    controls = out / FOLDER
    controls.mkdir(exist_ok=True)
    with locked(controls):
        for cell in comparison.leading():
            path = result_file(out, cell.task, NAME, cell.seed)
            there = read_result(path)
            if there is not None and there.asked == asked(cell.config, iterations, max_steps):
                click.echo(f"{cell.task}/{NAME}/seed-{cell.seed}: kept", err=True)
                continue
            write_result(out, cell.task, result_of(cell, iterations, max_steps))
            click.echo(f"{cell.task}/{NAME}/seed-{cell.seed}: done", err=True)


if __name__ == "__main__":
    main()
