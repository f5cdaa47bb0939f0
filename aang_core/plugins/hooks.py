"""Which hooks a plug-in's module implements, and whether they match the hook specs."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pluggy

from aang_core import hookspecs
from aang_core.errors import PluginError
from aang_core.plugins.name_table import did_you_mean

PLUGIN_API = 2
"""The version of the plug-in interface.

It is increased when plug-ins written for the previous version would no longer work.
"""

DECLARATION = "AANG_PLUGIN_API"
"""Name of the constant with which a plug-in's module declares the version it was written for."""

CHANGES = f"docs/plugin-interface/version-{PLUGIN_API}.md"
"""The page of the documentation that says what the latest version changed."""


@dataclass(frozen=True)
class Hook:
    """An implementation of a hook.

    Attributes:
        name: the name of the hook.
        function: the function to call.
        arguments: the names of its arguments; ``register`` may have a deprecated name.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[str, ...]

    @property
    def registers(self) -> bool:
        """Whether it is called with ``register`` when the plug-in is loaded."""
        return self.name.startswith("aang_register_")

    def register(self, register: Callable[..., None]) -> None:
        """Call the function with ``register``."""
        self.function(**dict.fromkeys(self.arguments, register))

    def call(self, **values: Any) -> Any:
        """Call the function with the values that it takes."""
        return self.function(**{name: values[name] for name in self.arguments})


def hook_names() -> list[str]:
    """The names of all hooks, in the order of the hook specs."""
    return [name for name, value in vars(hookspecs).items() if hasattr(value, "aang_spec")]


def implemented_hooks(plugin: object) -> list[Hook]:
    """The hooks that ``plugin``, a module or an object, implements, in the order of the specs.

    pluggy warns about hooks whose spec has ``warn_on_impl``, and about arguments that the spec
    lists in ``warn_on_impl_args``.

    Raises:
        PluginError: it was written for another version of the interface, a function looks like a
            hook but is not one (misspelled, undecorated, without arguments, or with others than its
            spec), or there is no hook at all.
    """
    check_plugin_api(plugin)
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(plugin)
    except pluggy.PluginValidationError as error:
        raise PluginError(" ".join(str(error).split())) from error
    hooks: dict[str, Hook] = {}
    for caller in manager.get_hookcallers(plugin) or []:
        for found in caller.get_hookimpls():
            # optionalhook is pluggy's way to say that an older core may not know the hook.
            if caller.has_spec() or not found.optionalhook:
                _check(found.function, caller.name, found.argnames)
                hooks[caller.name] = Hook(caller.name, found.function, found.argnames)
    for name in dir(plugin):
        function = getattr(plugin, name, None)
        if name.startswith("aang_") and inspect.isroutine(function):
            _require(
                hasattr(function, "aang_impl"),
                function,
                f"{name} is not decorated, so it would never be called; put @hookimpl above it "
                "(from aang_core import hookimpl), or rename it",
            )
    if not hooks:
        raise PluginError(
            "it implements no hook; check that the entry point names the module with the "
            "functions decorated with @hookimpl"
        )
    return [hooks[name] for name in hook_names() if name in hooks]


def check_plugin_api(module: object) -> None:
    """Refuse a plug-in that was written for another version; one without a declaration may load.

    Raises:
        PluginError: the versions differ.
    """
    written_for = getattr(module, DECLARATION, PLUGIN_API)
    if written_for != PLUGIN_API:
        raise PluginError(
            f"it was written for version {written_for} of the plug-in interface, and this core has "
            f"version {PLUGIN_API}; update the older of the two. For the plug-in's authors: "
            f"{CHANGES} says what changed; when the plug-in suits that, declare "
            f"{DECLARATION} = {PLUGIN_API}"
        )


def _check(function: Callable[..., Any], name: str, arguments: tuple[str, ...]) -> None:
    if not hasattr(hookspecs, name):
        hint = did_you_mean(name, hook_names(), "the hooks are")
        _require(False, function, f"there is no hook {name}; {hint}")
    _require(bool(arguments), function, f"{name} takes no argument; it must take those of its spec")
    inner = inspect.unwrap(function)
    _require(
        not inspect.isgeneratorfunction(inner) and not inspect.iscoroutinefunction(inner),
        function,
        f"{name} is a generator or a coroutine, whose body never runs; make it a plain function, "
        "without yield or async",
    )


def _require(kept: bool, function: Any, otherwise: str) -> None:
    """Raise an error that begins with ``FILE:LINE`` of the function, if known."""
    if not kept:
        code = getattr(inspect.unwrap(function), "__code__", None)
        place = f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)
        raise PluginError(f"{place}: {otherwise}")
