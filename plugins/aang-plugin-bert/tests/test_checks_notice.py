"""The shared checks fail on primitives that are nearly right.

A check that nothing can fail protects nobody, so each promise is broken here once.
"""

import random
from collections.abc import Callable, Mapping

import pytest
import torch
from aang_plugin_bert.bidirectional import Bidirectional
from aang_plugin_bert.denoise import Denoise
from aang_plugin_bert.mask import Mask
from aang_testing import check_output, check_representation, check_transform
from torch import Generator, Tensor, nn
from torch.nn.functional import cross_entropy

from aang_core import (
    CorruptedRows,
    Corruption,
    EmbeddedRows,
    HeadBuilder,
    Output,
    Representation,
    RowLosses,
    Transform,
    Vocabulary,
)

torch.set_num_threads(1)


def in_place(
    ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
) -> Corruption:
    selected = Mask()(ids, ordinary, vocabulary, generator).selected
    ids[selected] = vocabulary.mask_id
    return Corruption(ids, selected)


def global_randomness(
    ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
) -> Corruption:
    return Mask()(ids, torch.rand(ids.shape) < 0.5, vocabulary, generator)


class OwnGenerator:
    """Goes on where it left off."""

    def __init__(self) -> None:
        self.generator = Generator().manual_seed(0)

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
    ) -> Corruption:
        return Mask(0.9)(ids, ordinary, vocabulary, self.generator)


def padding_too(
    ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
) -> Corruption:
    return Mask()(ids, torch.ones_like(ordinary), vocabulary, generator)


def shifted(
    ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
) -> Corruption:
    selected = Mask()(ids, ordinary, vocabulary, generator).selected
    return Corruption(ids.roll(1, dims=1), selected)


def floats(
    ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
) -> Corruption:
    corrupted, selected, *_ = Mask()(ids, ordinary, vocabulary, generator)
    return Corruption(corrupted, selected.float())


def unknown_ids(
    ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
) -> Corruption:
    selected = Mask()(ids, ordinary, vocabulary, generator).selected
    return Corruption(ids.masked_fill(selected, vocabulary.size), selected)


def nothing(
    ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
) -> Corruption:
    return Corruption(ids, torch.zeros_like(ordinary))


def without_specials(
    ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
) -> Corruption:
    return Corruption(ids, ordinary, real=ordinary)


def backwards(
    ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
) -> Corruption:
    origin = torch.arange(ids.shape[1]).flip(0).expand_as(ids)
    return Corruption(ids.gather(1, origin), ordinary.gather(1, origin), origin=origin)


def selects_deleted(
    ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
) -> Corruption:
    selected = Mask()(ids, ordinary, vocabulary, generator).selected
    return Corruption(ids, selected, real=~selected)


def from_beyond(
    ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
) -> Corruption:
    return Corruption(ids, ordinary, origin=torch.full_like(ids, ids.shape[1]))


def special_as_text(
    ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
) -> Corruption:
    return Corruption(ids.clamp(min=5), ordinary, real=torch.ones_like(ordinary))


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (in_place, "its input ids: expected left as it was, got changed in place"),
        (global_randomness, "draws from the generator that is passed in alone"),
        (OwnGenerator(), "a second call with a generator of the same seed"),
        (padding_too, "selected: expected ordinary tokens alone"),
        (shifted, "special tokens and padding: expected left as they are"),
        (floats, r"selected: expected a tensor \[B, T\] = .* of bool"),
        (unknown_ids, "ids: expected token ids from 0 to 39, got 40"),
        (nothing, "selected of 4,000 ordinary tokens: expected some, got none"),
        (without_specials, "special tokens: expected all, in their order, from"),
        (backwards, "the first one at the beginning, got those from"),
        (selects_deleted, "selected: expected tokens that are left"),
        (from_beyond, "origin: expected places from 0 to 63, or -1 for an inserted token, got 64"),
        (special_as_text, "special tokens: expected left as they are"),
    ],
)
def test_a_transform_that_breaks_a_promise(transform: Transform, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_transform(transform)


def test_a_transform_that_moves_tokens_does_not_leave_the_input_unchanged() -> None:
    def says_so(
        ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
    ) -> Corruption:
        return Corruption(ids, ordinary, real=torch.ones_like(ordinary))

    check_transform(says_so)
    with pytest.raises(AssertionError, match="unchanged-input: expected every token where it was"):
        check_transform(says_so, provides=("unchanged-input",))


class Noisy(Mask):
    """Its noise is what ``make`` makes of the rows."""

    def __init__(self, make: Callable[[EmbeddedRows, Generator], Tensor]) -> None:
        super().__init__()
        self.noise = make


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (lambda rows, generator: torch.randn(rows.embeddings.shape), "the noise"),
        (lambda rows, generator: rows.normal(generator)[:, :, 0], r"noise: expected a tensor \[B"),
        (lambda rows, generator: rows.normal(generator) / 0, "noise: expected finite numbers"),
        (lambda rows, generator: rows.embeddings.add_(1), "input embeddings"),
    ],
)
def test_noise_that_breaks_a_promise(
    noise: Callable[[EmbeddedRows, Generator], Tensor], message: str
) -> None:
    provides = ("masks-tokens", "noises-embeddings")
    check_transform(Noisy(lambda rows, generator: rows.normal(generator)), provides)
    with pytest.raises(AssertionError, match=message):
        check_transform(Noisy(noise), provides)
    with pytest.raises(AssertionError, match="trait noises-embeddings"):
        check_transform(Mask(), provides)


def test_a_transform_that_does_not_do_what_it_provides() -> None:
    with pytest.raises(AssertionError, match="trait replaces-tokens"):
        check_transform(Mask(), provides=("replaces-tokens",))
    with pytest.raises(AssertionError, match="trait masks-tokens"):
        check_transform(
            lambda ids, ordinary, vocabulary, generator: Corruption(
                ids, Mask()(ids, ordinary, vocabulary, generator).selected
            ),
            provides=("masks-tokens",),
        )


def everything(real: Tensor, generator: Generator) -> Tensor:
    return torch.ones((*real.shape, real.shape[1]), dtype=torch.bool)


def strictly_before(real: Tensor, generator: Generator) -> Tensor:
    return Bidirectional()(real, generator).tril(diagonal=-1)


def random_side(real: Tensor, generator: Generator) -> Tensor:
    sees = Bidirectional()(real, generator)
    return sees.tril() if torch.rand((), generator=generator) < 0.5 else sees.triu()


@pytest.mark.parametrize(
    ("representation", "provides", "message"),
    [
        (everything, (), "padding: expected seen by nobody"),
        (strictly_before, (), "a real token: expected one that sees a token"),
        (lambda real, generator: real, (), "who sees whom: expected a tensor"),
        (Bidirectional(), ("directional",), "trait directional"),
        (random_side, ("directional",), "trait directional"),
        (random_side, ("sentence-representation",), "trait sentence-representation"),
    ],
)
def test_a_representation_that_breaks_a_promise(
    representation: Representation, provides: tuple[str, ...], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        check_representation(representation, provides)


class MeanPerRow(Denoise):
    """0/0 in a row without targets."""

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        sums, counts = super().losses(head, hidden, targets)
        return RowLosses(sums / counts, counts)


class WholeBatch(Denoise):
    """Every row gets the loss of all."""

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        sums, counts = super().losses(head, hidden, targets)
        return RowLosses(sums.sum().expand_as(sums) * (counts > 0), counts)


class EveryToken(Denoise):
    """Also decodes padding."""

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        return {"token": rows.original}

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        losses = cross_entropy(head(hidden).mT, targets["token"], reduction="none")
        return RowLosses(losses.sum(1), torch.full((len(hidden),), hidden.shape[1]))

    def hits(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> Tensor:
        guessed: Tensor = head(hidden).argmax(dim=2)
        return (guessed == targets["token"]).sum(dim=1)


class MoreHits(Denoise):
    """Guesses right more often than there is anything to guess."""

    def hits(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> Tensor:
        return targets["counts"] + 1


class Detached(Denoise):
    """Stops the gradient."""

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        sums, counts = super().losses(head, hidden, targets)
        return RowLosses(sums.detach(), counts)


class SharedHead(Denoise):
    """One head for all objectives."""

    def __init__(self) -> None:
        self.kept: nn.Module | None = None

    def head(self, heads: HeadBuilder) -> nn.Module:
        self.kept = self.kept or heads.language_model()
        return self.kept


class Silent(Denoise):
    """Never has a target."""

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        return {
            name: value[:0] if name != "counts" else value * 0
            for name, value in super().targets(rows).items()
        }


class Noise(Denoise):
    """Adds noise that no checkpoint knows of."""

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        return super().losses(head, hidden * random.uniform(0.9, 1.1), targets)


class MeanOfBatch(Denoise):
    """Rows count less in a larger batch."""

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        sums, counts = super().losses(head, hidden, targets)
        return RowLosses(sums / len(sums), counts)


class Marks(Denoise):
    """Writes into its input."""

    def targets(self, rows: CorruptedRows) -> Mapping[str, Tensor]:
        rows.selected.fill_(True)
        return super().targets(rows)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (MeanPerRow(), "sums of losses: expected finite numbers"),
        (WholeBatch(), "dependent on its own hidden states only"),
        (EveryToken(), "gradient at padding: expected zero"),
        (MoreHits(), "counts of hits: expected 0 to the targets"),
        (Detached(), "sums of losses: expected a gradient by the hidden states"),
        (SharedHead(), "a second call of head: expected a new module"),
        (Noise(), "draws from torch's generator alone, got a draw from the global state of random"),
        (MeanOfBatch(), "loss and count of a row: expected the same alone as in a batch"),
        (Silent(), "targets in some fifty batches: expected some, got none"),
        (Marks(), "its input selected: expected left as it was"),
    ],
)
def test_an_output_that_breaks_a_promise(output: Output, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_output(output)
