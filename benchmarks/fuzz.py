"""Fuzzing everything that reads input from users or strangers.

    python -m benchmarks.fuzz OUT.json --inputs 10000 --seed 0 [--target NAME]

Two generators make the inputs of each target: one damages valid files, and hypothesis builds files
from scratch, a tenth as many. Every input must be accepted, or refused with an AangError, within
five seconds. OUT.json counts these for each target and lists every other outcome with its input.
Each target runs in a separate process. Results are kept, so the same command continues after an
interruption.
"""

import argparse
import base64
import itertools
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aang_core.errors import AangError
from benchmarks.fuzzing import states
from benchmarks.fuzzing.mutate import Mutator
from benchmarks.fuzzing.strategies import contents
from benchmarks.fuzzing.targets import TARGETS, Target, run_folder_check, run_folder_seeds

SECONDS = 5
MEMORY = 8 << 30
RUN_FOLDER = "run-folder"
NAMES = (*TARGETS, RUN_FOLDER, "lock", "resumed")
"""The last of these need a folder to work in."""
_FROM_SCRATCH = frozenset({*TARGETS, RUN_FOLDER})
"""The targets that hypothesis builds files for."""
_EVERY = 250


class HungError(Exception):
    """An input that took too long."""


def attempt(target: Target, path: Path, content: bytes) -> str | None:
    """Returns ``accepted`` or ``refused``; raises any other outcome."""
    path.write_bytes(content)
    try:
        with _in_time():
            target.check(path)
    except AangError:
        return "refused"
    return "accepted"


@contextmanager
def _in_time() -> Iterator[None]:
    """Limit CPU time, as other programs may run, and elapsed time to a minute, in case it hangs."""

    def stop(number: int, frame: object) -> None:
        raise HungError(f"longer than {SECONDS} s")

    timers = {
        signal.SIGPROF: (signal.ITIMER_PROF, SECONDS),
        signal.SIGALRM: (signal.ITIMER_REAL, 12 * SECONDS),
    }
    before = {number: signal.signal(number, stop) for number in timers}
    for timer, seconds in timers.values():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer, _ in timers.values():
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def fuzz(
    name: str, target: Target, inputs: int, seed: int, folder: Path, state: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Continue one target; yields its state at intervals."""
    path = folder / target.file
    kind, gz = target.kind, target.file.endswith(".gz")
    mutator = Mutator(name, target.seeds, kind, gz=gz)

    def record(engine: str, index: int, content: bytes) -> None:
        state["now"] = {"engine": engine, "index": index}
        started = time.process_time()
        try:
            outcome = attempt(target, path, content)
            state[engine][outcome] += 1
        except Exception as error:
            _add(state["faults"], error, engine, index, content)
        state["slowest"] = max(state["slowest"], round(time.process_time() - started, 3))
        state[engine]["inputs"] = index + 1

    for index in range(state["mutation"]["inputs"], inputs):
        record("mutation", index, mutator.make(seed, index))
        if index % _EVERY == 0:
            yield state
    built = inputs // 10 if name in _FROM_SCRATCH else 0
    if state["hypothesis"]["inputs"] < built:
        # Never resumed half-way, because what hypothesis does depends on earlier inputs.
        state["hypothesis"] = _counts()
        count = itertools.count()
        contents(
            name, target, built, seed, lambda content: record("hypothesis", next(count), content)
        )
    yield state


def _add(
    faults: list[dict[str, Any]], error: Exception, engine: str, index: int, content: bytes
) -> None:
    """Keep the first input of each kind of fault."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "aang_" in f.filename] or frames
    fault = {"error": type(error).__name__, "at": f"{Path(ours[-1].filename).name}:{ours[-1].name}"}
    for known in faults:
        if all(known[key] == value for key, value in fault.items()):
            known["times"] += 1
            return
    details = {"message": str(error)[:300], "engine": engine, "index": index, "times": 1}
    faults.append({**fault, **details, "input": base64.b64encode(content[:20_000]).decode()})


def _counts() -> dict[str, int]:
    return {"inputs": 0, "accepted": 0, "refused": 0}


def main() -> None:
    """Fuzz one target, or all of them in separate processes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--inputs", type=int, default=10_000, help="for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", choices=NAMES)
    options = parser.parse_args()
    if options.target is None:
        for name in NAMES:
            _in_process(name, options)
    else:
        _one(options.target, options)


def _in_process(name: str, options: argparse.Namespace) -> None:
    command = [sys.executable, "-m", "benchmarks.fuzz", str(options.out), "--target", name]
    command += ["--inputs", str(options.inputs), "--seed", str(options.seed)]
    status = subprocess.run(command, check=False).returncode
    if status < 0:
        found = _read(options.out)
        state = found[name]
        state["faults"].append({"error": signal.Signals(-status).name, "at": str(state["now"])})
        _write(options.out, found)


def _one(name: str, options: argparse.Namespace) -> None:
    # An input that exhausts memory gets a MemoryError, which counts as a fault.
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    fresh = {"mutation": _counts(), "hypothesis": _counts(), "faults": [], "slowest": 0.0}
    state = _read(options.out).get(name, fresh)
    with tempfile.TemporaryDirectory() as folder:
        target = TARGETS[name] if name in TARGETS else in_folder(name, Path(folder))
        for so_far in fuzz(name, target, options.inputs, options.seed, Path(folder), state):
            _write(options.out, {**_read(options.out), name: so_far})
    faults = sum(fault.get("times", 1) for fault in state["faults"])
    counts = [f"{engine} {state[engine]}" for engine in ("mutation", "hypothesis")]
    print(f"{name}: {', '.join(counts)}, {faults} faults, slowest {state['slowest']} s")


def in_folder(name: str, folder: Path) -> Target:
    """A target that needs a folder."""
    match name:
        case "lock":
            locks = states.lock_seeds(folder / "run")
            return Target("lock", "json", locks, states.lock_check(folder / "run"))
        case "resumed":
            return resumed(folder / "run")
    return run_folder(folder / "run")


def resumed(path: Path) -> Target:
    """The folder of a run that was interrupted after its stage of pre-training."""
    from aang import train

    options: dict[str, Any] = {"train_rows": 8, "eval_every": 1, "max_length": 16, "batch_size": 4}
    train(recipe="tapt", steps=2, set={"tapt": {"steps": 2}}, **options, out=path, quiet=True)
    (path / "result.json").unlink()
    return Target("file", "json", states.resumed_seeds(path), states.resumed_check(path))


def run_folder(path: Path) -> Target:
    """The folder of a short run of the demo, whose files targets replace."""
    from aang import train

    train(space="tapt", steps=2, eval_every=1, max_length=16, batch_size=4, out=path)
    seeds = run_folder_seeds(path)
    return Target("file", "json", seeds, run_folder_check(path))


def _read(out: Path) -> dict[str, Any]:
    return dict(json.loads(out.read_text(encoding="utf-8"))) if out.exists() else {}


def _write(out: Path, found: dict[str, Any]) -> None:
    draft = out.with_name(f".{out.name}.tmp")
    draft.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    draft.replace(out)


if __name__ == "__main__":
    main()
