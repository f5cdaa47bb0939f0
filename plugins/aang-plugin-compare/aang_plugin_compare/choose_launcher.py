"""Choosing the launcher that trains the runs from the command's options."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from aang_core import ConfigError
from aang_core.cli import echo
from aang_plugin_compare.launcher import Launcher
from aang_plugin_compare.local import LocalLauncher

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--engine",
        type=click.Choice(["local", "ray"]),
        default="local",
        show_default=True,
        help="where runs run: as processes of this machine, or on a Ray cluster",
    ),
    click.option(
        "--address",
        metavar="HOST:PORT",
        help="address of the Ray cluster, or auto for this machine's",
    ),
    click.option(
        "--cpus-per-run", type=click.IntRange(min=1), help="CPUs per run on Ray; default: 1"
    ),
    click.option(
        "--gpus-per-run", type=click.FloatRange(min=0), help="GPUs per run on Ray; default: 0"
    ),
)


def launcher_options(command: _Command) -> _Command:
    """Add the options that :func:`chosen_launcher` takes, without ``--jobs``, to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@contextmanager
def chosen_launcher(
    engine: str,
    root: Path,
    jobs: int | None,
    address: str | None,
    cpus: int | None,
    gpus: float | None,
) -> Iterator[Launcher]:
    """The launcher of ``--engine``; a Ray cluster stays connected inside the ``with``.

    Args:
        engine: ``local`` or ``ray``.
        root: the folder of the comparison.
        jobs: number of runs at the same time.
        address: address of the Ray cluster; None starts one on this machine.
        cpus: CPUs of each run on Ray.
        gpus: GPUs of each run on Ray.

    Raises:
        ConfigError: an option belongs to another engine, or Ray is not installed.
        AangError: there is no such cluster.
    """
    if engine == "local":
        of_ray = {"--address": address, "--cpus-per-run": cpus, "--gpus-per-run": gpus}
        if given := [name for name, value in of_ray.items() if value is not None]:
            raise ConfigError(
                f"{given[0]}: is an option of --engine ray; add that, or leave it out"
            )
        yield LocalLauncher(jobs or 1)
        return
    if gpus and gpus > 1 and not gpus.is_integer():
        raise ConfigError(f"--gpus-per-run {gpus:g}: give a whole number, or a part of one GPU")
    # Ray is an extra of this plug-in.
    from aang_plugin_compare.ray_engine import RayLauncher, ray_cluster

    with ray_cluster(address) as head:
        yield RayLauncher(
            *(root, lambda line: echo(line, err=True), head),
            cpus=cpus or 1,
            gpus=gpus or 0,
            jobs=jobs,
        )
