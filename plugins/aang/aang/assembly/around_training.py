"""Calls the hooks of plug-ins before a training, on its model, during it and after it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from aang.config import TrainConfig
from aang.modeling.encoder import TextModel
from aang.modeling.trained_part import TrainedPart
from aang_core.errors import AangError, PluginError, place_of, text_of
from aang_core.plugins.primitive import HookEntry
from aang_core.plugins.registry import Registry


def before_training(registry: Registry, config: TrainConfig, *, resumed: bool = False) -> None:
    """Call ``aang_before_training`` of every plug-in.

    Raises:
        AangError: one of them says that the training cannot be done.
    """
    for hook in _hooks(registry, "aang_before_training"):
        with _blamed(hook):
            hook.call(options=_options(registry, config), resumed=resumed)


def prepared_model(registry: Registry, config: TrainConfig, model: TextModel) -> TextModel:
    """Let every plug-in that implements ``aang_prepare_model`` change the encoder.

    Raises:
        AangError: one of them says that the encoder cannot be used in this way.
    """
    for hook in _hooks(registry, "aang_prepare_model"):
        with _blamed(hook):
            part = hook.call(model=model, options=_options(registry, config))
        if part is not None:
            if not isinstance(part, TrainedPart):
                raise PluginError(f"{_whose(hook)} returned {part!r}, which is no TrainedPart")
            model = replace(model, parts=(*model.parts, part))
    return model


def observers(registry: Registry, config: TrainConfig, folder: Path) -> list["PluginObserver"]:
    """The observers of the plug-ins that implement ``aang_observe``."""
    found = []
    for hook in _hooks(registry, "aang_observe"):
        with _blamed(hook):
            observer = hook.call(folder=folder, options=_options(registry, config))
        if observer is not None:
            found.append(PluginObserver(hook, observer))
    return found


class PluginObserver:
    """A plug-in's observer; an error names the plug-in."""

    def __init__(self, hook: HookEntry, observer: Any) -> None:
        self._hook = hook
        self._observer = observer

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        with _blamed(self._hook):
            self._observer.after_round(step, record)

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        with _blamed(self._hook):
            self._observer.after_evaluation(step, dev, best, losses)

    def close(self) -> None:
        """Tell it that the training has ended."""
        if hasattr(self._observer, "close"):
            with _blamed(self._hook):
                self._observer.close()


def after_training(registry: Registry, run: Any) -> Iterator[str]:
    """Pass the run to every plug-in that implements ``aang_after_training``.

    A plug-in that fails does not harm the run, whatever it raises.

    Yields:
        A sentence for the user about each plug-in that failed.
    """
    for hook in _hooks(registry, "aang_after_training"):
        try:
            hook.call(run=run)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            yield (
                f"plug-in {hook.origin.entry_point} ({hook.origin}) failed after the run, which is "
                f"complete without it: {_fault(error)}"
            )


def _options(registry: Registry, config: TrainConfig) -> Mapping[str, Any]:
    """Every option by name; a configuration made without plug-ins has the defaults of theirs."""
    return MappingProxyType({o.name: o.default for o in registry.options} | config.by_name)


def _hooks(registry: Registry, name: str) -> list[HookEntry]:
    return [hook for hook in registry.hooks if hook.name == name]


@contextmanager
def _blamed(hook: HookEntry) -> Iterator[None]:
    """Turn whatever a plug-in raises, but for errors to the user, into one that names it."""
    try:
        yield
    except (KeyboardInterrupt, AangError, MemoryError):
        raise
    except BaseException as error:
        raise PluginError(f"{_whose(hook)} raised {_fault(error)}") from error


def _whose(hook: HookEntry) -> str:
    return f"plug-in {hook.origin.entry_point} ({hook.origin}): {hook.name}"


def _fault(error: BaseException) -> str:
    place = place_of(error)
    return f"{type(error).__name__}: {text_of(error)}{f' at {place}' if place else ''}"
