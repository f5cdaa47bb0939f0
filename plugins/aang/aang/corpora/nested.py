"""Values in nested lists and mappings, as JSON and YAML hold them."""

from collections.abc import Iterator, Mapping


def leaves(value: object, *, keys: bool = False) -> Iterator[object]:
    """Yield whatever is no list, tuple or mapping.

    Args:
        value: nested lists, tuples and mappings, or a single value.
        keys: whether to yield the keys of mappings, too.

    Examples:
        >>> list(leaves({"a": [1, {"b": 2}]}))
        [1, 2]
        >>> list(leaves({"a": [1, {"b": 2}]}, keys=True))
        ['a', 1, 'b', 2]
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            if keys:
                yield from leaves(key, keys=keys)
            yield from leaves(item, keys=keys)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item, keys=keys)
    else:
        yield value
