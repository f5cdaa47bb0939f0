"""The built-in demo task: which standard-library package does a paragraph document?

Every Python installation contains the text, so the demo needs no network and no data files. The
docstrings are read from the sources with ``ast``; nothing is imported. The names of the packages
are removed from every paragraph, otherwise the task would only be a matter of spelling.

The task depends only on the interpreter's sources: the same Python release gives the same split on
every machine, other releases give slightly different paragraphs.
"""

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
from typing import TYPE_CHECKING

from aang_core.errors import DataError
from aang_core.objectives.stages.data import Example

if TYPE_CHECKING:
    from aang.corpora import LabelledTask

PACKAGES = ("asyncio", "email", "http", "importlib", "logging", "tkinter", "unittest", "xml")

MIN_CHARACTERS = 60
"""Shorter paragraphs ("Return the result.") say nothing about where they come from."""

MIN_PARAGRAPHS = 40
"""A package with fewer paragraphs cannot fill the three parts and is left out of the task."""

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
_COMMENT = re.compile(r"[ \t]*#+!?[ \t]*(.*)")


@dataclass(frozen=True, slots=True)
class DemoTask:
    """The demo task, split into train, dev and test.

    An example is a paragraph, whitespace-normalised and without package names, and its package. No
    text occurs twice, within a part or across parts. ``train`` and ``dev`` are stratified
    samples of 200 examples each (fewer if the interpreter has few paragraphs). ``test`` is the
    rest, several times larger so that its scores are stable. Each part contains every label and is
    ordered by a hash of the text.
    """

    train: tuple[Example, ...]
    dev: tuple[Example, ...]
    test: tuple[Example, ...]
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

    It takes a few seconds, since about 700 files are parsed.

    Args:
        stdlib: folder of a standard library; by default that of the running interpreter.

    Raises:
        DemoTaskUnavailable: fewer than two of the eight packages have at least 40 paragraphs, as in
            an embedded Python whose standard library is byte code or a zip archive.
    """
    root = Path(sysconfig.get_path("stdlib")) if stdlib is None else stdlib
    paragraphs = read_library(root)
    domain = paragraphs.pop("", set())
    labelled = _label(paragraphs)
    if len(labelled) < 2:
        raise DemoTaskUnavailable(
            f"the demo task needs the sources of at least two of {', '.join(PACKAGES)} with "
            f"{MIN_PARAGRAPHS} paragraphs of docstrings each; {root} has them for "
            f"{', '.join(labelled) or 'none'}. Use a Python that comes with its sources "
            "(python.org, a Linux distribution's, conda), or name data of your own."
        )
    # Texts of packages that are too small to be labels stay out of the domain too: which text is
    # available without labels must not depend on how a distribution splits its Python packages.
    examples = {strip_package_names(text) for texts in paragraphs.values() for text in texts}
    train, dev, test = split(labelled)
    return DemoTask(
        train=train,
        dev=dev,
        test=test,
        domain=tuple(
            sorted((t for t in domain if strip_package_names(t) not in examples), key=rank)
        ),
        labels=tuple(sorted(labelled)),
        missing=tuple(package for package in PACKAGES if package not in labelled),
    )


def out_of_domain_paragraphs(task: DemoTask, stdlib: Path | None = None) -> tuple[str, ...]:
    """Paragraphs of the language reference that the interpreter contains for ``help()``.

    They are about the language and not about packages, and none is a text of ``task``. The result
    is empty if the interpreter lacks the module ``pydoc_data.topics``.
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
        for text in paragraphs_of(value)
        if strip_package_names(text) not in taken
    }
    return tuple(sorted(found, key=rank))


def paragraphs_of(text: str) -> Iterator[str]:
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
        # Parsing reports invalid escapes in the files, which do not concern the user and which
        # ``-W error`` would turn into syntax errors.
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield from paragraphs_of(ast.get_docstring(node) or "")


def strip_package_names(text: str) -> str:
    """Remove the eight package names, as whole words in any case, with a dot that qualifies.

    All eight go, not only the paragraph's own: the name of a *different* package would
    otherwise tell which label it is not.
    """
    return " ".join(_PACKAGE_NAME.sub("", text).split())


def read_library(root: Path) -> dict[str, set[str]]:
    """Return the paragraphs below ``root`` by package, without files that cannot be parsed.

    The key ``""`` holds what lies outside the eight packages.
    """
    paragraphs: dict[str, set[str]] = defaultdict(set)
    for path, package in library_sources(root):
        with suppress(OSError, SyntaxError, ValueError):
            found = set(docstring_paragraphs(path.read_bytes()))
            paragraphs[package if package in PACKAGES else ""] |= found
    return paragraphs


def library_sources(root: Path) -> Iterator[tuple[Path, str]]:
    """The Python files of a standard library, each with the package or module that it is part of.

    Args:
        root: the library's folder.
    """
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [name for name in subfolders if name not in _SKIPPED_FOLDERS]
        for path in (Path(folder, name) for name in files if name.endswith(".py")):
            yield path, path.relative_to(root).parts[0]


def _label(paragraphs: Mapping[str, Iterable[str]]) -> dict[str, list[Example]]:
    """Return the examples of each package that has enough, ordered by the texts' ranks.

    A text that two packages share after stripping has no unique label and is dropped.
    """
    owners: dict[str, set[str]] = defaultdict(set)
    for package, texts in paragraphs.items():
        for text in map(strip_package_names, texts):
            if len(text) >= MIN_CHARACTERS:
                owners[text].add(package)
    labelled: dict[str, list[Example]] = defaultdict(list)
    for text in sorted(owners, key=rank):
        if len(owners[text]) == 1:
            (package,) = owners[text]
            labelled[package].append(Example(text, label=package))
    return {
        package: labelled[package]
        for package in PACKAGES
        if len(labelled[package]) >= MIN_PARAGRAPHS
    }


def rank(text: str) -> str:
    """A hash that orders texts alike on every file system, hash seed and random generator."""
    return hashlib.sha256(text.encode()).hexdigest()


def split(labelled: Mapping[str, Sequence[Example]]) -> tuple[tuple[Example, ...], ...]:
    """Split each package's examples into train, dev and test, in the same proportions.

    If there are too few, train and dev get two fifths and one fifth, so that test is never smaller
    than train.
    """
    sizes = {package: len(examples) for package, examples in labelled.items()}
    total = sum(sizes.values())
    train = _quotas(sizes, min(TRAIN_SIZE, total * 2 // 5))
    dev = _quotas(sizes, min(DEV_SIZE, total // 5))
    parts: tuple[list[Example], ...] = ([], [], [])
    for package, examples in labelled.items():
        first, second = train[package], train[package] + dev[package]
        parts[0].extend(examples[:first])
        parts[1].extend(examples[first:second])
        parts[2].extend(examples[second:])
    return tuple(tuple(sorted(part, key=lambda e: rank(e.text))) for part in parts)


def _quotas(sizes: Mapping[str, int], wanted: int) -> dict[str, int]:
    """Distribute ``wanted`` in proportion to ``sizes``, by the method of largest remainders."""
    total = sum(sizes.values())
    quotas = {package: size * wanted // total for package, size in sizes.items()}
    by_remainder = sorted(sizes, key=lambda p: (-(sizes[p] * wanted % total), p))
    for package in by_remainder[: wanted - sum(quotas.values())]:
        quotas[package] += 1
    return quotas


class UnlabelledParagraphs:
    """The comments in the sources of the eight packages, without the packages' names.

    The docstrings of these packages are all in the task, most of them in test. Their comments are
    about the same things. Those that are also in dev or test are left out. They are read anew in
    each iteration.

    Args:
        task: the demo task.
        stdlib: folder of a standard library; by default that of the running interpreter.
    """

    def __init__(self, task: "LabelledTask", stdlib: Path | None = None) -> None:
        self._task = task
        self._root = Path(sysconfig.get_path("stdlib")) if stdlib is None else stdlib

    def __iter__(self) -> Iterator[Example]:
        """The comments of at least 60 characters, each once, ordered by a hash."""
        found: set[str] = set()
        for path, package in library_sources(self._root):
            if package in PACKAGES:
                with suppress(OSError):
                    source = path.read_text(encoding="utf-8", errors="replace")
                    found |= {strip_package_names(text) for text in comments(source)}
        for example in map(Example, sorted(found, key=rank)):
            if len(example.text) >= MIN_CHARACTERS and self._task.part_with(example) is None:
                yield example


def comments(source: str) -> Iterator[str]:
    """The paragraphs of at least 60 characters in the comments of a Python source.

    A comment is a run of lines that hold nothing else.
    """
    blocks = [""]
    for line in source.splitlines():
        match = _COMMENT.fullmatch(line)
        if match is not None:
            blocks[-1] += match[1] + "\n"
        elif blocks[-1]:
            blocks.append("")
    for block in blocks:
        yield from paragraphs_of(block)
