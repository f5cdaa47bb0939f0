"""The built-in demo task: which standard-library package does a paragraph document?

Every Python installation carries the text, so the demo needs no network and no data
files. The docstrings are read from the sources with ``ast``; nothing is imported. A paragraph
never contains the name of a package it could be labelled with, otherwise the task would be
a matter of spelling.

The task depends only on the interpreter's sources: the same Python release gives the same
split on every machine, other releases give slightly different paragraphs.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import sysconfig
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aang_core.errors import DataError

PACKAGES = ("asyncio", "email", "http", "importlib", "logging", "tkinter", "unittest", "xml")

MIN_CHARACTERS = 60
"""Shorter paragraphs ("Return the result.") say nothing about where they come from."""

MIN_PARAGRAPHS = 40
"""A package with fewer cannot fill the three parts and is left out of the task."""

TRAIN_SIZE = 200
DEV_SIZE = 200

# Installed packages are not the interpreter's own text; test-suites and IDLE are bulky, mostly
# undocumented, and Debian packages them separately.
_SKIPPED_FOLDERS = frozenset(
    {"site-packages", "dist-packages", "test", "tests", "idlelib", "__pycache__"}
)

# "asyncio.run" leaves "run"; the full stop of "... handled by asyncio." stays.
_PACKAGE_NAME = re.compile(rf"\b(?:{'|'.join(PACKAGES)})\b(?:\.(?=\w))?", re.IGNORECASE)

_BLANK_LINES = re.compile(r"\n\s*\n")


@dataclass(frozen=True, slots=True)
class DemoExample:
    """One paragraph, whitespace-normalised and without package names, and its package."""

    text: str
    label: str


@dataclass(frozen=True, slots=True)
class DemoTask:
    """The demo task, split.

    No text occurs twice, within a part or across parts. ``train`` and ``dev`` are stratified
    samples of 200 examples each (fewer where the interpreter has few paragraphs), ``test``
    is all the rest, several times larger so that its scores are steady. Each part holds every
    label and is ordered by a hash of the text.
    """

    train: tuple[DemoExample, ...]
    dev: tuple[DemoExample, ...]
    test: tuple[DemoExample, ...]
    domain: tuple[str, ...]
    """Unlabelled paragraphs of the rest of the standard library; none is an example's text."""
    labels: tuple[str, ...]
    """The packages to choose from, sorted."""
    missing: tuple[str, ...]
    """Those of the eight packages that this interpreter lacks (Debian splits tkinter off)."""


class DemoTaskUnavailable(DataError):  # noqa: N818 - a state of the machine, not a fault of the user's
    """This interpreter's standard library has too little documented source for the task."""


def load_demo_task(stdlib: Path | None = None) -> DemoTask:
    """Read and split the demo task from the sources in ``stdlib``.

    ``stdlib`` is the running interpreter's own standard library unless given. Takes a few
    seconds: about 700 files are parsed.

    Raises:
        DemoTaskUnavailable: fewer than two of the eight packages have at least 40 paragraphs,
            as in an embedded Python whose standard library is byte code or a zip archive.
    """
    root = Path(sysconfig.get_path("stdlib")) if stdlib is None else stdlib
    paragraphs = _read_library(root)
    domain = paragraphs.pop("", set())
    labelled = _label(paragraphs)
    if len(labelled) < 2:
        raise DemoTaskUnavailable(
            f"the demo task needs the sources of at least two of {', '.join(PACKAGES)} with "
            f"{MIN_PARAGRAPHS} paragraphs of docstrings each; {root} has them for "
            f"{', '.join(labelled) or 'none'}. Use a Python that comes with its sources "
            "(python.org, a Linux distribution's, conda), or name data of your own."
        )
    # Texts of packages too small to be labels stay out of the domain too: which text may be
    # seen unlabelled must not depend on how a distribution splits its Python packages.
    examples = {strip_package_names(text) for texts in paragraphs.values() for text in texts}
    train, dev, test = _split(labelled)
    return DemoTask(
        train=train,
        dev=dev,
        test=test,
        domain=tuple(
            sorted((t for t in domain if strip_package_names(t) not in examples), key=_rank)
        ),
        labels=tuple(sorted(labelled)),
        missing=tuple(package for package in PACKAGES if package not in labelled),
    )


def out_of_domain_paragraphs(task: DemoTask, stdlib: Path | None = None) -> tuple[str, ...]:
    """Paragraphs of the language reference that the interpreter carries for ``help()``.

    Prose about the language rather than about packages; none is a text of ``task``. Empty where
    the interpreter lacks the module, ``pydoc_data.topics``.
    """
    root = Path(sysconfig.get_path("stdlib")) if stdlib is None else stdlib
    topics = root / "pydoc_data" / "topics.py"
    if not topics.is_file():
        return ()
    nodes = ast.walk(ast.parse(topics.read_bytes()))
    constants = (node.value for node in nodes if isinstance(node, ast.Constant))
    taken = {e.text for part in (task.train, task.dev, task.test) for e in part}
    found = {
        text
        for value in constants
        if isinstance(value, str)
        for text in _paragraphs(value)
        if strip_package_names(text) not in taken
    }
    return tuple(sorted(found, key=_rank))


def _paragraphs(text: str) -> Iterator[str]:
    """The blocks between blank lines of at least 60 characters, whitespace-normalised."""
    for block in _BLANK_LINES.split(text):
        # A docstring may hold lone surrogates ("\ud800"), which no tokenizer takes.
        paragraph = " ".join(block.encode("utf-8", "replace").decode("utf-8").split())
        if len(paragraph) >= MIN_CHARACTERS:
            yield paragraph


def docstring_paragraphs(source: bytes) -> Iterator[str]:
    """Yield the paragraphs of at least 60 characters in the docstrings of a Python source.

    Each is whitespace-normalised: one line, single spaces.

    Raises:
        SyntaxError, ValueError: ``source`` is not Python of this interpreter's version, or is
            not in the encoding it declares.
    """
    with warnings.catch_warnings():
        # Parsing other people's files reports their invalid escapes; not our user's business,
        # and under ``-W error`` it would turn them into syntax errors.
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield from _paragraphs(ast.get_docstring(node) or "")


def strip_package_names(text: str) -> str:
    """Remove the eight package names, as whole words in any case, with a dot that qualifies.

    All eight go, not only the paragraph's own: the name of a *different* package would
    otherwise tell which label it is not.
    """
    return " ".join(_PACKAGE_NAME.sub("", text).split())


def _read_library(root: Path) -> dict[str, set[str]]:
    """Return the paragraphs below ``root`` by package, without files that cannot be parsed.

    The key ``""`` holds what lies outside the eight packages.
    """
    paragraphs: dict[str, set[str]] = defaultdict(set)
    for path in _sources(root):
        package = path.relative_to(root).parts[0]
        with suppress(OSError, SyntaxError, ValueError):
            found = set(docstring_paragraphs(path.read_bytes()))
            paragraphs[package if package in PACKAGES else ""] |= found
    return paragraphs


def _sources(root: Path) -> Iterator[Path]:
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [name for name in subfolders if name not in _SKIPPED_FOLDERS]
        yield from (Path(folder, name) for name in files if name.endswith(".py"))


def _label(paragraphs: Mapping[str, Iterable[str]]) -> dict[str, list[DemoExample]]:
    """Return the examples of each package that has enough, ordered by the texts' ranks.

    A text that two packages share after stripping has no one right label and is dropped.
    """
    owners: dict[str, set[str]] = defaultdict(set)
    for package, texts in paragraphs.items():
        for text in map(strip_package_names, texts):
            if len(text) >= MIN_CHARACTERS:
                owners[text].add(package)
    labelled: dict[str, list[DemoExample]] = defaultdict(list)
    for text in sorted(owners, key=_rank):
        if len(owners[text]) == 1:
            (package,) = owners[text]
            labelled[package].append(DemoExample(text, package))
    return {
        package: labelled[package]
        for package in PACKAGES
        if len(labelled[package]) >= MIN_PARAGRAPHS
    }


def _rank(text: str) -> str:
    """Order that looks random, yet is the same for every file system, hash seed and RNG."""
    return hashlib.sha256(text.encode()).hexdigest()


def _split(labelled: Mapping[str, Sequence[DemoExample]]) -> tuple[tuple[DemoExample, ...], ...]:
    """Split each package's examples in the same proportions into train, dev and test.

    Where there are too few, train and dev take two and one fifth, so that test stays the
    largest part or as large as train.
    """
    sizes = {package: len(examples) for package, examples in labelled.items()}
    total = sum(sizes.values())
    train = _quotas(sizes, min(TRAIN_SIZE, total * 2 // 5))
    dev = _quotas(sizes, min(DEV_SIZE, total // 5))
    parts: tuple[list[DemoExample], ...] = ([], [], [])
    for package, examples in labelled.items():
        first, second = train[package], train[package] + dev[package]
        parts[0].extend(examples[:first])
        parts[1].extend(examples[first:second])
        parts[2].extend(examples[second:])
    return tuple(tuple(sorted(part, key=lambda e: _rank(e.text))) for part in parts)


def _quotas(sizes: Mapping[str, int], wanted: int) -> dict[str, int]:
    """Share ``wanted`` out in proportion to ``sizes`` by the method of largest remainders."""
    total = sum(sizes.values())
    quotas = {package: size * wanted // total for package, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda p: (-(sizes[p] * wanted % total), p))
    for package in by_remainder[: wanted - sum(quotas.values())]:
        quotas[package] += 1
    return quotas
