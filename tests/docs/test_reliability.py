"""The page on reliability names the tests that show what it says."""

import re

from tests.docs.documents import ROOT

PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")


def test_it_names_tests() -> None:
    """That they exist is tested with those of all other pages."""
    assert len(re.findall(r"`(?:tests|plugins)/[\w/-]+\.py::\w+`", PAGE)) > 20
