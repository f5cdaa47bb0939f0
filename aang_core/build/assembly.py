"""From a configuration to something that trains: data, model, tasks and weighter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from sklearn.model_selection import train_test_split

from aang_core.build.end_task import END_TASK, EndTask
from aang_core.build.objective_task import ObjectiveTask
from aang_core.config import TrainConfig
from aang_core.corpora.cache import cache_folder
from aang_core.corpora.labelled import LabelledTask
from aang_core.corpora.tokens import TokenRows, tokenize, vocabulary
from aang_core.errors import ConfigError, DataError
from aang_core.modeling import TextModel, load_text_model, load_tokenizer
from aang_core.objective import Objective
from aang_core.registry import Primitive, Registry
from aang_core.stages import DataContext, ReadReport
from aang_core.weighting import TaskCard, Weighter


@dataclass(frozen=True)
class Plan:
    """What a run will do, with every name resolved and nothing heavy loaded.

    objectives: legal objectives of the space; empty if the weighter trains the end task alone.
    options: options of primitives and weighter, by name.
    """

    weighter: Primitive
    objectives: Sequence[Objective]
    options: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Assembly:
    """Everything that training and evaluation need.

    meta: the dev rows that the dev gradient is taken on; dev: those that the dev metric is
        measured on. The same rows unless a meta fraction is held out.
    """

    model: TextModel
    end_task: EndTask
    meta: EndTask
    dev: TokenRows
    test: TokenRows | None
    auxiliaries: Sequence[ObjectiveTask]
    weighter: Weighter
    report: ReadReport


def plan(config: TrainConfig, registry: Registry, objectives: Sequence[Objective]) -> Plan:
    """Check names and options before anything is loaded.

    Raises:
        ConfigError: ``--set`` names something that the run does not use.
    """
    weighter = registry.get("weighter", config.weighter)
    if not getattr(weighter.load(), "uses_auxiliaries", True):
        objectives = ()
    used = {weighter.name} | {p.name for o in objectives for p in o.primitives}
    unused = sorted(set(config.set) - used)
    if unused:
        raise ConfigError(
            f"--set {unused[0]}.…: this run uses no primitive or weighter of that name; "
            f"it uses {', '.join(sorted(used))}"
        )
    return Plan(weighter, objectives, config.set)


def assemble(config: TrainConfig, task: LabelledTask, source: str, plan: Plan) -> Assembly:
    """Load the model, read and tokenise every source, and make the tasks.

    source: model folder or hub name.

    Raises:
        DataError, ModelError, ConfigError, PluginError: see their messages.
    """
    report = ReadReport()
    tokenizer = load_tokenizer(source)
    model = load_text_model(
        source,
        tokenizer,
        task.labels,
        from_scratch=config.from_scratch,
        share_decoder=config.share_decoder,
        dropout=config.dropout,
    )
    reader = _Reader(config, task, model, report)
    train, dev = reader.labelled(task.train), reader.labelled(task.dev)
    test = reader.labelled(task.test) if task.test else None
    dev, meta = _hold_out(dev, config.meta_fraction, config.seed)
    head = model.classifier
    auxiliaries = [reader.objective(o, plan.options) for o in plan.objectives]
    cards = [TaskCard(o.name, o.factors) for o in auxiliaries]
    weighter = plan.weighter.make(
        TaskCard(END_TASK), cards, **plan.options.get(plan.weighter.name, {})
    )
    return Assembly(
        model=model,
        end_task=EndTask(train, head),
        meta=EndTask(meta, head),
        dev=dev,
        test=test,
        auxiliaries=auxiliaries,
        weighter=weighter,
        report=report,
    )


class _Reader:
    """Reads and tokenises each data source once, however many objectives use it."""

    def __init__(
        self, config: TrainConfig, task: LabelledTask, model: TextModel, report: ReadReport
    ) -> None:
        self._config = config
        self._task = task
        self._model = model
        self._report = report
        self._max_length = min(config.max_length, model.max_length)
        self._label_ids = {label: i for i, label in enumerate(task.labels)}
        self._vocabulary = vocabulary(model.tokenizer)
        self._sources: dict[str, TokenRows] = {}

    def labelled(self, examples: Sequence[Any]) -> TokenRows:
        return self._tokenize(examples)

    def objective(
        self, objective: Objective, options: Mapping[str, Mapping[str, Any]]
    ) -> ObjectiveTask:
        made = {p.stage: p.make(**options.get(p.name, {})) for p in objective.primitives}
        rows = self._source(objective, made["data"])
        head = made["output"].head(self._model.heads)
        return ObjectiveTask(
            name=objective.name,
            factors=objective.factors,
            rows=rows,
            vocabulary=self._vocabulary,
            transform=made["transform"],
            representation=made["representation"],
            output=made["output"],
            head=head,
        )

    def _source(self, objective: Objective, data: Any) -> TokenRows:
        name = objective.factors["data"]
        if name not in self._sources:
            context = DataContext(
                train=self._task.train,
                domain=tuple(Path(p) for p in self._config.domain),
                seed=self._config.seed,
                report=self._report,
            )
            examples = list(data.examples(context))
            if not examples:
                raise DataError(f"data {name!r}: read no text at all")
            self._sources[name] = self._tokenize(examples)
        return self._sources[name]

    def _tokenize(self, examples: Sequence[Any]) -> TokenRows:
        return tokenize(
            examples,
            self._model.tokenizer,
            max_length=self._max_length,
            cache=cache_folder(),
            label_ids=self._label_ids,
            report=self._report,
        )


def _hold_out(dev: TokenRows, fraction: float, seed: int) -> tuple[TokenRows, TokenRows]:
    """Dev rows for the metric and dev rows for the dev gradient, stratified by label."""
    if fraction == 0.0:
        return dev, dev
    assert dev.labels is not None
    indices = torch.arange(len(dev))
    try:
        kept, held_out = train_test_split(
            indices.numpy(), test_size=fraction, random_state=seed % 2**32, stratify=dev.labels
        )
    except ValueError as error:
        raise ConfigError(
            f"--meta-fraction {fraction}: the dev set of {len(dev)} rows cannot be split so that "
            f"each part has every class: {error}"
        ) from error
    return dev.subset(torch.as_tensor(kept)), dev.subset(torch.as_tensor(held_out))
