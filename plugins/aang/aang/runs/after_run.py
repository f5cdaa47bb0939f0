"""Calls the hooks about a finished run: ``aang_after_run``, and the check before a push."""

from collections.abc import Iterator

from aang.config import TrainConfig
from aang.runs.run import Run
from aang_core.errors import ConfigError, UnknownNameError
from aang_core.plugins.faults import place_of, text_of
from aang_core.plugins.registry import Registry


def call_after_run(registry: Registry, run: Run) -> Iterator[str]:
    """Pass the run to every plug-in that implements the hook.

    A plug-in that fails does not harm the run, whatever it raises.

    Yields:
        A sentence for the user about each plug-in that failed.
    """
    for hook in registry.hooks:
        if hook.name != "aang_after_run":
            continue
        try:
            hook.call(run=run)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            place = place_of(error)
            where = f" at {place}" if place else ""
            yield (
                f"plug-in {hook.origin.entry_point} ({hook.origin}) failed after the run, which is "
                f"complete without it: {type(error).__name__}: {text_of(error)}{where}"
            )


def check_push(registry: Registry, config: TrainConfig) -> None:
    """Refuse ``--push-to-hub`` if the model could not be pushed.

    Raises:
        ConfigError: no plug-in pushes models.
        AangError: the plug-in says why.
    """
    if config.push_to_hub is None:
        return
    try:
        hook = registry.hooks.find("aang_check_push")
    except UnknownNameError as error:
        raise ConfigError(
            f"--push-to-hub {config.push_to_hub}: a plug-in pushes models, and {error}"
        ) from error
    hook.call(name=config.push_to_hub)
