"""Texts that share eight words in a row with what is held out."""

import random

import pytest
from aang_plugin_s2orc.domain.overlap import WORDS, Overlap
from hypothesis import given
from hypothesis import strategies as st

WORD = st.text(st.characters(categories=("Ll", "Lu", "Nd")), min_size=1, max_size=6)
GAP = st.sampled_from([" ", ", ", " — ", "\n", " ( "])


@given(
    st.lists(WORD, min_size=WORDS, max_size=20),
    st.lists(WORD, max_size=30),
    st.lists(WORD, max_size=30),
    GAP,
    st.data(),
)
def test_planted_words_are_found(
    held_out: list[str], before: list[str], after: list[str], gap: str, data: st.DataObject
) -> None:
    """Anywhere in the text, with anything between the words, and in any case."""
    start = data.draw(st.integers(0, len(held_out) - WORDS))
    shared = [word.upper() for word in held_out[start : start + WORDS]]
    # Upper case of ŉ or ß is another word than the lower case; such a word is planted as it is.
    planted = [
        u if u.casefold() == w.casefold() else w
        for u, w in zip(shared, held_out[start : start + WORDS], strict=True)
    ]
    assert Overlap([" ".join(held_out)])(gap.join([*before, *planted, *after]))


def test_none_of_a_thousand_is_missed() -> None:
    """And of as many texts that share seven words in a row, none is taken for one."""
    rng = random.Random(0)
    vocabulary = [f"word{i}" for i in range(5000)]
    held_out = [rng.choices(vocabulary, k=rng.randint(8, 40)) for _ in range(1000)]
    overlap = Overlap(" ".join(words) for words in held_out)
    for words in held_out:
        start = rng.randint(0, len(words) - WORDS)
        filler = [f"filler{rng.random()}" for _ in range(60)]
        place = rng.randint(0, 60)
        shared = words[start : start + WORDS]
        assert overlap(" ".join([*filler[:place], *shared, *filler[place:]]))
        assert not overlap(" ".join([*filler[:place], *shared[:-1], "other", *filler[place:]]))


@pytest.mark.parametrize(
    ("held_out", "text"),
    [
        ("我们提出一种新的句法分析方法。", "摘要：我们提出一种新的句法分析模型"),
        ("新しい構文解析の手法を提案する。", "本稿は新しい構文解析の手法である"),
        ("เราเสนอวิธีใหม่ในการวิเคราะห์", "ในบทความนี้เราเสนอวิธีใหม่"),
    ],
    ids=["Chinese", "Japanese", "Thai"],
)
def test_characters_are_words_where_no_spaces_are_written(held_out: str, text: str) -> None:
    assert Overlap([held_out])(text)
    assert not Overlap([held_out])(text[::2])


def test_combining_marks_do_not_split_words() -> None:
    """Three words, which a plain pattern splits into more than eight."""
    assert not Overlap(["हिन्दी में विश्लेषण की नई विधि और उसके परिणाम"])("यह हिन्दी में विश्लेषण है")


@pytest.mark.parametrize(
    ("text", "found"),
    [("Only four words here.", True), ("only four words", False), ("", False), ("...", False)],
)
def test_a_short_text_counts_as_a_whole(text: str, found: bool) -> None:
    assert Overlap(["only FOUR words here", ""])(text) is found
