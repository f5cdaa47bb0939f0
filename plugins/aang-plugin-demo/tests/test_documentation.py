import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from aang_core import AangError, Example
from tests.support.data import (
    DEV_SIZE,
    MIN_CHARACTERS,
    PACKAGES,
    TRAIN_SIZE,
    DemoTask,
    DemoTaskUnavailable,
    LabelledTask,
    UnlabelledParagraphs,
    comments,
    load_demo_task,
    strip_package_names,
)

DIGEST_UNDER_SHUFFLED_LISTINGS = """
import hashlib, os, random

class Shuffled:
    scandir = os.scandir
    def __init__(self, folder):
        with Shuffled.scandir(folder) as entries:
            self.entries = list(entries)
        random.shuffle(self.entries)
    def __enter__(self):
        return self
    def __exit__(self, *error):
        pass
    def __iter__(self):
        return self
    def __next__(self):
        if not self.entries:
            raise StopIteration
        return self.entries.pop()

os.scandir = Shuffled
from aang_plugin_demo.documentation import load_demo_task
print(hashlib.sha256(repr(load_demo_task()).encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def task() -> DemoTask:
    return load_demo_task()


def run_python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def write_library(root: Path, sources: Mapping[str, str | bytes]) -> Path:
    for name, source in sources.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source if isinstance(source, bytes) else source.encode())
    return root


def module(*paragraphs: str) -> str:
    return repr("\n\n".join(paragraphs)) + "\n"


def paragraphs(subject: str, count: int = 50) -> list[str]:
    return [
        f"Paragraph {i} says something about {subject} at sufficient length to be counted."
        for i in range(count)
    ]


class TestThisInterpreter:
    def test_sizes_are_those_of_a_low_resource_task(self, task: DemoTask) -> None:
        assert len(task.train) == TRAIN_SIZE
        assert len(task.dev) == DEV_SIZE
        assert len(task.test) > 2 * TRAIN_SIZE
        assert len(task.domain) > 3_000

    def test_every_package_is_found_or_missing(self, task: DemoTask) -> None:
        assert sorted((*task.labels, *task.missing)) == sorted(PACKAGES)

    def test_each_part_holds_every_label_in_the_same_proportion(self, task: DemoTask) -> None:
        everything = [*task.train, *task.dev, *task.test]
        overall = Counter(example.label for example in everything)
        for part in (task.train, task.dev, task.test):
            counts = Counter(example.label for example in part)
            assert set(counts) == set(task.labels)
            for label in task.labels:
                expected = overall[label] * len(part) / len(everything)
                assert abs(counts[label] - expected) <= 2

    def test_no_text_occurs_twice(self, task: DemoTask) -> None:
        texts = [example.text for part in (task.train, task.dev, task.test) for example in part]
        assert len(set(texts)) == len(texts)
        assert len(set(task.domain)) == len(task.domain)
        assert not set(texts) & set(task.domain)
        assert not set(texts) & {strip_package_names(text) for text in task.domain}

    def test_no_text_names_a_package(self, task: DemoTask) -> None:
        name = re.compile(rf"\b({'|'.join(PACKAGES)})\b", re.IGNORECASE)
        for part in (task.train, task.dev, task.test):
            assert [example for example in part if name.search(example.text)] == []

    def test_texts_are_single_lines_of_some_length_that_encode(self, task: DemoTask) -> None:
        examples = [example.text for part in (task.train, task.dev, task.test) for example in part]
        for text in (*examples, *task.domain):
            assert text == " ".join(text.split())
            assert len(text) >= MIN_CHARACTERS
            text.encode()

    @pytest.mark.full
    def test_order_of_folders_hash_seed_and_random_state_do_not_matter(
        self, task: DemoTask
    ) -> None:
        own = run_python(
            "import hashlib; from aang_plugin_demo.documentation import load_demo_task;"
            "print(hashlib.sha256(repr(load_demo_task()).encode()).hexdigest())",
            PYTHONHASHSEED="1",
        )
        assert run_python(DIGEST_UNDER_SHUFFLED_LISTINGS, PYTHONHASHSEED="2") == own
        assert load_demo_task() == task

    def test_heavy_libraries_stay_unimported(self) -> None:
        heavy = run_python(
            "import sys, aang_plugin_demo.documentation as demo; demo.docstring_paragraphs(b'');"
            "print({'torch', 'transformers', 'datasets', 'numpy'} & set(sys.modules))"
        )
        assert heavy == "set()"


class TestStripping:
    @pytest.mark.parametrize(
        ("text", "stripped"),
        [
            ("Use asyncio.run() here.", "Use run() here."),
            ("An EMAIL message, by Email.", "An message, by ."),
            ("See xml.dom.minidom and logging.", "See dom.minidom and ."),
            ("importlib.metadata. Then http.client", "metadata. Then client"),
            ("XMLParser, httpd and emails are words of their own.",) * 2,
        ],
    )
    def test_whole_words_go_and_the_rest_stays(self, text: str, stripped: str) -> None:
        assert strip_package_names(text) == stripped


class TestOtherLibraries:
    def test_missing_packages_are_named_and_the_rest_is_split(self, tmp_path: Path) -> None:
        library = write_library(
            tmp_path,
            {
                "email/a.py": module(*paragraphs("messages")),
                "xml/sax/b.py": module(*paragraphs("elements", 100)),
                "http/c.py": module(*paragraphs("requests", 39)),
                "heapq.py": module(*paragraphs("queues")),
            },
        )
        task = load_demo_task(library)
        assert task.labels == ("email", "xml")
        assert set(task.missing) == set(PACKAGES) - {"email", "xml"}
        assert (len(task.train), len(task.dev), len(task.test)) == (60, 30, 60)
        assert Counter(e.label for e in task.train) == {"email": 20, "xml": 40}
        assert sorted(task.domain) == sorted(paragraphs("queues"))

    def test_order_of_folders_does_not_matter(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of a small library; that of this interpreter is read in other processes too."""
        files = {
            f"{package}/{part}.py": module(*paragraphs(f"{package[::-1]} in {part}", 30))
            for package in ("email", "xml", "http", "heapq")
            for part in "abc"
        }
        library = write_library(tmp_path, files)
        task, scandir = load_demo_task(library), os.scandir
        listed: list[str] = []

        class Backwards(ExitStack):
            """A listing as ``os.walk`` reads it: a context, and an iterator."""

            def __init__(self, folder: str) -> None:
                super().__init__()
                entries = list(self.enter_context(scandir(folder)))
                self._entries = iter(sorted(entries, key=lambda entry: entry.name, reverse=True))
                listed.append(folder)

            def __next__(self) -> os.DirEntry[str]:
                return next(self._entries)

        monkeypatch.setattr(os, "scandir", Backwards)
        assert load_demo_task(library) == task
        assert len(listed) == 5

    def test_text_of_a_package_too_small_to_be_a_label_is_in_no_part(self, tmp_path: Path) -> None:
        shared = "Small packages' texts depend on how a distribution splits its Python up."
        library = write_library(
            tmp_path,
            {
                "email/a.py": module(*paragraphs("messages")),
                "xml/b.py": module(*paragraphs("elements")),
                "http/c.py": module(shared),
                "heapq.py": module(shared, *paragraphs("queues")),
            },
        )
        task = load_demo_task(library)
        assert shared not in task.domain
        assert shared not in {e.text for part in (task.train, task.dev, task.test) for e in part}

    def test_a_paragraph_of_two_packages_is_dropped_from_both(self, tmp_path: Path) -> None:
        library = write_library(
            tmp_path,
            {
                "email/a.py": module(*paragraphs("the email package")),
                "xml/b.py": module(*paragraphs("the xml package", 30), *paragraphs("elements")),
                "http/c.py": module(*paragraphs("requests")),
            },
        )
        task = load_demo_task(library)
        assert task.labels == ("http", "xml")
        texts = {e.text for part in (task.train, task.dev, task.test) for e in part}
        assert not {t for t in texts if "the package" in t}
        assert len(texts) == 100

    def test_unusable_files_are_left_out_and_tests_are_not_read(self, tmp_path: Path) -> None:
        library = write_library(
            tmp_path,
            {
                "email/a.py": module(*paragraphs("messages")),
                "xml/b.py": module(*paragraphs("elements")),
                "xml/syntax.py": "def broken(:\n",
                "xml/null.py": b"x = '\0'\n",
                "xml/undecodable.py": b"# coding: utf-8\n'\xff'\n",
                "xml/no_codec.py": "# coding: no-such-codec\n",
                "xml/escapes.py": "'\\d is an invalid escape, which must not warn'\n",
                "xml/surrogate.py": "'" + "A lone surrogate \\ud800 is no text. " * 3 + "'\n",
                "xml/tests/c.py": module(*paragraphs("tests of elements")),
                "test/d.py": module(*paragraphs("tests")),
                "site-packages/e.py": module(*paragraphs("other packages")),
            },
        )
        task = load_demo_task(library)
        assert task.domain == ()
        assert len(task.train) + len(task.dev) + len(task.test) == 101

    @pytest.mark.parametrize("present", [(), ("xml",)])
    def test_too_few_packages_are_an_error_that_says_what_to_do(
        self, tmp_path: Path, present: tuple[str, ...]
    ) -> None:
        library = write_library(
            tmp_path, {f"{name}/a.py": module(*paragraphs(name)) for name in present}
        )
        with pytest.raises(DemoTaskUnavailable, match=re.escape(str(library))) as caught:
            load_demo_task(library)
        assert isinstance(caught.value, AangError)
        assert "comes with its sources" in str(caught.value)


def test_comments_are_paragraphs() -> None:
    """Lines of comments that follow each other are one, an empty comment line ends a paragraph."""
    long = "what this does is not obvious at all, which is why there is a comment"
    source = f'#! {long}\n# {long}\nx = 1  # {long}\n  # {long} too\n  #\n  # {long} 3\n# short\n"'
    assert list(comments(source)) == [f"{long} {long}", f"{long} too", f"{long} 3 short"]


def test_the_demo_has_comments_of_its_packages(tmp_path: Path) -> None:
    long = "Whatever is said about http and sockets in this comment is long enough for a text."
    other = "A comment of a package that is not among the classes of the task, long enough too."
    for package, text in (("http", long), ("http/sub", f"{long} Twice"), ("json", other)):
        (tmp_path / package).mkdir(parents=True)
        (tmp_path / package / "module.py").write_text(f"# {text}\n", encoding="utf-8")
    stripped = strip_package_names(long)
    assert len(stripped) >= MIN_CHARACTERS
    dev = (Example(stripped.upper(), label="http"),)
    task = LabelledTask("demo", (), dev, (), ("http",))
    found = UnlabelledParagraphs(task, tmp_path)
    assert [example.text for example in found] == [f"{stripped} Twice"]
