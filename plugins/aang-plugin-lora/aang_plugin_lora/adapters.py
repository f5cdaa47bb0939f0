"""Low-rank adapters on an encoder (LoRA: Hu et al., ICLR 2022), through peft."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from aang import TrainedPart
from aang.modeling import TransformersHead
from peft import LoraConfig, get_peft_model_state_dict
from peft.tuners.lora import LoraModel
from peft.utils import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING
from safetensors.torch import save_file
from torch import nn
from transformers import PreTrainedModel

from aang_core import ModelError

ALL_LINEAR = "all-linear"
"""The target that means every linear layer of the encoder."""


@dataclass(frozen=True)
class LoraSettings:
    """Options of the adapters.

    An adapted layer computes W·x + (α/r)·B·A·x with W fixed. A starts at random and B at zero, so
    that the encoder starts unchanged (Hu et al., section 4.1).

    Attributes:
        rank: r, the rank of B·A.
        alpha: α; None for twice the rank.
        targets: names of the linear layers to adapt, or the ends of their names; ``all-linear`` for
            all of them. Empty for peft's own choice for the architecture, mostly queries and
            values, and for all of them if peft has none.
    """

    rank: int
    alpha: int | None = None
    targets: Sequence[str] = ()


class Adapters(TrainedPart):
    """Trainable low-rank adapters on the linear layers of an encoder, whose own weights are fixed.

    Args:
        base: the encoder, which is changed in place. Adapters draw their first values from torch's
            generator. Layers whose parameters are frozen already get none.
        settings: rank, scale and places of the adapters.

    Raises:
        ModelError: the encoder has no linear layers, or a target names none.
    """

    folder = "adapter"

    def __init__(self, base: PreTrainedModel, settings: LoraSettings) -> None:
        linear = {name: m for name, m in base.named_modules() if isinstance(m, nn.Linear)}
        frozen = [name for name, layer in linear.items() if not layer.weight.requires_grad]
        targets = _targets(base, settings.targets, [n for n in linear if n not in frozen])
        self._config = LoraConfig(
            r=settings.rank,
            lora_alpha=2 * settings.rank if settings.alpha is None else settings.alpha,
            target_modules=targets,
            exclude_modules=frozen or None,
        )
        self._tuner = LoraModel(base, self._config, "default")

        layers = self._layers()
        ends = ", ".join(sorted({name.rpartition(".")[2] for name in layers}))
        super().__init__(
            f"adapters of rank {settings.rank} on {len(layers)} linear layers ({ends})"
        )

    @property
    def base(self) -> PreTrainedModel:
        """The encoder with the adapters."""
        return cast(PreTrainedModel, self._tuner.model)

    def plain(self, base: PreTrainedModel) -> PreTrainedModel:
        """A copy of the encoder with W + (α/r)·B·A as its weights.

        It shares every parameter without an adapter with the encoder.
        """
        adapted = {base.get_submodule(f"{name}.base_layer").weight for name in self._layers()}
        shared = {id(p): p for p in base.parameters() if p not in adapted}
        return cast(PreTrainedModel, copy.deepcopy(self._tuner, shared).merge_and_unload())

    def _layers(self) -> list[str]:
        """The names of the adapted layers in the encoder."""
        return [name for name, module in self.base.named_modules() if _is_adapted(module)]

    def save(self, folder: Path, head: TransformersHead) -> None:
        """Save the adapters and ``head`` in peft's format.

        ``peft.PeftModel.from_pretrained`` puts them on a model of the head's class that was loaded
        from the encoder's own folder.
        """
        model = head.model
        prefix = model.base_model_prefix
        inside: Mapping[str, Any] = get_peft_model_state_dict(
            self.base, save_embedding_layers=False
        )
        # The head's names are those of the whole model; a pooler is below the encoder's name.
        of_head = model.state_dict()
        parts = {name.removeprefix(f"{prefix}.").partition(".")[0] for name in of_head}
        named = {f"{prefix}.{name}": value for name, value in inside.items()} | of_head
        folder.mkdir(parents=True, exist_ok=True)
        save_file(
            {f"base_model.model.{n}": v.detach().contiguous() for n, v in named.items()},
            folder / "adapter_model.safetensors",
            metadata={"format": "pt"},
        )
        source = str(self.base.config.name_or_path)
        replace(
            self._config,
            modules_to_save=sorted(parts),
            inference_mode=True,
            # A folder of this machine means nothing elsewhere.
            base_model_name_or_path=None if Path(source).exists() else source,
        ).save_pretrained(
            str(folder),
            auto_mapping_dict={
                "base_model_class": type(model).__name__,
                "parent_library": type(model).__module__,
            },
        )


def _is_adapted(module: nn.Module) -> bool:
    return hasattr(module, "lora_A") and hasattr(module, "base_layer")


def _targets(base: PreTrainedModel, given: Sequence[str], layers: Sequence[str]) -> list[str]:
    """The targets in peft's form.

    Args:
        base: the encoder.
        given: the user's targets.
        layers: names of the linear layers that may be adapted.
    """
    name = type(base).__name__
    if not layers:
        raise ModelError(
            f"--lora: {name} has no linear layers to put adapters on; leave --lora out, or use an "
            "encoder such as roberta-base or answerdotai/ModernBERT-base"
        )
    for target in given:
        if target != ALL_LINEAR and not _ending(layers, target):
            found = _ending([n for n, _ in base.named_modules()], target)
            what = type(base.get_submodule(found[0])).__name__ if found else "not in the encoder"
            ends = sorted({layer.rpartition(".")[2] for layer in layers})
            raise ModelError(
                f"--lora-target {target}: is {what}; adapters go on linear layers, and those of "
                f"{name} that can have one end in {', '.join(ends)}"
            )
    chosen = list(given) or TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING.get(
        base.config.model_type, [ALL_LINEAR]
    )
    every = ALL_LINEAR in chosen or not any(_ending(layers, target) for target in chosen)
    return list(layers) if every else list(chosen)


def _ending(names: Sequence[str], target: str) -> list[str]:
    """The names that are ``target`` or end in it, as peft matches them."""
    return [name for name in names if name == target or name.endswith(f".{target}")]
