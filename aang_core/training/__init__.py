"""The trainer and what it needs: rounds, optimiser, evaluation, checkpoints, the run folder."""
