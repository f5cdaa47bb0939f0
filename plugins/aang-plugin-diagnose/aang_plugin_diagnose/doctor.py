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
from joblib import cpu_count

from aang_core.cli.output import echo, one_line
from aang_core.plugins import Plugins
from aang_core.plugins.primitive import CORE

PACKAGES = (
    *(CORE, "torch", "transformers", "tokenizers", "datasets", "safetensors", "numpy", "pyarrow"),
    *("huggingface-hub", "accelerate", "peft", "ray"),
)
VARIABLES = (
    *("AANG_CACHE", "AANG_DISABLE_PLUGINS", "HF_HOME", "HF_HUB_OFFLINE", "OMP_NUM_THREADS"),
    *("OMP_WAIT_POLICY", "CUDA_VISIBLE_DEVICES", "WORLD_SIZE", "CXX"),
)
"""Environment variables that change what AANG does; none of them holds a secret."""


@click.command(short_help="Show versions, devices and plug-ins, to paste into an issue.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.pass_obj
def doctor(plugins: Plugins, as_json: bool) -> None:
    """Show the machine, torch, the device, plug-ins and caches.

    The output is Markdown, to paste into an issue. Your home folder is written as ~.
    """
    sections: dict[str, Callable[[], Mapping[str, object]]] = {
        "machine": _machine,
        "device": _device,
        "packages": lambda: {name: _version(name) for name in PACKAGES},
        "plug-ins": lambda: _plugins(plugins),
        "caches": _caches,
        "environment": lambda: {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }
    found = {title: _facts(section) for title, section in sections.items()}
    if as_json:
        echo(json.dumps(found, indent=2))
        return
    for title, facts in found.items():
        echo(f"**{title}**\n")
        for name, fact in facts.items() or [("nothing", "")]:
            echo(f"- {name}: {fact}")
        echo()


def _facts(section: Callable[[], Mapping[str, object]]) -> Mapping[str, str]:
    """The facts of a section, or the error if it fails, which is what users call the doctor for.

    The home folder is shown as ~.
    """
    try:
        facts = section()
    except Exception as error:
        facts = {"error": f"{type(error).__name__}: {error}"}
    home = os.environ.get("HOME") or "/"
    return {
        name: one_line(str(fact) if home == "/" else str(fact).replace(home, "~"))
        for name, fact in facts.items()
    }


def _machine() -> dict[str, object]:
    return {
        "system": platform.platform(),
        "processor": f"{platform.machine()}, {cpu_count()} of {os.cpu_count()} cores usable",
        "memory": _gigabytes(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
        "free here": _gigabytes(shutil.disk_usage(Path.cwd()).free),
        "Python": f"{platform.python_version()} in {sys.prefix}",
        "C++ compiler, for --compile": shutil.which(os.environ.get("CXX", "c++")) or "none",
    }


def _device() -> dict[str, object]:
    import torch
    from aang.runs.computing import gains_by_bf16
    from aang.runs.devices import on_usable_cores
    from aang.runs.training import choose_training_device

    device = choose_training_device("auto")
    facts: dict[str, object] = {"--device auto": device, "CUDA of torch": torch.version.cuda}
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        facts[f"cuda:{index}"] = f"{properties.name}, {_gigabytes(properties.total_memory)}"
    facts["bf16"] = gains_by_bf16(device, 768)[1]
    with on_usable_cores():
        return {**facts, "threads": torch.get_num_threads()}


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"


def _plugins(plugins: Plugins) -> dict[str, object]:
    facts: dict[str, object] = {}
    for record in plugins.records[1:]:
        wrong = [] if record.status == "ok" else [f"{record.status}: {record.error}"]
        told = " ".join([record.origin.version, *wrong, *record.warnings])
        facts[f"{record.origin.distribution} ({record.origin.entry_point})"] = told
    return facts


def _caches() -> dict[str, object]:
    from aang.corpora.cache import chosen_cache_folder
    from huggingface_hub.constants import HF_HUB_CACHE

    folders = {"AANG": chosen_cache_folder(), "models of the hub": Path(HF_HUB_CACHE)}
    return {name: f"{folder}, {_access(folder)}" for name, folder in folders.items()}


def _access(folder: Path) -> str:
    if not folder.is_dir():
        return "does not exist yet"
    return "can be written" if os.access(folder, os.W_OK) else "read-only"


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
