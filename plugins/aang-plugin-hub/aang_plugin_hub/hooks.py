"""What this plug-in registers, and what it does before and after a run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aang_core import RegisterCommand, RegisterOption, hookimpl

if TYPE_CHECKING:
    from aang import Run


@hookimpl
def aang_register_commands(register: RegisterCommand) -> None:
    """Register ``aang push``."""
    register("push", "Push a run's model to the Hugging Face hub.", "aang_plugin_hub.command:push")


@hookimpl
def aang_register_options(register: RegisterOption) -> None:
    """Register the options of the push after a training."""
    of_a_push: dict[str, Any] = {"goes_with": "push_to_hub", "reporting": True}
    register(
        "push_to_hub",
        "name on the Hugging Face hub to push the finished model to",
        str,
        reporting=True,
    )
    register("hub_private", "only you can see the pushed model", bool, default=False, **of_a_push)
    register(
        "hub_license",
        "licence of the pushed model, such as mit; default: the encoder's own",
        str,
        **of_a_push,
    )
    register(
        "hub_language",
        "language of the pushed model, such as en; default: the encoder's own",
        tuple[str, ...],
        default=(),
        **of_a_push,
    )


@hookimpl
def aang_before_training(options: Mapping[str, Any], resumed: bool) -> None:
    """Check the token and the name before hours of training, not after them."""
    if options["push_to_hub"] is None or resumed:
        return
    from aang_plugin_hub.account import Account

    Account.of_token().place(options["push_to_hub"])


@hookimpl
def aang_after_training(run: "Run") -> None:
    """Write the model's card, and push the model if the run's options say so."""
    from aang_core.storage import write_file
    from aang_plugin_hub.card import card_of

    write_file(run.model_folder / "README.md", card_of(run))
    name = run.options.get("push_to_hub")
    if not name:
        return
    from aang_core.cli import echo
    from aang_plugin_hub.pushing import push

    echo(push(run, name), err=True)
