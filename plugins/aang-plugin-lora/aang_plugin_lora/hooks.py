"""The options for which part of an encoder is trained, and how they change it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aang_core import ConfigError, RegisterOption, hookimpl

if TYPE_CHECKING:
    from aang import TextModel, TrainedPart


@hookimpl
def aang_register_options(register: RegisterOption) -> None:
    """Register the options of adapters and of frozen layers."""
    register(
        "lora",
        "rank of low-rank adapters, which are trained instead of the encoder's weights",
        "aang.config:Positive",
    )
    register(
        "lora_alpha",
        "α of the adapters, which are scaled by α/rank; default: 2·rank",
        "aang.config:Positive",
        goes_with="lora",
    )
    register(
        "lora_target",
        "linear layers that get an adapter, by the end of their names, or all-linear; "
        "default: peft's choice for the architecture",
        tuple[str, ...],
        default=(),
        goes_with="lora",
    )
    register(
        "freeze_layers",
        "number of first layers to freeze, with the embeddings",
        "aang.config:Count",
    )


@hookimpl
def aang_before_training(options: Mapping[str, Any], resumed: bool) -> None:
    """Refuse to freeze random weights."""
    for option in ("lora", "freeze_layers"):
        for made in ("from_scratch", "allow_missing_weights"):
            if options[option] is not None and options[made]:
                raise ConfigError(
                    f"--{option.replace('_', '-')} {options[option]} never trains some of the "
                    f"weights, and --{made.replace('_', '-')} makes them at random; leave one of "
                    "them out"
                )


@hookimpl
def aang_prepare_model(model: "TextModel", options: Mapping[str, Any]) -> "TrainedPart | None":
    """Freeze the first layers, then put adapters on the others."""
    frozen = None
    if options["freeze_layers"] is not None:
        from aang_plugin_lora.frozen_layers import freeze_layers

        frozen = freeze_layers(model.body, options["freeze_layers"])
    if options["lora"] is None:
        return frozen
    from aang_plugin_lora.adapters import Adapters, LoraSettings

    settings = LoraSettings(options["lora"], options["lora_alpha"], options["lora_target"])
    adapters = Adapters(model.body.base, settings)
    if frozen is not None:
        adapters.said = f"{frozen.said}; {adapters.said}"
    return adapters
