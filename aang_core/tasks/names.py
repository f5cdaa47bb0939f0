"""The names of tasks that every run has."""

END_TASK = "end-task"
"""The end task, in weights, logs, checkpoints and reports."""
