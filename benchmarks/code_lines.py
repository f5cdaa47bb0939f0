"""How large is the code? Lines of the kernel, the application and each plug-in.

    python -m benchmarks.code_lines
    python -m benchmarks.code_lines aang_core/training

Counts lines of code: blank lines, comments and docstrings are left out, and so are tests. With
folders or files as arguments it also lists each file in them.
"""

import ast
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]

SHORT = 40
"""Lines: a file with fewer is usually half an idea."""

_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(path: Path) -> int:
    """The lines of a Python file that hold code.

    Args:
        path: the file.

    Examples:
        >>> code_lines(ROOT / "aang_core" / "__main__.py") < 5
        True
    """
    source = path.read_text(encoding="utf-8")
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if ast.get_docstring(node, clean=False) is not None and first is not None:
                lines.difference_update(range(first.lineno, (first.end_lineno or 0) + 1))
    return len(lines)


def parameters(path: Path) -> Iterator[tuple[int, str]]:
    """The number of parameters of each function of a file, ``self`` left out, and its place."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            count = len([name for name in names if name not in ("self", "cls")])
            yield count, f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"


def sources(folder: Path) -> list[Path]:
    """The Python files of a folder, or the file itself, without tests."""
    files = [folder] if folder.is_file() else folder.rglob("*.py")
    return sorted(path for path in files if "tests" not in path.relative_to(ROOT).parts)


@click.command()
@click.argument("places", nargs=-1, type=click.Path(exists=True, path_type=Path))
def main(places: tuple[Path, ...]) -> None:
    """Print the table."""
    of_places = [place.resolve() for place in places]
    rooms = of_places or [ROOT / "aang_core", *sorted((ROOT / "plugins").iterdir())]
    whole = 0
    click.echo(f"{'lines':>6} {'files':>6} {f'<{SHORT}':>5}")
    for room in rooms:
        lines = {path: code_lines(path) for path in sources(room)}
        whole += sum(lines.values())
        short = sum(n < SHORT for path, n in lines.items() if path.name != "__init__.py")
        name = room.relative_to(ROOT)
        click.echo(f"{sum(lines.values()):6} {len(lines):6} {short:5} {name}")
        for path, count in lines.items() if places else ():
            click.echo(f"{count:6} {'':12} {path.relative_to(room)}")
    click.echo(f"{whole:6} in all")
    longest = max(found for room in rooms for path in sources(room) for found in parameters(path))
    click.echo(f"longest signature: {longest[0]} parameters, {longest[1]}")


if __name__ == "__main__":
    main()
