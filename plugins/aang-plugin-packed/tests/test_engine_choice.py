"""With the plug-in, ``--gradients packed`` is there; without it, a line says what to install."""

import pytest

from aang_core import Registry, UnknownNameError, load_plugins
from tests.support.gradients import find_engine


def test_it_is_found_by_name_and_by_auto() -> None:
    registry = load_plugins(environ={}).registry
    for kind in ("packed", "auto"):
        found = find_engine(kind, registry)
        assert found is not None
        assert found.origin.distribution == "aang-plugin-packed"
    assert find_engine("stream", registry) is None


def test_without_it_auto_is_stream_and_packed_is_answered_with_what_to_install() -> None:
    registry = Registry([])
    assert find_engine("auto", registry) is None
    with pytest.raises(UnknownNameError, match="aang-plugin-packed is not installed"):
        find_engine("packed", registry)
