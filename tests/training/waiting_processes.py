"""Two processes, one of which waits for the other longer than torch's own limit, or in vain.

The test starts it, with what becomes of the first process: ``late``, ``failed`` or ``dead``.
"""

import os
import signal
import sys
import time
from datetime import timedelta

import torch
from torch.distributed import distributed_c10d

from tests.support.training import processes_of_environment

LIMIT = 3.0
"""Seconds that stand for the half hour of torch's own limit."""


def main(first: str) -> None:
    distributed_c10d.default_pg_timeout = timedelta(seconds=LIMIT)
    processes = processes_of_environment(torch.device("cpu"))
    processes.wait()
    if processes.first:
        if first == "failed":
            sys.exit(1)
        if first == "dead":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(2 * LIMIT)
    processes.wait()
    sys.stdout.write("met\n")


if __name__ == "__main__":
    main(sys.argv[1])
