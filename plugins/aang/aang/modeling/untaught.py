"""Encoders that come without a language-model head."""

import shlex
from collections.abc import Sequence

from torch import nn

from aang.modeling import TextModel
from aang.modeling.heads import LanguageModelHead


def untaught_heads(
    model: TextModel, heads: Sequence[nn.Module], encoder: str, domain: Sequence[str]
) -> str | None:
    """A sentence about the missing language-model head and how to train one; None if there is one.

    Args:
        model: the encoder.
        heads: of all objectives.
        encoder: the encoder as the user named it.
        domain: the user's in-domain text, if any.
    """
    if not model.fresh_language_model:
        return None
    untaught = [h for h in heads if any(isinstance(m, LanguageModelHead) for m in h.modules())]
    why = (
        f"so {len(untaught)} of {len(heads)} objectives begin with an untrained one and teach the "
        "encoder little; prepare it first"
        if untaught
        else "and may not have read text of your field; preparing it first may help"
    )
    text = [*domain] or ["FILE"]
    command = ["aang", "prepare-encoder", encoder, "--text", text[0]]
    command += [part for other in text[1:] for part in ("--text", other)]
    return (
        f"{encoder} has no language-model head, {why}: "
        f"{shlex.join([*command, '--out', 'prepared-encoder'])}"
    )
