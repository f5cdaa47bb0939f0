"""What gradients show before and during a training: ``aang diagnose``."""
