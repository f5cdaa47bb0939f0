"""What this plug-in registers, and what it does before and after a run."""

from typing import TYPE_CHECKING

from aang_core import RegisterCommand, hookimpl

if TYPE_CHECKING:
    from aang import Run


@hookimpl
def aang_register_commands(register: RegisterCommand) -> None:
    """Register ``aang push``."""
    register("push", "Push a run's model to the Hugging Face hub.", "aang_plugin_hub.command:push")


@hookimpl
def aang_check_push(name: str) -> None:
    """Look at the token and the name before hours of training, not after them."""
    from aang_plugin_hub.account import Account

    account = Account.of_token()
    account.refuse_taken(account.full_name(name))


@hookimpl
def aang_after_run(run: "Run") -> None:
    """Push the model if the run's options say so."""
    options = run.options
    if not options.get("push_to_hub"):
        return
    from aang_core.cli import echo
    from aang_plugin_hub.pushing import push

    pushed = push(
        run,
        options["push_to_hub"],
        private=bool(options.get("hub_private")),
        licence=options.get("hub_license"),
        languages=tuple(options.get("hub_language") or ()),
    )
    echo("\n".join(pushed.lines()), err=True)
