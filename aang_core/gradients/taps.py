"""Hooks that report, module by module in backward, what parameter gradients are made of."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn

from aang_core.errors import AangError
from aang_core.gradients.packing import CannotPackError, HasRowFreeMethods, batch_norm_of
from aang_core.gradients.rules import DenseUse, Rule, Use, rule_for


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
        self._parameters = list(self._names.values())
        self._checked = False
        self._row_free = (
            list(body.row_free_methods()) if isinstance(body, HasRowFreeMethods) else []
        )
        free = {p for method in self._row_free for p in method.source.parameters()}
        self._modules: list[tuple[nn.Module, Rule]] = []
        for name, module in body.named_modules():
            own = [p for p in module.parameters(recurse=False) if p.requires_grad]
            if not own or all(p in free for p in own):
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
            for owner, name, _ in self._row_free:
                setattr(owner, name, _detached(getattr(owner, name)))
                stack.callback(delattr, owner, name)
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
        for parameter in self._parameters:
            stack.callback(parameter.requires_grad_, True)
        if self._checked:
            _setting(self._parameters, trained=False)()
            return
        for module, _ in self._modules:
            own = [p for p in module.parameters(recurse=False) if p.requires_grad]
            before = module.register_forward_pre_hook(_setting(own, trained=False))
            after = module.register_forward_hook(_setting(own, trained=True))
            stack.callback(before.remove)
            stack.callback(after.remove)

    @contextmanager
    def listening(
        self, rows: int, uses: Counter[nn.Parameter], report: Callable[[Use], None]
    ) -> Iterator["Tapped"]:
        """Inside the block, hook the body's forward passes.

        Args:
            rows: number of rows of a pass.
            uses: counts how often each parameter is used.
            report: called with each use, in backward.
        """
        tapped = Tapped(rows, uses, report)
        with ExitStack() as stack:
            for module, rule in self._modules:
                handle = module.register_forward_hook(tapped.hook(rule), with_kwargs=True)
                stack.callback(handle.remove)
            for owner, name, source in self._row_free:
                trained = [p for p in source.parameters() if p.requires_grad]
                if trained:
                    setattr(owner, name, tapped.row_free(trained, getattr(owner, name)))
                    stack.callback(delattr, owner, name)
            self._freeze(stack)
            yield tapped


class Tapped:
    """The hooks of one forward pass.

    Args:
        rows: number of rows of the pass.
        uses: counts how often each parameter is used.
        report: called with each use, in backward.

    Attributes:
        embedded: token ids ``[B, T]`` of each matrix that was used as an embedding, from its last
            use.
    """

    def __init__(
        self, rows: int, uses: Counter[nn.Parameter], report: Callable[[Use], None]
    ) -> None:
        self.embedded: dict[nn.Parameter, Tensor] = {}
        self._rows = rows
        self._uses = uses
        self._report = report

    def hook(self, rule: Rule) -> Callable[..., Tensor]:
        """A forward hook for a module whose gradients ``rule`` splits."""

        def on_forward(
            module: nn.Module, given: tuple[Any, ...], named: Mapping[str, Any], output: Tensor
        ) -> Tensor:
            x, output = self._by_row(module, given[0] if given else named.get("input"), output)
            for parameter in module.parameters(recurse=False):
                self._uses[parameter] += 1
            if isinstance(module, nn.Embedding):
                self.embedded[cast(nn.Parameter, module.weight)] = x
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
                        "used, so its gradient cannot be split by row; train with "
                        "--gradients stream"
                    )
                for use in rule(module, x, gradient):
                    self._report(use)

            output.register_hook(on_backward)
            return output

        return on_forward

    def _by_row(self, module: nn.Module, x: Any, output: Tensor) -> tuple[Tensor, Tensor]:
        """Input and output of a module, both with a first dimension of rows."""
        if isinstance(x, Tensor) and x.dim() > 1:
            if len(x) == self._rows:
                return x, output
            if isinstance(module, nn.Embedding) and len(x) == 1:
                # All rows share one row of positions; expanding it gives each row its gradient.
                rows = (self._rows, *(-1 for _ in x.shape[1:]))
                return x.expand(rows), output.expand(*rows, -1)
        raise CannotPackError(
            f"the input of a {type(module).__name__} of the body is not a tensor with one entry "
            f"for each of the {self._rows} rows, so its gradient cannot be split by row"
        )

    def row_free(
        self, parameters: Sequence[nn.Parameter], method: Callable[..., Tensor]
    ) -> Callable[..., Tensor]:
        """Wrap a row-free method so that its parameters' gradients can be split by row.

        Args:
            parameters: the parameters that the method reads.
            method: returns a tensor with the same entry for every row.
        """

        def stand_in(*arguments: Any, **options: Any) -> Tensor:
            with torch.enable_grad():
                for parameter in parameters:
                    parameter.requires_grad_(True)
                value = method(*arguments, **options)
                for parameter in parameters:
                    parameter.requires_grad_(False)
            for parameter in parameters:
                self._uses[parameter] += 1
            output = value.detach().requires_grad_()
            of_one_row = value[:1]

            def on_backward(gradient: Tensor) -> None:
                for use in _row_free_uses(of_one_row, parameters, gradient):
                    self._report(use)

            output.register_hook(on_backward)
            return output

        return stand_in


def _setting(parameters: Sequence[nn.Parameter], *, trained: bool) -> Callable[..., None]:
    """A hook that makes parameters trained or not."""

    def hook(*given: Any) -> None:
        for parameter in parameters:
            parameter.requires_grad_(trained)

    return hook


def _detached(method: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda *arguments, **options: method(*arguments, **options).detach()


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


def _row_free_uses(
    of_one_row: Tensor, parameters: Sequence[nn.Parameter], gradient: Tensor
) -> Iterator[Use]:
    for parameter in parameters:

        def gradients(parts: Sequence[slice], parameter: nn.Parameter = parameter) -> Tensor:
            return torch.stack(
                [
                    torch.autograd.grad(
                        of_one_row,
                        parameter,
                        gradient[part].sum(0, keepdim=True),
                        retain_graph=True,
                    )[0]
                    for part in parts
                ]
            )

        yield DenseUse(parameter, gradients)
