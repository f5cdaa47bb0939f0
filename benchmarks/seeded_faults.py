"""Do the tests notice faults? Forty faults, each put into a copy of the project, and the tests run.

    python -m benchmarks.seeded_faults RESULTS.jsonl
    python -m benchmarks.seeded_faults RESULTS.jsonl --room weighters --tier default

A fault is one line changed: a sign, an off-by-one, a dropped mask, a lost state key, swapped
classes, a stale cache, a missing fsync. For each fault and tier, the tests that are likely to
notice it run first, and all tests of the tier if they did not. RESULTS has a line for each fault
and tier with the test that failed; faults that are in it already are not tried again, so the
command can be stopped and resumed. It prints how many of the faults each tier caught.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]

TIERS = {"default": (), "full": ("-m", "full")}
"""The arguments of pytest for each tier. A fault that the default tier catches counts for both."""


@dataclass(frozen=True)
class Fault:
    """A line of the project, and the same line with a fault.

    Attributes:
        room: part of the project.
        name: what is wrong.
        file: the file, from the project's root.
        right: text that occurs once in it.
        wrong: what replaces it.
        near: folders and files of tests that probably notice.
    """

    room: str
    name: str
    file: str
    right: str
    wrong: str
    near: tuple[str, ...]


def _plugin(name: str, file: str) -> str:
    return f"plugins/aang-plugin-{name}/aang_plugin_{name}/{file}"


def _tests(*names: str) -> tuple[str, ...]:
    return tuple(f"plugins/aang-plugin-{name}/tests" for name in names)


FAULTS = (
    # Stages
    Fault(
        "stages",
        "bert-op replaces what it should keep",
        _plugin("bert", "bert_op.py"),
        "(fate >= MASKED) & (fate < MASKED + REPLACED)",
        "(fate >= MASKED)",
        _tests("bert"),
    ),
    Fault(
        "stages",
        "special tokens are selected",
        "aang_core/objectives/stages/rows.py",
        "return ordinary & (drawn",
        "return (drawn",
        _tests("bert"),
    ),
    Fault(
        "stages",
        "left-to-right hides the token itself",
        _plugin("gpt", "left_to_right.py"),
        ".tril()",
        ".tril(-1)",
        _tests("gpt"),
    ),
    Fault(
        "stages",
        "next-token predicts the first token too",
        _plugin("gpt", "next_token.py"),
        "(place > 1)",
        "(place > 0)",
        _tests("gpt"),
    ),
    Fault(
        "stages",
        "random-factorized lets the first token in early",
        _plugin("xlnet", "random_factorized.py"),
        "keys[:, 0] = 2.0",
        "keys[:, 0] = 0.0",
        _tests("xlnet"),
    ),
    Fault(
        "stages",
        "idf with its sign swapped",
        _plugin("tfidf", "tf_idf.py"),
        "torch.log((1 + statistics.documents) / (1 + documents_with)) + 1",
        "torch.log((1 + documents_with) / (1 + statistics.documents)) + 1",
        _tests("tfidf"),
    ),
    Fault(
        "stages",
        "supervised contrast counts the row itself",
        _plugin("contrast", "supervised.py"),
        "labels.unsqueeze(1)) & ~itself",
        "labels.unsqueeze(1))",
        _tests("contrast"),
    ),
    # Gradients
    Fault(
        "gradients",
        "the cosine divides by one norm",
        "aang_core/gradients/ledger.py",
        "length = norm * dev_norm",
        "length = dev_norm",
        ("tests/core/test_engines.py", "tests/core/test_stream_engine.py"),
    ),
    Fault(
        "gradients",
        "a rider's gradient ignores its coefficient",
        "aang_core/gradients/stream.py",
        "ledger.begin(rider.coefficient)",
        "ledger.begin(1.0)",
        ("tests/core/test_riders.py", "tests/core/test_engines.py"),
    ),
    Fault(
        "gradients",
        "the packed engine drops the mask of padding embeddings",
        _plugin("packed", "rules.py"),
        "values = values * (ids != module.padding_idx).unsqueeze(1)",
        "pass",
        (*_tests("packed"), "tests/core/test_engines.py"),
    ),
    Fault(
        "gradients",
        "the dev head sees the step's own rows",
        "aang_core/gradients/dev_head.py",
        "self.latest(self.rows, without=batches)",
        "self.latest(self.rows)",
        ("tests/core/test_dev_heads.py",),
    ),
    Fault(
        "gradients",
        "the auxiliary norm includes the end task",
        "aang_core/gradients/ledger.py",
        "if task != self.end or parameter not in self.body:",
        "if task == self.end or parameter not in self.body:",
        ("tests/core/test_engines.py", "tests/core/test_stream_engine.py"),
    ),
    # Training
    Fault(
        "training",
        "biases decay",
        "aang_core/training/optimization.py",
        '"lr": lr, "weight_decay": 0.0}',
        '"lr": lr, "weight_decay": weight_decay}',
        ("tests/training/test_setup.py", "tests/training/test_trainer.py"),
    ),
    Fault(
        "training",
        "draws of a step are summed, not averaged",
        "aang_core/training/step.py",
        "parameter.grad.div_(len(rows))",
        "parameter.grad",
        ("tests/training/test_draws_per_step.py",),
    ),
    Fault(
        "training",
        "an equal score counts as better",
        "aang_core/training/trainer.py",
        "best = score > progress.best_score",
        "best = score >= progress.best_score",
        ("tests/training/test_trainer.py", "tests/training/test_stopping.py"),
    ),
    Fault(
        "training",
        "patience is one evaluation longer",
        "aang_core/training/trainer.py",
        "self.progress.evaluations_since_best >= self.schedule.patience",
        "self.progress.evaluations_since_best > self.schedule.patience",
        ("tests/training/test_trainer.py", "tests/training/test_stopping.py"),
    ),
    # Checkpoints
    Fault(
        "checkpoints",
        "the weighter's state is not saved",
        "aang_core/training/trainer.py",
        '"weighter": self.weighter.state_dict(),',
        '"weighter": {},',
        ("tests/training/test_resume.py", "tests/training/test_checkpoint.py"),
    ),
    Fault(
        "checkpoints",
        "the position in the rows is not restored",
        "aang_core/training/rows.py",
        'self._position, self._order = state["position"], state["order"]',
        'self._order = state["order"]',
        ("tests/training/test_rows.py", "tests/training/test_resume.py"),
    ),
    Fault(
        "checkpoints",
        "the loss means lose their counts",
        "aang_core/training/numbers.py",
        'dict(state["sums"]), dict(state["steps"])',
        'dict(state["sums"]), dict.fromkeys(state["steps"], 1)',
        ("tests/training/test_losses.py", "tests/training/test_resume.py"),
    ),
    # Storage
    Fault(
        "storage",
        "a file is not on disk before it is renamed",
        "aang_core/storage/durable.py",
        "        sync(draft)\n",
        "",
        ("tests/core/test_durable.py", "tests/training/test_checkpoint_store.py"),
    ),
    Fault(
        "storage",
        "only the newest checkpoint is kept",
        "aang_core/storage/run_folder.py",
        "KEPT = 2",
        "KEPT = 1",
        ("tests/training/test_checkpoint_store.py",),
    ),
    Fault(
        "storage",
        "changed logs go unnoticed",
        "aang_core/storage/durable.py",
        'if size and digest_of(file, size if grows else None) != was["sha256"]:',
        'if size and not grows and digest_of(file) != was["sha256"]:',
        ("tests/training/test_log_digests.py", "tests/training/test_hostile_folders.py"),
    ),
    # Weighters
    Fault(
        "weighters",
        "factored descends",
        _plugin("factored", "factors.py"),
        "self._values[stage][primitive] += lr * share",
        "self._values[stage][primitive] -= lr * share",
        _tests("factored"),
    ),
    Fault(
        "weighters",
        "the logits of λ_e are not restored",
        _plugin("factored", "factored.py"),
        'self._primary = float(state["logits"]["primary"])',
        "self._primary = 0.0",
        (*_tests("factored"), "tests/training/test_resume.py"),
    ),
    Fault(
        "weighters",
        "αVIL adds α instead of α − 1",
        _plugin("alphavil", "alpha_vil.py"),
        "self._weights.add(task, value - 1)",
        "self._weights.add(task, value)",
        _tests("alphavil"),
    ),
    Fault(
        "weighters",
        "DIW moves weights the wrong way",
        _plugin("alphavil", "diw.py"),
        "self._lr * (self._alone[task] - score)",
        "self._lr * (score - self._alone[task])",
        _tests("alphavil"),
    ),
    Fault(
        "weighters",
        "PCGrad projects gradients that agree",
        _plugin("surgery", "pcgrad.py"),
        "if along < 0:",
        "if along > 0:",
        _tests("surgery"),
    ),
    # Corpora
    Fault(
        "corpora",
        "cached tokens of another length are used",
        "plugins/aang/aang/corpora/token_cache.py",
        "        max_length,\n        tokenizer_digest(tokenizer),",
        "        tokenizer_digest(tokenizer),",
        ("tests/corpora/test_cache.py", "tests/corpora/test_tokens.py"),
    ),
    Fault(
        "corpora",
        "texts of test are not held out",
        "plugins/aang/aang/corpora/labelled_task.py",
        '{"dev": self.dev, "test": self.test}.items()',
        '{"dev": self.dev}.items()',
        ("tests/training/test_unlabelled.py", "tests/corpora"),
    ),
    Fault(
        "corpora",
        "padding counts as text",
        "plugins/aang/aang/corpora/tokens.py",
        "real = positions < lengths[:, None]",
        "real = positions <= lengths[:, None]",
        ("tests/corpora/test_tokens.py",),
    ),
    # Kinds of task
    Fault(
        "kinds of task",
        "classes are numbered backwards",
        "plugins/aang/aang/task_types/task_type.py",
        "enumerate(self.labels + self.unseen)",
        "enumerate(reversed(self.labels + self.unseen))",
        ("tests/task_types", "tests/training/test_predict.py"),
    ),
    Fault(
        "kinds of task",
        "predicted numbers lack the mean",
        "plugins/aang-plugin-task-types/aang_plugin_task_types/regression.py",
        ".mul_(self.scale).add_(self.mean)",
        ".mul_(self.scale)",
        ("tests/task_types", "tests/training/test_task_types.py"),
    ),
    Fault(
        "kinds of task",
        "a class is predicted above its threshold only",
        "plugins/aang-plugin-task-types/aang_plugin_task_types/multi_label.py",
        "found = logits.float().sigmoid() >= self.threshold",
        "found = logits.float().sigmoid() > 1 - self.threshold",
        ("tests/task_types", "tests/training/test_task_types.py"),
    ),
    # Model
    Fault(
        "model",
        "each objective copies the decoder",
        "plugins/aang/aang/modeling/heads.py",
        "{id(decoder.weight): decoder.weight} if self._share_decoder else {}",
        "{}",
        ("tests/core/test_encoder_body.py", "tests/training/test_real_encoder.py"),
    ),
    Fault(
        "model",
        "attention ignores the representation",
        "plugins/aang/aang/modeling/body.py",
        "mask = (sees | empty).unsqueeze(1)",
        "mask = (sees | ~sees).unsqueeze(1)",
        ("tests/core/test_encoder_body.py", "tests/core/test_trial.py"),
    ),
    # Plug-ins
    Fault(
        "plug-ins",
        "a plug-in that fails has registered",
        "aang_core/plugins/loading.py",
        '"failed", _described(error, origin), error, (), seconds), ()',
        '"failed", _described(error, origin), error, (), seconds), staging.entries.values()',
        ("tests/plugins_layer",),
    ),
    Fault(
        "plug-ins",
        "objectives that lack a trait are legal",
        "aang_core/objectives/objective.py",
        "return not self.missing",
        "return True",
        ("tests/plugins_layer",),
    ),
    # Commands
    Fault(
        "commands",
        "a recipe overrides the user",
        "plugins/aang/aang/config/resolving.py",
        "options = {**own, **given}",
        "options = {**given, **own}",
        ("tests/core/test_resolving.py", "tests/training/test_recipes.py"),
    ),
    Fault(
        "commands",
        "predictions in the order of their length",
        "plugins/aang/aang/assembly/prediction.py",
        "logits[indices] = functional.pad(",
        "logits[indices.sort().values] = functional.pad(",
        ("tests/training/test_predict.py",),
    ),
    # Comparisons
    Fault(
        "comparisons",
        "p values corrected by one test too few",
        _plugin("compare", "statistics.py"),
        "p * (len(known) - rank)",
        "p * (len(known) - rank - 1)",
        _tests("compare"),
    ),
)


@dataclass(frozen=True)
class Trial:
    """What the tests of a tier found.

    Attributes:
        caught: whether a test failed.
        by: the first test that failed; None if none did.
    """

    caught: bool
    by: str | None


def seed(tree: Path, fault: Fault) -> None:
    """Put a fault into a copy of the project.

    Raises:
        click.ClickException: its line does not occur exactly once, because the code has changed.
    """
    path = tree / fault.file
    text = path.read_text(encoding="utf-8")
    if text.count(fault.right) != 1:
        raise click.ClickException(
            f"{fault.file}: {fault.right!r} occurs {text.count(fault.right)} times, and the fault "
            f"{fault.name!r} needs one; change it to fit the code"
        )
    path.write_text(text.replace(fault.right, fault.wrong), encoding="utf-8")


def judge(tree: Path, tier: str, fault: Fault, processes: int) -> Trial:
    """Run the near tests, then all tests of the tier, until one fails."""
    for where in (fault.near, ()):
        failed = _first_failure(tree, [*TIERS[tier], *(where or ("-n", str(processes)))])
        if failed is not None:
            return Trial(True, failed)
    return Trial(False, None)


def _first_failure(tree: Path, arguments: Sequence[str]) -> str | None:
    """The first test that fails; None if all pass or none is selected."""
    places = [tree, *sorted((tree / "plugins").iterdir())]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode in (0, 5):  # 5: no test was selected
        return None
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    if found is None:
        raise click.ClickException(f"pytest ended with {done.returncode}:\n{done.stdout[-2000:]}")
    return found[1]


def _copy(folder: Path) -> Path:
    tree = folder / "tree"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(tree)], check=True)
    return tree


def _known(results: Path) -> Iterator[dict[str, object]]:
    if results.exists():
        yield from map(json.loads, results.read_text(encoding="utf-8").splitlines())


@click.command()
@click.argument("results", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--room", help="only the faults of this room")
@click.option("--tier", type=click.Choice(list(TIERS)), multiple=True, help="default: all")
@click.option("--processes", default=2, show_default=True, help="of all tests of a tier")
def main(results: Path, room: str | None, tier: tuple[str, ...], processes: int) -> None:
    """Seed each fault into a copy of the last commit and run the tests."""
    chosen = [fault for fault in FAULTS if room in (None, fault.room)]
    done = {(line["fault"], line["tier"]): line for line in _known(results)}
    with tempfile.TemporaryDirectory() as folder:
        tree = _copy(Path(folder))
        for fault in chosen:
            seed(tree, fault)
            for name in tier or tuple(TIERS):
                if any(done.get((fault.name, t), {}).get("caught") for t in (name, "default")):
                    continue
                if (fault.name, name) in done:
                    continue
                found = judge(tree, name, fault, processes)
                line = {"room": fault.room, "fault": fault.name, "tier": name, **vars(found)}
                done[fault.name, name] = line
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line, ensure_ascii=False) + "\n")
                click.echo(f"{fault.room}: {fault.name}: {name}: {found.by or 'not noticed'}")
            subprocess.run(["git", "checkout", "-q", "--", fault.file], cwd=tree, check=True)
    caught = Counter(str(line["tier"]) for line in done.values() if line["caught"])
    click.echo(f"{len(FAULTS)} faults: " + ", ".join(f"{n} by {t}" for t, n in caught.items()))


if __name__ == "__main__":
    main()
