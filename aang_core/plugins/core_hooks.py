"""The core's own plug-in: one transform, one weighter, the spaces of the AANG paper, and lists."""

from pathlib import Path

from aang_core.hookspecs import (
    RegisterCommand,
    RegisterPrimitive,
    RegisterSpace,
    RegisterTarget,
    hookimpl,
)

_SPACES = Path(__file__).parents[1] / "objectives" / "spaces"


@hookimpl
def aang_register_transforms(register: RegisterPrimitive) -> None:
    """Register ``no-op``."""
    register(
        "no-op",
        "input unchanged; 15% of the ordinary tokens are still prediction targets",
        "aang_core.objectives.stages.rows:NoOp",
        provides=("unchanged-input",),
    )


@hookimpl
def aang_register_weighters(register: RegisterPrimitive) -> None:
    """Register ``single-task``."""
    register(
        "single-task",
        "the end task alone: plain fine-tuning",
        "aang_core.tasks.weighting:SingleTask",
    )


@hookimpl
def aang_register_task_types(register: RegisterTarget) -> None:
    """Register ``single-label``."""
    register("single-label", "one class", "aang.task_types.single_label:SingleLabel")


@hookimpl
def aang_register_spaces(register: RegisterSpace) -> None:
    """Register the spaces of the paper's experiments, and the space of all primitives."""
    register("td", "objectives over the end task's own text", _SPACES / "td.yaml")
    register(
        "td-labels", "those of td that predict the end task's labels", _SPACES / "td-labels.yaml"
    )
    register("td+ed", "td, and objectives over in-domain text", _SPACES / "td+ed.yaml")
    register("x+y+z", "gpt-style, xlnet-style and bert-style together", _SPACES / "x+y+z.yaml")
    register("full", "every primitive of every standard plug-in", _SPACES / "full.yaml")


@hookimpl
def aang_register_commands(register: RegisterCommand) -> None:
    """Register the commands that show what is installed."""
    register(
        "list-primitives",
        "List the primitives of every stage, and the weighters.",
        "aang_core.cli.listings:list_primitives",
    )
    register(
        "list-objectives",
        "List all objectives, or those that have names.",
        "aang_core.cli.listings:list_objectives",
    )
    register("list-spaces", "List the spaces of objectives.", "aang_core.cli.listings:list_spaces")
    register(
        "show-space",
        "Show a space's objectives, and what was dropped and why.",
        "aang_core.cli.listings:show_space",
    )
    register(
        "plugins",
        "List the plug-ins and whether they loaded.",
        "aang_core.cli.listings:plugins",
    )
