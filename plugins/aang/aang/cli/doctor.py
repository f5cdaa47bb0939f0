"""``aang doctor``: the machine and what is installed on it, to paste into an issue."""

import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import click

from aang_core.cli.output import echo
from aang_core.cores import usable_cores
from aang_core.errors import ConfigError
from aang_core.plugins import Plugins
from aang_core.plugins.primitive import CORE
from aang_core.printable import one_line

PACKAGES = (
    *("torch", "transformers", "tokenizers", "datasets", "safetensors", "numpy", "pyarrow"),
    *("huggingface-hub", "accelerate", "peft", "ray"),
)
VARIABLES = (
    *("AANG_CACHE", "AANG_DISABLE_PLUGINS", "HF_HOME", "HF_HUB_OFFLINE", "OMP_NUM_THREADS"),
    *("OMP_WAIT_POLICY", "CUDA_VISIBLE_DEVICES", "WORLD_SIZE", "CXX"),
)
"""Environment variables that change what AANG does; none of them holds a secret."""


@click.command(short_help="Say what this machine has, to paste into an issue.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.pass_obj
def doctor(plugins: Plugins, as_json: bool) -> None:
    """Show the machine, torch, the device, plug-ins and caches.

    The output is Markdown, to paste into an issue. Your home folder is written as ~.
    """
    sections: dict[str, Callable[[], Mapping[str, str]]] = {
        "machine": _machine,
        "device": _device,
        "packages": _packages,
        "plug-ins": lambda: _plugins(plugins),
        "caches": _caches,
        "environment": lambda: {n: _short(os.environ[n]) for n in VARIABLES if n in os.environ},
    }
    found = {title: _facts(section) for title, section in sections.items()}
    if as_json:
        echo(json.dumps(found, indent=2))
        return
    for title, facts in found.items():
        echo(f"**{title}**\n")
        for name, fact in facts.items():
            echo(f"- {name}: {fact}")
        if not facts:
            echo("- nothing")
        echo()


def _facts(section: Callable[[], Mapping[str, str]]) -> Mapping[str, str]:
    """What a section says, or what is broken: that is what somebody calls the doctor for."""
    try:
        return section()
    except Exception as error:
        return {"error": one_line(_short(f"{type(error).__name__}: {error}"))}


def _machine() -> dict[str, str]:
    free = shutil.disk_usage(Path.cwd()).free
    facts = {
        "system": platform.platform(),
        "processor": f"{_processor()}, {usable_cores()} of {os.cpu_count()} cores usable",
        "memory": _memory(),
        "free here": _size(free),
        "Python": f"{platform.python_version()} in {_short(sys.prefix)}",
    }
    compiler = next(filter(shutil.which, (os.environ.get("CXX", "c++"), "g++", "clang++")), None)
    return {**facts, "C++ compiler, for --compile": compiler or "none"}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _memory() -> str:
    try:
        return _size(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (ValueError, OSError, AttributeError):  # Windows
        return "unknown"


def _device() -> dict[str, str]:
    import torch

    from aang.runs.training import choose_training_device
    from aang_core.training.devices import on_usable_cores
    from aang_core.training.precision import gains_by_bf16

    device = choose_training_device("auto")
    facts = {"--device auto": str(device)}
    if device.type == "cuda":
        for index in range(torch.cuda.device_count()):
            properties = torch.cuda.get_device_properties(index)
            facts[f"cuda:{index}"] = f"{properties.name}, {_size(properties.total_memory)}"
        facts["CUDA"] = str(torch.version.cuda)
    elif device.type == "cpu":
        facts["torch was built for"] = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU"
    facts["bf16"] = gains_by_bf16(device, 768)[1]
    with on_usable_cores():
        return {**facts, "threads": str(torch.get_num_threads())}


def _packages() -> dict[str, str]:
    found = {name: _version(name) for name in (CORE, *PACKAGES)}
    needed = {re.split(r"[^\w.-]", line)[0] for line in requires(CORE) or [] if "extra" not in line}
    return {n: v or "not installed" for n, v in found.items() if v or n in needed}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _plugins(plugins: Plugins) -> dict[str, str]:
    return {
        f"{record.origin.distribution} ({record.origin.entry_point})": " ".join(
            [
                record.origin.version,
                *([] if record.status == "ok" else [f"{record.status}: {record.error or ''}"]),
                *record.warnings,
            ]
        )
        for record in plugins.records
        if record.origin.distribution != CORE
    }


def _caches() -> Mapping[str, str]:
    from huggingface_hub.constants import HF_HUB_CACHE

    from aang.corpora.cache import chosen_cache_folder

    hub = Path(HF_HUB_CACHE)
    found = {"models of the hub": f"{_short(hub)}, {_held(hub)}"}
    try:
        own = chosen_cache_folder()
    except ConfigError as error:
        return {"AANG": str(error), **found}
    return {"AANG": f"{_short(own)}, {_held(own)}", **found}


def _held(folder: Path) -> str:
    if not folder.is_dir():
        return "does not exist yet"
    sizes = list(_sizes(folder))
    writable = "" if os.access(folder, os.W_OK) else ", read-only"
    return f"{len(sizes)} files, {_size(sum(sizes))}{writable}"


def _sizes(folder: Path) -> Iterator[int]:
    """Bytes of each file; what is removed meanwhile, and links to other files, are left out."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if path.is_file() and not path.is_symlink():
                yield path.stat().st_size


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"


def _short(path: str | Path) -> str:
    """The path, without the name of the user in it."""
    try:
        home = str(Path.home())
    except RuntimeError:  # there is none
        return str(path)
    return str(path).replace(home, "~") if home != "/" else str(path)
