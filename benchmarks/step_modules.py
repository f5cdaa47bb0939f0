"""How many modules and functions of the core one step of ``factored`` calls, and how deep.

    python -m benchmarks.step_modules

One step of the demo task after the warm-up is watched with `sys.setprofile`, in the training
thread. Functions are identified by where they are defined; functions of the core that torch calls
(hooks, heads, the body) count, too. Depth is the longest chain of functions of the core on the
stack, starting with ``Weighter.round``.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import aang
import click
import torch
from aang.assembly.assembly import assemble
from aang.assembly.sources import prepare_sources
from aang.config import resolve_config
from aang.runs.training import build_trainer

import aang_core
from aang_core.plugins import load_plugins
from aang_core.training.trainer import Trainer

WARM_UP = 40
"""Steps before measuring, in which the dev head's memory fills and every primitive has its first
call, which is checked."""

RINGS = [Path(path) for ring in (aang_core, aang) for path in ring.__path__]
"""The folders of the kernel and of the application, whose functions count."""
COMPREHENSIONS = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>")
"""Code objects that are not functions."""


@dataclass(frozen=True)
class Passage:
    """The functions that a step calls.

    Attributes:
        functions: qualified names of functions of kernel and application, by module.
        depth: depth of the deepest call.
    """

    functions: Mapping[str, frozenset[str]]
    depth: int

    @property
    def count(self) -> int:
        """Number of functions."""
        return sum(len(names) for names in self.functions.values())


class Watch:
    """A profile function that records every call of a function of kernel or application."""

    def __init__(self) -> None:
        self._found: dict[str, set[str]] = {}
        self._depth = 0
        self._deepest = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event not in ("call", "return") or not _counts(frame.f_code):
            return
        if event == "return":
            self._depth -= 1
            return
        self._depth += 1
        self._deepest = max(self._deepest, self._depth)
        file = Path(frame.f_code.co_filename)
        ring = next(ring for ring in RINGS if file.is_relative_to(ring))
        module = ".".join(file.relative_to(ring.parent).with_suffix("").parts)
        self._found.setdefault(module, set()).add(frame.f_code.co_qualname)

    def passage(self) -> Passage:
        """The calls recorded so far."""
        return Passage({m: frozenset(names) for m, names in self._found.items()}, self._deepest)


def _counts(code: CodeType) -> bool:
    inside = any(Path(code.co_filename).is_relative_to(ring) for ring in RINGS)
    return inside and code.co_name not in COMPREHENSIONS


def step_of(options: Mapping[str, Any]) -> Passage:
    """The calls of a step after the warm-up, with ``options`` of ``aang train``."""
    registry = load_plugins().registry
    config = resolve_config({"steps": 1000, "precision": "fp32", **options}, {}, registry)
    torch.manual_seed(0)
    assembly = assemble(prepare_sources(config, registry))
    trainer = build_trainer(assembly, torch.device("cpu"))
    for _ in range(WARM_UP):
        _round(trainer)
    watch = Watch()
    sys.setprofile(watch)
    try:
        _round(trainer)
    finally:
        sys.setprofile(None)
    return watch.passage()


def _round(trainer: Trainer) -> None:
    trainer.weighter.round(trainer.bench)


@click.command()
@click.option("--gradients", default="stream", show_default=True)
@click.option("--space", default="td", show_default=True)
@click.option("--names", is_flag=True, help="list every function by its module")
def main(gradients: str, space: str, names: bool) -> None:
    """Print how many modules and functions of ours a step of factored calls, and how deep."""
    found = step_of({"weighter": "factored", "space": space, "gradients": gradients})
    if names:
        for module, functions in sorted(found.functions.items()):
            click.echo(f"{module} ({len(functions)}): {', '.join(sorted(functions))}")
    click.echo(f"{len(found.functions)} modules, {found.count} functions, {found.depth} deep")


if __name__ == "__main__":
    main()
