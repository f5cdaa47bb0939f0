"""Joins the other processes, then imports what a training imports; started by torchrun.

As it exits, it says which threads are left once the processes have parted.
"""

import atexit
import sys
from pathlib import Path

import torch

from tests.support.training import processes_of_environment


def main() -> None:
    """Register what is said first, since handlers that were registered last are called first."""
    atexit.register(say, "left")
    processes = processes_of_environment(torch.device("cpu"))
    from transformers import PreTrainedModel  # noqa: F401

    processes.gather("text")
    say("joined")


def say(when: str) -> None:
    """Print torch's threads; in one piece, since the processes print to the same place."""
    sys.stdout.write(f"{when}: {threads()}\n")


def threads() -> list[str]:
    """Names of torch's threads in this process."""
    names = (file.read_text().strip() for file in Path("/proc/self/task").glob("*/comm"))
    return sorted(name for name in names if "gloo" in name)


if __name__ == "__main__":
    main()
