"""Calls the hooks of plug-ins before a training, on its model, during it and after it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from aang.config import TrainConfig
from aang.modeling.body import TrainedPart
from aang.modeling.encoder import TextModel
from aang_core.errors import raised
from aang_core.plugins.primitive import HookEntry
from aang_core.plugins.registry import Registry


def before_training(registry: Registry, config: TrainConfig, *, resumed: bool = False) -> None:
    """Call ``aang_before_training`` of every plug-in.

    Raises:
        AangError: one of them says that the training cannot be done.
    """
    for hook in _hooks(registry, "aang_before_training"):
        _call(hook, registry, config, resumed=resumed)


def prepared_model(
    registry: Registry, config: TrainConfig, model: TextModel, stage: str | None
) -> TextModel:
    """Let every plug-in that implements ``aang_prepare_model`` change the encoder.

    Raises:
        AangError: one of them says that the encoder cannot be used in this way.
    """
    for hook in _hooks(registry, "aang_prepare_model"):
        part = _call(hook, registry, config, model=model, stage=stage)
        if part is not None:
            if not isinstance(part, TrainedPart):
                what = f"it returned {part!r}, which is no TrainedPart"
                raise hook.origin.fault(f"hook {hook.name}", what)
            model = replace(model, parts=(*model.parts, part))
    return model


def observers(registry: Registry, config: TrainConfig, folder: Path) -> list["PluginObserver"]:
    """The observers of the plug-ins that implement ``aang_observe``."""
    hooks = _hooks(registry, "aang_observe")
    found = [(hook, _call(hook, registry, config, folder=folder)) for hook in hooks]
    return [PluginObserver(hook, observer) for hook, observer in found if observer is not None]


class PluginObserver:
    """A plug-in's observer; an error names the plug-in."""

    def __init__(self, hook: HookEntry, observer: Any) -> None:
        self._hook = hook
        self._observer = observer

    def after_round(self, step: int, record: Mapping[str, Any]) -> None:
        with self._hook.blamed():
            self._observer.after_round(step, record)

    def after_evaluation(
        self, step: int, dev: Mapping[str, float], best: bool, losses: Mapping[str, float]
    ) -> None:
        with self._hook.blamed():
            self._observer.after_evaluation(step, dev, best, losses)

    def close(self) -> None:
        """Tell it that the training has ended."""
        if hasattr(self._observer, "close"):
            with self._hook.blamed():
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
        except (Exception, SystemExit) as error:
            yield (
                f"plug-in {hook.origin.entry_point} ({hook.origin}) failed after the run, which is "
                f"complete without it: it {raised(error)}"
            )


def _hooks(registry: Registry, name: str) -> list[HookEntry]:
    return [hook for hook in registry.hooks if hook.name == name]


def _call(hook: HookEntry, registry: Registry, config: TrainConfig, **more: Any) -> Any:
    """Call a hook with every option by name, and its other arguments."""
    # A configuration made without plug-ins lacks their options, which then have their defaults.
    options = MappingProxyType({o.name: o.default for o in registry.options} | config.by_name)
    with hook.blamed():
        return hook.call(options=options, **more)
