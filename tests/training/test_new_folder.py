"""The folder of a new run: the next free one, for one run alone."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from aang_core import ConfigError
from tests.support.runs import TrainConfig, new_run_folder
from tests.support.training import ALONE

CONFIG = TrainConfig(weighter="single-task", space="td", seed=3)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_runs_that_begin_together_get_folders_of_their_own() -> None:
    together = Barrier(8)

    def begin(_: int) -> str:
        together.wait()
        with new_run_folder(CONFIG, ALONE) as folder:
            together.wait()
            (folder / "config.yaml").touch()
        return folder.name

    with ThreadPoolExecutor(8) as pool:
        names = sorted(pool.map(begin, range(8)))
    base = "demo-td-single-task-seed3"
    assert names == sorted([base, *(f"{base}-{i}" for i in range(2, 9))])
    assert sorted(p.name for p in Path("runs").iterdir()) == names


def test_a_folder_in_which_nothing_was_written_is_removed() -> None:
    with new_run_folder(CONFIG, ALONE) as folder:
        assert folder.is_dir()
    assert not folder.exists()


def test_an_unfinished_run_in_the_way() -> None:
    """The user is told how to go on, besides giving another folder."""
    Path("mine").mkdir()
    Path("mine", "config.yaml").touch()
    config = CONFIG.model_copy(update={"out": Path("mine")})
    with (
        pytest.raises(ConfigError, match="--out mine: already holds files") as refused,
        new_run_folder(config, ALONE),
    ):
        pass
    assert "aang train --resume mine" in refused.value.__notes__[0]


def test_a_file_in_the_way() -> None:
    Path("runs").touch()
    with (
        pytest.raises(ConfigError, match="cannot make the run folder: Not a directory"),
        new_run_folder(CONFIG, ALONE),
    ):
        pass
