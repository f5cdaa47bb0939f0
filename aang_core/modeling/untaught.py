"""Language-model heads that are untrained because the encoder came without one."""

import shlex
from collections.abc import Sequence

from torch import nn

from aang_core.modeling import TextModel
from aang_core.modeling.heads import LanguageModelHead


def untaught_heads(
    model: TextModel, heads: Sequence[nn.Module], encoder: str, domain: Sequence[str]
) -> str | None:
    """A sentence about untrained language-model heads and how to train one first; None without any.

    Args:
        model: the encoder.
        heads: of all objectives.
        encoder: the encoder as the user named it.
        domain: the user's in-domain text, if any.
    """
    untaught = [h for h in heads if any(isinstance(m, LanguageModelHead) for m in h.modules())]
    if not model.fresh_language_model or not untaught:
        return None
    text = [*domain] or ["FILE"]
    command = ["aang", "prepare-encoder", encoder, "--text", text[0]]
    command += [part for other in text[1:] for part in ("--text", other)]
    return (
        f"{encoder} has no language-model head, so {len(untaught)} of {len(heads)} objectives "
        "begin with an untrained one and teach the encoder little; prepare it first: "
        f"{shlex.join([*command, '--out', 'prepared-encoder'])}"
    )
