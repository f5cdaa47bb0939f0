"""Resident memory of a long training on a CPU, beside that of a bare loop over the same texts.

    python -m benchmarks.resident_memory
    python -m benchmarks.resident_memory --precision bf16 --layers 2 --rows 48 --steps 100

Plain fine-tuning (``--weighter single-task``) of an encoder with random weights on the demo task.
The bare loop is what one would write by hand: draw rows, pad them to the longest, forward and
backward pass, AdamW. Each training has a process of its own, so neither leaves memory behind for
the other. Memory is what the operating system gave the process, including what the allocator holds
back and what a library's kernels keep for each shape.
"""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import torch
import transformers
from aang.assembly.assembly import assemble
from aang.assembly.sources import prepare_sources
from aang.config import resolve_config
from aang.runs.training import build_trainer
from aang_plugin_demo.documentation import load_demo_task
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from aang_core.plugins import load_plugins
from benchmarks.small_task import EncoderSize, write_encoder

LONGEST = 64
"""Most tokens of a row."""
REPORTED = (1, 5, 10, 20, 50, 100, 150, 200, 250, 300)
"""Steps after which memory is reported."""

AfterStep = Callable[[int], None]


class Watch:
    """Observes AANG's training."""

    def __init__(self, after: AfterStep) -> None:
        self._after = after

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        self._after(step)

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        """Evaluations are not measured."""


def aang(encoder: Path, rows: int, precision: str, steps: int, after: AfterStep) -> None:
    """AANG's plain fine-tuning."""
    options: Mapping[str, object] = {
        "model": str(encoder),
        "weighter": "single-task",
        "max_length": LONGEST,
        "batch_size": rows,
        "precision": precision,
        "steps": steps,
        "eval_every": steps,
    }
    config = resolve_config({}, options)
    torch.manual_seed(config.seed)
    assembly = assemble(prepare_sources(config, load_plugins().registry))
    build_trainer(assembly, torch.device("cpu"), [Watch(after)]).train()


def bare(encoder: Path, rows: int, precision: str, steps: int, after: AfterStep) -> None:
    """The bare loop."""
    task = load_demo_task()
    names = sorted({str(example.label) for example in task.train})
    labels = torch.tensor([names.index(str(example.label)) for example in task.train])
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    texts = [example.text for example in task.train]
    tokens = tokenizer(texts, truncation=True, max_length=LONGEST)["input_ids"]
    model = AutoModelForSequenceClassification.from_pretrained(encoder, num_labels=len(names))
    model.train()  # from_pretrained leaves dropout off, and dropout keeps its masks for backward
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    generator = torch.Generator().manual_seed(0)
    for done in range(steps):
        drawn = torch.randperm(len(texts), generator=generator)[:rows]
        batch = tokenizer.pad({"input_ids": [tokens[i] for i in drawn]}, return_tensors="pt")
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            loss = model(**batch, labels=labels[drawn]).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        after(done + 1)


LOOPS = {"bare": bare, "aang": aang}


def resident() -> float:
    """The memory of this process that is in RAM, in 10⁹ bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e9


def measure(loop: str, encoder: Path, rows: int, steps: int, precision: str) -> None:
    """Train, and print the largest resident memory after any step since the last line."""
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    largest = 0.0

    def after(step: int) -> None:
        nonlocal largest
        largest = max(largest, resident())
        if step in REPORTED or step == steps:
            print(f"| {loop} | {step} | {largest:.2f} |", flush=True)
            largest = 0.0

    LOOPS[loop](encoder, rows, precision, steps, after)


@click.command()
@click.option("--rows", default=96, help="Rows of a step.")
@click.option("--layers", default=6, help="Layers of the encoder, each 384 wide.")
@click.option("--steps", default=300)
@click.option("--precision", default="fp32", type=click.Choice(["fp32", "bf16"]))
@click.option("--loop", type=click.Choice([*LOOPS]), help="Only this one, in this process.")
@click.option("--encoder", type=click.Path(path_type=Path), hidden=True)
def main(
    rows: int, layers: int, steps: int, precision: str, loop: str | None, encoder: Path | None
) -> None:
    """Print resident memory of both loops, step by step."""
    if loop is not None and encoder is not None:
        measure(loop, encoder, rows, steps, precision)
        return
    print("| loop | step | GB |")
    print("|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        size = EncoderSize(
            vocabulary=6000,
            width=384,
            intermediate=1536,
            positions=LONGEST,
            layers=layers,
            heads=12,
        )
        write_encoder(Path(folder), size)
        for name in [loop] if loop else LOOPS:
            command = [sys.executable, "-m", "benchmarks.resident_memory", "--loop", name]
            given = {"rows": rows, "steps": steps, "precision": precision, "encoder": folder}
            options = [f"--{key}={value}" for key, value in given.items()]
            subprocess.run([*command, *options], check=True)


if __name__ == "__main__":
    main()
