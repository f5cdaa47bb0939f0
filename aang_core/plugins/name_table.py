"""Names of one kind and who owns them: what a short name means, and to whom."""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, requires
from typing import Generic, Protocol, TypeVar

from aang_core.errors import AmbiguousNameError, UnknownNameError
from aang_core.plugins.primitive import CORE, Origin

APPLICATION = "aang"
"""The distribution that requires the standard plug-ins."""

_DISTRIBUTIONS = "aang-plugin-"
_NEAR = 0.6


def normalised(name: str) -> str:
    """Distribution names compare without case and with runs of ``-_.`` alike (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required_by(distribution: str) -> frozenset[str]:
    """The distributions that an installed one requires, for its extras too; empty if unknown."""
    try:
        required = requires(distribution) or []
    except (PackageNotFoundError, ValueError):  # a file, or no name at all
        return frozenset()
    return frozenset(normalised(re.split(r"[^\w.-]", line)[0]) for line in required)


@cache
def standard_plugins() -> frozenset[str]:
    """The application, and the plug-ins that it brings. Its metadata alone lists them."""
    required = required_by(APPLICATION)
    return frozenset({APPLICATION, *(n for n in required if n.startswith(_DISTRIBUTIONS))})


class Named(Protocol):
    """What a :class:`NameTable` holds."""

    @property
    def name(self) -> str: ...

    @property
    def origin(self) -> Origin: ...


NamedT = TypeVar("NamedT", bound=Named)


class NameTable(Generic[NamedT]):
    """Things of one kind by name. Several plug-ins may use the same name.

    Args:
        kind: what messages call the things.
        entries: the things.
        absent: makes a reason for each plug-in that is not there and may supply what is missing.
        author: the distribution whose words the names are; None for a user's.
    """

    def __init__(
        self,
        kind: str,
        entries: Iterable[NamedT],
        absent: Callable[[], Mapping[str, str]] = dict,
        author: str | None = None,
    ) -> None:
        self._kind = kind
        self._absent = absent
        self._author = author
        self._owners: dict[str, list[NamedT]] = {}
        for entry in entries:
            self._owners.setdefault(entry.name, []).append(entry)

    def __iter__(self) -> Iterator[NamedT]:
        """All entries, in the order in which they were registered."""
        return (entry for owners in self._owners.values() for entry in owners)

    def __contains__(self, name: str) -> bool:
        """Whether somebody registered ``name``, or ``distribution:name``."""
        distribution, _, short = name.rpartition(":")
        return any(distribution in ("", owner) for owner in self._owners_of(short))

    def find(self, name: str, also: Iterable[str] = ()) -> NamedT:
        """The entry called ``name``, or ``distribution:name``.

        Args:
            name: the name.
            also: names of this kind that the table does not hold, to offer in its message.

        Raises:
            UnknownNameError: nobody registered that name, or nobody whom the author can mean; the
                message offers near ones.
            AmbiguousNameError: several plug-ins own the short name; the message names them.
        """
        distribution, _, short = name.rpartition(":")
        meant = {distribution} if distribution else self._meant(short)
        found = [e for e in self._owners.get(short, []) if e.origin.distribution in meant]
        if len(found) > 1:
            choices = [f"{entry.origin.distribution}:{entry.name}" for entry in found]
            raise AmbiguousNameError(
                f"the {self._kind} {name} is registered by more than one plug-in: "
                f"{', '.join(choices)}; use one of these names to pick, or disable a plug-in"
            )
        if not found:
            raise UnknownNameError(self._unknown(name, also))
        return found[0]

    def in_full(self, name: str) -> str:
        """The shortest name by which a user finds what this table's author means by ``name``.

        It is the short name, unless a plug-in that the author does not mean has it too.
        """
        distribution, _, short = name.rpartition(":")
        owners = self._owners_of(short)
        if distribution and distribution not in owners:
            return name
        meant = {distribution} if distribution else self._meant(short)
        if owners <= meant:
            return short
        # If what the author means is not installed, the user must not find another's instead.
        return f"{min(meant, default=self._author)}:{short}"

    def _owners_of(self, short: str) -> set[str]:
        return {entry.origin.distribution for entry in self._owners.get(short, [])}

    def _meant(self, short: str) -> set[str]:
        """Those of its owners whom the author means by a short name; a user means any.

        An author means the own one, or else that of the core or of a standard plug-in, or else that
        of a distribution that the author's own requires. Whoever else is installed changes nothing.
        """
        owners = self._owners_of(short)
        if self._author is None:
            return owners
        standard = standard_plugins() | {CORE, APPLICATION}
        return (
            owners & {self._author}
            or {owner for owner in owners if normalised(owner) in standard}
            or {owner for owner in owners if normalised(owner) in required_by(str(self._author))}
        )

    def _unknown(self, name: str, also: Iterable[str]) -> str:
        distribution, _, short = name.rpartition(":")
        message = f"there is no {self._kind} {name}"
        absent = self._absent()
        # A plug-in is often named after what it brings.
        supplier = distribution or f"{_DISTRIBUTIONS}{short.replace('_', '-')}"
        if supplier in absent:
            return f"{message}: {supplier} is {absent[supplier]}"
        others = sorted(self._owners_of(short))
        if others and not distribution:
            message += (
                f" of {self._author} or of a plug-in that it requires, and it cannot mean that of "
                f"{' or '.join(others)}"
            )
        else:
            qualified = [f"{entry.origin.distribution}:{entry.name}" for entry in self]
            known = qualified if distribution else [*self._owners, *also]
            message += f"; {did_you_mean(name, known, 'it is one of')}"
        return f"{message} ({'; '.join(_grouped(absent))})" if absent else message


def _grouped(absent: Mapping[str, str]) -> list[str]:
    """Each reason with the plug-ins that it holds for."""
    names: dict[str, list[str]] = {}
    for name, reason in absent.items():
        names.setdefault(reason, []).append(name)
    return [
        f"{', '.join(sorted(group))} {'are' if group[1:] else 'is'} {reason}"
        for reason, group in names.items()
    ]


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Word a hint for an unknown name.

    Args:
        name: what the user wrote.
        known: the names that exist.
        otherwise: the words before the list of all names, if none is similar.

    Returns:
        A clause that offers similar names, or else lists all of them.

    Examples:
        >>> from aang_core import did_you_mean
        >>> did_you_mean("denose", ["denoise", "end-task"], "the outputs are")
        'did you mean denoise?'
        >>> did_you_mean("x", ["denoise", "end-task"], "the outputs are")
        'the outputs are: denoise, end-task'
    """
    known = sorted(set(known))
    close = difflib.get_close_matches(name, known, n=len(known) or 1, cutoff=_NEAR)
    # Every distribution begins alike, so names that share nothing else would look similar.
    wanted = name.removeprefix(_DISTRIBUTIONS)
    near = [
        one
        for one in close
        if difflib.SequenceMatcher(None, one.removeprefix(_DISTRIBUTIONS), wanted).ratio() >= _NEAR
    ][:3]
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"{otherwise}: {', '.join(known)}" if known else "nothing of the kind is installed"
