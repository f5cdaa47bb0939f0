"""``python -m aang_core`` is ``aang``."""

from aang_core.cli import main

main()
