"""One training, from a resolved configuration to the folder that holds all of it."""

import itertools
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import yaml

from aang_core.build.assembly import Assembly, assemble
from aang_core.build.prediction import Classifier, predict
from aang_core.build.sources import Sources
from aang_core.config import TrainConfig
from aang_core.corpora.tokens import TokenRows
from aang_core.errors import ConfigError
from aang_core.gradients import (
    DevHead,
    EndTaskHead,
    FreshDevHead,
    GradientEngine,
    PackedEngine,
    RememberingDevHead,
    StreamEngine,
)
from aang_core.plugins import Plugins
from aang_core.pretraining import METRIC, check_stage, pretrain
from aang_core.stages import ReadReport
from aang_core.training.bench import RowBudget, TrainingBench
from aang_core.training.checkpoint import save_checkpoint
from aang_core.training.evaluation import majority_scores, scores
from aang_core.training.optimization import Optimization, OptimizerSettings
from aang_core.training.run_folder import RunFolder
from aang_core.training.trainer import Observer, Progress, Schedule, Trainer

Observe = Callable[[str, int, str], Sequence[Observer]]


@dataclass(frozen=True)
class Run:
    """A finished run.

    result: what ``result.json`` holds. notes: what reading the data met, a sentence each.
    """

    folder: Path
    result: Mapping[str, Any]
    notes: Sequence[str]


def free_run_folder(config: TrainConfig) -> Path:
    """The folder for a run: ``config.out``, or a new one under ``runs/`` named after the run.

    Raises:
        ConfigError: ``config.out`` holds files already.
    """
    if config.out is not None:
        RunFolder.check_free(config.out)
        return config.out
    task = config.target or config.task_name
    what = config.recipe or f"{Path(config.space).stem}-{config.weighter}"
    base = Path("runs") / f"{task}-{what}-seed{config.seed}"
    base = base.with_name(base.name.replace(":", "-"))
    numbered = (base.with_name(f"{base.name}-{i}") for i in itertools.count(2))
    return next(path for path in itertools.chain([base], numbered) if not path.exists())


def train_run(
    config: TrainConfig,
    sources: Sources,
    *,
    out: Path,
    plugins: Plugins,
    observe: Observe | None = None,
) -> Run:
    """Train, evaluate and write the run folder ``out``.

    The folder is made only after model, data and primitives have proved usable.

    observe: the observers of one training, given its name, its steps and its metric; the name is
        that of a stage of pre-training, or empty for the training itself.

    Raises:
        AangError: something that the user named cannot be used.
    """
    device = choose_device(config.device)
    report = sources.report
    for stage in sources.pretraining:
        sources = replace(sources, report=ReadReport())
        check_stage(config, sources, stage)
        report.include(sources.report)
    sources = replace(sources, report=ReadReport())
    torch.manual_seed(config.seed)
    assembly = assemble(config, sources)
    report.include(sources.report)
    folder = RunFolder.create(out)
    folder.write_text("config.yaml", _reusable(config))
    folder.write_json("plugins.json", _plugins_used(plugins, sources))
    stages = {}
    for stage in sources.pretraining:
        torch.manual_seed(config.seed)
        seen = observe(stage.name, stage.settings.steps, METRIC) if observe else ()
        stages[stage.name] = pretrain(config, sources, stage, folder, device=device, observers=seen)
        sources = sources.after(str(folder.path / stages[stage.name]["model"]))
    if stages:
        torch.manual_seed(config.seed)
        assembly = assemble(config, sources)
    started = time.perf_counter()
    seen = observe("", config.steps, config.metric) if observe else ()
    trainer, modules = build_trainer(config, assembly, device, (_Log(folder), *seen))
    progress = trainer.train()
    seconds = time.perf_counter() - started
    save_checkpoint(folder.path / "checkpoint", trainer, modules)
    assembly.model.save(folder.path / "model")
    folder.share_mode("checkpoint", "model")
    result = _result(config, assembly, trainer, progress) | {
        "train_seconds": round(seconds, 3),
        "peak_memory_bytes": peak_memory_bytes(device),
        "model": "model",
    }
    if config.recipe is not None:
        result["recipe"] = config.recipe
    if stages:
        result["pretraining"] = stages
    if sources.fine_tuning is not None:
        result["fine_tuning"] = dict(sources.fine_tuning)
    folder.write_json("result.json", result)
    return Run(folder.path, result, report.lines())


def _reusable(config: TrainConfig) -> str:
    """The resolved options in YAML; without the folder, which the next run cannot have again."""
    return yaml.safe_dump(config.model_dump(mode="json", exclude={"out"}))


def _plugins_used(plugins: Plugins, sources: Sources) -> dict[str, Any]:
    """Distribution and version of every plug-in, and the primitives that the run is made of."""
    objectives = [*sources.objectives, *(stage.objective for stage in sources.pretraining)]
    used = {
        f"{p.stage}/{p.key}": p.origin.distribution
        for p in (sources.weighter, *(p for o in objectives for p in o.primitives))
    }
    return {
        "plugins": [
            {
                "distribution": r.origin.distribution,
                "version": r.origin.version,
                "entry_point": r.origin.entry_point,
                "status": r.status,
            }
            for r in plugins.records
        ],
        "primitives": used,
    }


def choose_device(name: str) -> torch.device:
    """The device called ``name``; ``auto`` takes the accelerator if there is one.

    Raises:
        ConfigError: torch knows no such device here.
    """
    if name == "auto":
        return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"--device {name}: not available here: {error}") from error
    return device


def peak_memory_bytes(device: torch.device) -> int:
    """The largest memory in use so far: of the GPU for a GPU, else of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def build_trainer(
    config: TrainConfig,
    assembly: Assembly,
    device: torch.device,
    observers: Sequence[Observer] = (),
) -> tuple[Trainer, dict[str, torch.nn.Module]]:
    """The trainer of a run on ``device``, and its body and heads by name, for checkpoints."""
    body, head = assembly.model.body.to(device), assembly.model.classifier.to(device)
    heads = {task.name: task.head.to(device) for task in assembly.auxiliaries}
    generator = torch.Generator().manual_seed(config.seed)
    bench = TrainingBench(
        body,
        assembly.end_task,
        assembly.meta,
        assembly.auxiliaries,
        engine=_engine(config, body, _dev_head(config, generator), device),
        optimization=Optimization(
            body,
            [head, *heads.values()],
            OptimizerSettings(
                lr=config.lr,
                head_lr=config.head_lr,
                weight_decay=config.weight_decay,
                warmup=config.warmup,
                max_grad_norm=config.max_grad_norm,
            ),
            config.steps,
        ),
        budget=RowBudget(
            config.batch_size,
            config.dev_batch_size,
            config.aux_batch_size,
            config.micro_batch_size,
        ),
        generator=generator,
        meta_every=config.meta_every,
        score=lambda: score_rows(assembly, assembly.dev)[config.metric],
    )
    modules = {"body": body, assembly.end_task.name: head, **heads}
    trainer = Trainer(
        bench,
        assembly.weighter,
        schedule=Schedule(config.steps, config.eval_every, config.patience, config.metric),
        selected={"body": body, "head": head},
        evaluate=lambda: score_rows(assembly, assembly.dev),
        observers=tuple(observers),
    )
    return trainer, modules


def _engine(
    config: TrainConfig, body: torch.nn.Module, dev_head: DevHead, device: torch.device
) -> GradientEngine:
    """On a CPU small passes cost no more than large ones; an accelerator idles in them."""
    limit = config.micro_batch_size
    packed = config.gradients == "packed" or (config.gradients == "auto" and device.type != "cpu")
    if packed:
        return PackedEngine(body, dev_head, config.precision, max_rows=limit)
    return StreamEngine(body, dev_head, config.precision, hold_end_task=limit is None)


def _dev_head(config: TrainConfig, generator: torch.Generator) -> DevHead:
    if config.dev_head == "end-task":
        return EndTaskHead()
    fresh = FreshDevHead(
        generator,
        iterations=config.dev_head_steps,
        lr=config.dev_head_lr,
        weight_decay=config.dev_head_weight_decay,
    )
    if config.dev_head == "fresh":
        return fresh
    # Classification reads the first token, so that is all there is to remember.
    return RememberingDevHead(fresh, config.dev_head_memory, keep=lambda f: f[:, :1].clone())


class _Log:
    """Writes ``metrics.jsonl`` and ``weights.jsonl``."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        self._folder.append("weights.jsonl", record)

    def after_evaluation(self, step: int, dev: Mapping[str, float], best: bool) -> None:
        self._folder.append("metrics.jsonl", {"step": step, "dev": dict(dev), "best": best})


def score_rows(assembly: Assembly, rows: TokenRows) -> Mapping[str, float]:
    """Scores of the classifier as it stands."""
    assert rows.labels is not None
    logits = predict(Classifier(assembly.model.body, assembly.model.classifier), rows)
    return scores(rows.labels.tolist(), logits.argmax(dim=-1).tolist())


def _result(
    config: TrainConfig, assembly: Assembly, trainer: Trainer, progress: Progress
) -> dict[str, Any]:
    train = assembly.end_task.rows.labels
    assert train is not None
    parts = {"dev": assembly.dev, "test": assembly.test}
    metric: dict[str, Any] = {"name": config.metric}
    majority: dict[str, Any] = {}
    for part, rows in parts.items():
        if rows is None:
            metric[part] = majority[part] = None
            continue
        assert rows.labels is not None
        metric[part] = score_rows(assembly, rows)[config.metric]
        majority[part] = majority_scores(train.tolist(), rows.labels.tolist())[config.metric]
    return {
        "weighter": config.weighter,
        "space": config.space,
        "seed": config.seed,
        "objectives": len(assembly.auxiliaries),
        "metric": metric,
        "majority": majority,
        "best_step": progress.best_step,
        "steps": trainer.bench.steps,
    }
