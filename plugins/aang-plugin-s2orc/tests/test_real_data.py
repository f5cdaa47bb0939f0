"""Published corpora, read whole; skipped where they are not beside the repository."""

from pathlib import Path
from typing import Any

import pytest
from aang_plugin_s2orc.source import S2orc

from aang_core import DataContext, DataError


@pytest.fixture(scope="module")
def real_data() -> Path:
    folder = Path(__file__).resolve().parents[4] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"{folder} does not exist")
    return folder


def read(*places: Path, **options: Any) -> tuple[int, int, dict[str, int]]:
    """Number of texts and of characters, and what was counted."""
    context = DataContext(train=(), domain=places)
    texts = characters = 0
    for example in S2orc(**options).examples(context):
        texts += 1
        characters += len(example.text)
    return texts, characters, dict(context.report.counts)


@pytest.mark.parametrize("options", [{}, {"field": "computer science"}])
def test_papers_of_the_acl_anthology(real_data: Path, options: dict[str, str]) -> None:
    texts, characters, counts = read(real_data / "cs-papers", **options)
    assert texts == 38_285
    assert characters == 26_537_786
    assert counts == {}


def test_papers_whose_parses_are_not_at_hand(real_data: Path) -> None:
    # 24 of the 915 papers have no abstract and give their title.
    assert read(real_data / "cs-papers" / "metadata", min_length=0)[0] == 915


def test_a_sample_of_the_metadata_of_s2orc(real_data: Path) -> None:
    sample = real_data / "s2orc-sample"
    assert read(sample, min_length=0)[0] == 1000
    assert read(sample)[0] == 996
    assert read(sample, field="Computer Science")[0] == 65
    with pytest.raises(DataError, match=r"Medicine \(217\), Physics \(187\), Biology \(120\)"):
        read(sample, field="Wizardry")


def test_in_domain_lines_are_left_as_noisy_as_they_are(real_data: Path) -> None:
    assert read(real_data / "s2orc-domain" / "acl-arc.1x.txt", min_length=0)[0] == 1659
    assert read(real_data / "s2orc-domain" / "*.txt")[0] == 4714


def test_all_kinds_together_in_one_order(real_data: Path) -> None:
    places = [real_data / name for name in ("cs-papers", "s2orc-sample", "s2orc-domain")]

    def first(order: list[Path]) -> list[str]:
        examples = S2orc(limit=45_000).examples(DataContext(train=(), domain=order))
        return [example.text for example in examples]

    texts = first(places)
    assert len(texts) == 38_285 + 4_714 + 996
    assert first(places[::-1]) == texts
