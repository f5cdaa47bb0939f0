"""``aang doctor``: the machine and what is installed on it, to paste into an issue."""

import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from aang.runs.cores import usable_cores
from aang_core.cli.output import echo, one_line
from aang_core.plugins import Plugins
from aang_core.plugins.primitive import CORE

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
    return {
        "system": platform.platform(),
        "processor": f"{platform.machine()}, {usable_cores()} of {os.cpu_count()} cores usable",
        "memory": _size(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
        "free here": _size(shutil.disk_usage(Path.cwd()).free),
        "Python": f"{platform.python_version()} in {_short(sys.prefix)}",
        "C++ compiler, for --compile": shutil.which(os.environ.get("CXX", "c++")) or "none",
    }


def _device() -> dict[str, str]:
    import torch

    from aang.runs.computing import gains_by_bf16
    from aang.runs.devices import on_usable_cores
    from aang.runs.training import choose_training_device

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
    found: dict[str, str] = {}
    for name in (CORE, *PACKAGES):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _plugins(plugins: Plugins) -> dict[str, str]:
    facts = {}
    for record in plugins.records[1:]:
        wrong = [] if record.status == "ok" else [f"{record.status}: {record.error}"]
        told = " ".join([record.origin.version, *wrong, *record.warnings])
        facts[f"{record.origin.distribution} ({record.origin.entry_point})"] = told
    return facts


def _caches() -> dict[str, str]:
    from huggingface_hub.constants import HF_HUB_CACHE

    from aang.corpora.cache import chosen_cache_folder

    return {"AANG": _held(chosen_cache_folder()), "models of the hub": _held(Path(HF_HUB_CACHE))}


def _held(folder: Path) -> str:
    if not folder.is_dir():
        return f"{_short(folder)}, does not exist yet"
    # Links lead to files that are counted elsewhere.
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    writable = "" if os.access(folder, os.W_OK) else ", read-only"
    size = _size(sum(path.stat().st_size for path in files))
    return f"{_short(folder)}, {len(files)} files, {size}{writable}"


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"


def _short(path: str | Path) -> str:
    """The path, without the name of the user in it."""
    home = os.environ.get("HOME", "")
    return str(path).replace(home, "~") if len(home) > 1 else str(path)
