"""Lists written into cells of text, as pandas and ``json.dumps`` write them."""

import ast
import json
import re
import warnings
from collections.abc import Sequence
from contextlib import suppress
from io import StringIO
from itertools import pairwise
from tokenize import NL, STRING, generate_tokens
from typing import Any

_QUOTES_MEET = re.compile(r"['\"]\s*[uU]?['\"]")


def list_in(text: str) -> list[object] | None:
    """The list that a text spells in the notation of JSON or Python; None if it spells none.

    Only literals are evaluated, and tuples become lists.

    Examples:
        >>> from aang.task_types.written_lists import list_in
        >>> list_in('["sport", "news"]'), list_in("['sport']"), list_in("[sport]")
        (['sport', 'news'], ['sport'], None)
    """
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    with suppress(ValueError, RecursionError):  # not JSON, or half a surrogate pair
        return _readable(json.loads(text))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # for escapes that Python does not know
            found = ast.literal_eval(text)
        # As numpy writes ['a' 'b'], which Python reads as ['ab'].
        if _QUOTES_MEET.search(text) and _strings_meet(text):
            return None
        return _readable(found) if isinstance(found, list) else None
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


def looks_like_list(text: str) -> bool:
    """Whether somebody who sees the text would take it for a list, even if it spells none.

    ``[POS]`` may well be a name.
    """
    text = text.strip()
    if not text.startswith("["):
        return False
    inner = text[1:-1]
    if text.endswith("]") and "[" not in inner and "]" not in inner:
        return any(mark in inner for mark in " \n\t,'\"")
    return text.startswith(("['", '["', "[{", "[[", "[("))


def are_lists(texts: Sequence[str]) -> bool:
    """Whether cells of text hold lists, or all look as if they did."""
    return any(list_in(text) is not None for text in texts) or (
        bool(texts) and all(looks_like_list(text) for text in texts)
    )


def list_of(cell: object) -> list[Any] | None:
    """The list that a cell holds or spells."""
    cell = plain(cell)
    if isinstance(cell, str):
        return list_in(cell)
    return cell if isinstance(cell, list) else None


def plain(cell: Any) -> Any:
    """Arrays, such as those of pandas and datasets, and tuples as lists."""
    if isinstance(cell, tuple):
        return list(cell)
    return cell.tolist() if hasattr(cell, "tolist") else cell


def _strings_meet(text: str) -> bool:
    kinds = [t.type for t in generate_tokens(StringIO(text).readline) if t.type != NL]
    return (STRING, STRING) in pairwise(kinds)


def _readable(value: list[object]) -> list[object]:
    """The list with lists in place of tuples.

    Raises:
        UnicodeEncodeError: a text holds half a surrogate pair, which no model can read.
        TypeError: it holds something that JSON does not have.
    """
    found: list[object] = json.loads(json.dumps(value, ensure_ascii=False).encode())
    return found
