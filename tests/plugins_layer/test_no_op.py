import torch

from aang_core import Vocabulary, load_plugins

VOCABULARY = Vocabulary(50, 4, torch.arange(5, 50), decode=list)


def test_no_op_leaves_the_input_and_selects_as_the_others_do() -> None:
    no_op = load_plugins(environ={}).registry.primitive("transform", "no-op").make()
    ids = torch.randint(5, 50, (200, 50), generator=torch.Generator().manual_seed(0))
    ordinary = torch.ones_like(ids, dtype=torch.bool)
    ordinary[:, 40:] = False
    before = ids.clone()
    corrupted, selected, *_ = no_op(ids, ordinary, VOCABULARY, torch.Generator().manual_seed(1))
    assert torch.equal(corrupted, before)
    assert torch.equal(ids, before)
    assert not (selected & ~ordinary).any()
    assert abs(selected[:, :40].float().mean().item() - 0.15) < 0.02


def test_no_op_draws_from_the_generator_alone() -> None:
    no_op = load_plugins(environ={}).registry.primitive("transform", "no-op").make()
    ids = torch.full((4, 30), 7)
    ordinary = torch.ones_like(ids, dtype=torch.bool)
    drawn = [
        no_op(ids, ordinary, VOCABULARY, torch.Generator().manual_seed(seed)).selected
        for seed in (3, 3, 4)
    ]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
