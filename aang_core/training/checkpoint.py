"""A checkpoint: everything that training needs to go on as if it had not been interrupted."""

import json
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from aang_core.errors import DataError
from aang_core.processes import Processes
from aang_core.training.interruption import Interrupted, Interruption
from aang_core.training.trainer import Trainer

TENSORS = "state.safetensors"
REST = "state.json"
_MOMENTS = ("exp_avg", "exp_avg_sq", "step")


def save_checkpoint(folder: Path, trainer: Trainer, modules: Mapping[str, nn.Module]) -> None:
    """Write ``folder`` anew: tensors as safetensors, the rest as JSON, nothing pickled.

    modules: the body and every task's head, by name.
    """
    bench, progress = trainer.bench, trainer.progress
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
        "weighter": trainer.weighter.state_dict(),
        "schedule": bench.optimization.schedule.state_dict(),
        "progress": {
            "best_step": progress.best_step,
            "best_score": progress.best_score,
            "evaluations_since_best": progress.evaluations_since_best,
        },
    }
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    save_file({name: t.contiguous().cpu() for name, t in tensors.items()}, temporary / TENSORS)
    (temporary / REST).write_text(json.dumps(rest, default=_plain), encoding="utf-8")
    # A folder cannot replace one that has files in it; the old one makes way, and is there until
    # the new one is.
    before = _before(folder)
    if folder.exists():
        shutil.rmtree(before, ignore_errors=True)
        folder.rename(before)
    temporary.rename(folder)
    shutil.rmtree(before, ignore_errors=True)


def find_checkpoint(folder: Path) -> Path | None:
    """The checkpoint ``folder``, or the one that was making way when writing it was interrupted."""
    return next((f for f in (folder, _before(folder)) if (f / REST).is_file()), None)


def _before(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.before")


class Checkpointer:
    """Saves a trainer between rounds, at most once in so many seconds, and when asked to stop.

    When it saves depends on the clock; what training comes to does not depend on it. Of several
    processes, which all hold the same, the first one saves.
    """

    def __init__(
        self,
        folder: Path,
        modules: Mapping[str, nn.Module],
        seconds: float,
        interruption: Interruption,
        processes: Processes,
    ) -> None:
        self._folder = folder
        self._modules = modules
        self._seconds = seconds
        self._interruption = interruption
        self._processes = processes
        self._last = time.monotonic()

    def __call__(self, trainer: Trainer) -> None:
        """Save if it is time.

        Raises:
            Interrupted: a signal has asked to stop; the checkpoint is written.
        """
        number = self._processes.largest(self._interruption.number or 0)
        if number:
            self._save(trainer)
            raise Interrupted(number, trainer.bench.steps)
        if time.monotonic() - self._last >= self._seconds:
            self._save(trainer)
            self._last = time.monotonic()

    def _save(self, trainer: Trainer) -> None:
        if self._processes.first:
            save_checkpoint(self._folder, trainer, self._modules)


@torch.no_grad()
def load_checkpoint(folder: Path, trainer: Trainer, modules: Mapping[str, nn.Module]) -> None:
    """Put a freshly built trainer into the state that ``folder`` holds.

    Raises:
        DataError: there is no checkpoint, or it belongs to another model or space.
    """
    try:
        tensors = load_file(folder / TENSORS)
        rest = json.loads((folder / REST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
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
    _load_schedule(trainer, rest["schedule"])
    trainer.weighter.load_state_dict(rest["weighter"])
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
