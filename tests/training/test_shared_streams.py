"""A stream of shards that several processes train on, without a launcher that watches over them."""

import gzip
import json
import shutil
import signal
import socket
from collections import Counter
from pathlib import Path

import pytest

from tests.training import recorded_rows
from tests.training.forks import Child, Forks
from tests.training.launching import flat, lines
from tests.training.resuming import after_lines, everything

SHARDS, PAPERS = 5, 16
EPOCH = SHARDS * PAPERS // 8
"""Steps of eight rows in which every text has its turn."""
LAST = f"pdf_parses_{SHARDS - 1}.jsonl"


def full_texts(shard: int, texts: list[str]) -> str:
    """The records of a shard, one paragraph a paper."""
    papers = [{"paper_id": f"{shard}-{n}", "body_text": [{"text": t}]} for n, t in enumerate(texts)]
    return "".join(json.dumps(paper) + "\n" for paper in papers)


@pytest.fixture(scope="session")
def shards(task_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of gzipped shards; the last one is not, so that a test can change a letter."""
    folder = tmp_path_factory.mktemp("shards") / "papers"
    folder.mkdir()
    texts = (task_files / "domain.txt").read_text(encoding="utf-8").splitlines()
    assert len(texts) == SHARDS * PAPERS
    for shard in range(SHARDS - 1):
        content = full_texts(shard, texts[shard * PAPERS : (shard + 1) * PAPERS])
        place = folder / f"pdf_parses_{shard}.jsonl.gz"
        place.write_bytes(gzip.compress(content.encode(), mtime=0))
    (folder / LAST).write_text(full_texts(SHARDS - 1, texts[-PAPERS:]), encoding="utf-8")
    return folder


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    folder = tmp_path / "recorded"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def streamed(train_options: list[object]) -> list[object]:
    """Blocks of forty texts, which end in the middle of two shards, and many checkpoints."""
    return [
        *("--plugin", recorded_rows.__file__, "train", *train_options, "--dropout", 0),
        *("--space", "s2orc/bert-op/bidirectional/recorded", "--weighter", "static"),
        *("--set", "s2orc.stream=true", "--set", "s2orc.buffer=43", "--set", "s2orc.interleave=2"),
        *("--steps", EPOCH, "--eval-every", EPOCH // 2, "--checkpoint-every", 0, "--quiet"),
    ]


def finished(children: list[Child]) -> None:
    assert [child.wait() for child in children] == [0] * len(children), [c.said for c in children]


def rows_of(folder: Path) -> Counter[str]:
    """How often each row was trained on, by any process."""
    return Counter(row for file in folder.iterdir() for row in file.read_text().splitlines())


@pytest.mark.full
@pytest.mark.parametrize(
    "size",
    [1, 2, 4],
)
def test_every_row_has_its_turn_once_an_epoch(
    forks: Forks, streamed: list[object], shards: Path, recorded: Path, tmp_path: Path, size: int
) -> None:
    """Whatever the number of processes, and with a buffer that is not a whole number of steps."""
    command = [*streamed, "--domain", shards, "--checkpoint-every", 1000, "--eval-every", EPOCH]
    command += ["--out", tmp_path / "run"]
    finished(forks.together(*[command] * size, RECORDED_ROWS=str(recorded)))
    seen = rows_of(recorded)
    assert (len(seen), set(seen.values())) == (SHARDS * PAPERS, {1})


@pytest.mark.full
def test_killed_in_the_middle_of_a_shard(
    forks: Forks, streamed: list[object], shards: Path, tmp_path: Path
) -> None:
    """Bit for bit as if it had not been."""
    options = [*streamed, "--domain", shards, "--steps", 2 * EPOCH]
    finished(forks.together(*[[*options, "--out", tmp_path / "whole"]] * 2))
    run = tmp_path / "run"
    children = forks.together(*[[*options, "--out", run]] * 2)
    children[0].when(after_lines(run / "weights.jsonl", EPOCH // 2 + 1))
    for child in children:
        child.signal(signal.SIGKILL)
    for child in children:
        child.wait()
    assert not (run / "result.json").exists()
    opened = position(run)["lanes"]
    assert [name for name, done in opened if 0 < done < PAPERS]
    resumed = ["--plugin", recorded_rows.__file__, "train", "--resume", run, "--quiet"]
    finished(forks.together(*[resumed] * 2))
    assert everything(run) == everything(tmp_path / "whole")


def position(run: Path) -> dict[str, list[tuple[str, int]]]:
    newest = max((run / "checkpoints").iterdir())
    state = json.loads((newest / "state.json").read_text(encoding="utf-8"))
    place: dict[str, list[tuple[str, int]]] = state["streams"]["s2orc"]
    return place


@pytest.mark.full
def test_another_number_of_processes_goes_on(
    forks: Forks, streamed: list[object], shards: Path, recorded: Path, tmp_path: Path
) -> None:
    """Four, then one: still every row once an epoch, and the logs are those of one process."""
    place, run, whole = str(recorded), tmp_path / "run", tmp_path / "whole"
    options = [*streamed, "--domain", shards]
    finished(forks.together([*options, "--out", whole]))
    children = forks.together(*[[*options, "--out", run]] * 4, RECORDED_ROWS=place)
    children[0].when(after_lines(run / "weights.jsonl", 2))
    children[1].signal(signal.SIGTERM)
    assert [child.wait() for child in children] == [128 + signal.SIGTERM] * 4
    resumed = ["--plugin", recorded_rows.__file__, "train", "--resume", run, "--quiet"]
    finished(forks.together(resumed, RECORDED_ROWS=place))
    seen = rows_of(recorded)
    assert (len(seen), set(seen.values())) == (SHARDS * PAPERS, {1})
    pairs = zip(lines(whole / "weights.jsonl"), lines(run / "weights.jsonl"), strict=True)
    for one, other in pairs:
        assert flat(other) == pytest.approx(flat(one), abs=1e-3, rel=1e-3)


def removed(folder: Path) -> None:
    (folder / LAST).unlink()


def longer(folder: Path) -> None:
    (folder / LAST).write_text((folder / LAST).read_text(encoding="utf-8") + "\n", encoding="utf-8")


def missing(folder: Path) -> None:
    shutil.rmtree(folder)


def changed(folder: Path) -> None:
    """The first shard that is read, but for its length."""
    first = folder / "pdf_parses_0.jsonl.gz"
    texts = [json.loads(line) for line in gzip.decompress(first.read_bytes()).splitlines()]
    first.write_bytes(
        gzip.compress(json.dumps(texts[0]).encode(), mtime=0).ljust(first.stat().st_size, b"\0")
    )


def later(folder: Path) -> None:
    """The last shard that is read, but for its length."""
    text = (folder / LAST).read_text(encoding="utf-8")
    (folder / LAST).write_text(text.replace("e", "a"), encoding="utf-8")


OTHERS = {
    missing: "--domain {}: no such file or folder. Relative",
    removed: f"--domain: {LAST} is missing, or differs in name or size",
    longer: f"--domain: {LAST} is missing, or differs in name or size",
    changed: "it has other data (s2orc) than the first process; process 0 runs on",
    later: "s2orc: the next 40 texts differ from those of the first process, so a file has changed",
}


def refused(children: list[Child]) -> str:
    """The line that the first process says; the others say nothing, and all end."""
    assert [child.wait() for child in children] == [2] * len(children)
    assert {child.said for child in children[1:]} == {""}
    line, *notes = children[0].said.splitlines()
    assert all("aang train --resume" in note or note.startswith("What was") for note in notes)
    return line


@pytest.mark.parametrize(
    "differ",
    [pytest.param(d, marks=[pytest.mark.full] if d in (changed, later) else []) for d in OTHERS],
    ids=lambda differ: differ.__name__,
)
def test_a_process_without_the_data(
    forks: Forks, streamed: list[object], shards: Path, tmp_path: Path, differ: object
) -> None:
    """One line says which process, on which machine, and what it lacks; nobody waits."""
    assert callable(differ)
    other, run = shutil.copytree(shards, tmp_path / "elsewhere"), tmp_path / "run"
    differ(other)
    places = [shards, shards, other] if differ is missing else [shards, other]
    children = forks.together(*([*streamed, "--domain", p, "--out", run] for p in places))
    line, rank = refused(children), len(places) - 1
    start = f"Error: process {rank} of {len(places)}, on {socket.gethostname()}: "
    assert line.startswith(start + OTHERS[differ].format(other))
    assert run.exists() == (differ is later)


def test_what_all_lack_is_told_as_if_by_one(
    forks: Forks, streamed: list[object], tmp_path: Path
) -> None:
    nothing = tmp_path / "nothing"
    command = [*streamed, "--domain", nothing, "--out", tmp_path / "run"]
    line = refused(forks.together(command, command))
    assert line.startswith(f"Error: --domain {nothing}: no such file or folder.")


def test_a_process_without_the_run_folder(forks: Forks, whole: Path, tmp_path: Path) -> None:
    commands = [["train", "--resume", run, "--quiet"] for run in (whole, tmp_path / "run")]
    line = refused(forks.together(*commands))
    assert line.startswith(f"Error: process 0 of 2, on {socket.gethostname()} (and in 1 more): ")


@pytest.fixture(scope="session")
def stopped(
    forks: Forks,
    streamed: list[object],
    shards: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A run that has come to its second block, in which the last shard is read."""
    run = tmp_path_factory.mktemp("stopped") / "run"
    child = forks.aang(*streamed, "--domain", shards, "--out", run)
    child.when(after_lines(run / "weights.jsonl", EPOCH // 2 + 1))
    child.signal(signal.SIGTERM)
    assert child.wait() == 128 + signal.SIGTERM
    return run


def both(stopped: Path, theirs: Path) -> list[list[object]]:
    """Command lines of two processes that resume what should be one run."""
    return [
        ["--plugin", recorded_rows.__file__, "train", "--resume", run, "--quiet"]
        for run in (stopped, theirs)
    ]


@pytest.mark.full
def test_a_process_that_would_go_on_with_another_text(
    forks: Forks, stopped: Path, shards: Path, tmp_path: Path
) -> None:
    """It differs after the checkpoint."""
    theirs, text = tmp_path / "theirs", shutil.copytree(shards, tmp_path / "elsewhere")
    shutil.copytree(stopped, theirs)
    later(text)
    config = theirs / "config.yaml"
    before = config.read_text(encoding="utf-8")
    config.write_text(before.replace(str(shards), str(text)), encoding="utf-8")
    line = refused(forks.together(*both(stopped, theirs)))
    start = f"Error: process 1 of 2, on {socket.gethostname()}: "
    assert line.startswith(f"{start}the texts after the checkpoint (s2orc) differ from those of")


@pytest.mark.full
def test_a_process_that_would_go_on_from_another_checkpoint(
    forks: Forks, stopped: Path, tmp_path: Path
) -> None:
    theirs = shutil.copytree(stopped, tmp_path / "theirs")
    newest = max((theirs / "checkpoints").iterdir())
    shutil.rmtree(newest)
    line = refused(forks.together(*both(stopped, theirs)))
    assert line.startswith(f"Error: process 1 of 2, on {socket.gethostname()}: it finds ")
    assert f"and the first process {newest.name}; process 0 runs on" in line


def test_an_encoder_is_not_prepared_without_the_text(
    forks: Forks, encoder: Path, shards: Path, tmp_path: Path
) -> None:
    commands = [
        ["prepare-encoder", encoder, "--text", text, "--out", tmp_path / "out", "--quiet"]
        for text in (shards, tmp_path / "nothing")
    ]
    line = refused(forks.together(*commands))
    assert line.startswith(f"Error: process 1 of 2, on {socket.gethostname()}: --text ")
    assert not (tmp_path / "out").exists()
