"""Names of one kind and who owns them: what a short name means, and to whom."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

from aang_core.errors import AmbiguousNameError, UnknownNameError
from aang_core.plugins.primitive import CORE, Origin

_DISTRIBUTIONS = "aang-plugin-"
_NEAR = 0.6


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
        standard: for a name that may be missing, the distribution that supplies it.
        unavailable: for each distribution with a plug-in that is not loaded, the reason.
        author: the distribution whose words the names are; None for a user's.
    """

    def __init__(
        self,
        kind: str,
        entries: Iterable[NamedT],
        standard: Mapping[str, str] | None = None,
        unavailable: Mapping[str, str] | None = None,
        author: str | None = None,
    ) -> None:
        self._kind = kind
        self._standard = standard or {}
        self._unavailable = unavailable or {}
        self._author = author
        self._owners: dict[str, list[NamedT]] = {}
        for entry in entries:
            self._owners.setdefault(entry.name, []).append(entry)

    def __iter__(self) -> Iterator[NamedT]:
        """All entries, in the order in which they were registered."""
        return (entry for owners in self._owners.values() for entry in owners)

    def __contains__(self, name: str) -> bool:
        """Whether :meth:`find` would find something, or several things, under ``name``."""
        distribution, _, short = name.rpartition(":")
        owners = self._owners.get(short, [])
        return any(distribution in ("", entry.origin.distribution) for entry in owners)

    def find(self, name: str) -> NamedT:
        """The entry called ``name``, or ``distribution:name``.

        Raises:
            UnknownNameError: nobody registered that name; the message offers near ones.
            AmbiguousNameError: several plug-ins own the short name; the message names them.
        """
        distribution, _, short = name.rpartition(":")
        distribution = distribution or self._owner_meant(short) or ""
        owners = self._owners.get(short, [])
        if distribution:
            owners = [entry for entry in owners if entry.origin.distribution == distribution]
        if len(owners) > 1:
            choices = [f"{entry.origin.distribution}:{entry.name}" for entry in owners]
            raise AmbiguousNameError(
                f"the {self._kind} {name} is registered by more than one plug-in: "
                f"{', '.join(choices)}; use one of these names to pick, or disable a plug-in"
            )
        if not owners:
            raise UnknownNameError(self._unknown(name, distribution, short))
        return owners[0]

    def in_full(self, name: str) -> str:
        """The shortest name by which a user finds what this table's author means by ``name``.

        It is the short name, unless another plug-in has it too. What nobody has keeps its name.
        """
        distribution, _, short = name.rpartition(":")
        owners = {entry.origin.distribution for entry in self._owners.get(short, [])}
        if distribution and distribution not in owners:
            return name
        meant = distribution or self._owner_meant(short)
        return f"{meant}:{short}" if meant is not None and owners - {meant} else short

    def _owner_meant(self, short: str) -> str | None:
        """The distribution that the author means by a short name.

        Its own, if it registers the name; else the standard one that supplies the name. None for a
        user's names, and for names of others.
        """
        if self._author is None:
            return None
        owners = {entry.origin.distribution for entry in self._owners.get(short, [])}
        if self._author in owners:
            return self._author
        return self._standard.get(short) or (CORE if CORE in owners else None)

    def _unknown(self, name: str, distribution: str, short: str) -> str:
        message = f"there is no {self._kind} {name}"
        standard = self._standard.get(short, "")
        supplier = distribution or standard
        if supplier in self._unavailable:
            return f"{message}: {supplier} {self._unavailable[supplier]}"
        if supplier and supplier == standard:
            return f"{message}: it comes with {supplier}, which pip install {supplier} installs"
        qualified = [f"{entry.origin.distribution}:{entry.name}" for entry in self]
        known = qualified if distribution else list(self._owners)
        message += f"; {did_you_mean(name, [*known, *self._standard], 'it is one of')}"
        if self._unavailable and not distribution:
            absent = ", ".join(self._unavailable)
            message += f" (plug-ins that are not loaded: {absent}; see aang plugins)"
        return message


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
