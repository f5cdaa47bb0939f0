"""The checks that every primitive of its stage keeps to."""

from typing import Any

import pytest
import torch
from aang_plugin_bert.bert_op import BertOp
from aang_plugin_bert.bidirectional import Bidirectional
from aang_plugin_bert.denoise import Denoise
from aang_plugin_bert.mask import Mask
from aang_plugin_bert.noising_embeds import NoisingEmbeds
from aang_plugin_bert.replace import Replace
from aang_testing import check_output, check_representation, check_transform

from aang_core import ConfigError

torch.set_num_threads(1)


def test_transforms_keep_the_contract() -> None:
    check_transform(Mask(), provides=("masks-tokens",))
    check_transform(Replace(), provides=("replaces-tokens",))
    check_transform(BertOp(), provides=("masks-tokens", "replaces-tokens"))
    check_transform(NoisingEmbeds(), provides=("noises-embeddings",))
    check_transform(NoisingEmbeds(adversarial=True), provides=("noises-embeddings",))


@pytest.mark.parametrize("transform", [Mask, Replace, BertOp])
def test_every_token_may_be_selected(transform: Any) -> None:
    check_transform(transform(rate=1.0))


@pytest.mark.parametrize("transform", [Mask, Replace, BertOp])
@pytest.mark.parametrize("rate", [0, -0.1, 1.1, float("nan"), "0.15", True, None])
def test_a_senseless_rate_is_refused(transform: Any, rate: Any) -> None:
    with pytest.raises(ConfigError, match="option rate"):
        transform(rate=rate)


def test_bidirectional_keeps_the_contract() -> None:
    check_representation(Bidirectional(), provides=("sentence-representation",))


def test_denoise_keeps_the_contract() -> None:
    check_output(Denoise())
    check_output(Denoise(), labelled=False)
