"""Lists written into cells of text, as pandas and ``json.dumps`` write them."""

import ast
import json
import re
import warnings
from io import StringIO
from itertools import pairwise
from tokenize import NL, STRING, generate_tokens

_QUOTES_MEET = re.compile(r"['\"]\s*[uU]?['\"]")


def list_in(text: str) -> list[object] | None:
    """The list that a text spells in the notation of JSON or Python; None if it spells none.

    Nothing is evaluated but literals, and tuples become lists.

    Examples:
        >>> from aang.task_types.written_lists import list_i
        >>> list_in('["sport", "news"]'), list_in("['sport']"), list_in("[sport]")
        (['sport', 'news'], ['sport'], None)
    """
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        return _lists(json.loads(text))
    except (ValueError, RecursionError):  # not JSON, or half a surrogate pair
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of escapes that Python does not know
            found = ast.literal_eval(text)
        # As numpy writes ['a' 'b'], which Python reads as ['ab'].
        if _QUOTES_MEET.search(text) and _strings_meet(text):
            return None
        return _lists(found) if isinstance(found, list) else None
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


def _strings_meet(text: str) -> bool:
    kinds = [t.type for t in generate_tokens(StringIO(text).readline) if t.type != NL]
    return (STRING, STRING) in pairwise(kinds)


def _lists(value: list[object]) -> list[object]:
    """The list with lists in place of tuples.

    Raises:
        UnicodeEncodeError: a text holds half a surrogate pair, which no model can read.
    """
    return [_plain(part) for part in value]


def _plain(value: object) -> object:
    match value:
        case str():
            value.encode()
        case list() | tuple():
            return _lists(list(value))
        case dict():
            return {_plain(key): _plain(part) for key, part in value.items()}
    return value
