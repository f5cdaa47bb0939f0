"""``aang compare``: real trainings in processes of their own."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from aang_plugin_compare.control_results import QUICK_CONTROLS

from aang_core.cli import main
from tests.support.runs import recorded_config
from tests.support.storage import holder_of

SIZE = {"model": None, "max-length": 16, "steps": 4, "eval-every": 2, "batch-size": 4}


def aang(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "aang_core", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture
def task(tmp_path: Path) -> dict[str, object]:
    lines = [
        json.dumps({"text": f"{word} text number {i}", "label": word})
        for i in range(16)
        for word in ("alpha", "beta")
    ]
    path = tmp_path / "train.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"train": str(path), "test": str(path)}


@pytest.fixture
def spec(tmp_path: Path, task: dict[str, object]) -> Path:
    path = tmp_path / "spec.yaml"
    content = {
        "tasks": {"words": task},
        "methods": {
            "plain": {"weighter": "single-task"},
            "aang": {"weighter": "factored"},
            "broken": {"weighter": "static", "set": {"static": {"n": 0}}},
        },
        "seeds": [0],
        "baseline": "plain",
        "options": {k: v for k, v in SIZE.items() if v is not None},
    }
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


@pytest.mark.full
def test_runs_are_kept_and_failures_are_told(spec: Path, tmp_path: Path) -> None:
    root = tmp_path / "out"
    first = aang("compare", spec, "--out", root, "--jobs", 2)
    assert first.returncode == 2
    assert "words/broken/seed-0: Error: weighter option n is 0" in first.stderr
    assert "1 of 3 runs failed" in first.stderr
    assert "words/plain/seed-0: training (run " in first.stderr
    assert "plain" in first.stdout
    assert "aang" in first.stdout
    for ending in ("txt", "md", "tex", "json"):
        assert (root / f"table.{ending}").stat().st_size > 50
    result = root / "runs" / "words" / "aang" / "seed-0" / "result.json"
    assert not (result.parent / "checkpoints").exists()
    precision = json.loads(result.read_text())["precision"]
    assert (root / "precision" / "192" / precision).is_dir()
    written = result.stat().st_mtime_ns
    again = aang("compare", spec, "--out", root)
    assert "words/aang/seed-0: kept" in again.stderr
    assert result.stat().st_mtime_ns == written
    _others_are_left_out(spec, root)
    shown = aang("compare", spec, "--out", root, "--table-only", "--format", "json")
    assert shown.returncode == 0
    assert "left out" not in shown.stderr
    methods = [entry["method"] for entry in json.loads(shown.stdout)]
    assert methods == [*QUICK_CONTROLS, "aang", "broken", "plain"]
    assert (root / "curves.csv").read_text().splitlines()[1].startswith("words,aang,,0,0,")
    without = aang("compare", spec, "--out", root, "--table-only", "--no-quick-controls")
    assert not any(name in without.stdout for name in QUICK_CONTROLS)


@pytest.mark.full
def test_a_run_keeps_its_number_of_threads_whatever_the_jobs(
    spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of several jobs gets its share of the cores; a run that goes on alone keeps its own."""
    content = yaml.safe_load(spec.read_text())
    content["methods"] = {"plain": content["methods"]["plain"]}
    content["options"] |= {"checkpoint-every": 0}
    spec.write_text(yaml.safe_dump(content), encoding="utf-8")
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


def _others_are_left_out(spec: Path, root: Path) -> None:
    """A run of another configuration and a score that no model can have are not in the table."""
    runs = root / "runs" / "words"
    table = ["compare", spec, "--out", root, "--table-only", "--format", "json"]
    for method, name, edit in (
        ("plain", "config.yaml", lambda text: text.replace("\nsteps: 4\n", "\nsteps: 5\n")),
        (
            "aang",
            "result.json",
            lambda text: re.sub(r'("test": )[0-9.]+', r"\g<1>250.0", text, count=1),
        ),
    ):
        path = runs / method / "seed-0" / name
        whole = path.read_text()
        path.write_text(edit(whole))
        shown = aang(*table)
        path.write_text(whole)
        assert shown.returncode == 0, shown.stderr
        assert f"left out of the table: {path.parent}" in shown.stderr
        (entry,) = [e for e in json.loads(shown.stdout) if e["method"] == method]
        assert (entry["dev"], entry["missing"]) == ([], 1)


@pytest.mark.full
@pytest.mark.parametrize("how", ["killed", "its terminal is closed"])
def test_a_comparison_that_is_gone_leaves_no_run(spec: Path, tmp_path: Path, how: str) -> None:
    """Its run ends with it; the next call goes on, and keeps what was logged."""
    content = yaml.safe_load(spec.read_text())
    content["methods"] = {"plain": content["methods"]["plain"]}
    content["options"] |= {"steps": 20, "checkpoint-every": 0, "patience": 100}
    spec.write_text(yaml.safe_dump(content), encoding="utf-8")
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
    done = aang("compare", spec, *options)
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr
    after = (root / "logs" / "words" / "plain" / "seed-0.txt").read_text()
    assert after.startswith(before)
    assert "attempt 2 on this machine" in after
    assert len((run / "weights.jsonl").read_text().splitlines()) == 20


@pytest.mark.full
def test_an_interrupted_comparison_goes_on(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its run takes a checkpoint and is resumed; meanwhile no other process gets in."""
    content = yaml.safe_load(spec.read_text())
    del content["methods"]["broken"]
    content["options"] |= {"steps": 60, "checkpoint-every": 1000, "patience": 100}
    spec.write_text(yaml.safe_dump(content), encoding="utf-8")
    root = tmp_path / "out"
    command = [sys.executable, "-m", "aang_core", "compare", spec, "--out", root]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    )
    run = root / "runs" / "words" / "plain" / "seed-0"
    deadline = time.monotonic() + 600
    while not (run / "weights.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (run / "weights.jsonl").exists(), "the run did not begin"
    with pytest.raises(SystemExit) as refused:
        main(["compare", str(spec), "--out", str(root)])
    assert refused.value.code == 2
    assert f"process {process.pid} on " in capsys.readouterr().err
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
    done = aang("compare", spec, "--out", root)
    assert done.returncode == 0, done.stderr
    assert len((run / "weights.jsonl").read_text().splitlines()) == 60
    assert not (run / "checkpoints").exists()


@pytest.mark.full
def test_a_run_with_other_options_is_not_taken_for_this_one(spec: Path, tmp_path: Path) -> None:
    root = tmp_path / "out"
    aang("compare", spec, "--out", root)
    spec.write_text(spec.read_text().replace("steps: 4", "steps: 5"), encoding="utf-8")
    done = aang("compare", spec, "--out", root)
    assert done.returncode == 2
    assert "this run differs in steps" in done.stderr


@pytest.mark.full
def test_runs_have_the_plugins_that_the_comparison_has(
    task: dict[str, object], tmp_path: Path
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
        "options": {k: v for k, v in SIZE.items() if v is not None},
    }
    spec.write_text(yaml.safe_dump(content), encoding="utf-8")
    leave_out = ("--disable-plugin", "aang-plugin-xlnet")
    done = aang("--plugin", plugin, *leave_out, "compare", spec, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    run = tmp_path / "out" / "runs" / "words" / "mine" / "seed-0"
    (line, *_) = (run / "weights.jsonl").read_text(encoding="utf-8").splitlines()
    assert "task/blank/bidirectional/denoise" in json.loads(line)["weights"]
    plugins = json.loads((run / "plugins.json").read_text(encoding="utf-8"))["plugins"]
    states = {entry["distribution"]: entry["status"] for entry in plugins}
    assert states["aang-plugin-xlnet"] == "disabled"


@pytest.mark.full
def test_a_method_that_names_nothing_is_that_of_train(tmp_path: Path) -> None:
    """The default recipe, which gives way to several classes a text; such a run is kept, too."""
    rows = [{"text": f"text {i}", "label": ["odd" if i % 2 else "even", "any"]} for i in range(16)]
    path, spec, root = tmp_path / "train.jsonl", tmp_path / "spec.yaml", tmp_path / "out"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    content = {
        "tasks": {"several": {"train": str(path)}},
        "methods": {"default": {}},
        "seeds": [0],
        "options": {k: v for k, v in SIZE.items() if v is not None},
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
    task: dict[str, object], tmp_path: Path
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
        "options": {k: v for k, v in SIZE.items() if v is not None},
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


@pytest.mark.full
def test_the_short_form(task: dict[str, object], tmp_path: Path) -> None:
    """Methods by the names of recipes and weighters; after -- the task, as aang train takes it."""
    options = [f"--{name}={value}" for name, value in {**task, **SIZE}.items() if value is not None]
    done = aang(
        *("compare", "--method", "single-task", "--method", "bert-style", "--seeds", 1),
        *("--baseline", "single-task", "--out", tmp_path / "out", "--format", "markdown"),
        *("--", *options),
    )
    assert done.returncode == 0, done.stderr
    assert "| task | bert-style |" in done.stdout
    done = aang("compare", "--method", "static", "--method", "static")
    assert done.returncode == 2
    assert "given twice" in done.stderr
    done = aang("compare")
    assert done.returncode == 2
    assert "--method" in done.stderr


@pytest.mark.full
def test_a_baseline_that_did_not_run(spec: Path, tmp_path: Path) -> None:
    root = tmp_path / "out"
    done = aang("compare", spec, "--baseline", "broken", "--out", root)
    assert "the baseline broken has no finished run" in done.stderr
    assert "aang" in done.stdout


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
    options: list[str], told: str, spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also for a missing cluster, which is reported within seconds; no folder is made."""
    root = tmp_path / "out"
    with pytest.raises(SystemExit) as refused:
        main(["compare", str(spec), "--out", str(root), *options])
    assert refused.value.code == 2
    assert told in capsys.readouterr().err
    assert not root.exists()


def test_without_ray(
    spec: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "ray"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "aang_plugin_compare.ray_engine", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SystemExit) as refused:
        main(["compare", str(spec), "--engine", "ray"])
    assert refused.value.code == 2
    assert "pip install 'aang-plugin-compare[ray]'" in capsys.readouterr().err
