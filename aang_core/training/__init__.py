"""The trainer and what it needs: workbench, rows, optimiser, evaluation and checkpoints."""
