"""One training, from a resolved configuration to the folder that holds all of it."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import yaml

from aang_core.assembly.assembly import Assembly, assemble
from aang_core.assembly.sources import Sources, prepare_sources
from aang_core.config import TrainConfig, read_config_file, resolve_training
from aang_core.corpora.names import plain_name
from aang_core.errors import ConfigError
from aang_core.modeling import load_classifier
from aang_core.modeling.untaught import untaught_heads
from aang_core.objectives.stages import ReadReport
from aang_core.plugins import Plugins, load_plugins
from aang_core.report.card import model_card
from aang_core.report.drawing import plotly_figure
from aang_core.report.figures import charts_of
from aang_core.report.page import write_page
from aang_core.report.records import RunRecord
from aang_core.runs import drawn_rows, outcome, resuming
from aang_core.runs.cost import COST_FILE, CostLog
from aang_core.runs.encoder_training import METRIC
from aang_core.runs.final_fine_tuning import NAME as FINAL_FINE_TUNING
from aang_core.runs.final_fine_tuning import fine_tune
from aang_core.runs.pretraining import check_stage, pretrain
from aang_core.runs.run_files import inside
from aang_core.runs.tracking import Tracker, check_trackers
from aang_core.runs.training import build_trainer, check_options, choose_device
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.processes import Processes, processes_of_environment
from aang_core.training.checkpoint import Checkpointer
from aang_core.training.interruption import Interruption
from aang_core.training.precision import settle_precision
from aang_core.training.trainer import Observer

if TYPE_CHECKING:
    from pandas import DataFrame, Index
    from transformers import PreTrainedModel

Observe = Callable[[str, int, str], Sequence[Observer]]


@dataclass(frozen=True)
class Run:
    """A finished run.

    result: what ``result.json`` holds. notes: what reading the data met, a sentence each.
    """

    folder: Path
    result: Mapping[str, Any]
    notes: Sequence[str]

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> "Run":
        """A run that finished earlier.

        Raises:
            DataError: it is no run folder, or the run did not finish.
        """
        record = RunRecord.load(Path(folder))
        return cls(record.folder, record.result, record.data["notes"])

    @property
    def weights(self) -> "DataFrame":
        """A row per round by its step: λ_e as ``end-task``, and the weight of every objective."""
        from pandas import DataFrame

        lines = self._record.weights
        rows = [{"end-task": line["end_task_weight"], **line["weights"]} for line in lines]
        return DataFrame(rows, index=_steps(lines))

    @property
    def metrics(self) -> "DataFrame":
        """A row per evaluation by its step: every score on dev."""
        from pandas import DataFrame

        lines = self._record.metrics
        return DataFrame([line["dev"] for line in lines], index=_steps(lines))

    def plot(self, what: str = "scores") -> Any:
        """A chart of the report as a plotly figure, which notebooks show.

        what: ``scores``, ``end-task-weight``, ``factors-transform``, ``ranking``, ``cosines`` and
            so on; which there are depends on the weighter.

        Raises:
            ConfigError: the run has no such chart; the message names those that it has.
        """
        charts = {chart.key: chart for chart in charts_of(self._record)}
        if what not in charts:
            raise ConfigError(f"{what!r} is no chart of this run; it has {', '.join(charts)}")
        return plotly_figure(charts[what]).update_layout(title=charts[what].title)

    @property
    def model(self) -> "PreTrainedModel":
        """The classifier, an ordinary transformers model, in evaluation mode."""
        return load_classifier(str(inside(self.folder, str(self.result["model"]))))

    @property
    def _record(self) -> RunRecord:
        return RunRecord.load(self.folder)


def _steps(lines: Sequence[Mapping[str, Any]]) -> "Index[int]":
    from pandas import Index

    return Index([line["step"] for line in lines], name="step")


def train(
    config: str | PathLike[str] | None = None, /, *, quiet: bool = True, **options: Any
) -> Run:
    """Train as ``aang train`` does, from Python.

    config: a configuration file. options: those of ``aang train``, underscores for dashes, and
        ``set`` as a mapping: ``train(space="td", set={"factored": {"n": 6}})``.
    quiet: show no progress on standard error.

    Raises:
        AangError: something that was named cannot be used.
    """
    from aang_core.cli.output import note
    from aang_core.cli.progress import training_progress

    from_file = {} if config is None else read_config_file(Path(config))
    resolved = resolve_training(from_file, options)
    plugins = load_plugins()
    out = free_run_folder(resolved)
    with training_progress(quiet=quiet) as observe:
        sources = prepare_sources(resolved, plugins.registry)
        return train_run(
            resolved,
            sources,
            out=out,
            plugins=plugins,
            observe=observe,
            say=(lambda sentence: None) if quiet else note,
        )


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
    name = f"{plain_name(task)}-{plain_name(what)}-seed{config.seed}"
    base = Path("runs") / name.replace(":", "-")
    numbered = (base.with_name(f"{base.name}-{i}") for i in itertools.count(2))
    return next(path for path in itertools.chain([base], numbered) if not path.exists())


def train_run(
    config: TrainConfig,
    sources: Sources,
    *,
    out: Path,
    plugins: Plugins,
    observe: Observe | None = None,
    resume: bool = False,
    interruption: Interruption | None = None,
    say: Callable[[str], None] = lambda sentence: None,
) -> Run:
    """Train, evaluate and write the run folder ``out``.

    The folder is made only after model, data and primitives have proved usable.

    resume: go on in the folder of a run that was interrupted, as if it had not been.
    interruption: who asks to stop: at once before the folder is made, then between two rounds.

    say: told in a sentence what a user may want to know before training begins.

    observe: the observers of one training, given its name, its steps and its metric; the name is
        that of a stage of pre-training, or empty for the training itself.

    Raises:
        AangError: something that the user named cannot be used, or the disk or the memory is full.
        Interrupted: ``interruption`` asked to stop; what was trained is kept.
    """
    device = choose_device(config.device)
    processes = processes_of_environment(device)
    check_options(config, processes)
    check_trackers(config.log)
    changes = resuming.changes(out, plugins) if resume else []
    if resume:
        drawn_rows.check_same(out, sources.draw)
    report = sources.report
    for stage in sources.pretraining:
        sources = replace(sources, report=ReadReport())
        check_stage(config, sources, stage)
        report.include(sources.report)
    sources = replace(sources, report=ReadReport())
    torch.manual_seed(config.seed)
    assembly = assemble(config, sources)
    report.include(sources.report)
    width = int(assembly.model.body.base.config.hidden_size)
    precision, reason = settle_precision(config.precision, device, width, processes)
    config = config.model_copy(update={"precision": precision})
    for told in (reason, _untaught(config, sources, assembly)):
        if told is not None:
            say(told)
    asked = interruption or Interruption()
    with asked.deferred(), resuming.opened(out, resume=resume, processes=processes) as folder:
        folder.write_text("config.yaml", _reusable(config))
        folder.write_json("plugins.json", _plugins_used(plugins, sources) | {"changes": changes})
        folder.write_json(
            "data.json", outcome.data_statistics(replace(sources, report=report), assembly)
        )
        if sources.draw is not None:
            folder.write_json(drawn_rows.NAME, drawn_rows.record_of(sources.draw))
        stages = {}
        for stage in sources.pretraining:
            torch.manual_seed(config.seed)
            seen = observe(stage.name, stage.settings.steps, METRIC) if observe else ()
            stages[stage.name] = pretrain(
                config,
                sources,
                stage,
                folder,
                device=device,
                observers=seen,
                interruption=asked,
                processes=processes,
            )
            if "note" in stages[stage.name]:
                report.note(stages[stage.name]["note"])
            sources = sources.after(str(folder.path / stages[stage.name]["model"]))
        if stages:
            torch.manual_seed(config.seed)
            assembly = assemble(config, sources)
        seen = observe("", config.steps, config.metric) if observe else ()
        last = partial(observe, FINAL_FINE_TUNING) if observe else None
        result = _trained(config, sources, assembly, folder, device, seen, last, asked, processes)
        if not processes.first:
            processes.wait()  # until the first one has written everything
            return Run.open(folder.path)
        if stages:
            result["pretraining"] = stages
        record = RunRecord.load(folder.path, result)
        folder.write_text("model/README.md", model_card(record))
        with folder.writing("report.html"):
            write_page([record], folder.path / "report.html")
        # Last, because a run that has it has finished.
        folder.write_json("result.json", result)
        processes.wait()
    return Run(folder.path, result, report.lines())


def _untaught(config: TrainConfig, sources: Sources, assembly: Assembly) -> str | None:
    """A sentence about language-model heads that begin from nothing; None if none does."""
    heads = [task.head for task in assembly.auxiliaries]
    if sources.pretraining:
        heads = [assembly.model.heads.language_model() for _ in sources.pretraining]
    return untaught_heads(assembly.model, heads, sources.encoder, config.domain)


def _trained(
    config: TrainConfig,
    sources: Sources,
    assembly: Assembly,
    folder: RunFolder,
    device: torch.device,
    observers: Sequence[Observer],
    observe_last: Callable[[int, str], Sequence[Observer]] | None,
    interruption: Interruption,
    processes: Processes,
) -> dict[str, Any]:
    """Train from where the folder's checkpoints are, save the model, and say what came of it.

    observe_last: the observers of the final fine-tuning, given its steps and metric.
    """

    cost = CostLog(folder, assembly.model.body, processes, compiled=config.compile)
    tracked = config.log and processes.first
    trackers = [Tracker(config.log, folder.path, _reusable(config))] if tracked else []
    checkpointer = Checkpointer(
        folder,
        "checkpoints",
        ("weights.jsonl", "metrics.jsonl", COST_FILE),
        seconds=config.checkpoint_every,
        interruption=interruption,
        processes=processes,
    )
    trainer = build_trainer(
        config,
        assembly,
        device,
        (_Log(folder), cost, *trackers, *observers),
        checkpointer,
        processes,
    )
    checkpointer.load(trainer)
    if processes.first:
        cost.go_on()
    processes.wait()
    progress = trainer.train()
    for tracker in trackers:
        tracker.close()
    checkpointer.save(trainer)
    interruption.check(trainer.bench.steps)
    seconds, body_rows = cost.seconds, cost.rows()
    tuned = None
    if config.final_fine_tuning is not None:
        tuned = fine_tune(
            config,
            sources,
            assembly,
            folder,
            observe=lambda steps: observe_last(steps, config.metric) if observe_last else (),
            interruption=interruption,
            processes=processes,
        )
    if not processes.first:
        return {}
    evaluated = outcome.evaluation(sources, assembly)
    folder.write_json("evaluation.json", evaluated)
    folder.write_folder("model", assembly.model.save)
    checkpointer.drop_older()
    result = outcome.result(
        config, assembly, evaluated, best_step=progress.best_step, steps=trainer.bench.steps
    ) | {
        "train_seconds": round(seconds, 3),
        "body_rows": body_rows,
        "precision": config.precision,
        "peak_memory_bytes": outcome.peak_memory_bytes(device),
        "model": "model",
    }
    if trainer.bench.numbers.skipped:
        result["skipped_steps"] = trainer.bench.numbers.skipped
    if tuned is not None:
        result["final_fine_tuning"] = tuned
    if config.recipe is not None:
        result["recipe"] = config.recipe
    if sources.fine_tuning is not None:
        result["fine_tuning"] = dict(sources.fine_tuning)
    if processes.size > 1:
        result["processes"] = processes.size
    return result


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


class _Log:
    """Writes ``metrics.jsonl`` and ``weights.jsonl``."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        self._folder.append("weights.jsonl", record)

    def after_evaluation(self, step: int, dev: Mapping[str, float], best: bool) -> None:
        self._folder.append("metrics.jsonl", {"step": step, "dev": dict(dev), "best": best})
