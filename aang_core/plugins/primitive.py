"""What plug-ins register: the primitives of the four stages, the weighters, and everything else."""

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args

from aang_core.errors import AangError, ConfigError, PluginError, raised

Stage = Literal["data", "transform", "representation", "output", "weighter"]
"""The kind of a primitive; the first four are the stages of an objective."""

STAGES: tuple[Stage, ...] = get_args(Stage)[:4]
"""The stages of an objective, in the order in which its name gives them."""

CORE = "aang-core"
"""The distribution that the core's own plug-in belongs to."""


def normalised(name: str) -> str:
    """Distribution names compare without case and with runs of ``-_.`` alike (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


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

    @contextmanager
    def blamed(
        self, whose: str, doing: str = "", innocent: tuple[type[Exception], ...] = ()
    ) -> Iterator[None]:
        """Turn whatever the block raises into an error that names the plug-in.

        Args:
            whose: what of the plug-in's is called.
            doing: what it is called for; empty if that is clear.
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
            raise self.fault(whose, f"{doing} {raised(error)}".lstrip()) from error

    @property
    def names(self) -> frozenset[str]:
        """The two names by which a user chooses the plug-in, normalised."""
        return frozenset({normalised(self.distribution), normalised(self.entry_point)})


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that a plug-in registered."""

    name: str
    summary: str
    origin: Origin

    @property
    def qualified_name(self) -> str:
        """``distribution:name``, which no other plug-in can own."""
        return f"{self.origin.distribution}:{self.name}"


@dataclass(frozen=True, slots=True)
class SpaceEntry(Entry):
    """A registered space; ``source`` is its YAML file or that file's content as a mapping."""

    source: Path | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ObjectiveEntry(Entry):
    """A name for one or several objectives ``data/transform/representation/output``."""

    objectives: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecipeEntry(Entry):
    """A registered recipe, a complete way of training.

    Attributes:
        pretraining: named objectives that the encoder is trained on first, one after the other.
        options: the options of ``aang train`` that it sets; the user can override each.
    """

    pretraining: tuple[str, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GridEntry(Entry):
    """A registered grid of hyper-parameters.

    Attributes:
        options: for each option of ``aang train``, the values to try; ``NAME.OPTION`` for an option
            of a primitive or weighter.
    """

    options: Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class HookEntry(Entry):
    """A plug-in's implementation of a hook that is called after loading.

    Attributes:
        function: the function.
        arguments: those of the hook's arguments that it takes.
    """

    function: Callable[..., Any]
    arguments: tuple[str, ...]

    def call(self, **values: Any) -> Any:
        """Call the function with the values that it takes."""
        return self.function(**{name: values[name] for name in self.arguments})

    def blamed(self) -> AbstractContextManager[None]:
        """See :meth:`Origin.blamed`."""
        return self.origin.blamed(f"hook {self.name}")


@dataclass(frozen=True, slots=True)
class TargetEntry(Entry):
    """Something that is imported when it is first used.

    Attributes:
        kind: what it is, in the words of messages, such as ``"dev head"``.
        target: a callable, or ``"module:object"`` that names one.
    """

    kind: str
    target: Any = field(hash=False)

    def load(self) -> Callable[..., Any]:
        """Return the target, importing it if it was registered by name.

        Raises:
            PluginError: the target cannot be imported, or is not callable.
        """
        target = self.imported()
        if not callable(target):
            raise self.fault(f"{self.target} is not callable")
        return target  # type: ignore[no-any-return]

    def imported(self) -> Any:
        """Return the target, callable or not.

        Raises:
            PluginError: the target cannot be imported.
        """
        if not isinstance(self.target, str):
            return self.target
        with self.blamed(f"importing {self.target}"):
            module_name, _, path = self.target.partition(":")
            found: Any = import_module(module_name)
            for attribute in path.split("."):
                found = getattr(found, attribute)
            return found

    def fault(self, what: str) -> PluginError:
        """See :meth:`Origin.fault`."""
        return self.origin.fault(f"{self.kind} {self.name}", what)

    def blamed(
        self, doing: str, innocent: tuple[type[Exception], ...] = ()
    ) -> AbstractContextManager[None]:
        """See :meth:`Origin.blamed`."""
        return self.origin.blamed(f"{self.kind} {self.name}", doing, innocent)


@dataclass(frozen=True, slots=True, eq=False)
class OptionEntry(TargetEntry):
    """An option that a plug-in adds to ``aang train``; its target is the type of its value.

    Attributes:
        default: its value if it is not given.
        goes_with: the option without which it has no meaning; None if it stands alone.
        reporting: whether the numbers of a training do not depend on it.
    """

    default: Any
    goes_with: str | None
    reporting: bool


@dataclass(frozen=True, slots=True, eq=False)
class CandidateEntry(TargetEntry):
    """A way to a classifier that ``aang best`` tries; its target is None if it is trained.

    Attributes:
        options: the options of ``aang train`` that a trained one sets.
        needs: the option without which it is not tried, such as ``unlabelled``; empty for none.
        cost: time of a run in units of plain fine-tuning's, until one is measured; 0 for what is
            fitted in seconds, before the race.

    Examples:
        >>> from aang_core import load_plugins
        >>> contrast = load_plugins().registry.candidates.find("contrast")
        >>> contrast.options, contrast.target
        ({'recipe': 'contrast'}, None)
    """

    options: Mapping[str, Any]
    needs: str
    cost: float


@dataclass(frozen=True, slots=True)
class Primitive(TargetEntry):
    """A registered building block. Its module is imported by :meth:`load`, not before.

    Attributes:
        kind: the stage that it belongs to, or ``"weighter"``.
        provides: the traits that it provides.
        requires: the traits that it needs from the other stages of an objective.
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

    kind: Stage
    provides: frozenset[str] = frozenset()
    requires: frozenset[str] = frozenset()
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    qualified: bool = False

    def __str__(self) -> str:
        return self.key

    @property
    def stage(self) -> Stage:
        """The stage that it belongs to, or ``"weighter"``."""
        return self.kind

    @property
    def key(self) -> str:
        """The name in weights and reports: qualified only if it was looked up that way."""
        return self.qualified_name if self.qualified else self.name

    def with_options(self, options: Mapping[str, Any]) -> "Primitive":
        """Return the same primitive with these options added to its own."""
        return replace(self, options={**self.options, **options})

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


def number_option(
    option: str,
    value: Any,
    meaning: str = "",
    *,
    low: float = -math.inf,
    high: float = math.inf,
    above_low: bool = False,
    below_high: bool = False,
) -> float:
    """Check that an option is a finite number from ``low`` to ``high``.

    Args:
        option: the name of the option in the message, such as ``"weighter option lr"``.
        value: what the user gave.
        meaning: what the message tells the user to give; by default a number with these limits.
        low: the smallest value allowed.
        high: the largest value allowed.
        above_low: refuse ``low`` itself.
        below_high: refuse ``high`` itself.

    Returns:
        ``value`` as a float.

    Raises:
        ConfigError: ``value`` is not such a number.

    Examples:
        >>> from aang_core import ConfigError, number_option
        >>> number_option("weighter option lr", 1, low=0, above_low=True)
        1.0
        >>> try:
        ...     number_option("weighter option lr", 0, low=0, above_low=True)
        ... except ConfigError as error:
        ...     print(error)
        weighter option lr is 0; give a number above 0
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if (
        not is_number
        or not math.isfinite(value)
        or not low <= value <= high
        or (above_low and value == low)
        or (below_high and value == high)
    ):
        limits = []
        if low > -math.inf:
            limits.append(f"{'above' if above_low else 'of at least'} {low:g}")
        if high < math.inf:
            limits.append(f"{'below' if below_high else 'at most'} {high:g}")
        meaning = meaning or f"a number {' and '.join(limits)}"
        raise ConfigError(f"{option} is {value!r}; give {meaning}")
    return float(value)


def whole_number_option(option: str, value: Any, meaning: str = "", *, low: int = 1) -> int:
    """Check that an option is a whole number of at least ``low``.

    Args:
        option: the name of the option in the message, such as ``"weighter option steps"``.
        value: what the user gave.
        meaning: what the message tells the user to give; by default a whole number from ``low`` on.
        low: the smallest value allowed.

    Returns:
        ``value``.

    Raises:
        ConfigError: ``value`` is not an ``int``, is a ``bool``, or is smaller than ``low``.

    Examples:
        >>> from aang_core import ConfigError, whole_number_option
        >>> whole_number_option("weighter option steps", 5)
        5
        >>> try:
        ...     whole_number_option("mine.limit", 2.5, "a number of texts, 0 or more", low=0)
        ... except ConfigError as error:
        ...     print(error)
        mine.limit is 2.5; give a number of texts, 0 or more
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        meaning = meaning or f"a whole number, {low} or more"
        raise ConfigError(f"{option} is {value!r}; give {meaning}")
    return value


def flag_option(option: str, value: Any) -> bool:
    """Check that an option is true or false.

    Args:
        option: the name of the option in the message, such as ``"weighter option offload"``.
        value: what the user gave.

    Raises:
        ConfigError: ``value`` is not a bool.

    Examples:
        >>> from aang_core import ConfigError, flag_option
        >>> flag_option("mine.stream", True)
        True
        >>> try:
        ...     flag_option("mine.stream", "no, thanks")
        ... except ConfigError as error:
        ...     print(error)
        mine.stream is 'no, thanks'; give true or false
    """
    if not isinstance(value, bool):
        raise ConfigError(f"{option} is {value!r}; give true or false")
    return value


def sample_size_option(n: object, auxiliaries: Sized) -> int:
    """The number of auxiliary tasks that a step trains.

    Args:
        n: what the user gave; None trains all of them.
        auxiliaries: all auxiliary tasks.

    Returns:
        ``n``, or the number of auxiliary tasks if that is smaller.

    Raises:
        ConfigError: ``n`` is not a positive whole number.

    Examples:
        >>> from aang_core import sample_size_option
        >>> tasks = ["denoise", "end-task", "tf-idf"]
        >>> [sample_size_option(n, tasks) for n in (2, 9, None)]
        [2, 3, 3]
    """
    if n is None:
        return len(auxiliaries)
    size = whole_number_option(
        "weighter option n",
        n,
        "the number of auxiliary tasks sampled each step, 1 or more, or null to train all of them",
    )
    return min(size, len(auxiliaries))
