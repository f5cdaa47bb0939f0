"""Checks of outputs: their heads, targets and losses."""

from collections.abc import Mapping
from typing import Any, get_args

import torch
from torch import Tensor, nn

from aang_core.checked.contract import INNOCENT, broken, described, expect
from aang_core.objectives.stages import CorruptedRows, CountsHits, HeadBuilder, Output, View
from aang_core.plugins.primitive import Primitive
from aang_core.tasks.task import RowLosses


class CheckedOutput:
    """An output whose head must be a module, its targets tensors and its losses one per row.

    The values of the losses are checked in the first call only. The workbench checks at every step
    that losses are finite.
    """

    def __init__(self, output: Output, primitive: Primitive) -> None:
        self._output = output
        self._primitive = primitive
        self._tried = False

    @property
    def views(self) -> tuple[View, ...]:
        """How each row is shown; see :class:`aang_core.objectives.stages.Output`."""
        with self._primitive.blamed("asking for its views"):
            views: Any = getattr(self._output, "views", ("corrupted",))
        if isinstance(views, tuple | list) and views and set(views) <= set(get_args(View)):
            return tuple(views)
        kinds = " or ".join(map(repr, get_args(View)))
        raise broken(self._primitive, "views", f"a tuple of {kinds}", described(views))

    @property
    def couples_rows(self) -> bool:
        """Whether rows are coupled; see :class:`~aang_core.objectives.stages.Output`."""
        with self._primitive.blamed("asking whether it couples rows"):
            couples: Any = getattr(self._output, "couples_rows", False)
        if not isinstance(couples, bool):
            raise broken(self._primitive, "couples_rows", "True or False", described(couples))
        return couples

    def head(self, heads: HeadBuilder) -> nn.Module:
        """See :meth:`aang_core.objectives.stages.Output.head`."""
        with self._primitive.blamed("making its head", INNOCENT):
            head: Any = self._output.head(heads)
        if not isinstance(head, nn.Module):
            raise broken(self._primitive, "its head", "a torch module", described(head))
        return head

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        """See :meth:`aang_core.objectives.stages.Output.targets`."""
        with self._primitive.blamed("making its targets", INNOCENT):
            targets: Any = self._output.targets(rows)
        if not isinstance(targets, Mapping):
            raise broken(self._primitive, "its targets", "a mapping of tensors", described(targets))
        for name, value in targets.items():
            if not isinstance(value, Tensor):
                raise broken(self._primitive, f"its target {name!r}", "a tensor", described(value))
        return targets

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        """See :meth:`aang_core.objectives.stages.Output.losses`."""
        with self._primitive.blamed("its loss", INNOCENT):
            returned: Any = self._output.losses(head, hidden, targets)
        losses = self._pair(returned)
        rows = hidden.shape[:1]
        expect(self._primitive, "sums of losses", losses.sums, rows, hidden.device, "B", None)
        expect(
            self._primitive,
            "counts of targets",
            losses.counts,
            rows,
            hidden.device,
            "B",
            *(torch.int64, torch.int32, torch.float32, torch.float64),
        )
        if torch.is_grad_enabled() and hidden.requires_grad and not losses.sums.requires_grad:
            raise broken(
                self._primitive,
                "sums of losses",
                "a gradient by the hidden states, of rows without a target too",
                "none; is the loss detached or computed outside of torch?",
            )
        if not self._tried:
            self._check_values(losses)
            self._tried = True
        return losses

    @property
    def counts_hits(self) -> bool:
        """Whether :meth:`hits` can be called."""
        return isinstance(self._output, CountsHits)

    def hits(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> Tensor:
        """See :meth:`aang_core.objectives.stages.CountsHits.hits`."""
        assert isinstance(self._output, CountsHits)
        with self._primitive.blamed("counting its hits", INNOCENT):
            hits: Tensor = self._output.hits(head, hidden, targets)
        rows = hidden.shape[:1]
        expect(self._primitive, "counts of hits", hits, rows, hidden.device, "B", torch.int64)
        return hits

    def _pair(self, returned: Any) -> RowLosses:
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise broken(
                self._primitive,
                "its loss",
                "RowLosses of sums and counts, one of each per row",
                described(returned),
            )
        return RowLosses(*returned)

    def _check_values(self, losses: RowLosses) -> None:
        sums = losses.sums.detach()
        if not bool(sums.isfinite().all()):
            raise broken(
                self._primitive,
                "sums of losses",
                "finite numbers, zero for a row without a target",
                str([round(value, 4) for value in sums.float().tolist()]),
            )
        if bool((losses.counts < 0).any()):
            raise broken(
                self._primitive, "counts of targets", "none negative", str(losses.counts.tolist())
            )
