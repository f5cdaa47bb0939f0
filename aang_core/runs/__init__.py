"""A run from its beginning to its end: train, pre-train, fit, resume, read and predict."""
