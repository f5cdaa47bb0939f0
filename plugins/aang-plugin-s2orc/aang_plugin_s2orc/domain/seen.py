"""Recognising repeated texts, in two bytes per text and without keeping any text."""

import hashlib

_PROBES = 6
_BITS_PER_TEXT = 16


class Seen:
    """Bloom filters (Bloom, 1970) over texts; when one is full, one of twice the size is added.

    A text that came before is always recognised. A new text is mistaken for a known one with a
    chance of at most 0.1% per filter (Almeida et al., Scalable Bloom Filters, 2007).

    Args:
        bits: size of the first filter. 2²⁸ bits, 32 MiB, hold 16.8 million texts. Four more
            filters need 960 MiB and hold 520 million texts in all.
    """

    def __init__(self, bits: int = 2**28) -> None:
        self._tables = [bytearray(-(-bits // 8))]
        self._room = self._bits(0) // _BITS_PER_TEXT

    @property
    def nbytes(self) -> int:
        """Memory of all filters."""
        return sum(map(len, self._tables))

    def add(self, text: str) -> bool:
        """Remember ``text`` and return whether it came before."""
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        first, step = int.from_bytes(digest[:8]), int.from_bytes(digest[8:]) | 1
        hashes = [first + i * step for i in range(_PROBES)]
        if any(self._has(table, hashes) for table in self._tables):
            return True
        if not self._room:
            self._tables.append(bytearray(2 * len(self._tables[-1])))
            self._room = self._bits(-1) // _BITS_PER_TEXT
        self._room -= 1
        table, bits = self._tables[-1], self._bits(-1)
        for number in hashes:
            byte, bit = divmod(number % bits, 8)
            table[byte] |= 1 << bit
        return False

    def _bits(self, table: int) -> int:
        return 8 * len(self._tables[table])

    @staticmethod
    def _has(table: bytearray, hashes: list[int]) -> bool:
        bits = 8 * len(table)
        for number in hashes:
            byte, bit = divmod(number % bits, 8)
            if not table[byte] >> bit & 1:
                return False
        return True
