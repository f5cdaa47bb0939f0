"""Which texts have come before, in memory that does not grow."""

import hashlib

import numpy

_PROBES = 4


class Seen:
    """A Bloom filter (Bloom, 1970) over texts.

    A text that came before is always known. One that did not is taken for known with a chance of
    (1 − e^(−4 n / bits))⁴ after n others: 0.4% after 20 million with 2²⁸ bits, which are 32 MiB.
    """

    def __init__(self, bits: int = 2**28) -> None:
        self._bits = bits
        self._table = numpy.zeros(-(-bits // 8), dtype=numpy.uint8)

    def add(self, text: str) -> bool:
        """Remember ``text``; whether it came before."""
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        first, step = int.from_bytes(digest[:8]), int.from_bytes(digest[8:]) | 1
        known = True
        for i in range(_PROBES):
            byte, bit = divmod((first + i * step) % self._bits, 8)
            if not self._table[byte] >> bit & 1:
                known = False
                self._table[byte] |= 1 << bit
        return known
