"""Names of the kinds of end task, and the traits that each gives to objectives."""

from typing import Literal, get_args

from aang_core.plugins.end_task_traits import EndTaskTraits

TaskTypeName = Literal["single-label", "multi-label", "regression", "token-labels"]

TASK_TYPES: tuple[TaskTypeName, ...] = get_args(TaskTypeName)

MODELS: dict[TaskTypeName, str] = {
    "single-label": "A text classifier",
    "multi-label": "A classifier of texts with any number of classes each",
    "regression": "A model that gives texts a number",
    "token-labels": "A model that tags the words of texts",
}
"""What a trained model is, for people."""

TRAITS: dict[TaskTypeName, EndTaskTraits] = {
    **{name: EndTaskTraits(name) for name in TASK_TYPES},
    # Its head reads every token, so the first one need not see the whole row.
    "token-labels": EndTaskTraits("token-labels", frozenset({"sentence-representation"})),
}
