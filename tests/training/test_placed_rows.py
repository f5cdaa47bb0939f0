"""Rows after a transform that deletes, inserts or moves tokens, worked out by hand."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from aang_core import Corruption
from tests.support.data import PaddedRows
from tests.support.runs import place_rows, unchanged_where
from tests.training.conftest import Aang
from tests.training.following_text import exact_assembly

PAD, PAD_TYPE, ROOM = 9, 3, 100
# Two texts in the first row, 7 8 and 5 6; one token of text in the second.
ROWS = PaddedRows(
    ids=torch.tensor([[1, 7, 8, 2, 5, 6, 2], [1, 7, 2, PAD, PAD, PAD, PAD]]),
    real=torch.tensor([[True] * 7, [True] * 3 + [False] * 4]),
    ordinary=torch.tensor([[0, 1, 1, 0, 1, 1, 0], [0, 1, 0, 0, 0, 0, 0]], dtype=torch.bool),
    token_types=torch.tensor([[0, 0, 0, 0, 1, 1, 1], [0, 0, 0] + [PAD_TYPE] * 4]),
    labels=torch.tensor([0, 1]),
    pad_id=PAD,
    pad_type=PAD_TYPE,
)
NOTHING = torch.zeros_like(ROWS.real)
PLACE = torch.arange(7).expand(2, 7)


def rows_of(values: Tensor) -> list[list[int]]:
    return values.long().tolist()


def test_tokens_that_stay_are_handed_on_as_they_are() -> None:
    placed = place_rows(ROWS, Corruption(ROWS.ids + 1, ROWS.ordinary), ROOM)
    assert placed.before is None
    assert torch.equal(placed.rows.ids, ROWS.ids + 1)
    assert placed.original is ROWS.ids
    assert placed.rows.real is ROWS.real
    assert placed.text is ROWS.ordinary


def test_what_is_left_moves_together() -> None:
    """Without 7 and 5 in the first row. Padding is padding, though nobody says so."""
    left = torch.ones_like(ROWS.real)
    left[0, 1] = left[0, 4] = False
    selected = NOTHING.clone()
    selected[0, 5] = True
    placed = place_rows(ROWS, Corruption(ROWS.ids, selected, real=left), ROOM)
    assert rows_of(placed.rows.ids) == [[1, 8, 2, 6, 2], [1, 7, 2, PAD, PAD]]
    assert rows_of(placed.rows.real) == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    assert rows_of(placed.rows.ordinary) == [[0, 1, 0, 1, 0], [0, 1, 0, 0, 0]]
    assert rows_of(placed.selected) == [[0, 0, 0, 1, 0], [0, 0, 0, 0, 0]]
    assert placed.rows.token_types is not None
    assert rows_of(placed.rows.token_types) == [[0, 0, 0, 1, 1], [0, 0, 0, PAD_TYPE, PAD_TYPE]]
    assert placed.before is not None
    assert rows_of(placed.before.origin) == [[0, 2, 3, 5, 6], [0, 1, 2, -1, -1]]
    assert placed.before.ids is ROWS.ids


def test_what_was_there_moves_with_a_token() -> None:
    """7 and 8 change places, and 8 is masked: it is an 8 that is to be restored."""
    origin = PLACE.clone()
    origin[0, 1:3] = torch.tensor([2, 1])
    ids = ROWS.ids.gather(1, origin)
    ids[0, 1] = 4
    placed = place_rows(ROWS, Corruption(ids, NOTHING, origin=origin), ROOM)
    assert placed.rows.ids[0].tolist() == [1, 4, 7, 2, 5, 6, 2]
    assert placed.original[0].tolist() == [1, 8, 7, 2, 5, 6, 2]
    assert torch.equal(placed.rows.real, ROWS.real)


def inserted() -> Corruption:
    """A 4 after every token of text, and after the padding that takes its place."""

    def in_turn(old: Tensor, new: Tensor) -> Tensor:
        return torch.stack([old, new], dim=2).flatten(1)

    return Corruption(
        ids=in_turn(ROWS.ids, torch.full_like(ROWS.ids, 4)),
        selected=in_turn(NOTHING, NOTHING),
        real=in_turn(torch.ones_like(NOTHING), ROWS.ordinary),
        origin=in_turn(PLACE, torch.full_like(PLACE, -1)),
    )


def test_inserted_tokens_come_from_nowhere() -> None:
    placed = place_rows(ROWS, inserted(), ROOM)
    assert placed.rows.ids[0].tolist() == [1, 7, 4, 8, 4, 2, 5, 4, 6, 4, 2]
    assert placed.rows.ids[1].tolist() == [1, 7, 4, 2] + [PAD] * 7
    assert placed.original[0].tolist() == placed.rows.ids[0].tolist()
    assert placed.before is not None
    assert placed.before.origin[0].tolist() == [0, 1, -1, 2, -1, 3, 4, -1, 5, -1, 6]
    assert placed.rows.ordinary[1].long().tolist() == [0, 1, 0, 0] + [0] * 7
    assert placed.text[1].long().tolist() == [0, 1, 1, 0] + [0] * 7
    # An inserted token belongs to the text that it was inserted into.
    assert placed.rows.token_types is not None
    assert placed.rows.token_types[0].tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1]


def test_a_row_that_has_become_too_long_loses_its_last_tokens_but_no_special_one() -> None:
    placed = place_rows(ROWS, inserted(), longest=8)
    assert placed.rows.ids[0].tolist() == [1, 7, 4, 8, 4, 2, 5, 2]
    assert placed.rows.ids[1].tolist() == [1, 7, 4, 2] + [PAD] * 4


def test_a_clean_view_beside_a_longer_one() -> None:
    clean = torch.tensor([True, False])
    placed = place_rows(ROWS, unchanged_where(clean, ROWS, inserted()), ROOM)
    assert placed.rows.ids[0].tolist() == ROWS.ids[0].tolist()
    assert placed.rows.ids[1].tolist() == [1, 7, 4, 2] + [PAD] * 3
    assert placed.before is not None
    assert placed.before.origin[0].tolist() == list(range(7))


def test_a_clean_view_beside_a_shorter_one() -> None:
    """The other view may have fewer places than the row had."""
    shorter = Corruption(
        ids=ROWS.ids[:, :3],
        selected=NOTHING[:, :3],
        origin=torch.tensor([[0, 3, 6], [0, 1, 2]]),
    )
    shorter = shorter._replace(ids=ROWS.ids.gather(1, torch.tensor([[0, 3, 6], [0, 1, 2]])))
    clean = torch.tensor([False, True])
    placed = place_rows(ROWS, unchanged_where(clean, ROWS, shorter), ROOM)
    assert rows_of(placed.rows.ids) == [[1, 2, 2], [1, 7, 2]]
    assert rows_of(placed.rows.real) == [[1, 1, 1], [1, 1, 1]]


def test_riders_see_the_moved_rows_of_all_batches(options: dict[str, Any], tmp_path: Path) -> None:
    """Two batches of different lengths are joined: origin is padded by minus one."""
    _, assembly = exact_assembly(options, tmp_path)
    task = next(t for t in assembly.auxiliaries if t.name == "task/infill/bidirectional/denoise")
    long, short = task.lengths.argmax(), task.lengths.argmin()
    generator = torch.Generator().manual_seed(0)
    batches = [task.batch(torch.stack([row, row]), generator) for row in (short, long)]
    targets = task.ride(batches, generator)
    alone = [batch.targets for batch in batches]
    assert torch.equal(targets["token"], torch.cat([part["token"] for part in alone]))
    assert torch.equal(targets["counts"], torch.cat([part["counts"] for part in alone]))


def test_a_transform_that_loses_a_special_token(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    """Found in the rehearsal, before there is a run folder."""
    plugin = tmp_path / "cut.py"
    plugin.write_text(
        """
from aang_core import Corruption, hookimpl

class Cut:
    def __call__(self, ids, ordinary, vocabulary, generator):
        return Corruption(ids, ordinary, real=ordinary)

@hookimpl
def aang_register_transforms(register):
    register("cut", "special tokens are gone", Cut)
"""
    )
    run = tmp_path / "run"
    done = aang(
        *("--plugin", plugin, "train", *train_options, "--out", run),
        *("--space", "task/cut/bidirectional/denoise"),
    )
    assert done.status == 2
    assert "transform cut removes, changes or moves special tokens of a row" in done.err
    assert not run.exists()
