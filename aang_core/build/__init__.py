"""From configurations and plug-ins to tasks that train: where the two layers meet."""
