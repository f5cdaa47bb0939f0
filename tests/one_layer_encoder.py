"""The smallest encoder that trains: one layer, and a tokenizer of letters and digits.

The tokenizer matters most: a run loads it and takes its digest several times, which is slow for a
vocabulary of thousands.
"""

import string
from pathlib import Path

import torch

from benchmarks.small_task import SPECIAL, EncoderSize, write_bert

WIDTH = 16

_SIGNS = [*string.ascii_lowercase, *string.digits, *string.punctuation]


def write_one_layer_encoder(folder: Path) -> None:
    """Write a masked-LM BERT with new weights, the same ones each time, and its tokenizer."""
    pieces = [*SPECIAL, *_SIGNS, *(f"##{sign}" for sign in _SIGNS)]
    size = EncoderSize(len(pieces), WIDTH, intermediate=32, positions=64, layers=1)
    with torch.random.fork_rng():
        write_bert(folder, {piece: i for i, piece in enumerate(pieces)}, size)
