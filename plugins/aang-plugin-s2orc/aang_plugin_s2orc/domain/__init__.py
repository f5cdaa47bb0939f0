"""Drawing in-domain text for a task from a source, without text that the task is tested on."""
