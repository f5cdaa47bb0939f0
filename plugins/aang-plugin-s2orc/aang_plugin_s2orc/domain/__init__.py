"""In-domain text for a task: drawn from a source, without what the task is tested on."""
