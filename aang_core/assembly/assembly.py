"""From sources to something that trains: model, tokenised rows, tasks and weighter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.model_selection import train_test_split

from aang_core.assembly.chain_stage import PretrainingStage
from aang_core.assembly.end_task import END_TASK, EndTask
from aang_core.assembly.objective_task import ObjectiveTask
from aang_core.assembly.rehearsal import rehearse
from aang_core.assembly.sources import Sources
from aang_core.assembly.stream_rows import StreamRows
from aang_core.checked.stages import (
    CheckedData,
    CheckedOutput,
    CheckedRepresentation,
    CheckedTransform,
)
from aang_core.checked.weighter import CheckedWeighter
from aang_core.config import TrainConfig
from aang_core.corpora.cache import cache_folder
from aang_core.corpora.tokens import TokenRows, tokenize
from aang_core.errors import ConfigError
from aang_core.modeling import TextModel, load_text_model, load_tokenizer
from aang_core.objectives.objective import Objective
from aang_core.objectives.stages import DataContext, Example, TextStream
from aang_core.plugins.primitive import Primitive
from aang_core.tasks.weighting import TaskCard, Weighter, require_whole_round
from aang_core.training.step_rows import RowBudget, rows_together


@dataclass(frozen=True)
class Assembly:
    """Everything that training and evaluation need.

    meta: the dev rows that the dev gradient is taken on. dev: those that the dev metric is
        measured on. The same rows unless a meta fraction is held out.
    """

    model: TextModel
    end_task: EndTask
    meta: EndTask
    dev: TokenRows
    test: TokenRows | None
    auxiliaries: Sequence[ObjectiveTask]
    weighter: Weighter

    @property
    def streams(self) -> Mapping[str, StreamRows]:
        """The sources without end, by name."""
        return {
            task.factors["data"]: task.rows
            for task in self.auxiliaries
            if isinstance(task.rows, StreamRows)
        }


def assemble(config: TrainConfig, sources: Sources) -> Assembly:
    """Load the encoder, read and tokenise every source once, and make the tasks.

    Raises:
        AangError: a model, a text source or an option cannot be used.
    """
    task = sources.task
    model = _load_model(config, sources)
    reader = _Reader(config, sources, model, config.aux_batch_size)
    dev, meta = _hold_out(task.dev, config.meta_fraction, config.seed)
    auxiliaries = reader.objectives()
    weighter = CheckedWeighter.make(
        sources.weighter,
        TaskCard(END_TASK),
        [TaskCard(o.name, o.factors) for o in auxiliaries],
        sources.options.get(sources.weighter.key, {}),
    )
    end_task = EndTask(reader.train(), model.classifier)
    # What cannot be split as it would have to be is refused before there is a run folder.
    rows_together(end_task, auxiliaries, row_budget(config))
    require_whole_round(weighter, config.steps)
    return Assembly(
        model=model,
        end_task=end_task,
        meta=EndTask(reader.tokenize(meta, "dev"), model.classifier),
        dev=reader.tokenize(dev, "dev"),
        test=reader.tokenize(task.test, "test") if task.test else None,
        auxiliaries=auxiliaries,
        weighter=weighter,
    )


def row_budget(config: TrainConfig) -> RowBudget:
    """The rows of a step."""
    return RowBudget(
        config.batch_size,
        config.dev_batch_size,
        config.aux_batch_size,
        config.micro_batch_size,
    )


@dataclass(frozen=True)
class _Source:
    """A data source's rows, and how many classes a classification of them has.

    of_step: whether they are those that the end task trains on in the step.
    """

    rows: TokenRows | StreamRows
    classes: int
    of_step: bool = False


def assemble_stage(
    config: TrainConfig, sources: Sources, stage: PretrainingStage
) -> tuple[TextModel, ObjectiveTask]:
    """Load the encoder of ``sources`` and make the objective of a stage of pre-training.

    Raises:
        AangError: as for :func:`assemble`.
    """
    model = _load_model(config, sources)
    reader = _Reader(config, sources, model, stage.settings.batch_size)
    return model, reader.objective(stage.objective)


def _load_model(config: TrainConfig, sources: Sources) -> TextModel:
    return load_text_model(
        sources.encoder,
        load_tokenizer(sources.encoder, trust_remote_code=config.trust_remote_code),
        sources.task.labels,
        from_scratch=config.from_scratch and not sources.pretrained,
        share_decoder=config.share_decoder,
        dropout=config.dropout,
        head_dropout=config.head_dropout,
        trust_remote_code=config.trust_remote_code,
    )


class _Reader:
    """Reads and tokenises each data source once, however many objectives use it.

    rows_per_step: the most that a step takes of the sources of objectives.
    """

    def __init__(
        self, config: TrainConfig, sources: Sources, model: TextModel, rows_per_step: int
    ) -> None:
        self._sources = sources
        self._model = model
        self._seed = config.seed
        self._rows_per_step = rows_per_step
        self._max_length = min(config.max_length, model.max_length)
        self._rows: dict[str, _Source] = {}
        self._train: TokenRows | None = None

    def objectives(self) -> list[ObjectiveTask]:
        return [self.objective(objective) for objective in self._sources.objectives]

    def objective(self, objective: Objective) -> ObjectiveTask:
        """The objective as a task, its primitives tried on two rows."""
        source = self._source(objective)
        return objective_over(
            source.rows,
            objective,
            self._model,
            self._sources.options,
            classes=source.classes,
            of_step=source.of_step,
        )

    def train(self) -> TokenRows:
        """The end task's training rows."""
        if self._train is None:
            self._train = self.tokenize(self._sources.task.train, "train")
        return self._train

    def tokenize(
        self,
        examples: Sequence[Example],
        source: str,
        labels: Sequence[str] | None = None,
        *,
        cached: bool = True,
    ) -> TokenRows:
        """labels: the classes, those of the end task for None; empty to leave labels out."""
        labels = self._sources.task.labels if labels is None else labels
        return tokenize(
            examples,
            self._model.tokenizer,
            max_length=self._max_length,
            cache=cache_folder() if cached else None,
            label_ids={label: i for i, label in enumerate(labels)} if labels else None,
            report=self._sources.report,
            source=source,
        )

    def _make(self, primitive: Primitive) -> Any:
        return primitive.make(**self._sources.options.get(primitive.key, {}))

    def _source(self, objective: Objective) -> "_Source":
        name = objective.data.key
        if name not in self._rows:
            data = CheckedData(self._make(objective.data), objective.data)
            context = DataContext(
                train=self._sources.task.train,
                domain=self._sources.domain,
                out_of_domain=self._sources.out_of_domain,
                seed=self._seed,
                report=self._sources.report,
            )
            if data.buffer is not None:
                self._rows[name] = self._streamed(data.stream(context), data.buffer, name)
                return self._rows[name]
            if data.of_step:
                self._rows[name] = _Source(self.train(), len(self._sources.task.labels), True)
                return self._rows[name]
            examples = list(data.examples(context))
            labels = self._labels(objective.data, examples)
            same = examples == list(self._sources.task.train)
            rows = self.train() if same else self.tokenize(examples, name, labels)
            self._rows[name] = _Source(rows, len(labels or self._sources.task.labels))
        return self._rows[name]

    def _streamed(self, stream: TextStream, buffer: int, name: str) -> "_Source":
        def tokenized(examples: Sequence[Example]) -> TokenRows:
            # What is read once leaves nothing in the cache.
            return self.tokenize(examples, name, (), cached=False)

        steps = max(1, buffer // self._rows_per_step)
        rows = StreamRows(stream, buffer, steps, tokenized)
        return _Source(rows, len(self._sources.task.labels))

    def _labels(self, data: Primitive, examples: Sequence[Example]) -> Sequence[str]:
        """The classes of a source; none if it declares no labels, or gives none."""
        given = {example.label for example in examples}
        if None in given:
            return ()
        if "labels:own" in data.provides:
            return sorted(label for label in given if label is not None)
        return self._sources.task.labels if "labels:end-task" in data.provides else ()


def objective_over(
    rows: TokenRows | StreamRows,
    objective: Objective,
    model: TextModel,
    options: Mapping[str, Mapping[str, Any]],
    *,
    classes: int,
    of_step: bool = False,
) -> ObjectiveTask:
    """The objective as a task over rows of its data, its primitives tried on two of them.

    options: of primitives, by name. classes: of the rows, for an objective that classifies them.
    of_step: whether they are the rows that the end task trains on in the step.

    Raises:
        AangError: an option does not fit, or a primitive does not keep its contract.
    """
    made = {p.stage: p.make(**options.get(p.key, {})) for p in objective.primitives[1:]}
    output = CheckedOutput(made["output"], objective.output)
    task = ObjectiveTask(
        name=objective.name,
        factors=objective.factors,
        rows=rows,
        vocabulary=model.heads.vocabulary,
        transform=CheckedTransform(made["transform"], objective.transform),
        representation=CheckedRepresentation(made["representation"], objective.representation),
        output=output,
        head=output.head(model.heads.for_classes(classes)),
        shown=output.views,
        couples_rows=output.couples_rows or len(output.views) > 1,
        of_step=of_step,
    )
    rehearse(task, int(model.body.base.config.hidden_size))
    return task


def _hold_out(
    dev: Sequence[Example], fraction: float, seed: int
) -> tuple[Sequence[Example], Sequence[Example]]:
    """Dev examples for the metric and dev examples for the dev gradient, stratified by class."""
    if fraction == 0.0:
        return dev, dev
    try:
        kept, held_out = train_test_split(
            list(dev),
            test_size=fraction,
            random_state=seed % 2**32,
            stratify=[e.label for e in dev],
        )
    except ValueError as error:
        raise ConfigError(
            f"--meta-fraction {fraction}: dev's {len(dev)} examples cannot be split so that each "
            f"part has every class: {error}"
        ) from error
    return kept, held_out
