"""``aang prepare-encoder``: train an encoder further on unlabelled text."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from aang.cli.schema_options import given_options, options_of
from aang.cli.train import RESUMABLE_WITH

from aang_core.cli.output import echo, note, print_table
from aang_core.errors import ConfigError
from aang_core.plugins import Plugins
from aang_plugin_prepare.config import PreparationConfig, from_anywhere, resolve_preparation


@click.command(short_help="Train an encoder further on unlabelled text.")
@click.argument("model", required=False)
@options_of(PreparationConfig, skip=("model",))
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    help="continue the interrupted preparation in this folder; takes no other option but "
    "--micro-batch-size, --on-nan and --trust-remote-code",
)
@click.option("--quiet", is_flag=True, help="print only the result: no progress, no notes")
@click.option("--json", "as_json", is_flag=True, help="print the result as JSON")
@click.pass_obj
def prepare_encoder(
    plugins: Plugins,
    /,
    model: str | None,
    resume: Path | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Train the encoder MODEL further on text, with its masked-language-model objective.

    MODEL is a folder or a hub name. The result is an ordinary transformers folder, for the option
    --model of aang train and for everything else that loads a masked language model.
    """
    from aang.runs.devices import on_usable_cores
    from aang.runs.training import During, join

    from aang_core.training.interruption import Interrupted, interruptible
    from aang_plugin_prepare.preparation import (
        check_free,
        prepare_encoder,
        resume_preparation,
        unfinished_preparation,
    )
    from aang_plugin_prepare.progress import preparation_progress

    given = given_options(options)
    if resume is not None:
        if model or set(given) - RESUMABLE_WITH:
            raise ConfigError(
                "--resume: an interrupted preparation continues with its own options; leave the "
                "others out"
            )
        config = unfinished_preparation(resume, **{"trust_remote_code": False, **given})
    else:
        if model is None or "text" not in given or "out" not in given:
            raise ConfigError(
                "give the encoder, the text to train on and the output: MODEL --text FILE --out DIR"
            )
        config = resolve_preparation(from_anywhere({**given, "model": model}))
        check_free(config.out)
    click.get_current_context().with_resource(on_usable_cores())
    _, processes = join(config.device)
    processes.wait()
    quiet = quiet or not processes.first
    try:
        with interruptible() as asked, preparation_progress(config, quiet=quiet) as observe:
            say = During.say if quiet else note
            result = prepare_encoder(
                config,
                plugins.registry,
                During(say=say, interruption=asked),
                observe,
                resume=resume is not None,
            )
    except Interrupted as stopped:
        if processes.first:
            echo(str(stopped), err=True)
            if stopped.step is not None:
                echo(f"to continue:\n    {resume_preparation(config.out)}", err=True)
        raise SystemExit(stopped.status) from None
    if not processes.first:
        return
    if as_json:
        echo(json.dumps({**result, "out": str(config.out)}, indent=2))
    else:
        _print_result(result, config.out)


def _print_result(result: Mapping[str, Any], folder: Path) -> None:
    likelihood = result["log-likelihood"]
    rows = [["loss", *(f"{-likelihood[when]:.4f}" for when in ("before", "after"))]]
    if accuracy := result.get("accuracy"):
        rows.append(["accuracy", *(f"{accuracy[when]:.4f}" for when in ("before", "after"))])
    echo(
        f"Trained for {result['steps']} steps, {result['train_seconds']:.0f} s. "
        "Of masked tokens in held-out text:"
    )
    print_table(["", "before", "after"], rows)
    echo(f"The encoder is an ordinary transformers folder, {folder}:")
    echo(f"    aang train --model {folder} ...")
