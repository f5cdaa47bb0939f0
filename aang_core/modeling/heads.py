"""Heads made of transformers' own classes.

Every transformers model with a head is a base model and something on top. Take the base model out,
put in something that hands back given hidden states, and what is left is exactly that class's head,
for any architecture, without a rule for each.
"""

import copy
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPooling

from aang_core.errors import ModelError
from aang_core.objectives.stages import Vocabulary


class _GivenHiddenStates(nn.Module):
    """Stands in for a base model: its output is what it is given as input embeddings.

    Args:
        pooler: the base model's own pooler, where the class's head reads its output (BERT).
    """

    def __init__(self, pooler: nn.Module | None) -> None:
        super().__init__()
        self.pooler = pooler

    def forward(
        self, input_ids: None = None, *, inputs_embeds: Tensor, **_: Any
    ) -> BaseModelOutputWithPooling:
        pooled = None if self.pooler is None else self.pooler(inputs_embeds)
        return BaseModelOutputWithPooling(last_hidden_state=inputs_embeds, pooler_output=pooled)


class TransformersHead(nn.Module):
    """The head of a transformers model: hidden states ``[B, T, H]`` → logits.

    Takes ``model`` over: its base model is removed and, if it had a pooler, the pooler becomes part
    of the head.
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
        """A full model of the head's class on top of ``base``, sharing every parameter."""
        full = copy.copy(self.model)
        full._modules = dict(self.model._modules)
        stand_in = cast(_GivenHiddenStates, self.model.base_model)
        if stand_in.pooler is not None:
            base = copy.copy(base)
            base._modules = {**base._modules, "pooler": stand_in.pooler}
        setattr(full, full.base_model_prefix, base)
        return full


def set_dropout(head: TransformersHead, dropout: float) -> None:
    """Give every dropout of a classification head the probability ``dropout``.

    The configuration that is saved with the model says so too, where it has a word for it.

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
    for name in ("classifier_dropout", "seq_classif_dropout"):
        if hasattr(head.model.config, name):
            setattr(head.model.config, name, dropout)


class LanguageModelHead(nn.Module):
    """Hidden states ``[S, H]`` of any tokens → vocabulary logits ``[S, V]``."""

    def __init__(self, head: TransformersHead) -> None:
        super().__init__()
        self.head = head

    def forward(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.head(hidden.unsqueeze(0))
        return logits.squeeze(0)


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
        classifier: the end task's head, the pattern of every classification head.
        language_model: the encoder's LM head, the pattern of every token head.
        share_decoder: copy only the small transform before the decoder for each objective; the V ×
            H decoder itself is one for all, tied to the word embeddings where the model ties it.
            False copies the decoder too, as the papers do (AANG, section 6): 16 copies of a
            50k-word decoder do not fit small machines.
        dropout: of token regression; None for the encoder's own. Classification heads have that of
            ``classifier``, and language-model heads have none.
        vocabulary: reads the tokenizer; called when its tokens are first asked for.
    """

    def __init__(
        self,
        classifier: TransformersHead,
        language_model: TransformersHead,
        vocabulary: Callable[[], Vocabulary],
        *,
        share_decoder: bool = True,
        classes: int | None = None,
        dropout: float | None = None,
    ) -> None:
        self._classifier = classifier
        self._language_model = language_model
        self._vocabulary = vocabulary
        self._share_decoder = share_decoder
        self._dropout = dropout
        self._config = classifier.model.config
        self._labels = int(self._config.num_labels or 0)
        self._classes = classes or self._labels

    def for_classes(self, classes: int) -> "EncoderHeads":
        """The same, but classification is over so many classes."""
        return EncoderHeads(
            self._classifier,
            self._language_model,
            self._vocabulary,
            share_decoder=self._share_decoder,
            classes=classes,
            dropout=self._dropout,
        )

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
        # The bias is small and each objective's own; the matrix is what is shared.
        memo = {id(decoder.weight): decoder.weight} if self._share_decoder else {}
        return LanguageModelHead(copy.deepcopy(self._language_model, memo))

    @torch.no_grad()
    def classification(self) -> nn.Module:
        head = copy.deepcopy(self._classifier)
        if self._classes != self._labels:
            _resize(head, self._labels, self._classes)
        for module in head.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=self._init_std)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        return head

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


def _resize(head: nn.Module, classes: int, wanted: int) -> None:
    """Give the head's last layer, which has an output per class, ``wanted`` outputs.

    Raises:
        ModelError: the head does not end in such a layer.
    """
    linear = {name: m for name, m in head.named_modules() if isinstance(m, nn.Linear)}
    name = list(linear)[-1] if linear else ""
    if not linear or linear[name].out_features != classes:
        raise ModelError(
            f"the classification head of {type(head).__name__} does not end in a layer with an "
            "output per class, so it cannot be given the classes of an auxiliary task; take "
            "another encoder, such as BERT or RoBERTa"
        )
    last = linear[name]
    fresh = nn.Linear(last.in_features, wanted, bias=last.bias is not None).to(last.weight)
    parent, _, attribute = name.rpartition(".")
    setattr(head.get_submodule(parent), attribute, fresh)
