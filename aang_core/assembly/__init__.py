"""From configurations and plug-ins to model, rows and tasks: where the two layers meet."""
