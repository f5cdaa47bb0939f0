"""``aang compare``: real trainings, in this process or in processes of their own."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from aang_plugin_compare.control_results import QUICK_CONTROLS

from aang_core.cli import main
from tests import in_process
from tests.in_process import Aang, Done
from tests.one_layer_encoder import WIDTH, write_one_layer_encoder
from tests.support.runs import recorded_config
from tests.support.storage import holder_of, locked

SIZE = {"max-length": 16, "steps": 4, "eval-every": 2, "batch-size": 4}


@pytest.fixture
def aang(monkeypatch: pytest.MonkeyPatch) -> Aang:
    """``aang``, whose runs train in this process, too."""
    monkeypatch.setattr(in_process.LAUNCHER, in_process.InProcess)
    return in_process.aang


@pytest.fixture(scope="module")
def size(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The options of a training of four steps."""
    encoder = tmp_path_factory.mktemp("encoder")
    write_one_layer_encoder(encoder)
    return {"model": str(encoder), **SIZE}


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    lines = [
        json.dumps({"text": f"{word} text number {i}", "label": word})
        for i in range(16)
        for word in ("alpha", "beta")
    ]
    path = tmp_path_factory.mktemp("task") / "train.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"train": str(path), "test": str(path)}


@pytest.fixture(scope="module")
def content(task: dict[str, object], size: dict[str, object]) -> dict[str, Any]:
    """Of a comparison of two methods and one that cannot be trained."""
    return {
        "tasks": {"words": task},
        "methods": {
            "plain": {"weighter": "single-task"},
            "aang": {"weighter": "factored"},
            "broken": {"weighter": "static", "set": {"static": {"n": 0}}},
        },
        "seeds": [0],
        "baseline": "plain",
        "options": size,
    }


def write(spec: Path, content: dict[str, Any], *methods: str, **options: object) -> Path:
    """Write a comparison of only some of its methods, with options in place of others."""
    content = content | {
        "methods": {name: content["methods"][name] for name in methods},
        "options": content["options"] | {name.replace("_", "-"): v for name, v in options.items()},
    }
    spec.write_text(yaml.safe_dump(content), encoding="utf-8")
    return spec


@dataclass(frozen=True)
class Compared:
    """A comparison that has ended: its file, its folder, and what the command said."""

    spec: Path
    root: Path
    done: Done


@pytest.fixture(scope="module", params=["here", pytest.param("processes", marks=pytest.mark.full)])
def compared(
    request: pytest.FixtureRequest,
    content: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> Compared:
    folder = tmp_path_factory.mktemp("compared")
    spec = write(folder / "spec.yaml", content, *content["methods"])
    with pytest.MonkeyPatch.context() as patched:
        if request.param == "here":
            patched.setattr(in_process.LAUNCHER, in_process.InProcess)
        done = in_process.aang("compare", spec, "--out", folder / "out", "--jobs", 2)
    return Compared(spec, folder / "out", done)


def test_failures_are_told_and_the_others_are_trained(compared: Compared) -> None:
    done, root = compared.done, compared.root
    assert done.returncode == 2
    assert "words/broken/seed-0: Error: weighter option n is 0" in done.stderr
    assert "1 of 3 runs failed" in done.stderr
    assert "words/plain/seed-0: training (run " in done.stderr
    assert "plain" in done.stdout
    assert "aang" in done.stdout
    for ending in ("txt", "md", "tex", "json"):
        assert (root / f"table.{ending}").stat().st_size > 50
    result = root / "runs" / "words" / "aang" / "seed-0" / "result.json"
    assert not (result.parent / "checkpoints").exists()
    precision = json.loads(result.read_text())["precision"]
    assert (root / "precision" / str(WIDTH) / precision).is_dir()
    assert (root / "curves.csv").read_text().splitlines()[1].startswith("words,aang,,0,0,")


def test_finished_runs_are_kept(aang: Aang, compared: Compared, tmp_path: Path) -> None:
    """Also if the baseline is a method that did not run."""
    root = tmp_path / "out"
    shutil.copytree(compared.root, root)
    result = root / "runs" / "words" / "aang" / "seed-0" / "result.json"
    written = result.stat().st_mtime_ns
    again = aang("compare", compared.spec, "--baseline", "broken", "--out", root)
    assert "words/aang/seed-0: kept" in again.stderr
    assert result.stat().st_mtime_ns == written
    assert "the baseline broken has no finished run" in again.stderr
    assert "aang" in again.stdout


def test_the_table_alone(aang: Aang, compared: Compared, tmp_path: Path) -> None:
    """Without a run of another configuration."""
    root = tmp_path / "out"
    shutil.copytree(compared.root, root)
    table = ["compare", compared.spec, "--out", root, "--table-only"]
    path = root / "runs" / "words" / "plain" / "seed-0" / "config.yaml"
    whole = path.read_text()
    path.write_text(whole.replace("\nsteps: 4\n", "\nsteps: 5\n"))
    shown = aang(*table, "--format", "json")
    path.write_text(whole)
    assert shown.returncode == 0, shown.stderr
    assert f"left out of the table: {path.parent}" in shown.stderr
    (entry,) = [e for e in json.loads(shown.stdout) if e["method"] == "plain"]
    assert (entry["dev"], entry["missing"]) == ([], 1)
    shown = aang(*table, "--format", "json")
    assert shown.returncode == 0
    assert "left out" not in shown.stderr
    methods = [entry["method"] for entry in json.loads(shown.stdout)]
    assert methods == [*QUICK_CONTROLS, "aang", "broken", "plain"]
    without = aang(*table, "--no-quick-controls")
    assert not any(name in without.stdout for name in QUICK_CONTROLS)


def test_a_run_with_other_options_is_not_taken_for_this_one(
    aang: Aang, compared: Compared, content: dict[str, Any], tmp_path: Path
) -> None:
    root = tmp_path / "out"
    shutil.copytree(compared.root, root)
    spec = write(tmp_path / "spec.yaml", content, *content["methods"], steps=5)
    done = aang("compare", spec, "--out", root)
    assert done.returncode == 2
    assert "this run differs in steps" in done.stderr


def test_runs_of_other_data_are_not_taken_for_these(
    aang: Aang, compared: Compared, content: dict[str, Any], tmp_path: Path
) -> None:
    """Although options and names of files are equal; quick controls are computed again."""
    root, train = tmp_path / "out", Path(content["tasks"]["words"]["train"])
    shutil.copytree(compared.root, root)
    before = train.read_text(encoding="utf-8")
    try:
        train.write_text("".join(before.splitlines(keepends=True)[:-2]), encoding="utf-8")
        done = aang("compare", compared.spec, "--out", root)
        shutil.rmtree(root / "runs" / "words")
        again = aang("compare", compared.spec, "--out", root)
    finally:
        train.write_text(before, encoding="utf-8")
    assert done.returncode == 2
    assert "seed-0: the data has changed since this run" in done.stderr
    assert "words/tf-idf/seed-0: done" in again.stderr


def test_an_encoder_that_is_newer_than_kept_runs_is_told(
    aang: Aang, compared: Compared, size: dict[str, object], tmp_path: Path
) -> None:
    root, encoder = tmp_path / "out", Path(str(size["model"]))
    shutil.copytree(compared.root, root)
    weights = encoder / "model.safetensors"
    before = weights.stat()
    try:
        os.utime(weights)
        done = aang("compare", compared.spec, "--out", root)
    finally:
        os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert done.stderr.count(f"{encoder} is newer than") == 1
    assert "is newer" not in aang("compare", compared.spec, "--out", root).stderr


@pytest.mark.full
def test_a_run_keeps_its_number_of_threads_whatever_the_jobs(
    content: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of several jobs gets its share of the cores; a run that goes on alone keeps its own."""
    spec = write(tmp_path / "spec.yaml", content, "plain", model=None, checkpoint_every=0)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = os.cpu_count() or 1
    options = ["--quiet", "--no-quick-controls"]
    results = []
    for name, first, then in (("one", cores, cores), ("other", cores, 1)):
        root = tmp_path / name
        run = root / "runs" / "words" / "plain" / "seed-0"
        compared = ["compare", str(spec), "--out", str(root), *options]
        with pytest.raises(SystemExit, match=r"^0$"):
            main([*compared, "--jobs", str(first)])
        assert json.loads((run / "inputs.json").read_text())["threads"] == 1
        for file in ("result.json", "evaluation.json"):
            (run / file).unlink()
        shutil.rmtree(run / "model")
        with pytest.raises(SystemExit, match=r"^0$"):
            main([*compared, "--jobs", str(then)])
        assert json.loads((run / "inputs.json").read_text())["threads"] == 1
        results.append((run / "model" / "model.safetensors").read_bytes())
    assert results[0] == results[1]


@pytest.mark.full
@pytest.mark.parametrize("how", ["killed", "its terminal is closed"])
def test_a_comparison_that_is_gone_leaves_no_run(
    content: dict[str, Any], tmp_path: Path, how: str
) -> None:
    """Its run ends with it; the next call goes on, and keeps what was logged."""
    longer = {"model": None, "steps": 20, "checkpoint_every": 0, "patience": 100}
    spec = write(tmp_path / "spec.yaml", content, "plain", **longer)
    root = tmp_path / "out"
    options = ["--out", root, "--no-quick-controls"]
    command = [sys.executable, "-m", "aang_core", "compare", spec, *options]
    ours, theirs = pty.openpty()
    # Whoever runs the tests without a terminal may have told their processes to ignore its end.
    listening = ["env", "--default-signal=HUP", *map(str, command)]
    process = subprocess.Popen(
        ["setsid", "--ctty", "--wait", *listening],
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    os.close(theirs)
    run = root / "runs" / "words" / "plain" / "seed-0"
    deadline = time.monotonic() + 600
    while not list(run.glob("checkpoints/0*")) and time.monotonic() < deadline:
        assert process.poll() is None
        time.sleep(0.01)
    comparing, training = holder_of(root), holder_of(run)
    assert comparing is not None
    assert training is not None
    if how == "killed":
        os.kill(comparing.pid, signal.SIGKILL)
    os.close(ours)
    process.wait(timeout=60)
    while not (comparing.is_gone and training.is_gone) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert comparing.is_gone
    assert training.is_gone
    assert not (run / "result.json").exists()
    before = (root / "logs" / "words" / "plain" / "seed-0.txt").read_text()
    assert before.startswith("attempt 1 on this machine")
    done = in_process.aang("compare", spec, *options)
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr
    after = (root / "logs" / "words" / "plain" / "seed-0.txt").read_text()
    assert after.startswith(before)
    assert "attempt 2 on this machine" in after
    assert len((run / "weights.jsonl").read_text().splitlines()) == 20


@pytest.mark.full
def test_an_interrupted_comparison_goes_on(content: dict[str, Any], tmp_path: Path) -> None:
    """Its run takes a checkpoint and is resumed; meanwhile no other process gets in."""
    longer = {"model": None, "steps": 60, "checkpoint_every": 1000, "patience": 100}
    spec = write(tmp_path / "spec.yaml", content, "plain", **longer)
    root = tmp_path / "out"
    asked = ["compare", spec, "--out", root, "--no-quick-controls"]
    command = [sys.executable, "-m", "aang_core", *asked]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    )
    run = root / "runs" / "words" / "plain" / "seed-0"
    deadline = time.monotonic() + 600
    while not (run / "weights.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (run / "weights.jsonl").exists(), "the run did not begin"
    refused = in_process.aang(*asked)
    assert refused.returncode == 2
    assert f"process {process.pid} on " in refused.stderr
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert f"aang compare {spec} --out {root}" in said
    assert not (run / "result.json").exists()
    told = (root / "logs" / "words" / "plain" / "seed-0.txt").read_text()
    assert "stopped by SIGTERM at step" in told, told
    (checkpoint,) = (run / "checkpoints").iterdir()
    steps = json.loads((checkpoint / "state.json").read_text())["steps"]
    assert steps == len((run / "weights.jsonl").read_text().splitlines()) > 0
    assert not list(root.rglob("lock.json"))
    done = in_process.aang(*asked)
    assert done.returncode == 0, done.stderr
    assert len((run / "weights.jsonl").read_text().splitlines()) == 60
    assert not (run / "checkpoints").exists()


def test_an_interrupt_says_how_to_go_on_and_leaves_no_lock(
    aang: Aang, content: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile no other process gets in."""
    spec = write(tmp_path / "spec.yaml", content, "plain")
    root = tmp_path / "out"
    command = ["compare", spec, "--out", root, "--no-quick-controls"]
    with monkeypatch.context() as patched:
        patched.setattr(in_process.LAUNCHER, in_process.Interrupted)
        done = aang(*command)
    assert done.returncode == 130, done.stderr
    assert f"aang compare {spec} --out {root}" in done.stderr
    assert not list(root.rglob("lock.json"))
    with locked(root):
        refused = aang(*command)
    assert refused.returncode == 2
    assert f"process {os.getpid()} on " in refused.stderr
    done = aang(*command)
    assert done.returncode == 0, done.stderr
    run = root / "runs" / "words" / "plain" / "seed-0"
    assert len((run / "weights.jsonl").read_text().splitlines()) == SIZE["steps"]


def test_runs_have_the_plugins_that_the_comparison_has(
    aang: Aang, task: dict[str, object], size: dict[str, object], tmp_path: Path
) -> None:
    """Also one from a file; and not one that is left out."""
    plugin, space = tmp_path / "mine.py", tmp_path / "mine.yaml"
    plugin.write_text(
        "from aang_core import Corruption, hookimpl, select_tokens\n"
        "class Blank:\n"
        "    def __call__(self, ids, ordinary, vocabulary, generator):\n"
        "        selected = select_tokens(ordinary, generator)\n"
        "        return Corruption(ids.masked_fill(selected, vocabulary.mask_id), selected)\n"
        "@hookimpl\n"
        "def aang_register_transforms(register):\n"
        "    register('blank', 'a transform of my own', Blank)\n",
        encoding="utf-8",
    )
    space.write_text(
        "name: mine\ndata: [task]\ntransform: [blank]\nrepresentation: [bidirectional]\n"
        "output: [denoise]\n",
        encoding="utf-8",
    )
    spec = tmp_path / "spec.yaml"
    content = {
        "tasks": {"words": task},
        "methods": {"mine": {"space": str(space), "weighter": "static"}},
        "seeds": [0],
        "options": size,
    }
    spec.write_text(yaml.safe_dump(content), encoding="utf-8")
    leave_out = ("--disable-plugin", "aang-plugin-xlnet")
    compare = ["compare", spec, "--out", tmp_path / "out", "--no-quick-controls"]
    done = aang("--plugin", plugin, *leave_out, *compare)
    assert done.returncode == 0, done.stderr
    run = tmp_path / "out" / "runs" / "words" / "mine" / "seed-0"
    (line, *_) = (run / "weights.jsonl").read_text(encoding="utf-8").splitlines()
    assert "task/blank/bidirectional/denoise" in json.loads(line)["weights"]
    plugins = json.loads((run / "plugins.json").read_text(encoding="utf-8"))["plugins"]
    states = {entry["distribution"]: entry["status"] for entry in plugins}
    assert states["aang-plugin-xlnet"] == "disabled"


def test_a_method_that_names_nothing_is_that_of_train(
    aang: Aang, size: dict[str, object], tmp_path: Path
) -> None:
    """The default recipe, which gives way to several classes a text; such a run is kept, too."""
    rows = [{"text": f"text {i}", "label": ["odd" if i % 2 else "even", "any"]} for i in range(16)]
    path, spec, root = tmp_path / "train.jsonl", tmp_path / "spec.yaml", tmp_path / "out"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    content = {
        "tasks": {"several": {"train": str(path)}},
        "methods": {"default": {}},
        "seeds": [0],
        "options": size,
    }
    spec.write_text(yaml.safe_dump(content), encoding="utf-8")
    done = aang("compare", spec, "--out", root, "--no-quick-controls")
    assert done.returncode == 0, done.stderr
    config = recorded_config(root / "runs" / "several" / "default" / "seed-0" / "config.yaml")
    assert (config.recipe, config.space, config.weighter) == (None, "td", "factored")
    again = aang("compare", spec, "--out", root, "--no-quick-controls")
    assert again.stderr.splitlines() == ["several/default/seed-0: kept"]


@pytest.mark.full
def test_files_of_the_current_folder_are_not_imported(
    task: dict[str, object], size: dict[str, object], tmp_path: Path
) -> None:
    """Neither modules nor plug-ins beside the comparison's file; those on PYTHONPATH are."""
    folder, site = tmp_path / "downloaded", tmp_path / "site"
    hook = "from aang_core import hookimpl\n@hookimpl\ndef aang_register_spaces(register): pass\n"
    plugin(folder, "stranger", f"open('ran-stranger', 'w').close()\n{hook}")
    plugin(site, "own", hook)
    for module in ("yaml", "aang_plugin_compare"):
        (folder / f"{module}.py").write_text(f"open('ran-{module}', 'w').close()\n")
    content = {
        "tasks": {"words": task},
        "methods": {"plain": {"weighter": "single-task"}},
        "seeds": [0],
        "options": size,
    }
    (folder / "spec.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    # An empty entry would be the current folder.
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = os.pathsep.join(filter(None, [str(site), *inherited]))
    done = subprocess.run(
        [sys.executable, "-P", "-m", "aang_core", "compare", "spec.yaml"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not list(folder.glob("ran-*"))
    (found,) = folder.rglob("plugins.json")
    plugins = json.loads(found.read_text(encoding="utf-8"))["plugins"]
    states = {entry["distribution"]: entry["status"] for entry in plugins}
    assert states["own"] == "ok"
    assert "stranger" not in states


def plugin(folder: Path, name: str, source: str) -> None:
    """A plug-in of one module, as a folder on Python's path would hold it."""
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[aang]\n{name} = {name}\n")
    (folder / f"{name}.py").write_text(source)


def test_the_short_form(
    aang: Aang, task: dict[str, object], size: dict[str, object], tmp_path: Path
) -> None:
    """Methods by the names of recipes and weighters; after -- the task, as aang train takes it."""
    options = [f"--{name}={value}" for name, value in {**task, **size}.items()]
    done = aang(
        *(*in_process.NO_PAGE, "compare", "--method", "single-task", "--method", "bert-style"),
        *("--seeds", 1),
        *("--baseline", "single-task", "--out", tmp_path / "out", "--format", "markdown"),
        *("--no-quick-controls", "--", *options),
    )
    assert done.returncode == 0, done.stderr
    assert "| task | bert-style |" in done.stdout
    done = aang("compare", "--method", "static", "--method", "static")
    assert done.returncode == 2
    assert "given twice" in done.stderr
    done = aang("compare")
    assert done.returncode == 2
    assert "--method" in done.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--address", "auto"], "--address: is an option of --engine ray"),
        (["--cpus-per-run", "2"], "--cpus-per-run: is an option of --engine ray"),
        (["--engine", "ray", "--gpus-per-run", "1.5"], "--gpus-per-run 1.5: give a whole number"),
        (["--engine", "ray", "--address", "here"], "--address here: is not an address"),
        (["--engine", "ray", "--address", "ray://here:10001"], "give HOST:PORT"),
        (["--engine", "ray", "--address", "127.0.0.1:1"], "127.0.0.1:1: cannot be reached"),
    ],
)
def test_options_of_a_cluster(
    options: list[str], told: str, content: dict[str, Any], tmp_path: Path
) -> None:
    """Also for a missing cluster, which is reported within seconds; no folder is made."""
    root = tmp_path / "out"
    spec = write(tmp_path / "spec.yaml", content, "plain")
    refused = in_process.aang("compare", spec, "--out", root, *options)
    assert refused.returncode == 2
    assert told in refused.stderr
    assert not root.exists()


def test_without_ray(
    content: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "ray"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "aang_plugin_compare.ray_engine", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    spec = write(tmp_path / "spec.yaml", content, "plain")
    refused = in_process.aang("compare", spec, "--engine", "ray")
    assert refused.returncode == 2
    assert "pip install 'aang-plugin-compare[ray]'" in refused.stderr
