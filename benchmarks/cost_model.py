"""A model of a step's cost on machines we do not have: arithmetic, bytes, messages, reading.

    python -m benchmarks.cost_model

Projects training RoBERTa-base at the papers' size to 1, 8 and 64 accelerators, and reading a stream
of shards along with it.
"""

from dataclasses import dataclass

import click

from aang_core.objectives.stages import SELECTION_RATE
from benchmarks.steps.setting import Setting

SUMS = 3
"""Number of gradients that processes sum in a step: dev, end task, objectives."""
FLOAT = 4
"""Bytes per number."""


@dataclass(frozen=True)
class Cost:
    """A step's cost in parts.

    Attributes:
        shared: floating-point operations on end-task and dev rows.
        objectives: floating-point operations on auxiliary rows.
        gradient: bytes of a gradient of all trained parameters of body and heads.
        state: bytes of model, gradient sums and optimiser in a process, without activations.
    """

    shared: float
    objectives: float
    gradient: float
    state: float

    @property
    def flops(self) -> float:
        """Floating-point operations of the whole step."""
        return self.shared + self.objectives


@dataclass(frozen=True)
class Stream:
    """Shards that every process reads for itself, and the time that one core takes for it.

    Attributes:
        size: compressed bytes of all shards.
        shard: compressed bytes of a shard.
        text: compressed bytes of a text.
        reading: seconds to read a text: to decompress and to parse it.
        tokenising: seconds to tokenise a text.
        skipping: seconds to pass over a text that was read before a run was resumed.
        interleave: shards that are open at a time.
        name: bytes of a position in an open shard, most of them its path.
    """

    size: float
    shard: float
    text: float
    reading: float
    tokenising: float
    skipping: float
    interleave: int = 4
    name: int = 45

    @property
    def shards(self) -> float:
        """Files, each of which is listed and opened at the start."""
        return self.size / self.shard

    @property
    def position(self) -> int:
        """Bytes of a position in a checkpoint, which does not depend on the size."""
        return (self.interleave + 1) * self.name

    def seconds(self, rows: int, cores: int = 1) -> float:
        """Seconds that reading ``rows`` auxiliary rows adds to a step of a process, on its cores.

        Every process reads and tokenises the rows of all, so that all draw the same ones; more
        processes do not save time. One core reads; all of them tokenise.
        """
        return rows * (self.reading + self.tokenising / cores)

    def steps(self, rows: int) -> float:
        """Steps of a pass, with any number of processes."""
        return self.size / self.text / rows

    def going_on(self) -> float:
        """Most seconds until a resumed run has passed over the texts that it has read before.

        These are at most all texts of the open shards, however many others there are.
        """
        return self.interleave * self.shard / self.text * self.skipping


@dataclass(frozen=True)
class Machine:
    """A kind of accelerator and its connections.

    Attributes:
        flops: operations per second of one accelerator in such a step.
        bandwidth: bytes per second that one accelerator sends while all send.
        latency: seconds until a message starts to arrive.
    """

    flops: float
    bandwidth: float
    latency: float


def cost_of(setting: Setting, denoising: float = 2 / 3) -> Cost:
    """Compute the cost of a step.

    A layer of width H has 12 H² parameters in matrices. With each of them, a token costs two
    operations in the forward pass and four in the backward pass. Attention to T tokens costs
    another 4 T H and 8 T H.

    The argument ``denoising`` is the share of auxiliary rows with logits over the vocabulary at
    the selected tokens.
    """
    matrices = setting.layers * 12 * setting.hidden**2
    token = 6 * matrices + 12 * setting.layers * setting.tokens * setting.hidden
    decoder = 6 * setting.hidden * (setting.vocabulary + setting.hidden)
    decoded = denoising * setting.auxiliary * setting.tokens * SELECTION_RATE
    parameters = matrices + setting.vocabulary * setting.hidden
    return Cost(
        shared=(setting.end + setting.dev) * setting.tokens * token,
        objectives=setting.auxiliary * setting.tokens * token + decoded * decoder,
        gradient=FLOAT * parameters,
        # Parameters, two moments, the step's sum, the dev gradient, one task's gradient.
        state=6 * FLOAT * parameters,
    )


def share(cost: Cost, objectives: int, processes: int) -> float:
    """Share of a step's operations that the busiest process computes.

    End-task and dev rows are split evenly; an objective's rows stay on one process.
    """
    most = -(-objectives // processes) / objectives
    return (cost.shared / processes + cost.objectives * most) / cost.flops


def seconds(cost: Cost, objectives: int, processes: int, machine: Machine) -> tuple[float, float]:
    """Seconds of a step's arithmetic and of its messages, which do not overlap.

    To sum G bytes in a ring, every process sends 2 (P − 1) / P · G bytes.
    """
    arithmetic = cost.flops * share(cost, objectives, processes) / machine.flops
    if processes == 1:
        return arithmetic, 0.0
    ring = 2 * (processes - 1) / processes * cost.gradient / machine.bandwidth
    return arithmetic, SUMS * (ring + 2 * (processes - 1) * machine.latency)


PAPERS = Setting(12, 768, 24, 128, 128, 256, 128, 50265)
"""RoBERTa-base with the rows of AANG's appendix D, all of td's objectives sampled."""
ATTAINED = 0.4
H200 = 989e12
"""Peak of an NVIDIA H200 in dense bfloat16, from its data sheet."""
IN_A_NODE = Machine(ATTAINED * H200, 450e9, 5e-6)
"""NVLink: 900 GB/s both ways."""
AMONG_NODES = Machine(ATTAINED * H200, 50e9, 10e-6)
"""An adapter of 400 Gbit/s for each accelerator."""

STREAM = Stream(size=100e9, shard=50e6, text=178, reading=12e-6, tokenising=390e-6, skipping=1e-6)
"""Measured by `benchmarks.stream_reading`, on a core of a busy machine."""
CORES = 8
"""Cores for each process of a node with eight accelerators."""


@click.command()
@click.option("--rows", default=1, show_default=True, help="times the rows of the papers")
def main(rows: int) -> None:
    """Print the projection."""
    setting = Setting(
        *(PAPERS.layers, PAPERS.hidden, PAPERS.n),
        *(rows * PAPERS.end, rows * PAPERS.dev, rows * PAPERS.auxiliary),
        *(PAPERS.tokens, PAPERS.vocabulary),
    )
    cost = cost_of(setting)
    click.echo(
        f"{setting.name}: {cost.flops / 1e12:.1f} · 10¹² operations, gradient "
        f"{cost.gradient / 1e9:.2f} GB, state {cost.state / 1e9:.1f} GB"
    )
    click.echo(
        "| accelerators | share | arithmetic | messages | step | times faster "
        f"| with a stream, 1 core | {CORES} cores |"
    )
    click.echo("|" + 8 * "---|")
    alone = sum(seconds(cost, setting.n, 1, IN_A_NODE))
    for processes in (1, 8, 64):
        machine = IN_A_NODE if processes <= 8 else AMONG_NODES
        arithmetic, messages = seconds(cost, setting.n, processes, machine)
        step = arithmetic + messages
        click.echo(
            f"| {processes} | {share(cost, setting.n, processes):.3f} | {1e3 * arithmetic:.1f} ms "
            f"| {1e3 * messages:.1f} ms | {1e3 * step:.1f} ms | {alone / step:.1f} "
            f"| {1e3 * (step + STREAM.seconds(setting.auxiliary)):.1f} ms "
            f"| {1e3 * (step + STREAM.seconds(setting.auxiliary, CORES)):.1f} ms |"
        )
    click.echo(
        f"A stream of {STREAM.size / 1e9:.0f} GB in {STREAM.shards:.0f} shards: "
        f"{STREAM.steps(setting.auxiliary) / 1e6:.2f} million steps are a pass, a step reads "
        f"{STREAM.text * setting.auxiliary / 1e3:.0f} kB in each process, a position takes "
        f"{STREAM.position} bytes, and a run that is resumed passes over text for at most "
        f"{STREAM.going_on():.0f} s."
    )


if __name__ == "__main__":
    main()
