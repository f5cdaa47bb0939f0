"""What a run does before its first step: read, make and try everything, and sum it up."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from aang.assembly.assembly import Assembly, assemble, load_model
from aang.assembly.source_rows import SourceReader
from aang.assembly.sources import Sources, encoder_of
from aang.config import TrainConfig
from aang.modeling.encoder import encoder_width
from aang.modeling.trained_part import trained_part
from aang.modeling.untaught import untaught_heads
from aang.runs import outcome
from aang.runs.expected import measure
from aang.runs.memory_needed import check_memory, lowering_told, memory_cost
from aang.runs.pretraining import ReadyStage, try_stages
from aang.runs.same_inputs import refuse_other_files
from aang.runs.schema import DataStatistics
from aang.runs.summary import Summary, summary_of
from aang.runs.tracking import check_trackers
from aang.runs.training import build_trainer, check_options, choose_training_device, join
from aang_core.gradients.passes import Precision
from aang_core.objectives.stages import ReadReport
from aang_core.tasks.processes import Processes
from aang_core.training.compiling import check_compiler
from aang_core.training.devices import on_usable_cores
from aang_core.training.memory_cost import MemoryCost
from aang_core.training.precision import check_precision, settle_precision


@dataclass(frozen=True)
class Prepared:
    """A run that is ready to train.

    Attributes:
        config: its options, with the precision that was chosen.
        sources: its sources; what is read from now on is reported apart.
        assembly: its model, rows, tasks and weighter.
        reader: the reader of its sources.
        first: its first stage of pre-training, if it has stages.
        report: what was noticed in the data so far.
        statistics: the content of ``data.json``.
        memory: what its training needs by the cost model.
    """

    config: TrainConfig
    sources: Sources
    assembly: Assembly
    reader: SourceReader
    first: ReadyStage | None
    report: ReadReport
    statistics: DataStatistics
    memory: MemoryCost


def check(config: TrainConfig) -> tuple[torch.device, Processes]:
    """Refuse what can be refused before anything is loaded.

    Returns:
        The device to compute on, and the processes that share the run.

    Raises:
        AangError: the device, an option, a tracker or the compiler cannot be used, here or in
            another process.
    """
    device, processes = join(config.device)
    # A machine may lack what the others have, and these would wait for it.
    with processes.all_or_none():
        check_options(config, processes)
        check_precision(config.precision, device)
        check_trackers(config.log)
        if config.compile:
            check_compiler(device)
    return device, processes


def settled_precision(config: TrainConfig) -> tuple[int, Precision]:
    """What a run would compute in on this machine; only the encoder's configuration is read.

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


def prepare(
    config: TrainConfig,
    sources: Sources,
    device: torch.device,
    processes: Processes,
    *,
    announce: Callable[[Summary], None],
    say: Callable[[str], None],
) -> Prepared:
    """Load the encoder, read and tokenise all data, make the tasks, and say what there is.

    Args:
        config: the run's options.
        sources: its sources.
        device: the device to compute on.
        processes: the processes that share the run.
        announce: called with the summary of the run.
        say: called with each note, such as a warning about the data.

    Raises:
        AangError: the model, the data or an option cannot be used.
    """
    report = sources.report
    sources = replace(sources, report=ReadReport())
    torch.manual_seed(config.seed)
    refuse_other_files(
        {"--domain": sources.domain, "--out-of-domain": sources.out_of_domain}, processes
    )
    with processes.all_or_none():
        model = load_model(config, sources)
        reader = SourceReader(config, sources, model, processes)
        first = try_stages(config, sources, reader, model)
        assembly = assemble(config, sources, model, reader)
    report.include(sources.report)
    width = int(assembly.model.body.base.config.hidden_size)
    precision, reason = settle_precision(config.precision, device, width, processes)
    config = config.model_copy(update={"precision": precision})
    memory = memory_cost(config, assembly)
    with processes.all_or_none():
        check_memory(memory, device)
    statistics = outcome.data_statistics(replace(sources, report=report), assembly)
    announce(summary_of(config, sources, assembly, statistics, str(device)))
    longest = _longest(config, assembly)
    part = trained_part(assembly.model, config.freeze_layers)
    untaught = _untaught(config, sources, assembly)
    for sentence in (reason, longest, part, untaught, *report.lines()):
        if sentence is not None:
            say(sentence)
    return Prepared(config, sources, assembly, reader, first, report, statistics, memory)


def dry_run(
    config: TrainConfig, sources: Sources, *, say: Callable[[str], None] = lambda sentence: None
) -> Summary:
    """Prepare a run, measure a few steps of its training, and write nothing.

    Args:
        config: the run's options.
        sources: its sources.
        say: called with each sentence that a user may want to read before training begins.

    Returns:
        The summary, with an estimate of time and memory. Stages of pre-training and the final
        fine-tuning are not in the estimate.

    Raises:
        AangError: the model, the data or an option cannot be used, or a step fails.
    """
    device, processes = check(config)
    summaries: list[Summary] = []
    ready = prepare(config, sources, device, processes, announce=summaries.append, say=say)
    with on_usable_cores(), lowering_told(ready.memory, device):
        trainer = build_trainer(ready.config, ready.assembly, device, processes=processes)
        expected = measure(trainer, lambda: outcome.peak_memory_bytes(device))
    return summaries[0].model_copy(update={"expected": expected})


def _longest(config: TrainConfig, assembly: Assembly) -> str | None:
    """A sentence about an encoder that takes fewer tokens than asked for; None if it does not."""
    most = assembly.model.max_length
    if config.max_length <= most:
        return None
    return f"--max-length {config.max_length} is more than the encoder's {most} tokens, which hold"


def _untaught(config: TrainConfig, sources: Sources, assembly: Assembly) -> str | None:
    """A sentence about language-model heads that start untrained; None if there are none."""
    heads = [task.head for task in assembly.auxiliaries]
    if sources.pretraining:
        heads = [assembly.model.heads.language_model() for _ in sources.pretraining]
    return untaught_heads(assembly.model, heads, sources.encoder, config.domain)
