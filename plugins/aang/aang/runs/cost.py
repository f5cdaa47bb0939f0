"""The cost of a training so far: seconds, and rows through the body."""

import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from aang.runs.files import append_line, read_lines
from aang.runs.schema import Cost
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.processes import Processes


class CostLog:
    """Writes ``cost.jsonl``: the cost so far, after each round and each evaluation.

    Seconds are those of training and of evaluations on dev, over all parts of an interrupted run.
    Rows are those that went through the body to train, in all processes, including the rows of dev
    and of every objective but not the rows of evaluations.

    Create it when training begins, which starts its clock. When a run is resumed, the process that
    writes calls :meth:`go_on` after the logs have been cut back to the checkpoint.

    Args:
        folder: the run folder.
        body: the module whose rows are counted.
        processes: the processes that share the training.
        compiled: whether ``body`` is compiled.
    """

    def __init__(
        self, folder: RunFolder, body: nn.Module, processes: Processes, *, compiled: bool
    ) -> None:
        self._folder = folder
        self._processes = processes
        self._body = body
        self._began = time.perf_counter()
        self._before = 0.0
        self._rows_before = 0
        self._own_rows = 0
        # Inside the compiled body, every new value of the counter would cause a recompilation.
        count = torch.compiler.disable(self._count) if compiled else self._count
        body.register_forward_pre_hook(count, with_kwargs=True)

    def go_on(self) -> None:
        """Continue counting from the last line of the file."""
        try:
            lines = read_lines(Cost, self._folder.path)
        except FileNotFoundError:
            return
        if lines:
            self._before, self._rows_before = lines[-1].seconds, lines[-1].rows

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return self._before + time.perf_counter() - self._began

    def rows(self) -> int:
        """Rows so far, in all processes, which must all call this."""
        if self._processes.size == 1:
            return self._rows_before + self._own_rows
        device = next(self._body.parameters()).device
        own = torch.tensor(self._own_rows, device=device)
        return self._rows_before + int(self._processes.sum([own])[0])

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        self._write(step)

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        self._write(step)

    def _write(self, step: int) -> None:
        line = Cost(step=step, seconds=round(self.seconds, 3), rows=self.rows())
        append_line(self._folder, line)

    def _count(self, body: nn.Module, arguments: Any, inputs: Mapping[str, Tensor]) -> None:
        # Only evaluations run in inference mode; passes of training without a gradient count.
        if not torch.is_inference_mode_enabled():
            self._own_rows += len(inputs["input_ids"])
