"""A plug-in whose output is ``denoise``, and which notes every row that a process trains on.

``RECORDED_ROWS`` names a folder, in which each process has a file of its own.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from aang_plugin_bert.denoise import Denoise
from torch import Tensor, nn

from aang_core import CorruptedRows, RegisterPrimitive, RowLosses, hookimpl


class Recorded(Denoise):
    """``denoise``; a row is noted where its loss is computed to be trained on."""

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        seen = {"seen": rows.original.masked_fill(~rows.real, -1)}
        return {**super().targets(rows), **seen}

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        # The hidden states of a trial before training have no graph.
        if hidden.grad_fn is not None and "RECORDED_ROWS" in os.environ:
            folder = Path(os.environ["RECORDED_ROWS"])
            with (folder / os.environ.get("RANK", "0")).open("a", encoding="utf-8") as file:
                for row in targets["seen"].tolist():
                    file.write(" ".join(str(token) for token in row if token >= 0) + "\n")
        return super().losses(head, hidden, targets)


@hookimpl
def aang_register_outputs(register: RegisterPrimitive) -> None:
    """Register the output ``recorded``."""
    register("recorded", "denoise, with the rows noted", Recorded, requires=("text",))
