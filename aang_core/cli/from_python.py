"""Training from Python, as the command line trains."""

from os import PathLike
from pathlib import Path
from typing import Any

from aang_core.assembly.sources import prepare_sources
from aang_core.cli.output import note
from aang_core.cli.progress import training_progress
from aang_core.config import read_config_file, resolve_training
from aang_core.plugins import load_plugins
from aang_core.runs.run import Run
from aang_core.runs.train_run import free_run_folder, train_run


def train(
    config: str | PathLike[str] | None = None, /, *, quiet: bool = True, **options: Any
) -> Run:
    """Train as ``aang train`` does, from Python.

    Args:
        config: A configuration file.
        quiet: Show no progress on standard error.
        **options: Those of ``aang train``, with underscores for dashes, and ``set`` as a mapping:
            ``train(space="td", set={"factored": {"n": 6}})``.

    Returns:
        The run, finished.

    Raises:
        AangError: Something that was named cannot be used.

    Examples:
        >>> from pathlib import Path
        >>> from aang_core import train
        >>> lines = ["text,label"] + 10 * ["It rains again.,bad", "What a fine day!,good"]
        >>> characters = Path("mood.csv").write_text("\\n".join(lines))
        >>> run = train(train="mood.csv", weighter="single-task", steps=2, out="mood")
        >>> run.result["steps"]
        2
    """
    from_file = {} if config is None else read_config_file(Path(config))
    plugins = load_plugins()
    resolved = resolve_training(from_file, options, plugins.registry)
    sources = prepare_sources(resolved, plugins.registry)
    out = free_run_folder(sources.config)
    with training_progress(quiet=quiet) as observe:
        return train_run(
            sources.config,
            sources,
            out=out,
            plugins=plugins,
            observe=observe,
            say=(lambda sentence: None) if quiet else note,
        )
