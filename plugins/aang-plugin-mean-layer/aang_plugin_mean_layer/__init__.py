"""``aang train --mean-layer``: a further layer whose first token begins as the mean of all tokens.

Everything is in ``hooks``, which imports torch only when a model is changed.
"""
