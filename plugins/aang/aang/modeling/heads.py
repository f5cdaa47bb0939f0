"""Heads made of transformers' own classes.

Every transformers model with a head consists of a base model and the head. If the base model is
replaced by a module that returns given hidden states, the rest is exactly the head of that class,
for any architecture, without a special case for each.
"""

import copy
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPooling

from aang.task_types.single_label import ONE_CLASS
from aang_core.errors import ModelError
from aang_core.objectives.stages import Vocabulary
from aang_core.tasks.task import RowLosses


class _GivenHiddenStates(nn.Module):
    """Replaces a base model: its output is the input embeddings that it is given.

    Args:
        pooler: the base model's own pooler, if the class's head reads its output (BERT).
    """

    def __init__(self, pooler: nn.Module | None) -> None:
        super().__init__()
        self.pooler = pooler

    def forward(
        self, input_ids: None = None, *, inputs_embeds: Tensor, **_: Any
    ) -> BaseModelOutputWithPooling:
        return BaseModelOutputWithPooling(
            last_hidden_state=inputs_embeds, pooler_output=self._pooled(inputs_embeds)
        )

    def _pooled(self, hidden: Tensor) -> Tensor | None:
        if isinstance(self.pooler, nn.Linear):
            # The rest of ALBERT's pooler is in the forward method of its base model.
            return torch.tanh(self.pooler(hidden[:, 0]))
        return None if self.pooler is None else self.pooler(hidden)

    def get_input_embeddings(self) -> None:
        """None; without this method transformers does not find EuroBERT's decoder."""


class TransformersHead(nn.Module):
    """The head of a transformers model: hidden states ``[B, T, H]`` → logits.

    It takes over ``model``: the base model is removed and, if it had a pooler, the pooler becomes
    part of the head.

    Args:
        model: a transformers model with a head.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        base = model.base_model
        pooler = getattr(base, "pooler", None)
        if pooler is not None:
            setattr(base, "pooler", None)  # noqa: B010 - as a plain attribute it has no type
        setattr(model, model.base_model_prefix, _GivenHiddenStates(pooler))
        self.model = model

    def forward(self, hidden: Tensor) -> Tensor:
        return self.model(inputs_embeds=hidden).logits  # type: ignore[no-any-return]

    def put_on(self, base: PreTrainedModel) -> PreTrainedModel:
        """A full model of the head's class on top of ``base``; both share every parameter."""
        full = copy.copy(self.model)
        full._modules = dict(self.model._modules)
        stand_in = cast(_GivenHiddenStates, self.model.base_model)
        if stand_in.pooler is not None:
            base = copy.copy(base)
            base._modules = {**base._modules, "pooler": stand_in.pooler}
        setattr(full, full.base_model_prefix, base)
        return full


def set_dropout(head: TransformersHead, dropout: float) -> None:
    """Set every dropout of a classification head to the probability ``dropout``.

    The configuration stays: the head of a later training from this model begins as the encoder's.

    Raises:
        ModelError: the head has no dropout.
    """
    found = [module for module in head.modules() if isinstance(module, nn.Dropout)]
    if not found:
        raise ModelError(
            f"--head-dropout: the classification head of {type(head.model).__name__} has no "
            "dropout; leave the option out"
        )
    for module in found:
        module.p = dropout


class LanguageModelHead(nn.Module):
    """Hidden states ``[S, H]`` of any tokens → vocabulary logits ``[S, V]``."""

    def __init__(self, head: TransformersHead) -> None:
        super().__init__()
        self.head = head

    def forward(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.head(hidden.unsqueeze(0))
        return logits.squeeze(0)


class EndTaskClassifier(nn.Module):
    """The end task's own head, ``[B, T, H]`` → logits, in a module that an objective may own.

    The parameters are those of the end task, so every training step counts them once.
    """

    def __init__(self, classifier: TransformersHead) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.classifier(hidden)
        return logits


class TokenRegressionHead(nn.Module):
    """Hidden states ``[..., H]`` → one number per token, ``[...]``."""

    def __init__(self, hidden_size: int, dropout: float, init_std: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(hidden_size, 1)
        nn.init.normal_(self.linear.weight, std=init_std)
        nn.init.zeros_(self.linear.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        values: Tensor = self.linear(self.dropout(hidden))
        return values.squeeze(-1)


class EncoderHeads:
    """Makes the heads of auxiliary objectives for one encoder.

    Args:
        classifier: the end task's head, which every classification head copies.
        language_model: the encoder's LM head, which every token head copies.
        vocabulary: reads the tokenizer; called when its tokens are first needed.
        share_decoder: copy only the small transform before the decoder for each objective; all
            objectives share the V × H decoder, tied to the word embeddings if the model ties it.
            False copies the decoder too, as the papers do (AANG, section 6): 16 copies of a
            50k-word decoder do not fit small machines.
        losses: the loss of the end task's labels, given what ``classifier`` computes.
        over_rows: returns a head that classifies rows, if ``classifier`` classifies tokens.
        dropout: of token regression; None for the encoder's own. Classification heads have that of
            ``classifier``, and language-model heads have none.
    """

    def __init__(
        self,
        classifier: TransformersHead,
        language_model: TransformersHead,
        vocabulary: Callable[[], Vocabulary],
        *,
        losses: Callable[[Tensor, Tensor], RowLosses] = ONE_CLASS.losses,
        over_rows: Callable[[], TransformersHead] | None = None,
        share_decoder: bool = True,
        dropout: float | None = None,
    ) -> None:
        self._classifier = classifier
        self._language_model = language_model
        self._vocabulary = vocabulary
        self._share_decoder = share_decoder
        self._dropout = dropout
        self._config = classifier.model.config
        self._losses = losses
        self._over_rows = over_rows
        self._classes: int | None = None

    def for_classes(self, classes: int) -> "EncoderHeads":
        """The same heads, with classification of rows over this number of classes."""
        other = copy.copy(self)
        other._losses, other._classes = ONE_CLASS.losses, classes
        return other

    def weighted(self, weights: Tensor) -> "EncoderHeads":
        """The same heads, with the weights ``[C]`` of the classes in the loss of the labels.

        The loss is then Σ w_y · loss / Σ w_y over the rows, whatever batches they come in.
        """

        def losses(logits: Tensor, labels: Tensor) -> RowLosses:
            found, of_rows = self._losses(logits, labels), weights.to(labels.device)[labels]
            return RowLosses(found.sums * of_rows, found.counts * of_rows)

        other = copy.copy(self)
        other._losses = losses
        return other

    @property
    def hidden_size(self) -> int:
        return int(self._config.hidden_size)

    @property
    def vocabulary(self) -> Vocabulary:
        """See :class:`aang_core.objectives.stages.HeadBuilder`.

        Raises:
            ModelError: the tokenizer has no mask token.
        """
        return self._vocabulary()

    def language_model(self) -> nn.Module:
        decoder = self._language_model.model.get_output_embeddings()
        # Objectives share the matrix; the bias is small, and each has its own.
        memo = {id(decoder.weight): decoder.weight} if self._share_decoder else {}
        head = copy.deepcopy(self._language_model, memo)
        if not self._share_decoder:
            # A copy of frozen word embeddings is the head's own, and trained.
            cast(Any, head.model.get_output_embeddings()).weight.requires_grad_(True)
        return LanguageModelHead(head)

    @torch.no_grad()
    def classification(self) -> nn.Module:
        if self._classes is None or self._over_rows is None:
            head = copy.deepcopy(self._classifier)
        else:
            head = self._over_rows()
        outputs = int(head.model.config.num_labels or 0)
        if self._classes not in (None, outputs):
            _resize(head.model, outputs, self._classes)
        for module in head.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=self._init_std)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        return head

    def label_losses(self, logits: Tensor, labels: Tensor) -> RowLosses:
        """See :class:`aang_core.objectives.stages.HeadBuilder`."""
        return self._losses(logits, labels)

    def end_task(self) -> nn.Module:
        return EndTaskClassifier(self._classifier)

    def positions(self) -> nn.Module:
        """See :class:`aang_core.objectives.stages.HeadBuilder`."""
        positions = nn.Embedding(self._config.max_position_embeddings, self.hidden_size)
        nn.init.zeros_(positions.weight)
        return positions

    def token_regression(self) -> nn.Module:
        dropout = self._dropout
        if dropout is None:
            dropout = getattr(self._config, "hidden_dropout_prob", 0.1)
        return TokenRegressionHead(self.hidden_size, dropout, self._init_std)

    @property
    def _init_std(self) -> float:
        return float(getattr(self._config, "initializer_range", 0.02))


def output_layer(model: nn.Module, outputs: int) -> tuple[str, nn.Linear] | None:
    """The name and the last layer of a head, if it is linear and has this number of outputs."""
    linear = [(name, m) for name, m in model.named_modules() if isinstance(m, nn.Linear)]
    return linear[-1] if linear and linear[-1][1].out_features == outputs else None


def _resize(model: nn.Module, classes: int, wanted: int) -> None:
    """Replace a head's last layer, which has one output per class, by one of ``wanted`` outputs.

    Raises:
        ModelError: the head does not end in such a layer.
    """
    found = output_layer(model, classes)
    if found is None:
        raise ModelError(
            f"the classification head of {type(model).__name__} does not end in a layer with an "
            "output per class, so it cannot be resized to the classes of an auxiliary task; use "
            "another encoder, such as BERT or RoBERTa"
        )
    name, last = found
    fresh = nn.Linear(last.in_features, wanted, bias=last.bias is not None).to(last.weight)
    parent, _, attribute = name.rpartition(".")
    setattr(model.get_submodule(parent), attribute, fresh)
