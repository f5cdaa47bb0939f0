"""Text of strangers as it may be shown on a terminal."""

import re

ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""C0 and C1 controls but tab and line feed, delete, and what overrides the direction of writing.

The marks U+200E, U+200F and U+061C and the joiners stay: Arabic, Hebrew and emoji need them.
"""


def printable(text: str) -> str:
    """The text with everything that a terminal acts upon written out, such as ``\\x1b``.

    Line feeds and tabs stay as they are, so that whole paragraphs can be passed through.
    """
    return ACTING.sub(_written_out, text)


def one_line(text: str) -> str:
    """As :func:`printable`, with line breaks written out too: nothing can pose as a line below."""
    return printable(text.replace("\n", r"\n"))


def _written_out(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
