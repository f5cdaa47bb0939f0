"""Parameter gradients of single modules, split by row.

The parameter gradient of a module follows from its input x and the gradient g of its output, and
both have a row for every row of the batch. So one backward pass of all rows gives the parameter
gradient of any subset of them, with the arithmetic of an ordinary backward pass. The idea is that
of ghost clipping and of In-Run Data Shapley (Wang et al., ICLR 2025, section 4.2), which computes
inner products of such gradients with that of a validation batch.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.grad import conv1d_weight, conv2d_weight

from aang_plugin_packed.ledger import SparseRows


class DenseUse(NamedTuple):
    """One use of a parameter: its gradient for each of several ranges of rows, ``[n, *shape]``."""

    parameter: nn.Parameter
    gradients: Callable[[Sequence[slice]], Tensor]


class SparseUse(NamedTuple):
    """One use of a parameter as an embedding: its gradient for a range of rows."""

    parameter: nn.Parameter
    gradient: Callable[[slice], SparseRows]


Use = DenseUse | SparseUse


def _linear(module: nn.Linear, x: Tensor, gradient: Tensor) -> Iterator[Use]:
    def weight(parts: Sequence[slice]) -> Tensor:
        return torch.stack(
            [gradient[part].flatten(0, -2).T @ x[part].flatten(0, -2) for part in parts]
        )

    yield from _wanted(module.weight, weight)
    yield from _wanted(module.bias, _sum_by_part(gradient, 1))


def _layer_norm(module: nn.LayerNorm, x: Tensor, gradient: Tensor) -> Iterator[Use]:
    kept = len(module.normalized_shape)
    gradient = gradient.to(module.weight.dtype)
    normalised = functional.layer_norm(
        x.to(gradient.dtype), module.normalized_shape, eps=module.eps
    )
    yield from _wanted(module.weight, _sum_by_part(gradient * normalised, kept))
    yield from _wanted(module.bias, _sum_by_part(gradient, kept))


def _embedding(module: nn.Embedding, x: Tensor, gradient: Tensor) -> Iterator[Use]:
    size = module.num_embeddings

    def weight(part: slice) -> SparseRows:
        ids = x[part].flatten()
        values = gradient[part].reshape(len(ids), -1).to(module.weight.dtype)
        if module.padding_idx is not None:
            values = values * (ids != module.padding_idx).unsqueeze(1)
        return SparseRows.summed(ids, values, size)

    yield SparseUse(cast(nn.Parameter, module.weight), weight)


def _convolution(module: nn.Conv1d | nn.Conv2d, x: Tensor, gradient: Tensor) -> Iterator[Use]:
    of_weight: Any = conv2d_weight if isinstance(module, nn.Conv2d) else conv1d_weight

    def weight(parts: Sequence[slice]) -> Tensor:
        return torch.stack(
            [
                of_weight(
                    x[part],
                    module.weight.shape,
                    gradient[part],
                    stride=module.stride,
                    padding=module.padding,
                    dilation=module.dilation,
                    groups=module.groups,
                )
                for part in parts
            ]
        )

    yield from _wanted(module.weight, weight)
    channels_last = gradient.movedim(1, -1)
    yield from _wanted(module.bias, _sum_by_part(channels_last, 1))


def _sum_by_part(values: Tensor, kept: int) -> Callable[[Sequence[slice]], Tensor]:
    """Sums of ``values`` over rows and everything but the last ``kept`` dimensions."""
    between = tuple(range(1, values.dim() - kept))
    by_row = values.sum(between) if between else values

    def sums(parts: Sequence[slice]) -> Tensor:
        return torch.stack([by_row[part].sum(0) for part in parts])

    return sums


def _wanted(weight: Tensor | None, gradients: Callable[[Sequence[slice]], Tensor]) -> Iterator[Use]:
    if weight is not None and weight.requires_grad:
        dtype = weight.dtype
        yield DenseUse(cast(nn.Parameter, weight), lambda parts: gradients(parts).to(dtype))


Rule = Callable[[Any, Tensor, Tensor], Iterator[Use]]
"""Maps a module, its input ``[B, ...]`` and its output's gradient to uses of its parameters."""

RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: _linear,
    nn.LayerNorm: _layer_norm,
    nn.Embedding: _embedding,
    nn.Conv1d: _convolution,
    nn.Conv2d: _convolution,
}


def rule_for(module: nn.Module) -> Rule | None:
    """The rule that splits a module's parameter gradients by row; None if there is none.

    A subclass uses its base class's rule only if it does not override ``forward``.
    """
    for known, rule in RULES.items():
        if isinstance(module, known) and type(module).forward is known.forward:
            return rule if _plain(module) else None
    return None


def _plain(module: nn.Module) -> bool:
    """Whether the module has no option that changes its gradient."""
    if isinstance(module, nn.Embedding):
        return module.max_norm is None and not module.scale_grad_by_freq and not module.sparse
    if isinstance(module, nn.Conv1d | nn.Conv2d):
        return module.padding_mode == "zeros" and not isinstance(module.padding, str)
    return True
