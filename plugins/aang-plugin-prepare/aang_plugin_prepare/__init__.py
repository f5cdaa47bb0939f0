"""Further training of an encoder on unlabelled text: ``aang prepare-encoder``."""
