"""Pre-train the encoder that ships with AANG for the built-in demo task.

A RoBERTa of 4 layers, 192 wide, with a byte-level BPE of 6,000, trained as a masked language
model on the docstrings of the standard library and of permissively licensed packages that
are installed. The demo task's own packages and every paragraph equal to one of its texts
are left out. There are four steps. WORK, the folder for everything but the result, must be outside
the repository:

    python benchmarks/pretrain_demo_encoder.py corpus WORK [--site-packages DIR ...]
    python benchmarks/pretrain_demo_encoder.py train WORK --minutes 45 --threads 2 [--resume]
    python benchmarks/pretrain_demo_encoder.py positions WORK --steps 300 --threads 2
    python benchmarks/pretrain_demo_encoder.py export WORK plugins/aang/aang/assets/demo-encoder

``corpus`` reads sources with ``ast`` and imports none of the packages. ``train`` measures its
speed, derives the number of steps from ``--minutes`` (or takes ``--steps``), writes a checkpoint
every few minutes, and continues from it, on the same schedule, under ``--resume``.
``export`` may be run on any checkpoint, also while training goes on.

On a machine with other work, use fewer threads than cores or bind them (OMP_PROC_BIND=true): a
thread spins while it waits for one that has lost its core, and training slows down tenfold.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from email.message import Message
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any, cast

import torch
from aang_plugin_demo.documentation import (
    PACKAGES,
    docstring_paragraphs,
    load_demo_task,
    strip_package_names,
)
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast, RobertaConfig, RobertaForMaskedLM

VOCABULARY = 6_000
# RoBERTa's order: <pad> is 1. "the <mask> of" is one masked word: it takes the space before it.
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True))
BOS, PAD, EOS, UNK, MASK = range(5)

ROW = 128  # tokens
LONG_ROW = 256  # tokens; only to train the positions that shorter rows never reach
MIN_REST = 32  # tokens; a shorter rest of a paragraph that did not fit its row is dropped
SELECTED = 0.15  # share of tokens to predict
HELD_OUT = 0.01  # share of the documents
HELD_OUT_ROWS = 256

PERMISSIVE = re.compile(r"\b(MIT|BSD|Apache|PSF|Python Software Foundation|ISC|0BSD|CC0)\b", re.I)
RESTRICTIVE = re.compile(r"\b(A?L?GPL|MPL|Mozilla|EUPL|Commons Clause|proprietary)", re.I)
# Tests document nothing; vendored code has other licences than the package's metadata.
SKIPPED_FOLDERS = frozenset(
    {"test", "tests", "testing", "idlelib", "site-packages", "dist-packages", "__pycache__"}
    | {"_vendor", "vendor", "_vendored", "vendored", "extern", "externals", "third_party"}
)
MIN_PACKAGE = 20_000  # characters; smaller packages lengthen the model card more than the text
LETTERS = 0.65  # share of letters and spaces; below it a paragraph is a table or printed output


@dataclass(frozen=True, slots=True)
class Source:
    """A source of text; the model card lists all of them."""

    name: str
    version: str
    licence: str
    paragraphs: int
    characters: int


# --- corpus -----------------------------------------------------------------------------------


def build_corpus(work: Path, site_packages: Sequence[Path]) -> None:
    """Write ``corpus.jsonl`` (a document, i.e. list of paragraphs, a line) and ``sources.json``."""
    task = load_demo_task()
    seen = {example.text for part in (task.train, task.dev, task.test) for example in part}
    documents: list[list[str]] = []
    sources: list[Source] = []
    for name, version, licence, files in _readable(site_packages):
        found = [document for document in _documents(files, seen) if document]
        characters = sum(len(text) for document in found for text in document)
        if characters < MIN_PACKAGE:
            continue
        documents += found
        sources.append(Source(name, version, licence, sum(map(len, found)), characters))
        print(f"{name} {version} ({licence}): {characters / 1e6:.2f} MB", flush=True)
    work.mkdir(parents=True, exist_ok=True)
    with (work / "corpus.jsonl").open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(document) + "\n" for document in documents)
    (work / "sources.json").write_text(json.dumps([asdict(s) for s in sources], indent=1))
    print(f"{len(documents)} documents, {sum(s.characters for s in sources) / 1e6:.1f} MB")


def _readable(site_packages: Sequence[Path]) -> Iterator[tuple[str, str, str, list[Path]]]:
    """Yield name, version, licence and source files of the standard library and each package."""
    root = Path(sysconfig.get_path("stdlib"))
    library = sorted(root.rglob("*.py"), key=lambda path: path.as_posix())
    yield (
        "Python standard library",
        ".".join(map(str, sys.version_info[:3])),
        "PSF-2.0",
        [p for p in library if p.relative_to(root).parts[0] not in PACKAGES and _wanted(p, root)],
    )
    done: set[str] = set()
    for folder in site_packages:
        found = distributions(path=[str(folder)])
        for package in sorted(found, key=lambda d: d.metadata["Name"].lower()):
            name, licence = package.metadata["Name"], permissive_licence(package)
            if licence is not None and name.lower() not in done:
                done.add(name.lower())
                paths = [folder / str(f) for f in package.files or () if f.suffix == ".py"]
                yield name, package.version, licence, [p for p in paths if _wanted(p, folder)]


def _wanted(path: Path, root: Path) -> bool:
    return path.is_relative_to(root) and not SKIPPED_FOLDERS & set(path.relative_to(root).parts)


def permissive_licence(package: Distribution) -> str | None:
    """Return the licence if the metadata name a permissive one and no other kind."""
    metadata = cast(Message, package.metadata)  # which the protocol of the annotation hides
    stated = [metadata.get("License-Expression") or ""]
    stated += [
        c.rsplit(" :: ", 1)[-1]
        for c in metadata.get_all("Classifier") or ()
        if c.startswith("License ::")
    ]
    if not any(stated):
        # The free field may hold a whole licence text; only a one-line name can be judged.
        stated = [line for line in [metadata.get("License") or ""] if "\n" not in line]
    text = "; ".join(filter(None, stated))
    return text if PERMISSIVE.search(text) and not RESTRICTIVE.search(text) else None


def _documents(files: Iterable[Path], seen: set[str]) -> Iterator[list[str]]:
    """Yield the paragraphs of each file that are prose and are not in ``seen``; add them to it.

    Raw and name-stripped texts are looked up, so that neither form of a demo text gets in.
    """
    for path in files:
        document = []
        try:
            paragraphs = list(docstring_paragraphs(path.read_bytes()))
        except (OSError, SyntaxError, ValueError):
            continue
        for text in paragraphs:
            letters = sum(character.isalpha() or character == " " for character in text)
            if letters < LETTERS * len(text) or not seen.isdisjoint(
                {text, stripped := strip_package_names(text)}
            ):
                continue
            seen |= {text, stripped}
            document.append(text)
        yield document


# --- tokens -----------------------------------------------------------------------------------


def train_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Train the byte-level BPE. A word has the same token everywhere, also at the start."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        min_frequency=2,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", EOS), ("<s>", BOS), trim_offsets=True, add_prefix_space=True
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        mask_token=SPECIAL[MASK],
        model_max_length=LONG_ROW,
    )


Document = list[list[int]]  # token ids of each paragraph


def encode_corpus(work: Path) -> tuple[list[Document], list[Document]]:
    """Return training and held-out documents as token ids; train the tokenizer if it is missing."""
    with (work / "corpus.jsonl").open(encoding="utf-8") as lines:
        corpus: list[list[str]] = [json.loads(line) for line in lines]
    if not (work / "tokenizer" / "tokenizer.json").exists():
        made = train_tokenizer(text for document in corpus for text in document)
        made.save_pretrained(work / "tokenizer")
    tokenizer = Tokenizer.from_file(str(work / "tokenizer" / "tokenizer.json"))
    flat = tokenizer.encode_batch_fast(
        [text for document in corpus for text in document], add_special_tokens=False
    )
    ids = iter([encoding.ids for encoding in flat])
    documents = [[next(ids) for _ in document] for document in corpus]
    every = round(1 / HELD_OUT)
    return (
        [document for i, document in enumerate(documents) if i % every],
        documents[::every],
    )


def pack(documents: Sequence[Document], length: int, generator: torch.Generator) -> Tensor:
    """Return int32 rows ``[N, length]`` without padding: ``<s> p </s> p </s> ...``.

    Documents come in an order drawn from ``generator``, paragraphs in their own. Rows begin
    where a paragraph begins, as texts of an end task do, or in a long one's middle; of a
    paragraph that is cut at a row's end a short rest is dropped.
    """
    rows: list[list[int]] = []
    row = [BOS]
    for index in torch.randperm(len(documents), generator=generator).tolist():
        for paragraph in documents[index]:
            rest = [*paragraph, EOS]
            while rest:
                room = length - len(row)
                row += rest[:room]
                rest = rest[room:]
                if len(row) == length:
                    rows.append(row)
                    row = [BOS]
                    rest = rest if len(rest) >= MIN_REST else []
    return torch.tensor(rows, dtype=torch.int32)


def corrupt(rows: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Select 15% of the tokens; of these mask 80%, replace 10% at random, keep 10%.

    Returns the corrupted ``[B, T]`` and the selected flat positions ``[S]``.
    """
    drawn = torch.rand(rows.shape, generator=generator)
    drawn[rows < len(SPECIAL)] = 1.0
    selected = drawn < SELECTED
    masked = drawn < SELECTED * 0.8
    replaced = selected & (drawn >= SELECTED * 0.9)
    noise = torch.randint(len(SPECIAL), VOCABULARY, rows.shape, generator=generator)
    corrupted = torch.where(masked, MASK, torch.where(replaced, noise, rows.long()))
    return corrupted, selected.flatten().nonzero().squeeze(1)


# --- model ------------------------------------------------------------------------------------


def build_model(dropout: float) -> RobertaForMaskedLM:
    """Return the shipped architecture (3 M weights, 1.8 M outside the embedding), untrained."""
    return RobertaForMaskedLM(
        RobertaConfig(
            vocab_size=VOCABULARY,
            hidden_size=192,
            num_hidden_layers=4,
            num_attention_heads=3,
            intermediate_size=768,
            max_position_embeddings=LONG_ROW + PAD + 1,  # RoBERTa counts positions from PAD + 1
            type_vocab_size=1,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
            layer_norm_eps=1e-5,
            # At 128 tokens two bfloat16 products beat the fused kernel's backward pass on a CPU.
            attn_implementation="eager",  # type: ignore[call-arg]
            bos_token_id=BOS,
            pad_token_id=PAD,
            eos_token_id=EOS,
        )
    )


def masked_lm_logits(model: RobertaForMaskedLM, corrupted: Tensor, positions: Tensor) -> Tensor:
    """Return the logits ``[S, V]`` at the selected positions only, 15% of the decoder's work."""
    hidden = model.roberta(input_ids=corrupted).last_hidden_state
    logits: Tensor = model.lm_head(hidden.flatten(0, 1).index_select(0, positions))
    return logits


def build_optimizer(model: nn.Module, learning_rate: float) -> torch.optim.AdamW:
    """AdamW with decay on matrices only, one fused kernel per step."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": 0.01},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.98), eps=1e-6, fused=True)


def learning_rate_factor(step: int, steps: int) -> float:
    """Linear warm-up over 5% of the steps, then linear decay to zero."""
    warm_up = max(1, steps // 20)
    return min((step + 1) / warm_up, max(0.0, (steps - step) / (steps - warm_up)))


@torch.no_grad()
def evaluate(model: RobertaForMaskedLM, rows: Tensor) -> tuple[float, float]:
    """Return held-out masked-LM loss (nats) and accuracy, under one fixed corruption."""
    generator = torch.Generator().manual_seed(0)
    loss, correct, count = 0.0, 0, 0
    model.eval()
    for batch in rows.split(32):
        corrupted, positions = corrupt(batch, generator)
        with torch.autocast("cpu", torch.bfloat16):
            logits = masked_lm_logits(model, corrupted, positions).float()
        targets = batch.flatten()[positions].long()
        loss += nn.functional.cross_entropy(logits, targets, reduction="sum").item()
        correct += int((logits.argmax(-1) == targets).sum())
        count += len(targets)
    model.train()
    return loss / count, correct / count


# --- training ---------------------------------------------------------------------------------


class Batches:
    """Corrupted batches, a pure function of ``seed`` and step, so resuming repeats none.

    Rows are packed anew, in a new order, each time the training documents have been used up.
    """

    def __init__(self, documents: Sequence[Document], length: int, tokens: int, seed: int) -> None:
        self._documents, self._length, self._seed = documents, length, seed
        self._size = tokens // length
        self._rows, self._epoch = self._pack(0), 0
        # The number of rows varies a little with the order; a hundredth is never short of that.
        self._per_epoch = max(1, self._rows.shape[0] * 99 // 100 // self._size)

    def __call__(self, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return corrupted ``[B, T]``, flat positions ``[S]`` and targets ``[S]`` of a step."""
        epoch, place = divmod(step, self._per_epoch)
        if epoch != self._epoch:
            self._rows, self._epoch = self._pack(epoch), epoch
        batch = self._rows[place * self._size : (place + 1) * self._size]
        generator = torch.Generator().manual_seed(self._seed * 1_000_003 + step)
        corrupted, positions = corrupt(batch, generator)
        return corrupted, positions, batch.flatten()[positions].long()

    def _pack(self, epoch: int) -> Tensor:
        generator = torch.Generator().manual_seed(self._seed * 7_919 + epoch)
        rows = pack(self._documents, self._length, generator)
        return rows[torch.randperm(len(rows), generator=generator)]


def train(args: argparse.Namespace) -> None:
    """Train for ``--steps``, or for the number that fits in ``--minutes``."""
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    documents, held_out = encode_corpus(args.work)
    held_out_rows = pack(held_out, ROW, torch.Generator().manual_seed(0))[:HELD_OUT_ROWS]
    tokens = sum(len(paragraph) + 1 for document in documents for paragraph in document)
    print(f"{tokens / 1e6:.2f} M training tokens, {len(held_out_rows)} held-out rows", flush=True)
    # No dropout, because the text is seen only a few times.
    model = build_model(dropout=0.0).train()
    optimizer = build_optimizer(model, args.learning_rate)
    checkpoint = args.work / "checkpoint.pt"
    first, steps = 0, args.steps or 0
    if args.resume and checkpoint.exists():
        first, steps = _restore(checkpoint, model, optimizer)
    steps = steps or _steps_for(args, documents)
    print(f"steps {first} to {steps}, {args.batch_tokens} tokens each", flush=True)
    batches = Batches(documents, ROW, args.batch_tokens, args.seed)
    started = saved = time.monotonic()
    for step in range(first, steps):
        loss = _step(model, optimizer, batches(step), args.learning_rate, step, steps)
        done = step + 1
        save = done == steps or time.monotonic() - saved > args.save_seconds
        line = f"step {done}/{steps} loss {loss:.3f}"
        if save:
            held_out_figures = evaluate(model, held_out_rows)
            line += " | held-out loss {:.3f} accuracy {:.3f}".format(*held_out_figures)
            state = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "step": done,
                "steps": steps,
                "batch_tokens": args.batch_tokens,
                "learning_rate": args.learning_rate,
                "corpus_tokens": tokens,
                "held_out": held_out_figures,
            }
            _save(checkpoint, state)
            saved = time.monotonic()
        if save or done % args.log_every == 0:
            speed = (done - first) * args.batch_tokens / (time.monotonic() - started)
            print(f"{line} | {speed:,.0f} tokens/s", flush=True)


def _step(
    model: RobertaForMaskedLM,
    optimizer: torch.optim.Optimizer,
    batch: tuple[Tensor, Tensor, Tensor],
    learning_rate: float,
    step: int,
    steps: int,
) -> Tensor:
    """One update in bfloat16 with float32 master weights; returns the loss in nats."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * learning_rate_factor(step, steps)
    corrupted, positions, targets = batch
    with torch.autocast("cpu", torch.bfloat16):
        logits = masked_lm_logits(model, corrupted, positions)
    loss = nn.functional.cross_entropy(logits.float(), targets)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def _steps_for(args: argparse.Namespace, documents: Sequence[Document]) -> int:
    """Return the number of steps that fits in ``--minutes``, from the speed of a few."""
    model = build_model(dropout=0.0).train()
    optimizer = build_optimizer(model, args.learning_rate)
    batches = Batches(documents[:500], ROW, args.batch_tokens, args.seed)
    started, timed = 0.0, 20
    for step in range(5 + timed):
        if step == 5:  # the first ones allocate memory and choose kernels
            started = time.monotonic()
        _step(model, optimizer, batches(step), args.learning_rate, step, 1_000)
    minutes: float = args.minutes
    return math.floor(minutes * 60 * timed / (time.monotonic() - started))


def _restore(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[int, int]:
    """Load a checkpoint; return the first step to do and the number of steps of its schedule."""
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"], state["steps"]


def _save(path: Path, state: dict[str, Any]) -> None:
    """Replace the checkpoint atomically, so that an export never reads half of one."""
    partial = path.with_suffix(".partial")
    torch.save(state, partial)
    partial.replace(path)


def train_positions(args: argparse.Namespace) -> None:
    """Train the embeddings of positions 128 to 255 on long rows, and nothing else.

    Texts of up to 128 tokens, nearly all of the demo's, are encoded bit for bit as before. Long
    rows from the start would cost more per token and, with so few tokens, train the rest less.
    """
    torch.set_num_threads(args.threads)
    documents, held_out = encode_corpus(args.work)
    held_out_rows = pack(held_out, LONG_ROW, torch.Generator().manual_seed(0))[: HELD_OUT_ROWS // 4]
    checkpoint = args.work / "checkpoint.pt"
    state = torch.load(checkpoint)
    model = build_model(dropout=0.0).requires_grad_(False).train()
    model.load_state_dict(state["model"])
    table = model.roberta.embeddings.position_embeddings.weight.requires_grad_()
    trained = PAD + 1 + ROW  # the first rows of the table belong to padding and short rows
    optimizer = torch.optim.Adam([table], lr=args.learning_rate, betas=(0.9, 0.98), fused=True)
    batches = Batches(documents, LONG_ROW, args.batch_tokens, args.seed + 1)
    table.register_hook(lambda gradient: gradient.index_fill(0, torch.arange(trained), 0.0))
    for step in range(args.steps):
        _step(model, optimizer, batches(step), args.learning_rate, step, args.steps)
        if (step + 1) % 50 == 0 or step + 1 == args.steps:
            state["model"] = model.state_dict()
            state["held_out_long"] = evaluate(model, held_out_rows)
            _save(checkpoint, state)
            loss, accuracy = state["held_out_long"]
            print(f"step {step + 1}/{args.steps} held-out loss {loss:.3f} accuracy {accuracy:.3f}")


# --- export -----------------------------------------------------------------------------------

CARD = """\
---
license: apache-2.0
language: en
library_name: transformers
pipeline_tag: fill-mask
tags: [roberta, docstrings, python]
---

# AANG demo encoder

A small RoBERTa ({layers} layers, {width} wide, {heads} heads, {parameters:.2f} M parameters, a
byte-level BPE of {vocabulary:,}, up to {positions} tokens) with its masked-LM head. It is trained
on the English of Python documentation, and exists so that AANG's built-in demo task can start from
a pre-trained encoder without a network. `AutoTokenizer`, `AutoModel` and `AutoModelForMaskedLM` of
`transformers` load this folder. The weights are stored in float16 and load as float32.

## Training data

{paragraphs:,} paragraphs ({megabytes:.1f} million characters, {corpus_tokens:.2f} million tokens)
of docstrings from the Python standard library and {packages} packages under permissive licences,
listed below. Paragraphs have at least 60 characters, of which two thirds are letters and spaces,
and occur only once. The eight standard-library packages of the demo task
({demo_packages})
are left out, and so is every paragraph of other packages that equals a text of the task, with or
without the packages' names in it. Similar text may remain, because other packages document similar
interfaces.

## Training procedure

Masked language modelling from random weights: 15% of the tokens selected, of these 80% masked, 10%
replaced, 10% kept. {step:,} of {steps:,} steps of {batch_tokens:,} tokens in rows of 128 without
padding: {seen:.1f} million tokens seen, {epochs:.1f} times the corpus. AdamW (0.9, 0.98), weight
decay 0.01 on matrices, learning rate {learning_rate:g} after a short warm-up, linear decay to 0,
gradient norm at most 1, no dropout; bfloat16 products, float32 weights; on a CPU. Finally, only the
embeddings of positions 128 to 255 were trained, on rows of 256 tokens. The script is
`benchmarks/pretrain_demo_encoder.py`.
{note}
## Evaluation

On one document (source file) in a hundred, held out of training, at the selected tokens: loss
{loss:.3f} nats (perplexity {perplexity:.1f}), accuracy {accuracy:.3f} in rows of 128 tokens; loss
{long_loss:.3f}, accuracy {long_accuracy:.3f} in rows of 256. The packages are those of the training
data, so this says nothing about other kinds of text.

## Limits

Very small, one domain, English, and trained for about an hour: a demonstration, not a general
encoder. It knows no useful facts. Words outside programming are split into many tokens.
Truncate texts to 128 tokens: later tokens are modelled poorly, as the loss in long rows shows.

## Licence

The weights are under Apache-2.0. The packages whose documentation was used, with the licences in
their metadata:

| package | version | licence | million characters |
|---|---|---|---|
{sources}
"""


def export(work: Path, folder: Path, note: str) -> None:
    """Write configuration, float16 weights, tokenizer and model card of the last checkpoint."""
    state = torch.load(work / "checkpoint.pt")
    model = build_model(dropout=0.1)  # for fine-tuning
    model.load_state_dict(state["model"])
    folder.mkdir(parents=True, exist_ok=True)
    model.half().save_pretrained(folder)
    # Stored in half precision, loaded in full: nobody should fine-tune in float16 by accident.
    _edit(folder / "config.json", dtype="float32")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((work / "tokenizer" / name).read_bytes())
    # Every release of transformers knows the class's older name.
    _edit(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    sources = [Source(**source) for source in json.loads((work / "sources.json").read_text())]
    (folder / "README.md").write_text(model_card(state, model, sources, note), encoding="utf-8")
    for path in folder.iterdir():
        path.chmod(0o644)  # safetensors writes files that only their owner may read
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"step {state['step']}/{state['steps']}: {folder}, {size / 1e6:.2f} MB")


def _edit(path: Path, **values: str) -> None:
    settings = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**settings, **values}, indent=2) + "\n", encoding="utf-8")


def model_card(
    state: dict[str, Any], model: RobertaForMaskedLM, sources: Sequence[Source], note: str
) -> str:
    """Return the README of the exported folder, with a Hub metadata header."""
    seen = state["step"] * state["batch_tokens"]
    loss, accuracy = state["held_out"]
    # A checkpoint of ``train`` has no figures for long rows yet.
    long_loss, long_accuracy = state.get("held_out_long", (math.nan, math.nan))
    return CARD.format(
        layers=model.config.num_hidden_layers,
        width=model.config.hidden_size,
        heads=model.config.num_attention_heads,
        parameters=model.num_parameters() / 1e6,
        vocabulary=model.config.vocab_size,
        positions=LONG_ROW,
        paragraphs=sum(source.paragraphs for source in sources),
        megabytes=sum(source.characters for source in sources) / 1e6,
        corpus_tokens=state["corpus_tokens"] / 1e6,
        packages=len(sources) - 1,
        demo_packages=", ".join(PACKAGES),
        step=state["step"],
        steps=state["steps"],
        batch_tokens=state["batch_tokens"],
        seen=seen / 1e6,
        epochs=seen / state["corpus_tokens"],
        learning_rate=state["learning_rate"],
        loss=loss,
        perplexity=math.exp(loss),
        accuracy=accuracy,
        long_loss=long_loss,
        long_accuracy=long_accuracy,
        note=f"\n{note}\n" if note else "",
        sources="\n".join(
            f"| {s.name} | {s.version} | {s.licence} | {s.characters / 1e6:.2f} |" for s in sources
        ),
    )


def main() -> None:
    """Read the command line and run one of the four steps."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    corpus = commands.add_parser("corpus", help="collect the text")
    corpus.add_argument("work", type=Path)
    corpus.add_argument("--site-packages", type=Path, nargs="+", default=[])
    training = commands.add_parser("train", help="train the tokenizer and the encoder")
    training.add_argument("work", type=Path)
    training.add_argument("--minutes", type=float, default=45.0)
    training.add_argument("--steps", type=int, help="instead of --minutes")
    training.add_argument("--threads", type=int, default=2)
    training.add_argument("--batch-tokens", type=int, default=4_096)
    training.add_argument("--learning-rate", type=float, default=1.5e-3)
    training.add_argument("--seed", type=int, default=0)
    training.add_argument("--log-every", type=int, default=100, help="steps")
    training.add_argument("--save-seconds", type=float, default=180.0)
    training.add_argument("--resume", action="store_true")
    positions = commands.add_parser("positions", help="train the positions of long texts")
    positions.add_argument("work", type=Path)
    positions.add_argument("--steps", type=int, default=300)
    positions.add_argument("--threads", type=int, default=2)
    positions.add_argument("--batch-tokens", type=int, default=4_096)
    positions.add_argument("--learning-rate", type=float, default=1e-2)
    positions.add_argument("--seed", type=int, default=0)
    exporting = commands.add_parser("export", help="write the shipped folder")
    exporting.add_argument("work", type=Path)
    exporting.add_argument("folder", type=Path)
    exporting.add_argument("--note", default="", help="where the run departed from this script")
    args = parser.parse_args()
    if args.command == "corpus":
        environment = [Path(sysconfig.get_path("purelib"))]
        build_corpus(args.work, environment + args.site_packages)
    elif args.command == "train":
        train(args)
    elif args.command == "positions":
        train_positions(args)
    else:
        export(args.work, args.folder, args.note)


if __name__ == "__main__":
    main()
