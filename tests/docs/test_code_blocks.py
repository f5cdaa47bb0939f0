"""Every code block of the documentation is run, or read by what would run it."""

from pathlib import Path

import click
import pytest

from aang_core import AangError
from tests.docs.code_blocks import Block, blocks, check
from tests.docs.documents import PAGES, ROOT
from tests.docs.tutorial import PAGE

pytestmark = pytest.mark.release

FOLLOWED = ("A tested objective in ten minutes", "Checks and publishing")
"""What tests/authoring/test_tutorial.py does word for word, and what needs its package."""
EXAMPLES = ROOT / "examples" / "README.md"


@pytest.mark.parametrize("page", [*PAGES, EXAMPLES], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_a_page_is_true(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, in a folder of the page's own, for a block may use the files of those before."""
    monkeypatch.chdir(tmp_path)
    wrong = []
    for block in blocks(page):
        if page == PAGE and block.section in FOLLOWED:
            continue
        try:
            check(block, tmp_path)
        except (AssertionError, AangError, click.ClickException, ValueError, SyntaxError) as error:
            wrong.append(f"{page.relative_to(ROOT)}:{block.line}: {error!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("", "aang train"),
        ("ruby", "puts 1"),
        ("bash", "aang train --no-such-option"),
        ("bash", "aang train --steps none"),
        ("bash", "aang train --steps 0"),
        ("bash", "aang trian"),
        ("bash", "curl example.org"),
        ("bash", "pip install -r no-such-file.txt"),
        ("bash", "python no_such_file.py"),
        ("bash", "python -m benchmarks.step_cost nothing"),
        ("console", "$ aang list-spaces\nname  summary\nnone  there is none"),
        ("console", "$ aang train\nstep one: dev macro-f1 0.5"),
        (
            "console",
            "$ aang train\nstep 1: dev macro-f1 50.00 · λ_e 0.50 · top task/mask/a/denoise",
        ),
        ("python", "from aang_core import nothing_of_the_kind"),
        ("python", "def broken(:"),
        ("yaml", "data: [task]\ntransform: [mask]\nrepresentation: [left]\noutput: [denoise]"),
        ("yaml", "weighter: factord"),
        ("yaml", "stepz: 3"),
        ("json", '{"step": 1,}'),
        ("json", '{"no-such-key": 1}'),
        ("text", "run\n├── no-such-file.json"),
        ("text", "aang_core/   the core\n  nowhere/   nothing"),
        ("text", "step 0: dev macro-f1 50.00 (best)\nsomething else"),
        ("text", "words without any form"),
    ],
)
def test_what_is_not_true_is_noticed(
    language: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    block = Block(tmp_path / "page.md", 1, language, text + "\n")
    with pytest.raises((AssertionError, AangError, click.ClickException, ValueError, SyntaxError)):
        check(block, tmp_path)
