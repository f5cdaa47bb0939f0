"""Untrusted text made safe to show on a terminal."""

import re

ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""C0 and C1 controls except tab and line feed, delete, and overrides of the writing direction.

The marks U+200E, U+200F and U+061C and the joiners stay: Arabic, Hebrew and emoji need them.
"""


def printable(text: str) -> str:
    """Escape every character that a terminal acts upon, such as ``\\x1b``.

    Line feeds and tabs stay as they are, so that whole paragraphs can be passed through.
    """
    return ACTING.sub(_written_out, text)


def one_line(text: str) -> str:
    """Like :func:`printable`, but escape line breaks too, so that text cannot fake another line."""
    return printable(text.replace("\n", r"\n"))


def _written_out(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
