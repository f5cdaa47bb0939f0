"""Builds what a training needs from its sources: model, tokenised rows, tasks and weighter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from sklearn.model_selection import train_test_split
from transformers import PreTrainedTokenizerBase

from aang.assembly.chain_stage import PretrainingStage
from aang.assembly.end_task import EndTask
from aang.assembly.imbalance import class_weights, strata
from aang.assembly.objective_task import ObjectiveTask
from aang.assembly.rehearsal import rehearse
from aang.assembly.source_rows import SourceReader, SourceRows
from aang.assembly.sources import Sources
from aang.assembly.stream_rows import StreamRows
from aang.config import TrainConfig
from aang.corpora.labelled_task import LabelledTask
from aang.corpora.tokens import TokenRows
from aang.corpora.unseen_classes import can_be_learned
from aang.modeling import LoraSettings, TextModel, load_text_model, load_tokenizer
from aang_core.checked.output import CheckedOutput
from aang_core.checked.representation import CheckedRepresentation
from aang_core.checked.transform import CheckedTransform
from aang_core.checked.weighter import CheckedWeighter
from aang_core.errors import ConfigError
from aang_core.objectives.objective import Objective
from aang_core.objectives.stages import Example
from aang_core.tasks.names import END_TASK
from aang_core.tasks.weighting import TaskCard, Weighter, require_whole_round
from aang_core.training.step_rows import RowBudget, rows_together


@dataclass(frozen=True)
class Assembly:
    """Everything that training and evaluation need.

    Attributes:
        model: the encoder with its heads.
        end_task: the end task over its training rows.
        meta: the end task over the dev rows that the dev gradient is computed on.
        dev: the dev rows that the dev metric is measured on; those of ``meta`` too unless a meta
            fraction is held out.
        test: the test rows; None if there is no test data.
        auxiliaries: the objectives.
        weighter: the weighter, checked.
        class_weights: the weight of each class in the end task's loss, the smallest of them one;
            None for equal ones.
    """

    model: TextModel
    end_task: EndTask
    meta: EndTask
    dev: TokenRows
    test: TokenRows | None
    auxiliaries: Sequence[ObjectiveTask]
    weighter: Weighter
    class_weights: Mapping[str, float] | None = None

    @property
    def streams(self) -> Mapping[str, StreamRows]:
        """The rows that are read from streams, by the name of the data primitive."""
        return {
            task.factors["data"]: task.rows
            for task in self.auxiliaries
            if isinstance(task.rows, StreamRows)
        }


def assemble(
    config: TrainConfig,
    sources: Sources,
    model: TextModel | None = None,
    reader: SourceReader | None = None,
) -> Assembly:
    """Load the encoder, read and tokenise every source once, and make the tasks.

    Args:
        config: the run's options.
        sources: its sources.
        model: the encoder of ``sources``, if it is loaded already.
        reader: the reader of its sources, if it has read some of them already.

    Raises:
        AangError: a model, a text source or an option cannot be used.
    """
    task = sources.task
    if model is None:
        model = load_model(config, sources, None if reader is None else reader.tokenizer)
    reader = reader or SourceReader(config, sources, model)
    dev, meta = _hold_out(task, config.meta_fraction, config.seed)
    streams: dict[str, SourceRows] = {}
    auxiliaries = [
        _task(reader.source(o.data, config.aux_batch_size, streams), o, model, sources)
        for o in sources.objectives
    ]
    weighter = CheckedWeighter.make(
        sources.weighter,
        TaskCard(END_TASK),
        [TaskCard(o.name, o.factors, free=o.shares == END_TASK) for o in auxiliaries],
        sources.options.get(sources.weighter.key, {}),
    )
    train = reader.train()
    by_class = class_weights(config, task.labels, train)
    weights = None if by_class is None else torch.tensor([by_class[name] for name in task.labels])
    end_task = EndTask(
        train, model.classifier, task.task_type, weights=weights, strata=strata(config, train)
    )
    # Row counts that cannot be split are refused before a run folder exists.
    rows_together(end_task, auxiliaries, row_budget(config))
    require_whole_round(weighter, config.steps)
    # Without --meta-fraction both are the same rows, which are called dev.
    dev_rows, meta_rows = reader.part("dev", dev), reader.part("meta", meta)
    return Assembly(
        model=model,
        end_task=end_task,
        # Objectives are judged by the loss that the end task trains, so it has the same weights.
        meta=EndTask(meta_rows, model.classifier, task.task_type, weights=weights),
        dev=dev_rows,
        test=reader.part("test", task.test) if task.test else None,
        auxiliaries=auxiliaries,
        weighter=weighter,
        class_weights=by_class,
    )


def row_budget(config: TrainConfig) -> RowBudget:
    """The numbers of rows per step."""
    return RowBudget(
        config.batch_size,
        config.dev_batch_size,
        config.aux_batch_size,
        config.micro_batch_size,
    )


def stage_task(
    reader: SourceReader, sources: Sources, model: TextModel, stage: PretrainingStage
) -> ObjectiveTask:
    """Make the objective of a stage of pre-training, and try its primitives on two rows.

    Raises:
        AangError: like :func:`assemble`.
    """
    rows = reader.source(stage.objective.data, stage.settings.batch_size, {})
    return _task(rows, stage.objective, model, sources)


def load_model(
    config: TrainConfig, sources: Sources, tokenizer: PreTrainedTokenizerBase | None = None
) -> TextModel:
    """Load the encoder of ``sources``.

    Args:
        config: the run's options.
        sources: the encoder's name and the end task's labels.
        tokenizer: the encoder's tokenizer, if it is loaded already.

    Raises:
        ModelError: the encoder cannot be used, or not with these options.
        ConfigError: there are to be adapters, and peft is not installed.
    """
    trusted = config.trust_remote_code
    lora = None
    if config.lora is not None:
        lora = LoraSettings(config.lora, config.lora_alpha, config.lora_target)
    return load_text_model(
        sources.encoder,
        tokenizer or load_tokenizer(sources.encoder, trust_remote_code=trusted),
        sources.task.labels,
        from_scratch=config.from_scratch and not sources.pretrained,
        allow_missing_weights=config.allow_missing_weights,
        share_decoder=config.share_decoder,
        dropout=config.dropout,
        head_dropout=config.head_dropout,
        lora=lora,
        frozen_layers=config.freeze_layers,
        trust_remote_code=trusted,
        task_type=sources.task.task_type,
    )


def _task(
    rows: SourceRows, objective: Objective, model: TextModel, sources: Sources
) -> ObjectiveTask:
    return objective_over(
        rows.rows,
        objective,
        model,
        sources.options,
        classes=rows.classes,
        of_step=rows.of_step,
    )


def objective_over(
    rows: TokenRows | StreamRows,
    objective: Objective,
    model: TextModel,
    options: Mapping[str, Mapping[str, Any]],
    *,
    classes: int | None,
    of_step: bool = False,
) -> ObjectiveTask:
    """Make the objective as a task over rows of its data, and try its primitives on two of them.

    Args:
        rows: the rows of its data.
        objective: the objective.
        model: the encoder, for the vocabulary and the heads.
        options: options of primitives, by their names.
        classes: the number of classes that the rows' own labels have; None if their labels are
            the end task's.
        of_step: whether ``rows`` are those that the end task trains on in the step.

    Raises:
        AangError: an option is invalid, or a primitive breaks its contract.
    """
    made = {p.stage: p.make(**options.get(p.key, {})) for p in objective.primitives[1:]}
    output = CheckedOutput(made["output"], objective.output)
    heads = model.heads if classes is None else model.heads.for_classes(classes)
    task = ObjectiveTask(
        name=objective.name,
        factors=objective.factors,
        rows=rows,
        vocabulary=model.heads.vocabulary,
        transform=CheckedTransform(made["transform"], objective.transform),
        representation=CheckedRepresentation(made["representation"], objective.representation),
        output=output,
        head=output.head(heads),
        longest=model.max_length,
        shown=output.views,
        couples_rows=output.couples_rows or len(output.views) > 1,
        of_step=of_step,
    )
    rehearse(task, int(model.body.base.config.hidden_size))
    return task


def _hold_out(
    task: LabelledTask, fraction: float, seed: int
) -> tuple[Sequence[Example], Sequence[Example]]:
    """Split dev into examples for the metric and for the dev gradient, stratified by class.

    Examples whose class train lacks have no loss, so they are for the metric alone.
    """
    task_type, dev = task.task_type, task.dev
    learned: list[Example] = []
    unseen: list[Example] = []
    for example in dev:
        (learned if can_be_learned(example, task_type) else unseen).append(example)
    if fraction == 0.0:
        return dev, learned if unseen else dev
    try:
        kept, held_out = train_test_split(
            learned,
            test_size=fraction,
            random_state=seed % 2**32,
            stratify=task_type.strata([e.label for e in learned if e.label is not None]),
        )
    except ValueError as error:
        raise ConfigError(
            f"--meta-fraction {fraction}: dev's {len(dev)} examples cannot be split so that each "
            f"part has every class: {error}"
        ) from error
    return [*kept, *unseen], held_out
