"""What is on disk: durable writes, locks, run folders, checkpoints and YAML with line numbers."""
