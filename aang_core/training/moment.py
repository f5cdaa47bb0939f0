"""Where everything stands that a step draws from, to be gone back to."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from aang_core.gradients import DevHead
from aang_core.training.rows import RowOrder


@dataclass(frozen=True)
class Moment:
    """The state of the generators, of the order of rows and of the dev head's memory.

    Taken before every step, so it copies nothing that is large and asks the device for nothing.
    """

    generator: Tensor
    dropout: Tensor
    dropout_on_device: Tensor | None
    orders: Mapping[str, tuple[Tensor, int]]
    dev_head: Mapping[str, Tensor]

    @classmethod
    def now(
        cls,
        generator: torch.Generator,
        orders: Mapping[str, RowOrder],
        dev_head: DevHead,
        device: torch.device,
    ) -> "Moment":
        """The present one.

        device: on which dropout draws.
        """
        return cls(
            generator.get_state(),
            torch.default_generator.get_state(),
            torch.cuda.get_rng_state(device) if device.type == "cuda" else None,
            {name: order.mark() for name, order in orders.items()},
            dev_head.state_dict(),
        )

    def come_back(
        self,
        generator: torch.Generator,
        orders: Mapping[str, RowOrder],
        dev_head: DevHead,
        device: torch.device,
    ) -> None:
        """Draw again from here on what was drawn since."""
        generator.set_state(self.generator)
        torch.default_generator.set_state(self.dropout)
        if self.dropout_on_device is not None:
            torch.cuda.set_rng_state(self.dropout_on_device, device)
        for name, order in orders.items():
            order.back_to(self.orders[name])
        dev_head.load_state_dict(self.dev_head)
