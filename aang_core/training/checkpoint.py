"""A checkpoint: everything that training needs to go on as if it had not been interrupted."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from aang_core.errors import DataError
from aang_core.storage.checkpoint_store import CheckpointStore
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.processes import ALONE, Processes
from aang_core.training.interruption import Interrupted, Interruption
from aang_core.training.trainer import Trainer

TENSORS = "state.safetensors"
REST = "state.json"
CLOCK = "clock.json"
"""How long training has taken: apart from what training is, which the same run has again."""
_MOMENTS = ("exp_avg", "exp_avg_sq", "step")


def save_checkpoint(folder: Path, trainer: Trainer) -> None:
    """Write into ``folder``: tensors as safetensors, the rest as JSON, nothing pickled."""
    bench, progress = trainer.bench, trainer.progress
    modules = bench.modules
    tensors = {f"module|{name}": t.detach() for name, t in _named_tensors(modules)}
    tensors |= {f"optimizer|{name}": t for name, t in _moments(trainer, modules)}
    tensors |= {f"rows|{name}": order.state() for name, order in bench.row_orders().items()}
    tensors |= {f"dev-head|{name}": t for name, t in bench.dev_head.state_dict().items()}
    tensors |= {f"best|{name}": t for name, t in progress.best_state.items()}
    tensors |= {f"generator|{name}": g.get_state() for name, g in _generators(trainer).items()}
    tensors |= {
        f"generator|device-{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())
    }
    rest = {
        "steps": bench.steps,
        "rows_at_once": bench.rows_at_once,
        "numbers": bench.numbers.state_dict(),
        "scale": bench.scale.state_dict(),
        "streams": {name: stream.state_dict() for name, stream in bench.streams().items()},
        "weighter": trainer.weighter.state_dict(),
        "held_signals": bench.held_signals.state_dict(),
        "schedule": bench.optimization.schedule.state_dict(),
        "progress": {
            "best_step": progress.best_step,
            "best_score": progress.best_score,
            "evaluations_since_best": progress.evaluations_since_best,
        },
    }
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: t.contiguous().cpu() for name, t in tensors.items()}, folder / TENSORS)
    (folder / REST).write_text(json.dumps(rest, default=_plain), encoding="utf-8")
    clock = {"seconds": trainer.clock.seconds}
    (folder / CLOCK).write_text(json.dumps(clock), encoding="utf-8")


class Checkpointer:
    """Saves a trainer between rounds, at most once in so many seconds, and when asked to stop.

    When it saves depends on the clock; what training comes to does not depend on it. Of several
    processes, which all hold the same, the first one saves.

    folder: of the run. name: of the folder of checkpoints in it. logs: files of the run that grow
        as training goes on; they are cut back to where a checkpoint is.
    """

    def __init__(
        self,
        folder: RunFolder,
        name: str,
        logs: Sequence[str],
        *,
        seconds: float,
        interruption: Interruption,
        processes: Processes = ALONE,
    ) -> None:
        self._folder = folder
        self._name = name
        self._logs = logs
        self._store = CheckpointStore(folder.path / name)
        self._seconds = seconds
        self._interruption = interruption
        self._processes = processes
        self._last = time.monotonic()

    def reached(self, trainer: Trainer) -> None:
        """Save if it is time.

        Raises:
            Interrupted: a signal has asked to stop; the checkpoint is written.
            StorageError: the checkpoint cannot be written; the last one is still there.
        """
        # Looked at once: a signal that comes after the saving waits for the next boundary.
        asked = self._processes.largest(self._interruption.number or 0)
        if asked or time.monotonic() - self._last >= self._seconds:
            self.save(trainer)
        if asked:
            raise Interrupted(asked, trainer.bench.steps)

    def save(self, trainer: Trainer) -> None:
        """Save now.

        Raises:
            StorageError: the checkpoint cannot be written; the last one is still there.
        """
        if not self._processes.first:
            return

        def write(folder: Path) -> None:
            save_checkpoint(folder, trainer)
            self._folder.share_mode(folder)

        # The logs must not lag behind a checkpoint, or lines would be lost for good.
        self._folder.sync(*self._logs)
        with self._folder.writing(self._name):
            self._store.save(write)
        self._last = time.monotonic()

    def take_up(self, trainer: Trainer) -> None:
        """Bring trainer and logs to where the newest whole checkpoint is, or to the beginning.

        Raises:
            DataError: there are checkpoints, and none can be used.
        """
        found = self._store.newest()
        if found is not None:
            load_checkpoint(found, trainer)
        for name in self._logs:
            self._folder.cut(name, trainer.bench.steps if found is not None else -1)

    def drop_older(self) -> None:
        """Keep the newest checkpoint alone: training is over."""
        if self._processes.first:
            self._store.drop_older()

    def drop_all(self) -> None:
        """Keep none: what was trained is saved elsewhere."""
        if self._processes.first:
            self._store.drop_all()


@torch.no_grad()
def load_checkpoint(folder: Path, trainer: Trainer) -> None:
    """Put a freshly built trainer into the state that ``folder`` holds.

    Raises:
        DataError: there is no checkpoint, or it belongs to another model or space.
    """
    modules = trainer.bench.modules
    try:
        tensors = load_file(folder / TENSORS)
        rest = json.loads((folder / REST).read_text(encoding="utf-8"))
        clock = json.loads((folder / CLOCK).read_text(encoding="utf-8"))
    except (OSError, ValueError, SafetensorError) as error:
        raise DataError(f"{folder}: no usable checkpoint: {error}") from error
    expected = {f"module|{name}" for name, _ in _named_tensors(modules)}
    found = {name for name in tensors if name.startswith("module|")}
    if expected != found:
        differing = sorted(expected ^ found)[0].removeprefix("module|")
        raise DataError(f"{folder}: is of another model or space; they differ in {differing!r}")
    for name, tensor in _named_tensors(modules):
        tensor.copy_(tensors[f"module|{name}"])
    _load_moments(trainer, modules, tensors)
    for name, order in trainer.bench.row_orders().items():
        order.load_state(tensors[f"rows|{name}"])
    device = next(iter(modules["body"].parameters())).device
    trainer.bench.dev_head.load_state_dict(
        {
            name.removeprefix("dev-head|"): t.to(device)
            for name, t in tensors.items()
            if name.startswith("dev-head|")
        }
    )
    for name, generator in _generators(trainer).items():
        generator.set_state(tensors[f"generator|{name}"])
    device_states = [t for name, t in tensors.items() if name.startswith("generator|device-")]
    if device_states and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(device_states)
    trainer.bench.steps = rest["steps"]
    trainer.clock.seconds = clock["seconds"]
    trainer.bench.numbers.load_state_dict(rest["numbers"])
    trainer.bench.scale.load_state_dict(rest["scale"])
    for name, stream in trainer.bench.streams().items():
        stream.load_state_dict(rest["streams"][name])
    if rest["rows_at_once"] is not None:
        trainer.bench.limit_rows(rest["rows_at_once"])
    _load_schedule(trainer, rest["schedule"])
    trainer.weighter.load_state_dict(rest["weighter"])
    trainer.bench.held_signals.load_state_dict(rest["held_signals"])
    progress = trainer.progress
    progress.best_step = rest["progress"]["best_step"]
    progress.best_score = rest["progress"]["best_score"]
    progress.evaluations_since_best = rest["progress"]["evaluations_since_best"]
    progress.best_state = {
        name.removeprefix("best|"): t for name, t in tensors.items() if name.startswith("best|")
    }


def _named_tensors(modules: Mapping[str, nn.Module]) -> Iterator[tuple[str, Tensor]]:
    """Every parameter and buffer once, under the first name it has: tied weights are one tensor."""
    seen: set[int] = set()
    for module_name, module in modules.items():
        for name, tensor in module.state_dict(keep_vars=True).items():
            if id(tensor) not in seen:
                seen.add(id(tensor))
                yield f"{module_name}|{name}", tensor


def _moments(trainer: Trainer, modules: Mapping[str, nn.Module]) -> Iterator[tuple[str, Tensor]]:
    """AdamW's moments by parameter name; parameters that have had no gradient have none."""
    state = trainer.bench.optimization.optimizer.state
    for name, tensor in _named_tensors(modules):
        if tensor in state:
            for moment in _MOMENTS:
                yield f"{name}|{moment}", state[tensor][moment]


def _load_moments(
    trainer: Trainer, modules: Mapping[str, nn.Module], tensors: Mapping[str, Tensor]
) -> None:
    state = trainer.bench.optimization.optimizer.state
    state.clear()
    for name, tensor in _named_tensors(modules):
        if f"optimizer|{name}|step" in tensors:
            state[tensor] = {
                moment: tensors[f"optimizer|{name}|{moment}"].to(
                    tensor.device if moment != "step" else "cpu"
                )
                for moment in _MOMENTS
            }


def _load_schedule(trainer: Trainer, state: Mapping[str, Any]) -> None:
    """The schedule's own state, and the rates that it has set in the optimiser."""
    optimization = trainer.bench.optimization
    optimization.schedule.load_state_dict(dict(state))
    rates = optimization.schedule.get_last_lr()
    for group, rate in zip(optimization.optimizer.param_groups, rates, strict=True):
        group["lr"] = rate


def _generators(trainer: Trainer) -> dict[str, torch.Generator]:
    return {"bench": trainer.bench.generator, "torch": torch.default_generator}


def _plain(value: Any) -> Any:
    """JSON for what schedules keep besides numbers."""
    if isinstance(value, Tensor):
        return value.tolist()
    raise TypeError(f"a checkpoint's JSON part cannot hold a {type(value).__name__}")
