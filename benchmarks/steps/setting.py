"""A step's rows and model: objectives of ``td`` on rows of random tokens, all of one length."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from aang.modeling import TextModel, load_text_model
from aang_plugin_bert.denoise import Denoise
from aang_plugin_lora.hooks import aang_prepare_model
from aang_plugin_task.label import Label
from tokenizers import Tokenizer, models
from torch import Tensor, nn
from transformers import BertConfig, PreTrainedTokenizerFast

from aang_core.gradients import Segment
from aang_core.objectives.stages import (
    SELECTION_RATE,
    CorruptedRows,
    DocumentStatistics,
    Output,
    Vocabulary,
)
from aang_core.tasks.task import Batch, RowLosses, Task
from aang_core.training.rows import share_rows

CLASSES = 6
TRANSFORMS = ("bert-op", "mask", "replace", "no-op")
MASKS = ("bidirectional", "left-to-right", "right-to-left", "random-factorized")


@dataclass(frozen=True)
class Setting:
    """One cell of the benchmark.

    layers, hidden, vocabulary: shape of a BERT whose word embeddings are tied to its decoder.
    end, dev, auxiliary: rows of the step, each of ``tokens`` tokens. n: objectives sampled.
    lora: rank of adapters, trained instead of the body. frozen: first layers that are not trained.
    """

    layers: int
    hidden: int
    n: int
    end: int
    dev: int
    auxiliary: int
    tokens: int
    vocabulary: int = 30522
    lora: int | None = None
    frozen: int | None = None

    @property
    def name(self) -> str:
        """Key of the cell in JSON."""
        rows = f"{self.end}+{self.dev}+{self.auxiliary}x{self.tokens}"
        name = f"{self.layers}x{self.hidden} v{self.vocabulary} n{self.n} {rows}"
        part = "" if self.lora is None else f" lora{self.lora}"
        return name + part + ("" if self.frozen is None else f" frozen{self.frozen}")


@dataclass(frozen=True)
class Objective:
    """An objective of ``td`` by its parts."""

    transform: str
    representation: str
    output: str

    @property
    def rows_of(self) -> tuple[str, str]:
        """The parts that objectives on the same rows share."""
        return self.transform, self.representation


@dataclass
class StepInputs:
    """Everything a way to compute the step needs.

    objectives: the parts of each auxiliary segment.
    """

    model: TextModel
    end: Segment
    auxiliaries: list[Segment]
    dev: Batch
    objectives: list[Objective]


def sampled_objectives(n: int) -> list[Objective]:
    """n of td's 24 legal objectives, drawn with a fixed seed."""
    legal = [
        Objective(t, r, o)
        for t in TRANSFORMS
        for r in MASKS
        for o in ("denoise", "end-task")
        if o == "denoise" or r in ("bidirectional", "random-factorized")
    ]
    drawn = torch.randperm(len(legal), generator=torch.Generator().manual_seed(3))[:n]
    return [legal[i] for i in drawn.tolist()]


def make_step(setting: Setting, device: torch.device | None = None) -> StepInputs:
    """Rows and a model with fresh weights, in training mode without dropout."""
    device = device or torch.device("cpu")
    generator = torch.Generator().manual_seed(0)
    model = _model(setting)
    model.body.to(device).train()
    model.classifier.to(device).train()
    objectives = sampled_objectives(setting.n)
    names = ["/".join((o.transform, o.representation, o.output)) for o in objectives]
    rows = share_rows(setting.auxiliary, dict.fromkeys(names, 1.0))
    segments = []
    for name, objective in zip(names, objectives, strict=True):
        output: Output = Denoise() if objective.output == "denoise" else Label()
        batch = _batch(rows[name], setting, objective.representation, output, generator)
        task = OutputTask(name, output, output.head(model.heads).to(device))
        segments.append(Segment(task, [batch.to(device)], 0.5 / setting.n))
    classify = Label()
    classify.head(model.heads)  # tells the output its loss; the end task's own head is used below
    end, dev = (
        _batch(n, setting, "bidirectional", classify, generator).to(device)
        for n in (setting.end, setting.dev)
    )
    task = OutputTask("end-task", classify, model.classifier)
    return StepInputs(model, Segment(task, [end], 0.5), segments, dev, objectives)


def _model(setting: Setting) -> TextModel:
    config = BertConfig(
        vocab_size=setting.vocabulary,
        hidden_size=setting.hidden,
        num_hidden_layers=setting.layers,
        num_attention_heads=setting.hidden // 64 or 1,
        intermediate_size=4 * setting.hidden,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"a": 0}, unk_token="a")), model_max_length=512
    )
    torch.manual_seed(0)
    labels = [f"class-{i}" for i in range(CLASSES)]
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        model = load_text_model(
            folder,
            tokenizer,
            labels,
            from_scratch=True,
        )
    options = {"lora": setting.lora, "lora_alpha": None, "lora_target": ()}
    aang_prepare_model(model, {**options, "freeze_layers": setting.frozen})
    return model


@dataclass
class OutputTask(Task):
    """An output and its head, as an engine sees them; the rows are made beforehand."""

    name: str
    output: Output
    head: nn.Module

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        """See `aang_core.tasks.task.Task`."""
        return self.output.losses(head, features, targets)


def _batch(
    rows: int, setting: Setting, mask: str, output: Output, generator: torch.Generator
) -> Batch:
    """Random tokens, all of them real; the cost of the transform is not included."""
    shape = (rows, setting.tokens)
    ids = torch.randint(10, setting.vocabulary, shape, generator=generator)
    real = torch.ones(shape, dtype=torch.bool)
    selected = torch.rand(shape, generator=generator) < SELECTION_RATE
    labels = torch.randint(CLASSES, (rows,), generator=generator)
    sees = _sees(mask, rows, setting.tokens, generator)
    corrupted = CorruptedRows(
        original=ids,
        corrupted=ids,
        selected=selected,
        ordinary=real,
        real=real,
        labels=labels,
        statistics=DocumentStatistics(1, torch.ones(setting.vocabulary, dtype=torch.int64)),
        sees=sees,
        vocabulary=Vocabulary(setting.vocabulary, 4, ids.unique(), decode=list),
    )
    return Batch(
        {"input_ids": ids, "attention_mask": sees},
        output.targets(corrupted),
        rows,
    )


def _sees(mask: str, rows: int, tokens: int, generator: torch.Generator) -> Tensor:
    square = torch.ones(rows, tokens, tokens, dtype=torch.bool)
    if mask == "left-to-right":
        return square.tril()
    if mask == "right-to-left":
        return square.triu()
    if mask == "random-factorized":
        order = torch.rand(rows, tokens, generator=generator).argsort(1).argsort(1)
        return order.unsqueeze(1) <= order.unsqueeze(2)
    return square
