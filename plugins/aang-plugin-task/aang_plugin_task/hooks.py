"""What this plug-in registers."""

from pathlib import Path

from aang_core import RegisterPrimitive, RegisterSpace, hookimpl

_SPACES = Path(__file__).parent / "spaces"


@hookimpl
def aang_register_data(register: RegisterPrimitive) -> None:
    """The end task's own data, and more like it without labels."""
    register(
        "task",
        "the end task's own training text, with its labels",
        "aang_plugin_task.data:TaskData",
        provides=("text", "labels:end-task"),
    )
    register(
        "end-task-rows",
        "the rows that the end task trains on in the step, in the end task's own pass",
        "aang_plugin_task.data:EndTaskRows",
        provides=("text", "labels:end-task", "rows-of-the-step"),
        requires=("unchanged-input", "full-attention"),
    )
    register(
        "unlabelled",
        "texts like the end task's own without labels, which --unlabelled names",
        "aang_plugin_task.unlabelled:Unlabelled",
        provides=("text", "reads:unlabelled"),
    )


@hookimpl
def aang_register_outputs(register: RegisterPrimitive) -> None:
    """Supervision as an objective: AANG's family O = E_O (section 3), and other tasks' labels."""
    register(
        "end-task",
        "predict the end task's own label from the corrupted input",
        "aang_plugin_task.label:Label",
        provides=("end-task-head",),
        requires=("labels:end-task", "sentence-representation"),
    )
    register(
        "own-label",
        "predict the labels that the data brings along, such as those of an --aux-task",
        "aang_plugin_task.label:Label",
        requires=("labels:own", "sentence-representation"),
    )


@hookimpl
def aang_register_spaces(register: RegisterSpace) -> None:
    """The space for few labels and much text of the task."""
    register(
        "td+u",
        "td, and objectives over unlabelled text of the task's own kind",
        _SPACES / "td+u.yaml",
    )
