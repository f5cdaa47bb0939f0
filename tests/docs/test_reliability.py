"""The page on reliability names tests that there are."""

import ast
import re

import pytest

from tests.docs.documents import ROOT

PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`((?:tests|plugins)/[\w/-]+\.py)::(\w+)`", PAGE)


@pytest.mark.parametrize(("path", "name"), NAMED, ids=lambda part: part)
def test_every_test_that_is_named_exists(path: str, name: str) -> None:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_it_names_some() -> None:
    assert len(NAMED) > 20
