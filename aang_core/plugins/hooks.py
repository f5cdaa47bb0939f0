"""Which hooks a plug-in's module implements, and whether they match the hook specs."""

import difflib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pluggy

from aang_core import hookspecs
from aang_core.errors import PluginError

_IMPLEMENTATION_MARK = f"{hookspecs.PROJECT}_impl"  # the attribute that hookimpl leaves behind
_REGISTERING = f"{hookspecs.PROJECT}_register_"


@dataclass(frozen=True)
class Hook:
    """An implementation of a hook.

    Attributes:
        name: the name of the hook.
        function: the function to call.
        arguments: the names of its arguments; ``register`` may have a deprecated name.
    """

    name: str
    function: Any
    arguments: tuple[str, ...]

    @property
    def registers(self) -> bool:
        """Whether it is called with ``register`` when the plug-in is loaded."""
        return self.name.startswith(_REGISTERING)

    def register(self, register: Callable[..., None]) -> Any:
        """Call the function with ``register``."""
        return self.function(**dict.fromkeys(self.arguments, register))

    def call(self, **values: Any) -> Any:
        """Call the function with the values that it takes."""
        return self.function(**{name: values[name] for name in self.arguments})


def hook_names() -> list[str]:
    """The names of all hooks, in the order of the hook specs."""
    mark = f"{hookspecs.PROJECT}_spec"
    return [name for name, value in vars(hookspecs).items() if hasattr(value, mark)]


def implemented_hooks(plugin: object) -> list[Hook]:
    """The hooks that ``plugin``, a module or an object, implements, in the order of the specs.

    pluggy warns about hooks whose spec has ``warn_on_impl``, and about arguments that the spec
    lists in ``warn_on_impl_args``.

    Raises:
        PluginError: a function looks like a hook but is not one (misspelled, undecorated, or
            without the arguments of its spec), or there is no hook at all.
    """
    for name, function in _lookalikes(plugin):
        raise PluginError(
            f"{_place(function)}: {name} is not decorated, so it would never be called; put "
            f"@hookimpl above it (from aang_core import hookimpl), or rename it"
        )
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(plugin)
    except pluggy.PluginValidationError as error:
        raise PluginError(_argument_message(plugin) or str(error)) from error
    found: dict[str, Hook] = {}
    for caller in manager.get_hookcallers(plugin) or []:
        for implementation in caller.get_hookimpls():
            function = implementation.function
            if not caller.has_spec():
                # optionalhook is pluggy's way to say that an older core may not know the hook.
                if implementation.optionalhook:
                    continue
                raise PluginError(f"{_place(function)}: {_unknown_hook(caller.name)}")
            if not _fits(function, caller.name):
                raise PluginError(f"{_place(function)}: {_wanted(function.__name__, caller.name)}")
            found[caller.name] = Hook(caller.name, function, tuple(_parameters(function)))
    if not found:
        raise PluginError(
            "it implements no hook; check that the entry point names the module with the "
            "functions decorated with @hookimpl"
        )
    return [found[name] for name in hook_names() if name in found]


def _wanted(function: str, hook: str) -> str:
    """A clause that says which arguments the function must take."""
    spec = getattr(hookspecs, hook, None)
    if spec is None or hook.startswith(_REGISTERING):
        return f"{function} must take exactly one argument, named register"
    return f"{function} must take {' and '.join(_parameters(spec))}, by these names"


def _lookalikes(plugin: object) -> Iterator[tuple[str, Any]]:
    """Yield functions that are named like hooks but are not decorated."""
    for name in dir(plugin):
        if name.startswith(f"{hookspecs.PROJECT}_"):
            value = getattr(plugin, name, None)
            if inspect.isroutine(value) and not hasattr(value, _IMPLEMENTATION_MARK):
                yield name, value


def _argument_message(plugin: object) -> str | None:
    """What is wrong with the arguments of a hook, in our words instead of pluggy's."""
    for name in dir(plugin):
        function = getattr(plugin, name, None)
        if hasattr(function, _IMPLEMENTATION_MARK) and not _fits(function, name):
            return f"{_place(function)}: {_wanted(name, name)}"
    return None


def _fits(function: Any, hook: str) -> bool:
    """Whether a function has the arguments of its spec; ``register`` may have a deprecated name."""
    spec = getattr(hookspecs, hook, None)
    allowed = ["register"] if spec is None else _parameters(spec)
    taken = _parameters(function)
    if spec is not None and not hook.startswith(_REGISTERING):
        return set(taken) == set(allowed)
    return bool(taken) and set(taken) <= set(allowed)


def _parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def _unknown_hook(name: str) -> str:
    near = difflib.get_close_matches(name, hook_names(), n=1)
    if near:
        return f"there is no hook {name}; did you mean {near[0]}?"
    return f"there is no hook {name}; the hooks are {', '.join(hook_names())}"


def _place(function: Any) -> str:
    """``FILE:LINE`` of a function, if known."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)
