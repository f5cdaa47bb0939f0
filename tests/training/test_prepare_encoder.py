"""``aang prepare-encoder``: continued pre-training of an encoder into an ordinary model folder."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoTokenizer,
    BartConfig,
    BartForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
)

from aang_core import ReadReport, load_plugins
from tests.support.plugins import CheckedData
from tests.support.runs import from_anywhere, read_unlabelled
from tests.support.training import RowOrder
from tests.training.conftest import Aang
from tests.training.forks import Child, Forks


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory, task_files: Path) -> Path:
    """The small task's in-domain text: 80 paragraphs, of which some are longer than a row."""
    path = tmp_path_factory.mktemp("text") / "domain.txt"
    path.write_bytes((task_files / "domain.txt").read_bytes())
    return path


@pytest.fixture(scope="session")
def preparing(encoder: Path, text: Path) -> list[object]:
    """Twelve steps of eight rows."""
    return [
        *("prepare-encoder", encoder, "--text", text, "--steps", 12, "--eval-every", 4),
        *("--batch-size", 8, "--max-length", 32, "--checkpoint-every", 0),
    ]


@pytest.fixture(scope="session")
def prepared(
    forks: Forks, preparing: list[object], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """What nobody interrupts, and tests only read."""
    out = tmp_path_factory.mktemp("prepared") / "out"
    child = forks.aang(*preparing, "--out", out)
    assert child.wait() == 0, child.said
    return out


@pytest.fixture(scope="session")
def headless(encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same encoder without its language-model head, as sentence encoders are shipped."""
    folder = tmp_path_factory.mktemp("headless")
    AutoModel.from_pretrained(encoder).save_pretrained(folder)
    AutoTokenizer.from_pretrained(encoder).save_pretrained(folder)
    return folder


def result_of(out: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((out / "preparation" / "result.json").read_text())
    return result


def test_an_ordinary_folder_that_reads_better(
    aang: Aang, preparing: list[object], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = aang(*preparing, "--steps", 60, "--lr", 5e-3, "--head-lr", 5e-3, "--out", out)
    assert done.status == 0, done.err
    result = result_of(out)
    assert result["steps"] == 60
    likelihood, accuracy = result["log-likelihood"], result["accuracy"]
    assert likelihood["after"] > likelihood["before"] + 0.3
    assert accuracy["after"] > accuracy["before"]
    model, loaded = AutoModelForMaskedLM.from_pretrained(out, output_loading_info=True)
    assert not loaded["missing_keys"]
    assert not loaded["unexpected_keys"]
    assert len(AutoTokenizer.from_pretrained(out)) == model.config.vocab_size
    assert "60 of 60" in done.err
    assert "left" in done.err
    assert not (out / "preparation" / "checkpoints").exists()


def test_the_card_says_what_was_read(prepared: Path, text: Path) -> None:
    facts = result_of(prepared)["text"]
    card = (prepared / "README.md").read_text(encoding="utf-8")
    assert f"{text.stat().st_size:,}" in card
    for number in (facts["pieces"], facts["tokens"], facts["held_out"], 12 * 8):
        assert f"{number:,}" in card
    assert f"{result_of(prepared)['accuracy']['after']:.4f}" in card
    assert facts["rows_trained"] == 12 * 8


def test_training_takes_up_what_comes_out(
    aang: Aang, prepared: Path, train_options: list[object], tmp_path: Path
) -> None:
    options = [*train_options, "--model", prepared, "--steps", 1]
    done = aang("train", *options, "--out", tmp_path / "run")
    assert done.status == 0, done.err
    assert "no language-model head" not in done.err


@pytest.mark.parametrize("command", ["train", "diagnose"])
def test_an_encoder_without_a_head_is_told_of_with_the_command(
    aang: Aang, train_options: list[object], headless: Path, tmp_path: Path, command: str
) -> None:
    own = ("--steps", 1, "--out", tmp_path / "run") if command == "train" else ("--batches", 1)
    skipped = (
        {"--steps", "--eval-every", "--aux-batch-size", "--test"}
        if command == "diagnose"
        else set()
    )
    pairs = zip(train_options[::2], train_options[1::2], strict=True)
    options = [part for pair in pairs if pair[0] not in skipped for part in pair]
    done = aang(command, *options, "--space", "td", "--model", headless, *own)
    assert done.status == 0, done.err
    (line,) = [line for line in done.err.splitlines() if "no language-model head" in line]
    assert "16 of 24 objectives" in line
    assert f"aang prepare-encoder {headless} --text " in line
    assert done.err.index(line) < done.err.rindex("macro-f1" if command == "train" else "note")


def test_plain_fine_tuning_names_the_command_too(
    aang: Aang, train_options: list[object], headless: Path, tmp_path: Path
) -> None:
    done = aang(
        *("train", *train_options, "--model", headless, "--weighter", "single-task"),
        *("--steps", 1, "--out", tmp_path / "run"),
    )
    assert done.status == 0, done.err
    (line,) = [line for line in done.err.splitlines() if "no language-model head" in line]
    assert "objectives" not in line
    assert f"aang prepare-encoder {headless} --text " in line
    assert done.err.index(line) < done.err.index("step 0")


def test_a_head_is_made_tied_and_fitted(
    aang: Aang, preparing: list[object], headless: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = aang("prepare-encoder", headless, *preparing[2:], "--out", out)
    assert done.status == 0, done.err
    (line,) = [line for line in done.err.splitlines() if "no language-model head" in line]
    assert "tied to its word embeddings" in line
    model, loaded = AutoModelForMaskedLM.from_pretrained(out, output_loading_info=True)
    assert not loaded["missing_keys"]
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight


def test_an_untied_decoder_that_is_missing_is_tied(headless: Path, tmp_path: Path) -> None:
    from tests.support.model import load_text_model, load_tokenizer

    model = AutoModel.from_pretrained(headless)
    model.config.tie_word_embeddings = False
    model.save_pretrained(tmp_path)
    loaded = load_text_model(str(tmp_path), load_tokenizer(str(headless)), ["a", "b"])
    assert loaded.fresh_language_model
    assert loaded.tied_decoder
    head = loaded.heads.language_model()
    loaded.save_language_model(tmp_path / "saved", head)
    saved = AutoModelForMaskedLM.from_pretrained(tmp_path / "saved")
    assert saved.get_output_embeddings().weight is saved.get_input_embeddings().weight


def after_step(out: Path, step: int) -> Callable[[], bool]:
    """Whether held-out text was looked at in that step."""
    log = out / "preparation" / "metrics.jsonl"
    return lambda: log.exists() and f'"step": {step},' in log.read_text(encoding="utf-8")


def assert_same(out: Path, whole: Path) -> None:
    for name in ("model.safetensors", "preparation/metrics.jsonl"):
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name
    one, other = result_of(out), result_of(whole)
    del one["train_seconds"], other["train_seconds"]
    assert one == other


def interrupt(child: Child) -> None:
    child.signal(signal.SIGINT)
    assert child.wait() == 130, child.said


def kill(child: Child) -> None:
    child.signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL


def test_a_killed_one_goes_on_as_if_it_had_not_been(
    aang: Aang, forks: Forks, preparing: list[object], prepared: Path, tmp_path: Path
) -> None:
    """The end is the same, bit for bit; then there is nothing more to resume."""
    out = tmp_path / "out"
    child = forks.aang(*preparing, "--out", out)
    child.when(after_step(out, 4))
    kill(child)
    assert not (out / "config.json").exists()
    done = aang("prepare-encoder", "--resume", out)
    assert done.status == 0, done.err
    assert_same(out, prepared)
    again = aang("prepare-encoder", "--resume", out)
    assert again.status == 2
    assert "nothing to resume" in again.err


@pytest.mark.full
@pytest.mark.parametrize("end", [interrupt, kill])
def test_stopped_and_resumed(
    aang: Aang,
    forks: Forks,
    preparing: list[object],
    tmp_path: Path,
    end: Callable[[Child], None],
) -> None:
    """Stopped twice, the end is the same, bit for bit."""
    whole, out = tmp_path / "whole", tmp_path / "out"
    options = [*preparing, "--steps", 24]
    assert aang(*options, "--out", whole).status == 0
    resume = ["prepare-encoder", "--resume", out]
    for arguments, step in (([*options, "--out", out], 4), (resume, 12)):
        child = forks.aang(*arguments)
        child.when(after_step(out, step))
        end(child)
        assert not (out / "config.json").exists()
        if end is interrupt:
            assert f"aang prepare-encoder --resume {out}" in child.said
    done = aang(*resume)
    assert done.status == 0, done.err
    assert_same(out, whole)


@pytest.mark.full
def test_a_resumed_run_goes_on_with_its_clock(
    aang: Aang, forks: Forks, preparing: list[object], tmp_path: Path
) -> None:
    """Time that was trained before the interruption is not trained once more."""
    out = tmp_path / "out"
    place = preparing.index("--steps")
    options = [*preparing[:place], *preparing[place + 2 :], "--minutes", 0.05, "--out", out]
    child = forks.aang(*options)
    child.when(after_step(out, 8))
    interrupt(child)
    newest = max((out / "preparation" / "checkpoints").iterdir())
    before = json.loads((newest / "clock.json").read_text(encoding="utf-8"))["seconds"]
    assert before > 0
    done = aang("prepare-encoder", "--resume", out)
    assert done.status == 0, done.err
    result = result_of(out)
    assert result["train_seconds"] >= 3.0
    # What is over the limit is one step and the last look at held-out text.
    assert result["train_seconds"] < 3.0 + 1.0
    assert result["steps"] > 8


def test_long_texts_lose_nothing(
    aang: Aang, preparing: list[object], encoder: Path, text: Path, tmp_path: Path
) -> None:
    """All paragraphs on one line are as many tokens as on a line each."""
    line = tmp_path / "line.txt"
    line.write_text(" ".join(text.read_text(encoding="utf-8").split("\n")), encoding="utf-8")
    out = tmp_path / "out"
    done = aang("prepare-encoder", encoder, "--text", line, *preparing[4:], "--out", out)
    assert done.status == 0, done.err
    assert "cut" not in done.err
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    whole = tokenizer(line.read_text(encoding="utf-8"), add_special_tokens=False)["input_ids"]
    tokens = result_of(out)["text"]["tokens"]
    assert abs(tokens - len(whole)) < 0.01 * len(whole)


def test_every_line_has_its_turn(
    encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks that a batch does not divide, no line comes twice in a pass."""
    monkeypatch.setattr("aang_plugin_prepare.text.LOOKED_AT", 100)
    lines = [" ".join(["the", *f"{number:04}".translate(LETTERS)]) for number in range(1000)]
    path = tmp_path / "numbered.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    primitive = load_plugins().registry.primitive("data", "s2orc")
    text = read_unlabelled(
        CheckedData(primitive.make(min_length=1), primitive),
        [path],
        tokenizer,
        max_length=16,
        batch_size=16,
        seed=0,
        report=ReadReport(),
    )
    order, generator = RowOrder(len(text.rows)), torch.Generator().manual_seed(0)
    drawn = []
    # Whole blocks of 6 steps, of the lines that are not held out.
    for step in range(1, 1 + 6 * ((1000 - len(text.held_out)) // (6 * 16))):
        drawn += text.rows.rows(order.take(16, generator)).ids.tolist()
        text.rows.after_step(step)
    read = tokenizer.batch_decode(drawn, skip_special_tokens=True)
    held_out = text.held_out.rows(torch.arange(len(text.held_out))).ids
    aside = tokenizer.batch_decode(held_out, skip_special_tokens=True)
    assert len(set(read)) == len(read) == 960
    # What is missing would be in the next block.
    assert sorted([*read, *aside]) == lines[: 960 + len(aside)]


LETTERS = str.maketrans("0123456789", "abcdefghij")


def save_decoder(folder: Path, encoder: Path) -> Path:
    config = GPT2Config(n_embd=8, n_layer=1, n_head=1, vocab_size=600)
    return _save(GPT2LMHeadModel(config), folder, encoder)


def save_encoder_decoder(folder: Path, encoder: Path) -> Path:
    config = BartConfig(
        **{"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 600},
        **{"encoder_attention_heads": 1, "decoder_attention_heads": 1},
        **{"encoder_ffn_dim": 8, "decoder_ffn_dim": 8},
    )
    return _save(BartForConditionalGeneration(config), folder, encoder)


def _save(model: Any, folder: Path, encoder: Path) -> Path:
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(encoder).save_pretrained(folder)
    return folder


def strange(folder: Path) -> Path:
    """Text in a script of which the encoder's tokenizer knows no character."""
    path = folder / "strange.txt"
    path.write_text("ႠႡႢႣ ႤႥႦႧႨ ႩႪႫႬ ႭႮႯႰ ႱႲႳႴ\n" * 400, encoding="utf-8")
    return path


def written(folder: Path, content: str) -> Path:
    path = folder / "written.txt"
    path.write_text(content, encoding="utf-8")
    return path


BAD: dict[str, tuple[Callable[[Path, Path], list[object]], list[str]]] = {
    "a decoder alone": (
        lambda d, e: [save_decoder(d / "model", e)],
        ["generative language model", "gpt2", "roberta-base"],
    ),
    "an encoder-decoder": (
        lambda d, e: [save_encoder_decoder(d / "model", e)],
        ["encoder-decoder", "bart", "roberta-base"],
    ),
    "no such text": (
        lambda d, e: [e, "--text", d / "nowhere.txt"],
        ["--text", "nowhere.txt", "no such file"],
    ),
    "an unknown script": (
        lambda d, e: [e, "--text", strange(d)],
        ["--text", "does not know the language", "100%", "xlm-roberta-base"],
    ),
    "less than a batch": (
        lambda d, e: [e, "--text", written(d, "The module reads a file of options.\n" * 3)],
        ["less than a batch of 8 rows of 32", "--batch-size"],
    ),
    "the same text alone": (
        lambda d, e: [e, "--text", written(d, "The module reads a file of options.\n" * 300)],
        ["the same text again and again"],
    ),
    "nothing in the file": (lambda d, e: [e, "--text", written(d, "\n\n")], ["no usable text"]),
    "no such option of the source": (
        lambda d, e: [e, "--set", "s2orc.feld=Biology"],
        ["s2orc", "feld"],
    ),
    "a primitive that is not used": (lambda d, e: [e, "--set", "gpt.x=1"], ["--set gpt"]),
    "steps and minutes": (lambda d, e: [e, "--minutes", 3], ["--minutes", "--steps", "one"]),
    "no such device": (lambda d, e: [e, "--device", "abacus"], ["--device abacus"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(
    aang: Aang, preparing: list[object], encoder: Path, tmp_path: Path, case: str
) -> None:
    make, names = BAD[case]
    model, *options = make(tmp_path, encoder)
    given = preparing[4:] if "--text" in options else preparing[2:]
    out = tmp_path / "out"
    done = aang("prepare-encoder", model, *given, *options, "--out", out)
    assert done.status == 2, done.err
    (line,) = [line for line in done.err.splitlines() if line.startswith("Error")]
    for name in names:
        assert name in line
    assert not out.exists()


def test_a_folder_that_holds_something_else(
    aang: Aang, preparing: list[object], tmp_path: Path
) -> None:
    kept = tmp_path / "mine.txt"
    kept.write_text("mine", encoding="utf-8")
    done = aang(*preparing, "--out", tmp_path)
    assert done.status == 2
    assert f"--out {tmp_path}: already holds files" in done.err
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_a_full_disk_leaves_nothing_half_written(
    aang: Aang, forks: Forks, preparing: list[object], tmp_path: Path
) -> None:
    """A checkpoint does not fit; no partial model is left, and it resumes once there is room."""
    out = tmp_path / "out"
    child = forks.aang(*preparing, "--out", out, largest_file=100_000)
    assert child.wait() == 2
    assert "cannot write" in child.said
    assert not (out / "config.json").exists()
    assert not list(out.rglob(".*.tmp"))
    done = aang("prepare-encoder", "--resume", out)
    assert done.status == 0, done.err
    assert (out / "config.json").exists()


def test_some_unknown_tokens_are_noted(
    aang: Aang, preparing: list[object], encoder: Path, text: Path, tmp_path: Path
) -> None:
    mixed = tmp_path / "mixed.txt"
    lines = text.read_text(encoding="utf-8").splitlines()
    mixed.write_text("\n".join(f"{line} ႠႡ ႢႣ ႤႥ ႦႧ" for line in lines), encoding="utf-8")
    given = ["prepare-encoder", encoder, "--text", mixed, *preparing[4:], "--out"]
    done = aang(*given, tmp_path / "o")
    assert done.status == 0, done.err
    assert "of the tokens in --text are unknown to the tokenizer" in done.err
    done = aang(*given, tmp_path / "quiet", "--quiet")
    assert (done.status, done.err) == (0, "")


def test_text_in_the_home_folder(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No shell replaces the tilde of ``--text=~/text``."""
    monkeypatch.setenv("HOME", str(text.parent))
    whole = from_anywhere({"model": "m", "text": (f"~/{text.name}", "~/*.txt")})
    assert whole["text"] == (str(text), str(text.parent / "*.txt"))


def test_text_that_changed_is_told(
    aang: Aang, forks: Forks, preparing: list[object], encoder: Path, text: Path, tmp_path: Path
) -> None:
    own, out = tmp_path / "own.txt", tmp_path / "out"
    own.write_bytes(text.read_bytes())
    child = forks.aang("prepare-encoder", encoder, "--text", own, *preparing[4:], "--out", out)
    child.when(after_step(out, 4))
    interrupt(child)
    with own.open("a", encoding="utf-8") as file:
        file.write("One more paragraph that was not there when training began.\n")
    done = aang("prepare-encoder", "--resume", out)
    assert done.status == 0, done.err
    assert "have changed since training began" in done.err


def test_a_checkpoint_of_a_run_has_the_head_of_the_last_step(
    aang: Aang, preparing: list[object], encoder: Path, tmp_path: Path
) -> None:
    """The state of the last step is kept, also where held-out text has become less likely."""
    out = tmp_path / "out"
    done = aang(*preparing, "--lr", 1.0, "--head-lr", 1.0, "--out", out)
    assert done.status == 0, done.err
    likelihood = result_of(out)["log-likelihood"]
    assert likelihood["after"] < likelihood["before"]
    assert "held-out text became less likely" in done.err
    before = load_file(encoder / "model.safetensors")
    after = load_file(out / "model.safetensors")
    name = next(name for name in before if name.endswith("query.weight"))
    assert not torch.equal(before[name], after[name])
