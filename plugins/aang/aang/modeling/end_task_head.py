"""The end task's head: that of the encoder's folder if it is this task's own, else a fresh one."""

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel

from aang.modeling.heads import TransformersHead, output_layer
from aang.task_types.cells import listed
from aang.task_types.choose import labels_of, task_type_of_model
from aang.task_types.single_label import SingleLabel
from aang.task_types.task_type import TaskType
from aang_core.errors import ModelError

OF_A_HEAD = (
    *("end_task", "threshold", "label_separator", "labels_by_place", "label_mean", "label_scale"),
    *("encoder_max_length", "reads_pairs", "words_at_spaces"),
    *("function_to_apply", "finetuning_task", "task_specific_params"),
    *("sentence_transformers", "sbert_ce_default_activation_function"),
)
"""Settings in ``config.json``, besides the names of classes, that are about one trained head.

The first two lines are what AANG saves; the others are what other libraries save.
"""

_UNNAMED = re.compile(r"LABEL_\d+")
_HEADS = ("ForSequenceClassification", "ForTokenClassification")
_SHOWN = 4


@dataclass(frozen=True)
class StoredHead:
    """What an encoder's folder says about the head in it.

    Attributes:
        source: the folder or hub name.
        config: the content of its ``config.json``.
        lacking: names of the weights that the folder lacks.
        misfits: names of those that it has in another shape.
    """

    source: str
    config: PreTrainedConfig
    lacking: Collection[str]
    misfits: Collection[str]


def forget_head(config: PreTrainedConfig) -> None:
    """Remove what the configuration says about the head that was in its folder."""
    for name in OF_A_HEAD:
        vars(config).pop(name, None)


def end_task_head(
    model: PreTrainedModel,
    stored: StoredHead,
    task_type: TaskType,
    fresh: Callable[[], TransformersHead],
) -> tuple[TransformersHead, str | None]:
    """The head for an end task, which is taken off ``model``.

    A head is taken over or left out as a whole, the layer before the classes too (RoBERTa's dense
    layer, BERT's pooler): its parts were trained for each other.

    Args:
        model: the encoder with a head of the end task's shape, as it was loaded.
        stored: the head in the encoder's folder.
        task_type: the kind of end task, with its classes or its scale.
        fresh: makes an untrained head.

    Returns:
        The head; and for people, whether it is the folder's and why, or None if the folder has
        none.
    """
    names = _names(model)
    head = TransformersHead(model)
    found = output_layer(head.model, len(task_type.labels))
    # A layer before the output may come from pre-training, as in ModernBERT, and is kept then.
    of_output = names if found is None else {f"{found[0]}.weight"}
    if of_output <= set(stored.lacking):
        return head, None
    theirs = _task_type_of(stored.config, task_type)
    reason = _other(stored, theirs, task_type, names) or _pooled_elsewhere(stored, model.config)
    if theirs is not None and reason is None:
        reason = _took_over(head, stored.config, theirs.labels, task_type)
    if theirs is None or reason is not None:
        return fresh(), f"new: that of {stored.source} {reason}"
    same = "the same classes" if task_type.names_classes else "numbers of the same scale"
    order = "" if theirs.labels == task_type.labels else ", put into this task's order"
    return head, f"that of {stored.source}, which is for {same}{order}"


def _task_type_of(config: PreTrainedConfig, task_type: TaskType) -> TaskType | None:
    """The kind of task of a stored head: this task's own kind, if it recognises the head.

    None if no loaded plug-in knows the kind.
    """
    own = type(task_type)
    found = None if own is SingleLabel else own.of_model(config, labels_of(config))
    with suppress(ModelError):
        return found or task_type_of_model(config)
    return None


def _names(model: PreTrainedModel) -> set[str]:
    """The names of the head's weights; a pooler in the encoder belongs to the head."""
    prefix = f"{model.base_model_prefix}."
    return {
        name
        for name in model.state_dict()
        if not name.startswith(prefix) or name.startswith(f"{prefix}pooler.")
    }


def _other(
    stored: StoredHead, theirs: TaskType | None, task_type: TaskType, names: Collection[str]
) -> str | None:
    """Why the folder's head is not that of this task; None if it may be."""
    architectures = stored.config.architectures or ()
    if not any(name.endswith(_HEADS) for name in architectures):
        return f"belongs to {' or '.join(architectures) or 'an unnamed architecture'}"
    if theirs is None:
        return "is for a kind of task that no plug-in knows"
    if theirs.name != task_type.name:
        return f"is for another kind of task, {theirs.name}"
    if sorted(theirs.labels) != sorted(task_type.labels):
        named = not all(_UNNAMED.fullmatch(name) for name in theirs.labels)
        which = "is for other classes" if named else "does not name its classes"
        return f"{which}: {listed(theirs.labels, _SHOWN)}"
    if any(name in stored.lacking or name in stored.misfits for name in names):
        return "lacks some of its weights, or has them in another shape"
    return None


def _pooled_elsewhere(stored: StoredHead, config: PreTrainedConfig) -> str | None:
    """Why the folder's head reads something else than the first token; None if it does not."""
    theirs = getattr(stored.config, "classifier_pooling", None)
    pooled = theirs != getattr(config, "classifier_pooling", None)
    return f"reads {theirs!r} of the tokens, and AANG the first one" if pooled else None


def _took_over(
    head: TransformersHead, config: Any, theirs: Sequence[str], task_type: TaskType
) -> str | None:
    """Put the outputs into the order of the task's classes, and numbers on the task's scale.

    Returns:
        None; or why the head cannot be taken over.
    """
    if tuple(theirs) != task_type.labels:
        found = output_layer(head.model, len(theirs))
        if found is None:
            return "has its classes in another order and no layer with an output for each"
        order = torch.tensor([theirs.index(name) for name in task_type.labels])
        with torch.no_grad():
            for parameter in found[1].parameters(recurse=False):
                parameter.copy_(parameter[order].clone())
    return task_type.undo_finish(head.model, config)
