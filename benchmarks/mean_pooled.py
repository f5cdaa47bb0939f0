"""A plug-in with the option ``--mean-pooled``, a control for ``--mean-layer``.

After the last layer, the first token becomes the mean of all tokens, which heads and contrast then
read. transformers' classifiers do not do this, so a saved model is useless outside its run.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aang_core import RegisterOption, hookimpl

if TYPE_CHECKING:
    from aang import TextModel, TrainedPart


@hookimpl
def aang_register_options(register: RegisterOption) -> None:
    """Register the option."""
    register(
        "mean_pooled",
        "read the mean of all tokens instead of the first",
        bool,
        default=False,
    )


@hookimpl
def aang_prepare_model(
    model: "TextModel", options: Mapping[str, Any], stage: str | None
) -> "TrainedPart | None":
    """Replace the first token, for the main training alone."""
    if not options["mean_pooled"] or stage is not None:
        return None
    from aang import TrainedPart

    model.body.base.register_forward_hook(_pooled, with_kwargs=True)
    return TrainedPart("the mean of all tokens is read in place of the first")


def _pooled(base: Any, given: tuple[()], inputs: Mapping[str, Any], output: Any) -> Any:
    """Hidden states ``[B, T, H]`` with another first token; masks are ``[B, T]`` on a CPU."""
    import torch

    real = inputs["attention_mask"].unsqueeze(-1)
    hidden = output.last_hidden_state
    mean = (hidden * real).sum(1, keepdim=True) / real.sum(1, keepdim=True)
    output.last_hidden_state = torch.cat([mean, hidden[:, 1:]], dim=1)
    return output
