"""What this plug-in registers."""

from aang_core import RegisterTarget, hookimpl


@hookimpl
def aang_register_task_types(register: RegisterTarget) -> None:
    """Kinds of end task; a list of labels is first tried as labels of words."""
    register(
        "token-labels",
        "a tag for every word, or spans of words",
        "aang_plugin_task_types.token_labels:TokenLabels",
    )
    register(
        "multi-label",
        "any number of classes, or none",
        "aang_plugin_task_types.multi_label:MultiLabel",
    )
    register("regression", "one number", "aang_plugin_task_types.regression:Regression")
