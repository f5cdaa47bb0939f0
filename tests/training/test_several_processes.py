"""Several processes train the model that one would have trained."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.training.several_processes import WEIGHTERS

WITHOUT_SIGNALS = ("single-task", "static", "alpha-vil", "diw")
ROOT = Path(__file__).parents[2]


def run(folder: Path, processes: int) -> Path:
    """The folder with what so many processes came to."""
    folder.mkdir()
    command = [sys.executable, "-m", "tests.training.several_processes", str(folder)]
    if processes > 1:
        launcher = ["-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
        command = [sys.executable, *launcher, "--standalone", *command[1:]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("one") / "out", 1)


@pytest.mark.parametrize("processes", [2, 3])
def test_model_and_weights_are_those_of_one_process(
    one: Path, tmp_path: Path, processes: int
) -> None:
    """With 23 rows and batches of 7, 5 and 9, which no number of processes divides."""
    several = run(tmp_path / "out", processes)
    for weighter in WEIGHTERS:
        for dtype, tolerance in (("float64", 1e-10), ("float32", 1e-5)):
            expected = load_file(one / f"{weighter}-{dtype}-0.safetensors")
            assert len(expected["cosines"]) > 10 or weighter in WITHOUT_SIGNALS
            for rank in range(processes):
                got = load_file(several / f"{weighter}-{dtype}-{rank}.safetensors")
                assert got.keys() == expected.keys()
                far = {
                    name: float((got[name] - value).abs().max())
                    for name, value in expected.items()
                    if value.numel()
                }
                assert max(far.values()) < tolerance, (weighter, dtype, rank, far)
