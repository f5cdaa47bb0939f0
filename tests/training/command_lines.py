"""Runs command lines of ``aang`` one after another; started by torchrun.

Starting processes takes longer than a small training, so one start serves several of them.
"""

import json
import sys
from pathlib import Path

from aang_core.cli import main


def run(arguments: list[str]) -> None:
    try:
        main(arguments)
    except SystemExit as end:
        if end.code:
            raise


if __name__ == "__main__":
    for line in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")):
        run(line)
