"""``aang prepare-encoder``: continued masked-LM pre-training on the user's own text."""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import yaml
from aang.assembly.assembly import make_task
from aang.assembly.objective_task import ObjectiveTask
from aang.assembly.source_rows import SourceRows
from aang.config import read_config_file
from aang.corpora.places import find_files
from aang.modeling import TextModel, load_text_model, load_tokenizer
from aang.runs.computing import settle_precision
from aang.runs.encoder_training import EncoderRows, encoder_settings, trained_encoder
from aang.runs.files import ScoresLog
from aang.runs.inputs import refuse_other_files
from aang.runs.resume import opened
from aang.runs.training import During, checkpoints_in, join
from aang.task_types.metrics import LOG_LIKELIHOOD

from aang_core.contracts import CheckedData
from aang_core.errors import ConfigError, DataError
from aang_core.objectives.objective import Objective
from aang_core.objectives.stages import ReadReport
from aang_core.plugins.primitive import CORE
from aang_core.plugins.registry import Registry, did_you_mean
from aang_core.storage.durable import sync, writing
from aang_core.storage.lock import refuse_if_locked
from aang_core.storage.run_folder import RunFolder
from aang_core.tasks.processes import Processes
from aang_core.training.trainer import Clock, Observer, Watching
from aang_core.turns import training_turn
from aang_plugin_prepare.card import preparation_card
from aang_plugin_prepare.config import PreparationConfig, resolve_preparation
from aang_plugin_prepare.text import UnlabelledText, read_unlabelled

PREPARATION = "dapt"
"""The named objective: BERT's, on in-domain text."""

ABOUT = "preparation"
"""The folder, inside the encoder's folder, that records how the encoder was made."""

_CLASSES = ("LABEL_0", "LABEL_1")
"""transformers' default names for the classes of a model without a trained classifier."""


@training_turn()
def prepare_encoder(
    config: PreparationConfig,
    registry: Registry,
    during: During,
    observe: Callable[[Clock], Sequence[Observer]],
    *,
    resume: bool = False,
) -> dict[str, Any]:
    """Train an encoder on text and write it to ``config.out`` as an ordinary masked-LM folder.

    The folder is created only when model and text have proved usable. It holds checkpoints until
    training is over, and the model afterwards.

    Args:
        config: the options.
        registry: where the objective is looked up.
        during: receives requests to stop and messages for the user; device and processes are
            chosen here.
        observe: makes the observers, given the clock of the training.
        resume: continue an interrupted preparation.

    Returns:
        The content of ``preparation/result.json``.

    Raises:
        AangError: the model, the text or an option cannot be used, or the disk or memory is full.
        Interrupted: somebody asked to stop; a checkpoint has been written.
    """
    device, processes = join(config.device)
    during = replace(during, device=device, processes=processes)
    ours = registry.as_meant_by(CORE)
    objective, alone = Objective.parse(PREPARATION, ours), ours.weighter("single-task")
    _check_settings(config, objective)
    places = tuple(Path(place) for place in config.text)
    refuse_other_files({"--text": places}, processes)
    files = {str(f): f.stat().st_size for f in find_files(places, ("",), "--text", ReadReport())}
    report, clock = ReadReport(), Clock(config.seconds)
    with processes.all_or_none():
        config, model, text, task = _loaded(config, objective, places, report, processes)
    width = int(model.body.base.config.hidden_size)
    precision, reason = settle_precision(config.precision, device, width, processes)
    config = config.model_copy(update={"precision": precision})
    for sentence in _beginning(config, model, text, reason):
        during.say(sentence)
    with (
        during.interruption.deferred(),
        opened(
            config.out,
            resume=resume,
            processes=processes,
            place=ABOUT,
            command=resume_preparation,
            save_memory=True,  # It has no such option.
        ) as folder,
    ):
        _record_beginning(folder, config, files, resume, report)
        with trained_encoder(
            model.body.to(device),
            EncoderRows(task, replace(task, rows=text.held_out)),
            alone,
            encoder_settings(config, config),
            checkpoints_in(folder, ".", config, during),
            watching=Watching((ScoresLog(folder, ".", "held_out"), *observe(clock)), clock=clock),
            processes=processes,
        ) as trained:
            result = {
                "model": config.model,
                "objective": objective.name,
                "fresh_language_model": model.fresh_language_model,
                "text": {"places": list(config.text), "files": files}
                | text.summary(trained["steps"] * config.batch_size),
                "precision": config.precision,
                **trained,
            }
            if processes.first:
                _write_model(config.out, folder, model, task, preparation_card(config, result))
            # Written last: this file marks the preparation as finished.
            folder.write_json("result.json", result)
    if result[LOG_LIKELIHOOD]["after"] < result[LOG_LIKELIHOOD]["before"]:
        report.note("held-out text became less likely; a smaller --lr, or more text, may do better")
    for sentence in report.lines():
        during.say(sentence)
    return result


def _loaded(
    config: PreparationConfig,
    objective: Objective,
    places: Sequence[Path],
    report: ReadReport,
    processes: Processes,
) -> tuple[PreparationConfig, TextModel, UnlabelledText, ObjectiveTask]:
    """Load the encoder, read the text, and make the objective.

    Returns:
        The options, with no more tokens than the encoder takes; the encoder; the text; and the
        objective over it.
    """
    torch.manual_seed(config.seed)
    made = objective.data.make(**config.set.get(objective.data.key, {}))
    trusted = config.trust_remote_code
    model = load_text_model(
        config.model,
        load_tokenizer(config.model, trust_remote_code=trusted),
        _CLASSES,
        allow_missing_weights=config.allow_missing_weights,
        trust_remote_code=trusted,
    )
    config = config.model_copy(update={"max_length": min(config.max_length, model.max_length)})
    text = read_unlabelled(
        CheckedData(made, objective.data),
        places,
        model.tokenizer,
        max_length=config.max_length,
        batch_size=config.batch_size,
        seed=config.seed,
        report=report,
        processes=processes,
    )
    task = make_task(SourceRows(text.rows, len(_CLASSES)), objective, model, config.set)
    return config, model, text, task


def unfinished_preparation(out: Path, **over: Any) -> PreparationConfig:
    """The options of the interrupted preparation in ``out``.

    Args:
        out: its folder.
        **over: options that override them for the rest of it.

    Raises:
        ConfigError: there is no preparation in ``out``, or it has finished.
        LockedError: it is still running.
    """
    about = out / ABOUT
    if not (about / "config.yaml").is_file():
        raise ConfigError(f"--resume {out}: no encoder is being prepared there")
    if (about / "result.json").is_file():
        raise ConfigError(f"--resume {out}: the encoder is ready; there is nothing to resume")
    refuse_if_locked(about)
    return resolve_preparation({**read_config_file(about / "config.yaml"), **over, "out": out})


def check_free(out: Path) -> None:
    """Refuse a folder that is not empty, before any work is done.

    Raises:
        ConfigError: ``out`` is not empty, or not a folder.
        LockedError: an encoder is being prepared there.
    """
    about = out / ABOUT
    begun = about.is_dir() and [p.name for p in out.iterdir()] == [ABOUT]
    if begun and (about / "config.yaml").is_file() and not (about / "result.json").is_file():
        refuse_if_locked(about)
        raise ConfigError(
            f"--out {out}: a preparation was interrupted there. To go on with it:\n"
            f"    {resume_preparation(out)}\nOr give another folder, or remove it"
        )
    RunFolder.check_free(about if begun else out)


def resume_preparation(out: Path, *options: str) -> str:
    """The command that resumes the preparation in ``out``, with ``options``."""
    return shlex.join(["aang", "prepare-encoder", "--resume", str(out), *options])


def _check_settings(config: PreparationConfig, objective: Objective) -> None:
    used = {primitive.key for primitive in objective.primitives}
    for name in config.set:
        if name not in used:
            hint = did_you_mean(name, used, "it uses")
            raise ConfigError(f"--set {name}.…: preparing an encoder uses no {name!r}; {hint}")


def _beginning(
    config: PreparationConfig, model: TextModel, text: UnlabelledText, reason: str | None
) -> Iterator[str]:
    """Sentences for the user before training begins; ``reason`` explains the precision."""
    if reason is not None:
        yield reason
    if model.fresh_language_model:
        tied = "tied to its word embeddings" if model.tied_decoder else "with a decoder of its own"
        yield f"{config.model} has no language-model head, so a new one, {tied}, is made and fitted"
    what = "the text is" if text.whole else "the text begins with"
    yield (
        f"{what} {text.looked_at:,} pieces of at most {config.max_length} tokens, "
        f"{text.tokens:,} tokens in all; {len(text.held_out):,} pieces are held out"
    )


def _record_beginning(
    folder: RunFolder,
    config: PreparationConfig,
    files: Mapping[str, int],
    resume: bool,
    report: ReadReport,
) -> None:
    """Record options and files, and note if the files have changed since training began."""
    path = folder.path / "files.json"
    if resume and path.is_file():
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: is damaged: {error}") from error
        if before != files:
            report.note(
                "the files of --text have changed since training began, so the result differs from "
                "that of a preparation without an interruption"
            )
    folder.write_json("files.json", files)
    # Without --out, which is the folder that it is written to.
    options = config.model_dump(mode="json", exclude={"out"})
    folder.write_text("config.yaml", yaml.safe_dump(options))


def _write_model(
    out: Path, folder: RunFolder, model: TextModel, task: ObjectiveTask, card: str
) -> None:
    """Write the encoder and its card into ``out``, each file completely or not at all.

    ``config.json`` comes last: transformers recognises a model folder by it.
    """

    def write(draft: Path) -> None:
        model.save_language_model(draft, task.head)
        (draft / "README.md").write_text(card, encoding="utf-8")

    folder.write_folder("model", write)
    draft = folder.path / "model"
    with writing(out):
        for file in sorted(draft.iterdir(), key=lambda f: f.name == "config.json"):
            file.replace(out / file.name)
        draft.rmdir()
        sync(out)
