"""What a run does before its first step: read, make and try everything, and sum it up."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import nn

from aang.assembly.around_training import before_training
from aang.assembly.assembly import Assembly, assemble, load_model
from aang.assembly.source_rows import SourceReader
from aang.assembly.sources import Sources, encoder_of
from aang.config import TrainConfig
from aang.modeling.body import part_in_words
from aang.modeling.heads import LanguageModelHead
from aang.modeling.loading import encoder_width
from aang.runs import outcome
from aang.runs.computing import check_compiler, check_precision, settle_precision
from aang.runs.devices import on_usable_cores
from aang.runs.encoder_training import ready
from aang.runs.expected import measure
from aang.runs.inputs import refuse_other_files
from aang.runs.memory import refuse_too_large, running_out_told
from aang.runs.schema import DataStatistics
from aang.runs.summary import Summary, summary_of
from aang.runs.training import During, build_trainer, check_options, choose_training_device, join
from aang_core.gradients.engine import find_engine
from aang_core.gradients.passes import Precision
from aang_core.objectives.stages import ReadReport
from aang_core.plugins.registry import Registry
from aang_core.tasks.processes import Processes
from aang_core.tasks.workbench import AGAINST_DEV


def check(
    config: TrainConfig, registry: Registry, *, resumed: bool = False
) -> tuple[torch.device, Processes]:
    """Refuse what can be refused before anything is loaded.

    Args:
        config: the run's options.
        registry: everything that plug-ins have registered.
        resumed: whether an interrupted run is being resumed.

    Returns:
        The device to compute on, and the processes that share the run.

    Raises:
        AangError: the device, an option or the compiler cannot be used, here or in
            another process.
    """
    device, processes = join(config.device)
    # A machine may lack what the others have, and they would wait for it.
    with processes.all_or_none():
        check_options(config, find_engine(config.gradients, registry), processes)
        check_precision(config.precision, device)
        before_training(registry, config, resumed=resumed)
        if config.compile:
            check_compiler(device)
    return device, processes


def settled_precision(config: TrainConfig) -> tuple[int, Precision]:
    """The precision a run would use on this machine; reads only the encoder's configuration.

    Args:
        config: the run's options.

    Returns:
        The encoder's hidden size, which ``--precision auto`` goes by, and the precision.

    Raises:
        AangError: the device, the precision or the encoder cannot be used.
    """
    width = encoder_width(encoder_of(config), trust_remote_code=config.trust_remote_code)
    device = choose_training_device(config.device)
    return width, settle_precision(config.precision, device, width)[0]


def prepare(sources: Sources, during: During) -> tuple[Assembly, ReadReport, DataStatistics]:
    """Load the encoder, read and tokenise all data, make the tasks, and announce the summary.

    Args:
        sources: the run's sources.
        during: the device, the processes, and who is notified.

    Returns:
        The assembly, whose options have the chosen precision; the notes on the data read so far, to
        which later reading adds nothing; and the content of ``data.json``.

    Raises:
        AangError: the model, the data or an option cannot be used.
    """
    device, processes = during.device, during.processes
    report = sources.report
    context = replace(sources.context, report=ReadReport())
    sources = replace(sources, context=context)
    torch.manual_seed(sources.config.seed)
    places = {"--domain": context.domain, "--out-of-domain": context.out_of_domain}
    refuse_other_files(places, processes)
    with processes.all_or_none():
        model = load_model(sources)
        reader = SourceReader(sources, model, processes)
        for stage in sources.plan.pretraining:
            ready(sources, stage, reader, model)  # so that no stage fails half-way
        assembly = assemble(sources, model, reader)
    report.include(sources.report)
    width = int(model.body.base.config.hidden_size)
    precision, reason = settle_precision(sources.config.precision, device, width, processes)
    assembly = replace(assembly, sources=sources.with_options(precision=precision))
    with processes.all_or_none():
        refuse_too_large(assembly, device)
    statistics = outcome.data_statistics(assembly, report)
    during.announce(summary_of(assembly, statistics, str(device)))
    asked, most = assembly.config.max_length, model.max_length
    sentences = [reason, part_in_words(model.body, model.parts)]
    if asked > most:
        sentences.append(
            f"--max-length {asked} is more than the encoder's {most} tokens, which hold"
        )
    heads = [model.heads.language_model() for _ in sources.plan.pretraining]
    heads = heads or [task.head for task in assembly.auxiliaries]
    sentences += [untaught_heads(assembly, heads), few_other_rows(assembly)]
    for sentence in filter(None, (*sentences, *report.lines())):
        during.say(sentence)
    return assembly, report, statistics


def dry_run(sources: Sources, *, say: Callable[[str], None] = lambda sentence: None) -> Summary:
    """Prepare a run, measure a few steps of its training, and write nothing.

    Args:
        sources: the run's sources.
        say: called with each sentence that a user may want to read before training begins.

    Returns:
        The summary, with an estimate of time and memory. Stages of pre-training and the final
        fine-tuning are not in the estimate.

    Raises:
        AangError: the model, the data or an option cannot be used, or a step fails.
    """
    device, processes = check(sources.config, sources.registry)
    summaries: list[Summary] = []
    during = During(announce=summaries.append, say=say, device=device, processes=processes)
    assembly, _, _ = prepare(sources, during)
    with on_usable_cores(), running_out_told():
        trainer = build_trainer(assembly, device, processes=processes)
        expected = measure(trainer, lambda: outcome.peak_memory_bytes(device))
    return summaries[0].model_copy(update={"expected": expected})


def few_other_rows(assembly: Assembly) -> str | None:
    """A sentence if a step takes most training rows, so that few are left to fit the dev head to.

    Cosines with a dev head that was fitted to the step's own rows are negative.
    """
    config, rows = assembly.config, len(assembly.end_task)
    left = rows - config.batch_size
    measured = assembly.weighter.signals & AGAINST_DEV
    fitted_to_others = config.dev_head not in ("own-rows", "end-task")
    if not measured or not fitted_to_others or left >= config.batch_size:
        return None
    found = (
        f"leaves {left} to fit the dev head to, so the signals are noisy"
        if left > 0
        else "leaves none to fit the dev head to but its own, which makes cosines negative"
    )
    return (
        f"a step takes {min(rows, config.batch_size)} of the {rows} training rows, which {found}; "
        "a smaller --batch-size leaves more"
    )


def untaught_heads(assembly: Assembly, heads: Sequence[nn.Module]) -> str | None:
    """A sentence about the missing language-model head and how to train one; None if there is one.

    Args:
        assembly: the encoder, and the options that name it and in-domain text.
        heads: the heads of all objectives.
    """
    if not assembly.model.fresh_language_model:
        return None
    untaught = [h for h in heads if any(isinstance(m, LanguageModelHead) for m in h.modules())]
    why = (
        f"so {len(untaught)} of {len(heads)} objectives begin with an untrained one and teach the "
        "encoder little; prepare it first"
        if untaught
        else "and may not have read text of your field; preparing it first may help"
    )
    encoder, domain = assembly.sources.encoder, assembly.config.domain or ["FILE"]
    text = [part for place in domain for part in ("--text", place)]
    command = ["aang", "prepare-encoder", encoder, *text, "--out", "prepared-encoder"]
    return f"{encoder} has no language-model head, {why}: {shlex.join(command)}"
