"""Damages valid files: the n-th input of a seed is always the same."""

import copy
import gzip
import json
import random
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any

import yaml

_BYTES = (
    rb"\x00 \x1b[2J \x1b]0;x\x07 \x9b \r \r\n \n\n \t \xff \xfe \xef\xbb\xbf \xff\xfe \xfe\xff "
    rb"\xff\xfe\x00\x00 \x1f\x8b | >-\n --- \n...\n %YAML\x209.9\n \x20 -\x20 ?\x20 :\x20 \\ "
)
_TEXTS = (
    "PAR1 { } [ ] , : \" ' # @ ` = &a *a <<:*a ~ null true false 0 -0 -1 NaN Infinity -Infinity "
    "1e999 1e-999 2001-01-01 1:30:00 !!python/object/apply:os.system !!binary !!timestamp \\ud800 "
    "\\u0000 \\u001b[31m ../ ../../etc/passwd /etc/passwd C:\\ .yaml $(id) %s%n {0} [red] <script> "
    "text label set train seed out space task factored.lr \u202e \u2028 \u200b \u200d é 😀 א ﷺ"
)
TOKENS: tuple[bytes, ...] = (
    *(token.decode("unicode_escape").encode("latin-1") for token in _BYTES.split()),
    *(token.encode() for token in _TEXTS.split(" ")),
    *(b"9" * 30, b"9" * 5000, b"0x" + b"f" * 4000, b"a" * 70_000, b"[" * 2000, b'{"a":' * 2000),
)
"""Tokens that readers and parsers have rules for, or that once broke one."""

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**63, 10**400, 0.5, 1e300, float("nan"), float("inf"), -0.0),
    *("", " ", "\x00", "\x1b[31m", "\u202e", "\u200b", "../x", "/etc/passwd", "a" * 70_000, "1.0"),
    *("\ud800", "text", "nan", [], {}, [[]], [None], {"": None}, {"a": {"b": [1]}}, [{}] * 50),
)


class Mutator:
    """Makes inputs for one target.

    seeds: valid files. kind: what they are made of, for changes that keep the form: ``bytes``,
        ``json`` (lines or one document), ``yaml``, ``parquet``; ``values`` is JSON that always
        keeps its form. ``gz`` packs what it changes.
    """

    def __init__(self, name: str, seeds: Sequence[bytes], kind: str, *, gz: bool = False) -> None:
        self._name = name
        self._seeds = list(seeds)
        self._kind = kind
        self._gz = gz

    def make(self, seed: int, index: int) -> bytes:
        """Input number ``index`` of the sequence for ``seed``."""
        draw = random.Random(f"{self._name}/{seed}/{index}")
        content = draw.choice(self._seeds)
        if self._kind == "values":
            return _changed_json(content, draw)
        if self._kind != "bytes" and draw.random() < 0.5:
            content = self._changed(content, draw)
        for _ in range(draw.choice((0, 1, 1, 2, 4, 8))):
            content = draw.choice(_CHANGES)(content, draw, self._seeds)
        if self._gz:
            content = gzip.compress(content, mtime=0)
            if draw.random() < 0.2:
                content = draw.choice(_CHANGES)(content, draw, self._seeds)
        return content

    def _changed(self, content: bytes, draw: random.Random) -> bytes:
        """Values replaced, moved, doubled and removed, in a file that can still be parsed."""
        if self._kind == "json":
            return _changed_json(content, draw)
        if self._kind == "yaml":
            value = yaml.load(content, yaml.CSafeLoader)
            for _ in range(draw.choice((1, 1, 2, 5))):
                value = change(value, draw)
            return json.dumps(value, default=str).encode()  # which is YAML too
        return _changed_parquet(content, draw)


def change(value: Any, draw: random.Random) -> Any:
    """A copy of nested lists and mappings with one place changed."""
    value = copy.deepcopy(value)
    places = list(_places(value))
    if not places:
        return draw.choice(VALUES)
    holder, key = draw.choice(places)
    match draw.randrange(5):
        case 0 | 1:
            holder[key] = copy.deepcopy(draw.choice(VALUES))
        case 2:
            del holder[key]
        case 3:
            other, name = draw.choice(places)
            holder[key] = copy.deepcopy(other[name])
        case _ if isinstance(holder, dict):
            new = draw.choice([draw.choice(VALUES), "text", "label", f"{key}x", 7])
            holder[new if isinstance(new, str | int | None) else str(new)] = holder.pop(key)
        case _:
            holder.insert(key, copy.deepcopy(holder[key]))
    return value


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in the value: its container, and its key there."""
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    return [place for key in keys for place in ((value, key), *_places(value[key]))]


def _changed_json(content: bytes, draw: random.Random) -> bytes:
    name, newline, rest = b"", b"", content
    if content[:1] not in b"{[":  # the name of the file comes first
        name, newline, rest = content.partition(b"\n")
    lines = rest.strip().split(b"\n")
    try:
        values = [json.loads(line) for line in lines]
        whole = False
    except ValueError:
        values, whole = [json.loads(rest)], True
    for _ in range(draw.choice((1, 1, 2, 5))):
        values = change(values, draw)
        if not isinstance(values, list):
            values = [values]
    dumped = [json.dumps(value, indent=1 if whole else None) for value in values]
    return name + newline + "\n".join(dumped).encode()


def _changed_parquet(content: bytes, draw: random.Random) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    values = parquet.read_table(BytesIO(content)).to_pylist()
    for _ in range(draw.choice((1, 2, 5))):
        values = change(values, draw)
    try:
        table = pa.Table.from_pylist(values)
        file = BytesIO()
        parquet.write_table(table, file)
    except (pa.ArrowException, ValueError, TypeError, AttributeError, OverflowError):
        return content  # no Parquet file can hold that
    return file.getvalue()


Change = Callable[[bytes, random.Random, Sequence[bytes]], bytes]


def _span(content: bytes, draw: random.Random) -> tuple[int, int]:
    start = draw.randrange(len(content) + 1)
    return start, min(len(content), start + draw.choice((1, 1, 2, 8, 40, 400)))


def _flip(content: bytes, draw: random.Random, seeds: Sequence[bytes]) -> bytes:
    if not content:
        return content
    place = draw.randrange(len(content))
    changed = content[place] ^ (1 << draw.randrange(8))
    return content[:place] + bytes([changed]) + content[place + 1 :]


def _random(content: bytes, draw: random.Random, seeds: Sequence[bytes]) -> bytes:
    start, end = _span(content, draw)
    return content[:start] + draw.randbytes(draw.randrange(9)) + content[end:]


def _cut(content: bytes, draw: random.Random, seeds: Sequence[bytes]) -> bytes:
    return content[: draw.randrange(len(content) + 1)]


def _remove(content: bytes, draw: random.Random, seeds: Sequence[bytes]) -> bytes:
    start, end = _span(content, draw)
    return content[:start] + content[end:]


def _double(content: bytes, draw: random.Random, seeds: Sequence[bytes]) -> bytes:
    start, end = _span(content, draw)
    return content[:end] + content[start:end] * draw.choice((1, 1, 3, 50)) + content[end:]


def _splice(content: bytes, draw: random.Random, seeds: Sequence[bytes]) -> bytes:
    other = draw.choice(seeds)
    return content[: draw.randrange(len(content) + 1)] + other[draw.randrange(len(other) + 1) :]


def _token(content: bytes, draw: random.Random, seeds: Sequence[bytes]) -> bytes:
    start, end = _span(content, draw)
    end = draw.choice((start, end))
    return content[:start] + draw.choice(TOKENS) + content[end:]


def _lines(content: bytes, draw: random.Random, seeds: Sequence[bytes]) -> bytes:
    lines = content.split(b"\n")
    draw.shuffle(lines)
    return b"\n".join(lines)


_CHANGES: tuple[Change, ...] = (
    *(_flip, _flip, _random, _cut, _remove, _double, _splice, _token, _token, _token, _lines),
)
