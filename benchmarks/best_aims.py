"""Is ``aang best`` better than one training with a dev set, and are its numbers true?

    python -m benchmarks.best_aims run DATA OUT RESULTS.jsonl --model MINILM --minutes 30
    python -m benchmarks.best_aims spare DATA OUT RESULTS.jsonl
    python -m benchmarks.best_aims table RESULTS.jsonl…

DATA holds the folders ``acl-arc`` and ``scierc`` with ``train.jsonl`` and ``test.jsonl``, and
``rte`` with GLUE's ``train.tsv`` and ``dev.tsv``, whose rows are the test set. Every draw takes new
training rows and no dev set; for the demo task ``word-order``, all other rows are the test set.
Each draw is searched twice in one folder, with ``--deploy one`` and then with ``--deploy
ensemble``, which continues from there; and the same rows, split 80 to 20 into train and dev, are
trained once with today's default. ``run`` appends a line to RESULTS for each draw, and continues
where it was stopped; ``--setting`` selects settings, so that several calls can run at once, each
with its own RESULTS. The rows that were not drawn surely have the same distribution, unlike some
test sets: ``spare`` adds the score of the last deployed model on a thousand of them that have new
texts. ``table`` prints all draws and their means. Test scores are read only here.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import torch
from aang.corpora.columns import Columns
from aang.corpora.labelled import read_rows
from aang.corpora.labelled_task import text_key
from aang_plugin_best.deploy import open_model
from aang_plugin_best.search import DEMO
from aang_plugin_best.together import calibration_error, probabilities_of
from aang_plugin_demo.word_order import word_order
from sklearn.model_selection import train_test_split

from aang_core import ReadReport
from aang_core.storage import write_file

DRAWS = 3
SPARE = 1000
KEPT = (
    *("chosen", "metric", "score", "interval", "rows", "labelled", "board", "against", "not_tried"),
    *("together", "members", "steps", "temperature", "calibration_error", "milliseconds", "parts"),
)
"""The parts of a verdict that results keep, none of them texts."""


@dataclass(frozen=True)
class Setting:
    """A task with a number of training rows.

    Attributes:
        task: the task.
        rows: how many rows.
        options: the options of ``aang train`` for it; None for those of the command line.
    """

    task: str
    rows: int
    options: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """Its name in results."""
        return f"{self.task}-{self.rows}"


SETTINGS = (
    *(Setting("scierc", 500), Setting("acl-arc", 500), Setting("rte", 300)),
    Setting(
        *("word-order", 400),
        tuple(f"--{n.replace('_', '-')}={v}" for n, v in DEMO.items() if n != "dataset"),
    ),
    *(Setting("scierc", 200), Setting("acl-arc", 200)),
)


def drawn(setting: Setting, data: Path, draw: int, folder: Path) -> list[str]:
    """Write a draw's training rows, stratified, and the others; returns the data's options."""
    header: list[str] = []
    kind, test = "jsonl", data / setting.task / "test.jsonl"
    if setting.task == "word-order":
        task = word_order(ReadReport()).task
        test = folder / "spare.jsonl"
        examples = (*task.train, *task.dev, *task.test)
        labels = [str(e.label) for e in examples]
        rows = [json.dumps({"text": e.text, "label": e.label}) for e in examples]
    else:
        if setting.task == "rte":
            kind, test = "tsv", data / setting.task / "dev.tsv"
        rows = (data / setting.task / f"train.{kind}").read_text(encoding="utf-8").splitlines()
        if setting.task == "rte":
            header, rows = rows[:1], rows[1:]
        labels = [row.split("\t")[-1] if header else json.loads(row)["label"] for row in rows]
    chosen, others = train_test_split(
        range(len(rows)), train_size=setting.rows, random_state=draw, stratify=labels
    )
    folder.mkdir(parents=True, exist_ok=True)
    for part, places in (("train", sorted(chosen)), ("spare", others)):
        lines = [*header, *(rows[i] for i in places)]
        write_file(folder / f"{part}.{kind}", "\n".join(lines) + "\n")
    columns = ["--text", "sentence1", "--text-pair", "sentence2"] if header else []
    return ["--train", str(folder / f"train.{kind}"), "--test", str(test), *columns]


def aang(*arguments: str) -> None:
    """Run ``aang``."""
    subprocess.run([sys.executable, "-m", "aang_core", *arguments], check=True)


def measured(
    options: list[str], folder: Path, minutes: float, shared: list[str]
) -> Iterator[tuple[str, Any]]:
    """The results of a draw, by name."""
    baseline = folder / "one-training"
    if not (baseline / "result.json").is_file():
        split = ["--dev-fraction", "0.2", "--quiet"]
        aang("train", *options, *split, *shared, "--out", str(baseline))
    result = json.loads((baseline / "result.json").read_text())
    yield "baseline", result["metric"]["test"]
    for deploy in ("one", "ensemble"):
        kept = folder / f"{deploy}.json"
        if not kept.is_file():
            search = ["best", *options, "--minutes", str(minutes), "--deploy", deploy]
            aang(*search, "--out", str(folder / "best"), "--", *shared)
            verdict = json.loads((folder / "best" / "best.json").read_text())
            # The total of all calls, if the search was stopped and continued.
            seconds = json.loads((folder / "best" / "clock.json").read_text())["seconds"]
            write_file(kept, json.dumps({**{n: verdict[n] for n in KEPT}, "seconds": seconds}))
        yield deploy, json.loads(kept.read_text())


def on_spare(folder: Path, columns: Columns) -> dict[str, float]:
    """The scores of what was deployed last on rows that were not drawn and whose texts are new."""
    model = open_model(folder / "best" / "model", torch.device("cpu"))
    report = ReadReport()
    train, others = (
        read_rows(next(folder.glob(f"{part}.*")), columns, report) for part in ("train", "spare")
    )
    known = set(map(text_key, train.examples))
    new = [example for example in others.examples if text_key(example) not in known]
    few = replace(others, examples=tuple(new[:SPARE]))
    truth, logits = model.labelled_logits(few, model.task_type, 32, report)
    return {
        "rows": len(truth),
        "score": dict(model.task_type.scores(truth, logits))["macro-f1"],
        "calibration_error": calibration_error(probabilities_of(logits.numpy()), truth.numpy()),
        "accuracy": float((logits.argmax(1) == truth).float().mean()),
        "confidence": float(logits.exp().amax(1).mean()),
    }


@click.group()
def main() -> None:
    """Measure, and show what was measured."""


@main.command()
@click.argument("data", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--model", required=True)
@click.option("--minutes", default=30.0)
@click.option("--steps", default=200)
@click.option("--max-length", default=96)
@click.option("--setting", "only", multiple=True, type=click.Choice([s.name for s in SETTINGS]))
def run(
    data: Path,
    out: Path,
    results: Path,
    model: str,
    minutes: float,
    steps: int,
    max_length: int,
    only: tuple[str, ...],
) -> None:
    """Go through all draws, the first draw of every setting first."""
    lines = results.read_text().splitlines() if results.is_file() else []
    done = {(line["setting"], line["draw"]) for line in map(json.loads, lines)}
    for draw in range(DRAWS):
        for setting in SETTINGS:
            if (setting.name, draw) in done or (only and setting.name not in only):
                continue
            folder = out / f"{setting.name}-{draw}"
            options = drawn(setting, data, draw, folder)
            shared = ["--seed", str(draw)]
            if setting.options is None:
                options += ["--model", model]
                shared += ["--steps", str(steps), "--max-length", str(max_length)]
            else:
                shared += setting.options
            found = dict(measured(options, folder, minutes, shared))
            line = {"setting": setting.name, "draw": draw, "minutes": minutes, **found}
            lines.append(json.dumps(line))
            write_file(results, "\n".join(lines) + "\n")


@main.command()
@click.argument("data", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("results", type=click.Path(exists=True, path_type=Path))
def spare(data: Path, out: Path, results: Path) -> None:
    """Add what rows that were not drawn say, to the draws that lack it."""
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    for line in lines:
        if "spare" not in line:
            setting = next(s for s in SETTINGS if s.name == line["setting"])
            folder = out / f"{line['setting']}-{line['draw']}"
            pair = "--text-pair" in drawn(setting, data, line["draw"], folder)
            columns = Columns(text="sentence1", text_pair="sentence2") if pair else Columns()
            line["spare"] = on_spare(folder, columns)
            write_file(results, "".join(json.dumps(one) + "\n" for one in lines))


@main.command()
@click.argument("results", nargs=-1, type=click.Path(exists=True, path_type=Path))
def table(results: tuple[Path, ...]) -> None:
    """Print a row for each draw, and the means."""
    lines = [json.loads(line) for file in results for line in file.read_text().splitlines()]
    names = (
        *("setting", "draw", "80/20", "one", "announced", "ensemble", "chosen", "ECE", "minutes"),
        *("announced last", "spare rows", "ECE"),
    )
    click.echo("| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|")
    gains: dict[str, list[float]] = {"one": [], "ensemble": []}
    inside, errors, inside_spare, spare_errors = [], [], [], []
    for line in lines:
        scores = {"80/20": 100 * line["baseline"]}
        for deploy in gains:
            of = line[deploy]
            test = of["parts"]["test"]
            scores[deploy] = 100 * test["scores"][of["metric"]]
            gains[deploy].append(scores[deploy] - scores["80/20"])
            low, high = of["interval"]
            inside.append(low <= scores[deploy] / 100 <= high)
            errors.append(test["calibration_error"])
        low, high = (100 * end for end in line["one"]["interval"])
        cells = [
            *(line["setting"], line["draw"], f"{scores['80/20']:.1f}", f"{scores['one']:.1f}"),
            *(f"{100 * line['one']['score']:.1f} ({low:.1f}–{high:.1f})",),
            *(f"{scores['ensemble']:.1f}", line["one"]["chosen"], f"{errors[-2]:.3f}"),
            f"{line['one']['seconds'] / 60:.1f}",
        ]
        if "spare" in line:
            found, (low, high) = line["spare"], line["ensemble"]["interval"]
            inside_spare.append(low <= found["score"] <= high)
            spare_errors.append(found["calibration_error"])
            cells += [
                f"{100 * line['ensemble']['score']:.1f} ({100 * low:.1f}–{100 * high:.1f})",
                *(f"{100 * found['score']:.1f}", f"{found['calibration_error']:.3f}"),
            ]
        click.echo("| " + " | ".join(map(str, cells)) + " |")
    for deploy, found in gains.items():
        click.echo(f"\n{deploy}: {statistics.mean(found):+.2f} points on average over 80/20")
    click.echo(f"the announced interval holds the test score {sum(inside)} times of {len(inside)}")
    click.echo(f"expected calibration error on test: {statistics.mean(errors):.3f} on average")
    if spare_errors:
        click.echo(
            f"spare rows: {sum(inside_spare)} times of {len(inside_spare)}, and "
            f"{statistics.mean(spare_errors):.3f}"
        )


if __name__ == "__main__":
    main()
