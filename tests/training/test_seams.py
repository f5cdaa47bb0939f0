"""What primitives hand over is checked where the core takes it: named, with expected and got."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from aang_testing import RecordingWorkbench, SampleRows, SmallHeads
from torch import Generator, Tensor, nn

from aang_core import (
    CorruptedRows,
    Corruption,
    Data,
    DataContext,
    DocumentStatistics,
    Example,
    HeadBuilder,
    Output,
    PluginError,
    Primitive,
    Representation,
    RowLosses,
    ShownRows,
    Stage,
    StepSignals,
    StepwiseWeighter,
    TaggedWord,
    TaskCard,
    Vocabulary,
    load_plugins,
)
from tests.plugins_layer.made_up import primitive
from tests.support.data import task_type_named
from tests.support.plugins import (
    CheckedData,
    CheckedOutput,
    CheckedRepresentation,
    CheckedTransform,
    CheckedWeighter,
    WeighterError,
)
from tests.support.runs import assemble, prepare_sources, rehearse, resolve_config
from tests.support.spaces import NoOp
from tests.training.conftest import Aang

ROWS = SampleRows.of_lengths([6, 3], tokens=6, seed=0)
HIDDEN = 8


def told(stage: Stage, expected: str, got: str) -> str:
    """A pattern for a message that names primitive and distribution, expected and got."""
    return (
        rf"(?s)^{stage} mine of aang-plugin-x 1\.0: .*expected {expected}, got {got}\. "
        r"This is for the authors of aang-plugin-x to repair; --disable-plugin x"
    )


def mine(stage: Stage, target: Callable[..., Any] = dict) -> Primitive:
    return primitive(stage, "mine", target=target)


Call = Callable[[Tensor, Tensor, Vocabulary, Generator], Any]


def transformed(call: Call, times: int = 1) -> Corruption:
    checked = CheckedTransform(call, mine("transform"))
    for _ in range(times):
        ids = ROWS.ids.clone()
        corruption = checked(ids, ROWS.ordinary, ROWS.vocabulary, Generator().manual_seed(0))
    return corruption


def in_place(ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, _: Generator) -> Corruption:
    return Corruption(ids.fill_(vocabulary.mask_id), ordinary)


@pytest.mark.parametrize(
    ("call", "expected", "got"),
    [
        (lambda i, o, v, g: None, "a Corruption of ids and selected", "None"),
        (lambda i, o, v, g: i, "a Corruption of ids and selected", r"\[2, 6\] of int64"),
        (
            lambda i, o, v, g: (i[:, :3], o),
            r"a tensor \[B, T\] = \[2, 6\] of int64",
            r"\[2, 3\] .*",
        ),
        (lambda i, o, v, g: (i.float(), o), r"a tensor .* of int64", r"\[2, 6\] of float32"),
        (lambda i, o, v, g: (i, o.any(1)), r"a tensor .* of bool", r"\[2\] of bool"),
        (lambda i, o, v, g: (i, o.long()), r"a tensor .* of bool", r"\[2, 6\] of int64"),
        (lambda i, o, v, g: (i.tolist(), o), r"a tensor .* of int64", r".*"),
        (lambda i, o, v, g: (i + v.size, o), "token ids from 0 to 39", r"\d+"),
        (lambda i, o, v, g: (i - 9, o), "token ids from 0 to 39", r"-\d+"),
        (lambda i, o, v, g: (i, ~o), "ordinary tokens alone", "a special token or padding"),
        (in_place, "left as it was", "changed in place"),
        (lambda i, o, v, g: (i, o, o, None, None), "a Corruption of ids and selected", r".*"),
        (lambda i, o, v, g: (i, o, o.long()), r"a tensor .* of bool", r"\[2, 6\] of int64"),
        (
            lambda i, o, v, g: Corruption(i, o, origin=i[:, :3]),
            r"a tensor \[B, T'\] = \[2, 3\] of int64",
            r"\[2, 6\] of int64",
        ),
        (
            lambda i, o, v, g: Corruption(i, o, origin=torch.full_like(i, 6)),
            "places from 0 to 5, or -1 for an inserted token",
            "6",
        ),
        (
            lambda i, o, v, g: Corruption(i, o, origin=torch.full_like(i, -1)),
            "ordinary tokens alone",
            "a special token or padding, or an inserted token",
        ),
        (
            lambda i, o, v, g: Corruption(i, o, real=~o),
            "tokens that are left",
            "one that real says is gone",
        ),
    ],
)
def test_a_transform_that_breaks_its_contract(call: Call, expected: str, got: str) -> None:
    with pytest.raises(PluginError, match=told("transform", expected, got)):
        transformed(call)


@pytest.mark.parametrize(
    ("call", "expected", "got"),
    [
        (lambda r, g: r, r"a tensor \[B, T, T\] = \[2, 6, 6\] of bool", r"\[2, 6\] of bool"),
        (lambda r, g: sees(r).float(), r"a tensor .* of bool", r"\[2, 6, 6\] of float32"),
        (lambda r, g: sees(r)[:1], r"a tensor .* of bool", r"\[1, 6, 6\] of bool"),
        (lambda r, g: torch.ones_like(sees(r)), "seen by nobody", "seen by a token"),
        (lambda r, g: torch.zeros_like(sees(r)), "one that sees a token", "it sees none"),
        (lambda r, g: sees(r.logical_not_()), "left as it was", "changed in place"),
    ],
)
def test_a_representation_that_breaks_its_contract(
    call: Representation, expected: str, got: str
) -> None:
    checked = CheckedRepresentation(call, mine("representation"))
    with pytest.raises(PluginError, match=told("representation", expected, got)):
        checked(shown(), Generator())


def shown(device: str = "cpu") -> ShownRows:
    """A copy of the rows, because a test may change it."""
    place = torch.device(device)
    ids, real, ordinary = (t.clone().to(place) for t in (ROWS.ids, ROWS.real, ROWS.ordinary))
    return ShownRows(ids, real, ordinary, ROWS.vocabulary)


class ChangesIds:
    """A representation that reads the text, and changes it."""

    def of_text(self, rows: ShownRows, generator: Generator) -> Tensor:
        rows.ids.zero_()
        return sees(rows.real)


class Blind:
    def of_text(self, rows: ShownRows, generator: Generator) -> Tensor:
        return torch.zeros_like(sees(rows.real))


@pytest.mark.parametrize(
    ("representation", "expected", "got"),
    [
        (ChangesIds(), "left as it was", "changed in place"),
        (Blind(), "one that sees a token", "it sees none"),
    ],
)
def test_a_representation_of_text_that_breaks_its_contract(
    representation: ChangesIds | Blind, expected: str, got: str
) -> None:
    checked = CheckedRepresentation(representation, mine("representation"))
    with pytest.raises(PluginError, match=told("representation", expected, got)):
        checked(shown(), Generator())


def sees(real: Tensor) -> Tensor:
    return real.unsqueeze(1).expand(-1, real.shape[1], -1)


class Plain(Output):
    """An output like any other: the squared prediction at every selected token."""

    def head(self, heads: HeadBuilder) -> Any:
        return heads.token_regression()

    def targets(self, rows: CorruptedRows) -> Any:
        return {"selected": rows.selected}

    def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> Any:
        selected = targets["selected"]
        losses = torch.where(selected, head(hidden).square(), 0.0)
        return RowLosses(losses.sum(dim=1), selected.sum(dim=1))


def altered(change: Callable[[Tensor, Tensor], Any]) -> Plain:
    """The plain output with ``change`` made to its sums and counts."""

    class Altered(Plain):
        def losses(self, head: nn.Module, hidden: Tensor, targets: Mapping[str, Tensor]) -> Any:
            return change(*super().losses(head, hidden, targets))

    return Altered()


class NoHead(Plain):
    def head(self, heads: HeadBuilder) -> Any:
        return 3


class BareTargets(Plain):
    def targets(self, rows: CorruptedRows) -> Any:
        return rows.selected


class ListedTargets(Plain):
    def targets(self, rows: CorruptedRows) -> Any:
        return {"selected": rows.selected.tolist()}


def corrupted() -> CorruptedRows:
    ids, selected, *_ = NoOp()(ROWS.ids, ROWS.ordinary, ROWS.vocabulary, Generator().manual_seed(3))
    return CorruptedRows(
        original=ROWS.ids,
        corrupted=ids,
        selected=selected,
        ordinary=ROWS.ordinary,
        real=ROWS.real,
        labels=None,
        statistics=DocumentStatistics(1, torch.ones(ROWS.vocabulary.size, dtype=torch.int64)),
        sees=sees(ROWS.real),
        vocabulary=ROWS.vocabulary,
    )


def trained(checked: CheckedOutput, hidden: Tensor | None = None) -> RowLosses:
    if hidden is None:
        hidden = torch.ones((*ROWS.ids.shape, HIDDEN))
    head = checked.head(SmallHeads())
    return checked.losses(head, hidden.requires_grad_(), checked.targets(corrupted()))


@pytest.mark.parametrize(
    ("output", "expected", "got"),
    [
        (NoHead(), "a torch module", "3"),
        (BareTargets(), "a mapping of tensors", r"\[2, 6\] of bool"),
        (ListedTargets(), "a tensor", ".*"),
        (altered(lambda s, c: s.sum()), "RowLosses of sums and counts.*", r"\[\] of float32"),
        (
            altered(lambda s, c: (s.mean(), c)),
            r"a tensor \[B\] = \[2\] of a floating dtype",
            r"\[\] of float32",
        ),
        (altered(lambda s, c: (s[:1], c)), r"a tensor \[B\] = \[2\] .*", r"\[1\] of float32"),
        (altered(lambda s, c: (s.long(), c)), ".* of a floating dtype", r"\[2\] of int64"),
        (altered(lambda s, c: (s, c.sum())), r"a tensor \[B\] = \[2\] of int64.*", r"\[\] .*"),
        (altered(lambda s, c: (s, c > 0)), r"a tensor \[B\] = \[2\] of int64.*", r"\[2\] of bool"),
        (altered(lambda s, c: (s.detach(), c)), "a gradient by the hidden states.*", "none.*"),
        (altered(lambda s, c: (s / 0, c)), "finite numbers.*", r"\[.*(nan|inf).*\]"),
        (altered(lambda s, c: (s, c - 99)), "none negative", r"\[-.*\]"),
    ],
)
def test_an_output_that_breaks_its_contract(output: Plain, expected: str, got: str) -> None:
    checked = CheckedOutput(output, mine("output"))
    with pytest.raises(PluginError, match=told("output", expected, got)):
        trained(checked)


@pytest.mark.parametrize(
    ("checked", "stage", "base"),
    [(CheckedOutput, "output", "Output"), (CheckedData, "data", "Data")],
)
def test_what_is_no_subclass_of_its_base_class(
    checked: Callable[..., Any], stage: Stage, base: str
) -> None:
    with pytest.raises(
        PluginError, match=rf"what it makes: expected a subclass of aang_core\.{base}, got object"
    ):
        checked(object(), mine(stage))


def test_data_with_a_buffer_needs_a_stream() -> None:
    source = Source([Example("one")])
    source.buffer = 10
    with pytest.raises(PluginError, match="stream: expected a method, as there is a buffer"):
        CheckedData(source, mine("data"))


def test_calls_after_the_first_read_no_value() -> None:
    """On meta tensors nothing can be read: a synchronisation would be an error."""
    transform = CheckedTransform(NoOpOfMeta(), mine("transform"))
    representation = CheckedRepresentation(lambda real, _: sees(real), mine("representation"))
    output = CheckedOutput(Plain(), mine("output"))
    transform(ROWS.ids, ROWS.ordinary, ROWS.vocabulary, Generator().manual_seed(0))
    representation(shown(), Generator())
    trained(output)
    meta = torch.device("meta")
    ids, selected, *_ = transform(
        ROWS.ids.to(meta), ROWS.ordinary.to(meta), ROWS.vocabulary, Generator()
    )
    assert ids.device == selected.device == representation(shown("meta"), Generator()).device
    head = output.head(SmallHeads()).to(meta)
    hidden = torch.ones((*ROWS.ids.shape, HIDDEN), device=meta, requires_grad=True)
    losses = output.losses(head, hidden, {"selected": ROWS.ordinary.to(meta)})
    assert losses.sums.device == meta


class NoOpOfMeta(NoOp):
    """Meta tensors take no draws."""

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
    ) -> Corruption:
        return Corruption(ids, ordinary)


class Source(Data):
    """Data that yields whatever it is given."""

    def __init__(self, examples: Any) -> None:
        self._examples = examples

    def examples(self, context: DataContext) -> Any:
        return self._examples


def failing() -> Iterator[Example]:
    yield Example("one")
    raise OSError("the disk is gone")


@pytest.mark.parametrize(
    ("examples", "expected", "got"),
    [
        ([Example("one"), "two"], "an Example", "'two'"),
        ([Example("one"), None], "an Example", "None"),
        ([Example(b"one")], "a string", "b'one'"),  # type: ignore[arg-type]
        ([Example("one", label=["a"])], "a string or .* or None", r"\['a'\]"),  # type: ignore[arg-type]
        ([Example("one", text_pair=["a"])], "a string or None", r"\['a'\]"),  # type: ignore[arg-type]
    ],
)
def test_data_that_yields_what_is_no_example(examples: Any, expected: str, got: str) -> None:
    checked = CheckedData(Source(examples), mine("data"))
    with pytest.raises(PluginError, match=told("data", expected, got)):
        list(checked.examples(DataContext(train=())))


NUMBERS = task_type_named("regression")()
LABELS: dict[str, list[Any]] = {
    "single-label": ["a", "b"],
    "multi-label": [("a", "b"), ()],
    "regression": [0.5, 2],
    "token-labels": [(TaggedWord(0, 3, "O"),), ()],
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_are_of_the_kind_of_the_end_task(kind: str) -> None:
    """If data says that they are the end task's; otherwise nobody reads them."""
    labelled = primitive("data", "mine", provides="labels:end-task")
    own = primitive("data", "mine", provides="labels:own")
    context, form = DataContext(train=()), task_type_named(kind)()
    for of, labels in LABELS.items():
        examples = Source([Example("one", label=label) for label in (*labels, None)])
        read = [example.label for example in CheckedData(examples, labelled).examples(context)]
        assert read == [*labels, None]
        for checked, wanted in (
            (CheckedData(examples, labelled, form), kind),
            (CheckedData(examples, own, form), "single-label"),
        ):
            if of == wanted:
                list(checked.examples(context))
                continue
            with pytest.raises(PluginError, match=r"the label of example 0: expected .* or None"):
                list(checked.examples(context))
    numbers = CheckedData(
        Source([Example("one", label=2)]), labelled, task_type_named("regression")()
    )
    assert [type(example.label) for example in numbers.examples(context)] == [float]


@pytest.mark.parametrize("label", [float("nan"), float("inf"), True])
def test_a_number_is_finite(label: Any) -> None:
    labelled = primitive("data", "mine", provides="labels:end-task")
    checked = CheckedData(
        Source([Example("one", label=label)]), labelled, task_type_named("regression")()
    )
    with pytest.raises(PluginError, match="expected a finite number or None"):
        list(checked.examples(DataContext(train=())))


@pytest.mark.parametrize(
    ("examples", "says"),
    [(None, "'NoneType' object is not iterable"), (failing(), "OSError: the disk is gone at .*")],
)
def test_data_that_raises(examples: Any, says: str) -> None:
    checked = CheckedData(Source(examples), mine("data"))
    with pytest.raises(PluginError, match=f"data mine of aang-plugin-x 1.0: reading .*{says}"):
        list(checked.examples(DataContext(train=())))


TASKS = [TaskCard("end-task"), TaskCard("a"), TaskCard("b")]


class Weights(StepwiseWeighter):
    """Hands over the weights that it is given, after ``rounds`` rounds of good ones."""

    def __init__(
        self, end: TaskCard, others: Sequence[TaskCard], *, give: Any, rounds: int = 0
    ) -> None:
        self._give, self._left = give, rounds
        self._good = {card.name: 1 / (1 + len(others)) for card in (end, *others)}

    def round(self, bench: Any) -> None:
        super().round(bench)
        self._left -= 1

    def coefficients(self, sampled: Sequence[str]) -> Mapping[str, float]:
        return self._good

    def weights(self) -> Any:
        return self._give if self._left <= 0 else self._good

    def state_dict(self) -> dict[str, Any]:
        return {"weights": self._good}

    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


@pytest.mark.parametrize("rounds", [0, 1])
@pytest.mark.parametrize(
    ("give", "expected", "got"),
    [
        ([0.5, 0.5, 0.0], "a mapping from task to number", r"\[0.5, 0.5, 0.0\]"),
        ({"end-task": 0.5, "a": 0.5}, "one for each of the 3 tasks", "2 weights, none for b"),
        (
            {"end-task": 1.0, "a": 0.0, "c": 0.0},
            "one for each of the 3 tasks",
            "3 weights, none for b, one for c, which is no task",
        ),
        ({"end-task": 1.5, "a": -0.5, "b": 0.0}, "a finite number, not negative", "-0.5"),
        ({"end-task": math.nan, "a": 0.5, "b": 0.5}, "a finite number, not negative", "nan"),
        ({"end-task": "1", "a": 0.0, "b": 0.0}, "a finite number, not negative", "'1'"),
        ({"end-task": 1.0, "a": 1.0, "b": 1.0}, "1", "3; divide each by their sum"),
    ],
)
def test_weights_that_are_none(give: Any, expected: str, got: str, rounds: int) -> None:
    """From the start, where the weighter is not even made, or after a round."""
    options = {"give": give, "rounds": rounds}

    def trained() -> None:
        made = CheckedWeighter.make(mine("weighter", Weights), TASKS[0], TASKS[1:], options)
        for _ in range(rounds):
            made.weights()
            made.round(RecordingWorkbench("end-task", ["a", "b"]))
        made.weights()

    with pytest.raises(PluginError, match=told("weighter", expected, got)):
        trained()


def test_states_and_records_are_json() -> None:
    """What is no JSON is refused before anything is trained."""

    class Odd(Weights):
        def record(self) -> Mapping[str, Any]:
            return {"tensor": torch.ones(1)}

    good = dict.fromkeys(["end-task", "a", "b"], 1 / 3)
    names = ["end-task", "a", "b"]
    weighter = CheckedWeighter(Weights(TASKS[0], TASKS[1:], give=good), mine("weighter"), names)
    assert weighter.state_dict() == {"weights": good}
    with pytest.raises(PluginError, match="record: expected JSON values by name, got Object of"):
        CheckedWeighter(Odd(TASKS[0], TASKS[1:], give=good), mine("weighter"), names)


class Raising(Weights):
    def observe(self, sampled: Sequence[str], signals: StepSignals) -> None:
        raise KeyError(sampled[0])

    signals = frozenset({"cosine"})


class RefusingBench(RecordingWorkbench):
    """Raises what a step of a real bench may raise."""

    def __init__(self, error: Exception) -> None:
        super().__init__("end-task", ["a", "b"])
        self._error = error

    def step_over(self, draws: Any, signals: Any) -> StepSignals | None:
        raise self._error


def test_only_the_weighters_own_faults_are_its_own() -> None:
    good = dict.fromkeys(["end-task", "a", "b"], 1 / 3)
    weighter = CheckedWeighter(
        Raising(TASKS[0], TASKS[1:], give=good), mine("weighter"), ["end-task", "a", "b"]
    )
    with pytest.raises(PluginError, match=r"its round raised KeyError: 'a' at .*test_seams\.py"):
        weighter.round(RecordingWorkbench("end-task", ["a", "b"]))
    with pytest.raises(PluginError, match=r"weighter mine of .*: the coefficient of a is -1"):
        weighter.round(RefusingBench(WeighterError("the coefficient of a is -1")))


PLUGIN = """
from aang_core import Output, RowLosses, StepwiseWeighter, hookimpl
from aang_core.gradients import StreamEngine

class Mean(Output):
    def head(self, heads):
        return heads.token_regression()
    def targets(self, rows):
        return {"selected": rows.selected}
    def losses(self, head, hidden, targets):
        return RowLosses(head(hidden).square().mean(), targets["selected"].sum(dim=1))

class Negative(StepwiseWeighter):
    def __init__(self, end_task, auxiliaries):
        self.names = [card.name for card in (end_task, *auxiliaries)]
    def coefficients(self, sampled):
        return {"end-task": 1.5, sampled[0]: -0.5}
    def weights(self):
        return dict.fromkeys(self.names, 1 / len(self.names))
    def state_dict(self):
        return {}
    def load_state_dict(self, state):
        pass

class Quits:
    def __call__(self, real, generator):
        raise SystemExit(0)

class Stumbles(StreamEngine):
    cannot = {}
    def __init__(self, body, dev_head, settings, at_once):
        super().__init__(body, dev_head)
    def step(self, end, auxiliaries, dev, *, norms=False):
        return len(end)

@hookimpl
def aang_register_engines(register):
    register("stumbles", "raises in every step", Stumbles)

@hookimpl
def aang_register_outputs(register):
    register("mean", "a loss that is not per row", Mean, requires=("text",))

@hookimpl
def aang_register_representations(register):
    register("quits", "ends the process", Quits)

@hookimpl
def aang_register_weighters(register):
    register("negative", "steps with a negative coefficient", Negative)
"""


@pytest.mark.parametrize(
    ("options", "says", "begins"),
    [
        (
            ["--space", "task/mask/bidirectional/mean"],
            ["output mean of mine.py sha256-", "a tensor [B] = [4] of a floating dtype, got []"],
            False,
        ),
        (
            ["--space", "task/mask/quits/denoise"],
            [
                "representation quits of mine.py",
                "its call raised SystemExit: 0 at",
                "mine.py:27, in __call__",
            ],
            False,
        ),
        (
            ["--weighter", "negative"],
            ["weighter negative of mine.py", "expected a finite number, not negative, got -0.5"],
            True,
        ),
        (
            ["--gradients", "stumbles"],
            [
                "plug-in mine of mine.py sha256-",
                "a step raised TypeError: object of type 'Segment' has no len() at",
                "mine.py:34, in step",
            ],
            True,
        ),
    ],
)
def test_train_is_refused_and_tells_whose_fault_it_is(
    aang: Aang,
    train_options: list[object],
    tmp_path: Path,
    options: list[object],
    says: list[str],
    begins: bool,
) -> None:
    """Before a run folder is made, but for what only a step can show."""
    plugin, run = tmp_path / "mine.py", tmp_path / "run"
    plugin.write_text(PLUGIN, encoding="utf-8")
    done = aang("--plugin", plugin, "train", *train_options, *options, "--out", run, "--quiet")
    assert done.status == 2, done.err
    assert "Traceback" not in done.err
    for fragment in says:
        assert fragment in done.err
    assert run.exists() == begins


def test_the_rehearsal_touches_no_draw_of_the_training(encoder: Path, task_files: Path) -> None:
    """Not even dropout's, which torch's own generator feeds."""
    files = {name: str(task_files / f"{name}.jsonl") for name in ("train", "dev")}
    config = resolve_config(
        {}, {**files, "model": str(encoder), "space": "task/mask/bidirectional/denoise"}
    )
    (made,) = assemble(prepare_sources(config, load_plugins().registry)).auxiliaries
    task = replace(made, head=nn.Sequential(nn.Dropout(), made.head))
    before = torch.get_rng_state()
    rehearse(task, hidden_size=32)
    assert torch.equal(torch.get_rng_state(), before)
    task.head(torch.ones(3, 32))
    assert not torch.equal(torch.get_rng_state(), before)
