"""What the gradients say before and during a training: `aang diagnose`."""
