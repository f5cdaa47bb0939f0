"""Hooks that report, module by module in backward, what parameter gradients are made of."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from aang_core import AangError
from aang_core.gradients import CannotPackError, batch_norm_of
from aang_plugin_packed.rules import Rule, Use, rule_for


class Taps:
    """Forward passes through a body with its parameters frozen.

    Backward then computes gradients of activations only. As soon as the gradient of a module's
    output exists, the uses of the module's parameters are reported.

    Args:
        body: the module that all tasks share.

    Raises:
        CannotPackError: a trained parameter belongs to a module without a rule, or a module mixes
            the rows of a pass.
    """

    def __init__(self, body: nn.Module) -> None:
        mixes = batch_norm_of(body)
        if mixes is not None:
            raise CannotPackError(
                f"{mixes or 'the body'} is a {type(body.get_submodule(mixes)).__name__}, which "
                "normalises a row by the other rows of a pass, so tasks need passes of their own"
            )
        self._names = {name: p for name, p in body.named_parameters() if p.requires_grad}
        self._checked = False
        self._modules: list[tuple[nn.Module, Rule]] = []
        for name, module in body.named_modules():
            if not any(p.requires_grad for p in module.parameters(recurse=False)):
                continue
            rule = rule_for(module)
            if rule is None:
                raise CannotPackError(
                    f"{name or 'the body'} is a {type(module).__name__}, whose parameter gradients "
                    "the packed engine cannot split by row"
                )
            self._modules.append((module, rule))

    def features_of(self, run: Callable[[], Tensor]) -> Tensor:
        """The features of a pass without gradients; if it is the first pass, it is checked.

        Args:
            run: runs the body and returns its features.

        Raises:
            CannotPackError: see `check`.
        """
        if self._checked:
            with torch.no_grad():
                return run()
        with ExitStack() as stack:
            self._freeze(stack)
            features = run()
        self.check(features)
        return features.detach()

    def check(self, features: Tensor) -> None:
        """Check that the first pass used every parameter in a call of its module.

        Another use, as in ``functional.linear(x, self.layer.weight.T)``, is not reported, so its
        part of the gradient would be lost.

        Args:
            features: of that pass; those of later passes are not checked.

        Raises:
            CannotPackError: it did not.
        """
        if self._checked:
            return
        used = _recorded(features)
        for name, parameter in self._names.items():
            if parameter in used:
                raise CannotPackError(
                    f"{name} is used outside the call of its own module, where the packed engine "
                    "cannot split its gradient by row"
                )
        self._checked = True

    def _freeze(self, stack: ExitStack) -> None:
        """Freeze the parameters until ``stack`` closes.

        Before the check, they are frozen only in calls of their own modules, so that autograd
        records every other use.
        """
        for parameter in self._names.values():
            stack.callback(parameter.requires_grad_, True)
            parameter.requires_grad_(not self._checked)
        if self._checked:
            return
        for module, _ in self._modules:
            own = [p for p in module.parameters(recurse=False) if p.requires_grad]
            before = module.register_forward_pre_hook(partial(_set, own, False))
            after = module.register_forward_hook(partial(_set, own, True))
            stack.callback(before.remove)
            stack.callback(after.remove)

    @contextmanager
    def listening(
        self,
        rows: int,
        uses: Counter[nn.Parameter],
        embedded: dict[nn.Parameter, Tensor],
        report: Callable[[Use], None],
    ) -> Iterator[None]:
        """Inside the block, hook the body's forward passes.

        Args:
            rows: number of rows of a pass.
            uses: counts how often each parameter is used.
            embedded: takes the token ids ``[B, T]`` of each matrix that is used as an embedding.
            report: called with each use, in backward.
        """
        with ExitStack() as stack:
            for module, rule in self._modules:
                hook = _hook(rule, rows, uses, embedded, report)
                handle = module.register_forward_hook(hook, with_kwargs=True)
                stack.callback(handle.remove)
            self._freeze(stack)
            yield


def _hook(
    rule: Rule,
    rows: int,
    uses: Counter[nn.Parameter],
    embedded: dict[nn.Parameter, Tensor],
    report: Callable[[Use], None],
) -> Callable[..., Tensor]:
    """A forward hook for a module whose gradients ``rule`` splits."""

    def on_forward(
        module: nn.Module, given: tuple[Any, ...], named: Mapping[str, Any], output: Tensor
    ) -> Tensor:
        x, output = _by_row(module, given[0] if given else named.get("input"), output, rows)
        uses.update(module.parameters(recurse=False))
        if isinstance(module, nn.Embedding):
            embedded[cast(nn.Parameter, module.weight)] = x
        if not output.requires_grad:
            # A leaf could not be changed in place, as F.relu_ does, so this is a sum.
            output = output + output.new_zeros(()).requires_grad_()
        if isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d):
            # The module computed with its input in the precision of the pass.
            x = x.to(output.dtype)
        held, version = [x], x._version

        def on_backward(gradient: Tensor) -> None:
            x = held.pop()
            if x._version != version:
                raise AangError(
                    f"the input of a {type(module).__name__} was changed in place after it was "
                    "used, so its gradient cannot be split by row; train with --gradients stream"
                )
            for use in rule(module, x, gradient):
                report(use)

        output.register_hook(on_backward)
        return output

    return on_forward


def _by_row(module: nn.Module, x: Any, output: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """Input and output of a module, both with a first dimension of rows."""
    if isinstance(x, Tensor) and x.dim() > 1:
        if len(x) == rows:
            return x, output
        if isinstance(module, nn.Embedding) and len(x) == 1:
            # All rows share one row of positions; expanding it gives each row its gradient.
            shape = (rows, *(-1 for _ in x.shape[1:]))
            return x.expand(shape), output.expand(*shape, -1)
    raise CannotPackError(
        f"the input of a {type(module).__name__} of the body is not a tensor with one entry for "
        f"each of the {rows} rows, so its gradient cannot be split by row"
    )


def _set(parameters: list[nn.Parameter], trained: bool, *given: Any) -> None:
    """A hook that makes parameters trained or not."""
    for parameter in parameters:
        parameter.requires_grad_(trained)


def _recorded(output: Tensor) -> set[Tensor]:
    """The leaves that autograd has recorded as being part of ``output``."""
    leaves: set[Tensor] = set()
    todo = [output.grad_fn]
    seen = set(todo)
    while todo:
        node = todo.pop()
        if node is None:
            continue
        if isinstance(leaf := getattr(node, "variable", None), Tensor):
            leaves.add(leaf)
        following = {after for after, _ in node.next_functions} - seen
        seen |= following
        todo += following
    return leaves
