"""What this plug-in registers."""

from aang_core import RegisterPrimitive, hookimpl


@hookimpl
def aang_register_data(register: RegisterPrimitive) -> None:
    """The data that every run has."""
    register(
        "task",
        "the end task's own training text, with its labels",
        "aang_plugin_task.data:TaskData",
        provides=("text", "labels:end-task"),
    )


@hookimpl
def aang_register_outputs(register: RegisterPrimitive) -> None:
    """Supervision as an objective: the family O = E_O of AANG, section 3."""
    register(
        "end-task",
        "predict the end task's own label from the corrupted input",
        "aang_plugin_task.end_task:EndTask",
        requires=("labels:end-task", "sentence-representation"),
    )
