"""Primitives: the named building blocks of the four stages, and the weighters."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Literal, get_args

from aang_core.errors import AangError, ConfigError, PluginError
from aang_core.plugins.faults import raised

Stage = Literal["data", "transform", "representation", "output", "weighter"]
"""The kind of a primitive; the first four are the stages of an objective."""

STAGES: tuple[Stage, ...] = get_args(Stage)[:4]
"""The stages of an objective, in the order in which its name gives them."""


CORE = "aang-core"
"""The distribution that the core's own plug-in belongs to."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The plug-in that registered something.

    Attributes:
        distribution: the name of the distribution, or of the file of a local plug-in.
        version: its version.
        entry_point: the name of the plug-in's entry point.

    Examples:
        >>> from aang_core import load_plugins
        >>> origin = load_plugins().registry.weighter("single-task").origin
        >>> origin.distribution, origin.entry_point
        ('aang-core', 'core')
    """

    distribution: str
    version: str
    entry_point: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"

    def fault(self, whose: str, what: str) -> PluginError:
        """Return an error, for the caller to raise, that says whose fault it is and what to do."""
        return PluginError(
            f"{whose} of {self}: {what}. This is for the authors of {self.distribution} to repair; "
            f"--disable-plugin {self.entry_point} leaves the plug-in out."
        )


@dataclass(frozen=True, slots=True)
class Primitive:
    """A registered building block. Its module is imported by :meth:`load`, not before.

    Attributes:
        stage: the stage that it belongs to, or ``"weighter"``.
        name: the name it was registered under.
        summary: one line that describes it to people.
        target: a callable, or ``"module:object"`` that names one.
        provides: the traits that it provides.
        requires: the traits that it needs from the other stages of an objective.
        origin: the plug-in that registered it.
        options: options that :meth:`make` passes to the target.
        qualified: whether it was looked up as ``distribution:name``.

    Examples:
        >>> from aang_core import load_plugins
        >>> static = load_plugins().registry.weighter("static")
        >>> static.stage, static.name, static.qualified_name
        ('weighter', 'static', 'aang-plugin-tartan:static')
        >>> print(static.load().__name__)
        Static
    """

    stage: Stage
    name: str
    summary: str
    target: str | Callable[..., Any] = field(hash=False)
    provides: frozenset[str]
    requires: frozenset[str]
    origin: Origin
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    qualified: bool = False

    def __str__(self) -> str:
        return self.key

    @property
    def key(self) -> str:
        """The name in weights and reports: qualified only if it was looked up that way."""
        return self.qualified_name if self.qualified else self.name

    @property
    def qualified_name(self) -> str:
        """``distribution:name``, which no other plug-in can own."""
        return f"{self.origin.distribution}:{self.name}"

    def with_options(self, options: Mapping[str, Any]) -> "Primitive":
        """Return the same primitive with these options added to its own."""
        return replace(self, options={**self.options, **options})

    def load(self) -> Callable[..., Any]:
        """Return the target, importing it if it was registered by name.

        Raises:
            PluginError: the target cannot be imported, or is not callable.
        """
        target: Any = self.target
        if isinstance(target, str):
            with self.blamed(f"importing its target {target}"):
                target = object_named(target)
        if not callable(target):
            raise self.fault(f"its target {self.target!r} is not callable")
        return target  # type: ignore[no-any-return]

    def make(self, *args: Any, **options: Any) -> Any:
        """Call the target.

        Args:
            *args: positional arguments of the target.
            **options: options; they take precedence over :attr:`options`.

        Raises:
            ConfigError: the target has no such option, or an option that it needs is missing.
            PluginError: the target cannot be imported, is not callable, or raises anything but an
                :class:`AangError`.
        """
        target = self.load()
        options = {**self.options, **options}
        try:
            signature = inspect.signature(target)
            taken = signature.bind_partial(*args).arguments
        except (TypeError, ValueError):
            pass  # some callables in C have no signature; the call says what else is wrong
        else:
            self._check_options(options, signature, taken)
        with self.blamed("making it"):
            return target(*args, **options)

    def _check_options(
        self, options: Mapping[str, Any], signature: inspect.Signature, taken: Mapping[str, Any]
    ) -> None:
        """Refuse unknown and missing options; ``taken`` are the parameters that arguments fill."""
        free = [p for p in signature.parameters.values() if p.name not in taken]
        named = [p for p in free if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        known = [p.name for p in named]
        # A target with **options accepts any name except those of its positional arguments.
        refused = taken if any(p.kind is p.VAR_KEYWORD for p in free) else options
        unknown = sorted(o for o in options if o in refused and o not in known)
        missing = [p.name for p in named if p.default is p.empty and p.name not in options]
        if unknown or missing:
            what = (
                f"has no option {', '.join(unknown)}"
                if unknown
                else f"needs a value for its option {', '.join(missing)}"
            )
            listed = f"its options: {', '.join(known)}" if known else "it has no options"
            raise ConfigError(
                f"{self.stage} {self.key} ({self.origin.distribution}) {what}; {listed}"
            )

    def fault(self, what: str) -> PluginError:
        """See :meth:`Origin.fault`."""
        return self.origin.fault(f"{self.stage} {self.name}", what)

    @contextmanager
    def blamed(self, doing: str, innocent: tuple[type[Exception], ...] = ()) -> Iterator[None]:
        """Turn whatever the block raises into an error that names this primitive.

        Args:
            doing: what the primitive was called for.
            innocent: exceptions to let through, besides :class:`AangError` and a lack of memory.

        Raises:
            PluginError: the block raised something; the message says what and where.
        """
        passed: tuple[type[Exception], ...] = (AangError, MemoryError, *innocent)
        try:
            yield
        except passed:
            raise
        # A plug-in may raise anything. Whatever it is, the user must see which plug-in raised it.
        except (Exception, SystemExit) as error:
            raise self.fault(f"{doing} {raised(error)}") from error


def object_named(target: str) -> Any:
    """Import the object that ``"module:object"`` names; ``object`` may have dots."""
    module_name, _, path = target.partition(":")
    found: Any = import_module(module_name)
    for attribute in path.split("."):
        found = getattr(found, attribute)
    return found
