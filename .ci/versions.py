#!/usr/bin/env python3
"""The version of the core and of every standard plug-in, which is one number.

.ci/versions.py                 check that it is the same everywhere, and print it
.ci/versions.py --tag v0.2.0    and that it is the one of a tag
.ci/versions.py --set 0.2.0     set it everywhere
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

_OWN = re.compile(r'(?m)^version = "(?P<version>[^"]+)"$')
_PINNED = re.compile(r'"(?P<name>aang-plugin-[a-z0-9-]+)==(?P<version>[^"]+)"')
_CITED = re.compile(r"(?m)^version: (?P<version>\S+)$")
_NUMBER = re.compile(r"\d+\.\d+\.\d+((a|b|rc)\d+)?")


def places(root: Path) -> dict[Path, list[re.Pattern[str]]]:
    """The files that hold the version, and how it is written in each."""
    plugins = sorted((root / "plugins").glob("*/pyproject.toml"))
    return {
        root / "pyproject.toml": [_OWN, _PINNED],
        root / "CITATION.cff": [_CITED],
        **{path: [_OWN] for path in plugins},
    }


def versions(root: Path) -> dict[str, set[str]]:
    """The versions in each file, by its path."""
    return {
        str(path.relative_to(root)): {
            match["version"]
            for pattern in patterns
            for match in pattern.finditer(path.read_text(encoding="utf-8"))
        }
        for path, patterns in places(root).items()
    }


def set_version(root: Path, version: str) -> None:
    """Write the version into every file."""
    for path, patterns in places(root).items():
        text = path.read_text(encoding="utf-8")
        for pattern in patterns:
            text = pattern.sub(lambda match: _replaced(match, version), text)
        path.write_text(text, encoding="utf-8")


def _replaced(match: re.Match[str], version: str) -> str:
    first, last = match.span("version")
    whole, start = match[0], match.start()
    return whole[: first - start] + version + whole[last - start :]


def main() -> None:
    """Check or set the version."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--set", dest="version", metavar="X.Y.Z")
    parser.add_argument("--tag", metavar="vX.Y.Z")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.version is not None:
        if not _NUMBER.fullmatch(given.version):
            sys.exit(f"--set {given.version}: give a version such as 0.2.0 or 0.2.0rc1")
        set_version(given.root, given.version)
    found = versions(given.root)
    numbers = set().union(*found.values())
    if len(numbers) != 1 or not all(found.values()):
        lines = [f"  {path}: {', '.join(sorted(of)) or 'none'}" for path, of in found.items()]
        sys.exit("the versions differ:\n" + "\n".join(lines))
    (number,) = numbers
    if given.tag is not None and given.tag != f"v{number}":
        sys.exit(f"the tag is {given.tag}, and the version is {number}")
    print(number)


if __name__ == "__main__":
    main()
