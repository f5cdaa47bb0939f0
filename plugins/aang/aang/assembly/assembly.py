"""Builds what a training needs from its sources: model, tokenised rows, tasks and weighter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from sklearn.model_selection import train_test_split
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from aang.assembly.around_training import prepared_model
from aang.assembly.end_task import EndTask, class_weights, strata
from aang.assembly.objective_task import ObjectiveTask
from aang.assembly.source_rows import SourceReader, SourceRows
from aang.assembly.sources import Sources
from aang.assembly.stream_rows import StreamRows
from aang.config import TrainConfig
from aang.corpora.labelled import can_be_learned
from aang.corpora.labelled_task import LabelledTask
from aang.corpora.tokens import TokenRows
from aang.modeling import TextModel, load_text_model, load_tokenizer
from aang_core.contracts import CheckedOutput, CheckedRepresentation, CheckedTransform
from aang_core.errors import ConfigError, PluginError
from aang_core.objectives.objective import Objective
from aang_core.objectives.stages import CorruptedRows, Example
from aang_core.tasks.checked_weighter import CheckedWeighter
from aang_core.tasks.task import RowLosses
from aang_core.tasks.weighting import TaskCard, Weighter, require_whole_round
from aang_core.tasks.workbench import END_TASK
from aang_core.training.rows import RowBudget, rows_together


@dataclass(frozen=True)
class Assembly:
    """Everything that training and evaluation need.

    Attributes:
        sources: the sources that it is made from, with the options.
        reader: the reader that has read and tokenised them.
        model: the encoder with its heads.
        end_task: the end task over its training rows.
        meta: the end task over the dev rows that the dev gradient is computed on.
        dev: the dev rows that the dev metric is measured on; the same as those of ``meta`` unless a
            meta fraction is held out.
        test: the test rows; None if there is no test data.
        auxiliaries: the objectives.
        weighter: the weighter, checked.
        class_weights: the weight of each class of the end task, the smallest of them one;
            None for equal ones.
    """

    sources: Sources
    reader: SourceReader
    model: TextModel
    end_task: EndTask
    meta: EndTask
    dev: TokenRows
    test: TokenRows | None
    auxiliaries: Sequence[ObjectiveTask]
    weighter: Weighter
    class_weights: Mapping[str, float] | None = None

    @property
    def config(self) -> TrainConfig:
        """The options."""
        return self.sources.config

    @property
    def row_budget(self) -> RowBudget:
        """The numbers of rows per step."""
        config = self.config
        return RowBudget(
            config.batch_size,
            config.dev_batch_size,
            config.aux_batch_size,
            config.micro_batch_size,
        )

    @property
    def streams(self) -> Mapping[str, StreamRows]:
        """The rows that are read from streams, by the name of the data primitive."""
        return {
            task.factors["data"]: task.rows
            for task in self.auxiliaries
            if isinstance(task.rows, StreamRows)
        }


def assemble(
    sources: Sources, model: TextModel | None = None, reader: SourceReader | None = None
) -> Assembly:
    """Load the encoder, read and tokenise every source once, and make the tasks.

    Args:
        sources: the run's sources.
        model: the encoder of ``sources``, if it is loaded already.
        reader: the reader of its sources, if it has read some of them already.

    Raises:
        AangError: a model, a text source or an option cannot be used.
    """
    task, config = sources.task, sources.config
    if model is None:
        model = load_model(sources, None if reader is None else reader.tokenizer)
    reader = reader or SourceReader(sources, model)
    dev, meta = hold_out(task, config.meta_fraction, config.seed)
    streams: dict[str, SourceRows] = {}
    train = reader.train()
    by_class = class_weights(config, task.labels, train)
    weights = None if by_class is None else torch.tensor([by_class[name] for name in task.labels])
    heads = model.heads if weights is None else model.heads.weighted(weights)
    weighted = replace(model, heads=heads)
    auxiliaries = [
        make_task(reader.source(o.data, config.aux_batch_size, streams), o, weighted, config.set)
        for o in sources.plan.objectives
    ]
    chosen = sources.plan.weighter
    weighter = CheckedWeighter.make(
        chosen,
        TaskCard(END_TASK),
        [TaskCard(o.name, o.factors, free=o.shares == END_TASK) for o in auxiliaries],
        config.set.get(chosen.key, {}),
    )
    end_task = EndTask(
        train, model.classifier, task.task_type, heads.label_losses, strata(config, train)
    )
    # Without --meta-fraction both are the same rows, which are called dev.
    dev_rows, meta_rows = reader.part("dev", dev), reader.part("meta", meta)
    assembly = Assembly(
        sources=sources,
        reader=reader,
        model=model,
        end_task=end_task,
        # Objectives are judged by the loss that the end task trains, so it has the same weights.
        meta=replace(end_task, rows=meta_rows, strata=None),
        dev=dev_rows,
        test=reader.part("test", task.test) if task.test else None,
        auxiliaries=auxiliaries,
        weighter=weighter,
        class_weights=by_class,
    )
    # Row counts that cannot be split are refused before a run folder exists.
    rows_together(assembly.end_task, auxiliaries, assembly.row_budget)
    require_whole_round(weighter, config.steps)
    return assembly


def load_model(
    sources: Sources, tokenizer: PreTrainedTokenizerBase | None = None, stage: str | None = None
) -> TextModel:
    """Load the encoder of ``sources``.

    Args:
        sources: the options, the encoder's name and the end task's labels.
        tokenizer: the encoder's tokenizer, if it is loaded already.
        stage: the stage of pre-training; None for the main training.

    Raises:
        ModelError: the encoder cannot be used, or not with these options.
        AangError: a plug-in refuses to change it as the options say.
    """
    config = sources.config
    trusted = config.trust_remote_code
    model = load_text_model(
        sources.encoder,
        tokenizer or load_tokenizer(sources.encoder, trust_remote_code=trusted),
        sources.task.labels,
        from_scratch=config.from_scratch and not sources.pretrained,
        allow_missing_weights=config.allow_missing_weights,
        share_decoder=config.share_decoder,
        dropout=config.dropout,
        head_dropout=config.head_dropout,
        trust_remote_code=trusted,
        task_type=sources.task.task_type,
    )
    return prepared_model(sources.registry, config, model, stage)


def make_task(
    rows: SourceRows,
    objective: Objective,
    model: TextModel,
    options: Mapping[str, Mapping[str, Any]],
) -> ObjectiveTask:
    """Make the objective as a task over rows of its data, and try its primitives on two of them.

    Args:
        rows: the rows of its data.
        objective: the objective.
        model: the encoder, for the vocabulary and the heads.
        options: options of primitives, by their names.

    Raises:
        AangError: an option is invalid, or a primitive breaks its contract.
    """
    made = {p.stage: p.make(**options.get(p.key, {})) for p in objective.primitives[1:]}
    output = CheckedOutput(made["output"], objective.output)
    heads = model.heads if rows.classes is None else model.heads.for_classes(rows.classes)
    task = ObjectiveTask(
        name=objective.name,
        factors=objective.factors,
        rows=rows.rows,
        vocabulary=model.heads.vocabulary,
        transform=CheckedTransform(made["transform"], objective.transform),
        representation=CheckedRepresentation(made["representation"], objective.representation),
        output=output,
        head=output.head(heads),
        body=model.body,
        longest=model.max_length,
        shown=output.views,
        couples_rows=output.couples_rows or len(output.views) > 1,
        of_step=rows.of_step,
    )
    rehearse(task, int(model.body.base.config.hidden_size))
    return task


def rehearse(task: ObjectiveTask, hidden_size: int) -> None:
    """Run ``task`` on its first and its shortest row, each twice, with random hidden states.

    This finds the mistakes of primitives on the CPU, where reading values is cheap, and before a
    run folder exists. It does not change the draws of the training: it uses its own generator, and
    restores the state of torch's, which dropout draws from.

    Args:
        task: the objective.
        hidden_size: H of the encoder.

    Raises:
        PluginError: a primitive breaks the contract of its stage.
    """
    # The shortest row is the most likely to have no target and nothing to attend to; equal rows are
    # the most likely to be compared with each other.
    rows = torch.stack([torch.tensor(0), task.lengths.argmin()]).unique().repeat(2)
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        batch = task.batch(rows, generator)
        _refuse_lost_specials(task, rows, batch.origin)
        shape = (*batch.inputs["input_ids"].shape, hidden_size)
        dtype = next((p.dtype for p in task.head.parameters()), torch.float32)
        hidden = torch.randn(shape, generator=generator).to(dtype).requires_grad_()
        losses = task.losses(task.head, hidden, batch.targets)
        if not task.couples_rows:
            _refuse_coupling(task, losses, hidden)
        task.prepared(batch, generator)


def _refuse_lost_specials(task: ObjectiveTask, numbers: Tensor, rows: CorruptedRows) -> None:
    """Raise PluginError if the transform has removed, changed or moved special tokens."""
    padded = task.rows.rows(numbers.repeat(task.views))
    special = padded.real & ~padded.ordinary
    for row, origin in enumerate(rows.origin):
        left = rows.real[row] & ~rows.ordinary[row] & (origin >= 0)
        wanted = special[row].nonzero().flatten()
        if (
            not torch.equal(origin[left], wanted)
            or not torch.equal(rows.corrupted[row][left], padded.ids[row][wanted])
            or bool(special[row, 0] and origin[0] != 0)
        ):
            raise PluginError(
                f"{task.name}: transform {task.factors['transform']} removes, changes or moves "
                "special tokens of a row; all of them have to stay, in their order, and the first "
                "one at the beginning"
            )


def _refuse_coupling(task: ObjectiveTask, losses: RowLosses, hidden: Tensor) -> None:
    """Raise PluginError if the first row's loss depends on another row."""
    (gradient,) = torch.autograd.grad(losses.sums[0], hidden, allow_unused=True)
    if gradient is not None and bool(gradient[1:].ne(0).any()):
        raise PluginError(
            f"{task.name}: the loss of a row of output {task.factors['output']} depends on other "
            "rows, which may come in other batches; an output that compares rows with each other "
            "has to say so with the attribute couples_rows = True"
        )


def hold_out(
    task: LabelledTask, fraction: float, seed: int
) -> tuple[Sequence[Example], Sequence[Example]]:
    """Split dev into examples for the metric and for the dev gradient, stratified by class.

    Examples whose class train lacks have no loss, so only the metric uses them.
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
