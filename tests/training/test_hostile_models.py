"""Model folders that hold code: it does not run unless it is asked for by name."""

import io
import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer

from tests.support.model import load_text_model, load_tokenizer
from tests.training.conftest import Aang


class Payload:
    """Unpickled, it writes a file."""

    def __init__(self, proof: Path) -> None:
        self.proof = str(proof)

    def __reduce__(self) -> tuple[object, ...]:
        return Path.write_text, (Path(self.proof), "it ran")


@pytest.fixture
def proof(tmp_path: Path) -> Path:
    """Exists once hostile code has run."""
    return tmp_path / "proof"


def zipped(payload: Payload) -> bytes:
    file = io.BytesIO()
    torch.save({"weight": torch.zeros(1), "x": payload}, file)
    return file.getvalue()


@pytest.mark.parametrize(("form", "command"), [("zip", "train"), ("bare", "predict")])
def test_a_pickle_in_a_model_folder_does_not_run(
    aang: Aang,
    train_options: list[object],
    encoder: Path,
    tmp_path: Path,
    proof: Path,
    form: str,
    command: str,
) -> None:
    """The payload works; loading the weights that hold it fails with a clear error instead."""
    content = zipped(Payload(proof)) if form == "zip" else pickle.dumps(Payload(proof))
    pickle.loads(pickle.dumps(Payload(proof)))
    assert proof.read_text() == "it ran"
    proof.unlink()
    folder = shutil.copytree(encoder, tmp_path / "encoder")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(content)
    if command == "train":
        done = aang("train", *train_options, "--model", folder, "--out", tmp_path / "run")
    else:
        done = aang("predict", folder, "a text")
    assert not proof.exists()
    assert done.status == 2, done.err
    assert str(folder) in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "run").exists()


def test_weights_in_a_harmless_pickle_are_loaded(
    aang: Aang, train_options: list[object], encoder: Path, tmp_path: Path
) -> None:
    """Many models of the hub have no other file."""
    from safetensors.torch import load_file

    folder = shutil.copytree(encoder, tmp_path / "encoder")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    run = tmp_path / "run"
    done = aang("train", *train_options, "--model", folder, "--steps", 1, "--out", run, "--quiet")
    assert done.status == 0, done.err


CODE = """
from pathlib import Path
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

Path({proof!r}).write_text("it ran")

class OddConfig(BertConfig):
    model_type = "odd-bert"

class OddForMaskedLM(BertForMaskedLM):
    config_class = OddConfig

class OddForSequenceClassification(BertForSequenceClassification):
    config_class = OddConfig
"""


@pytest.fixture
def with_code(encoder: Path, tmp_path: Path, proof: Path) -> Path:
    """The encoder as a model whose classes come with it, as Python."""
    folder = shutil.copytree(encoder, tmp_path / "with-code")
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "odd-bert",
        "auto_map": {
            "AutoConfig": "odd.OddConfig",
            "AutoModelForMaskedLM": "odd.OddForMaskedLM",
            "AutoModelForSequenceClassification": "odd.OddForSequenceClassification",
        },
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "odd.py").write_text(CODE.format(proof=str(proof)))
    return folder


def test_code_of_a_model_does_not_run_unasked(
    aang: Aang,
    train_options: list[object],
    with_code: Path,
    tmp_path: Path,
    proof: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor does transformers ask on the terminal and read the answer from standard input."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 50))
    done = aang("train", *train_options, "--model", with_code, "--out", tmp_path / "run")
    assert done.status == 2
    assert "--trust-remote-code" in done.err
    assert "[y/N]" not in done.out
    done = aang("predict", with_code, "a text")
    assert done.status == 2
    assert "--trust-remote-code" in done.err
    assert not proof.exists()


@pytest.mark.full
def test_code_of_a_model_runs_if_it_is_asked_for(
    train_options: list[object], with_code: Path, tmp_path: Path, proof: Path
) -> None:
    """Training, prediction and evaluation each ask anew; the run folder does not."""
    run, cache = tmp_path / "run", tmp_path / "modules"

    def aang(*arguments: object) -> subprocess.CompletedProcess[str]:
        # In a process of its own: transformers keeps the classes it has imported.
        code = f"import os; os.environ['HF_MODULES_CACHE'] = {str(cache)!r}\n"
        code += "import sys; from aang_core.cli import main; main(sys.argv[1:])"
        command = [sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    options = [*train_options, "--model", with_code, "--steps", 2, "--out", run]
    done = aang("train", *options, "--trust-remote-code")
    assert done.returncode == 0, done.stderr
    assert proof.read_text() == "it ran"
    assert "trust" not in (run / "config.yaml").read_text()
    proof.unlink()
    shutil.rmtree(cache)
    done = aang("predict", run, "a text")
    assert done.returncode == 2
    assert "--trust-remote-code" in done.stderr
    assert not proof.exists()
    done = aang("predict", run, "a text", "--trust-remote-code")
    assert done.returncode == 0, done.stderr
    assert "predicted" in json.loads(done.stdout)


@pytest.mark.parametrize("written", ["trust_remote_code: true", "trust-remote-code: false"])
def test_no_file_can_ask_for_it(aang: Aang, tmp_path: Path, written: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(f"model: x/y\n{written}\n")
    done = aang("train", file, "--out", tmp_path / "run")
    assert done.status == 2
    assert "c.yaml" in done.err
    assert "command line" in done.err
    file.write_text(f"tasks: {{a: {{}}}}\nmethods: {{m: {{{written}}}}}\n")
    done = aang("compare", file, "--out", tmp_path / "comparison")
    assert done.status == 2
    assert "c.yaml:2" in done.err
    assert "command line" in done.err


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer.json", b"{}"),
        ("tokenizer.json", b'{"added_tokens": 7}'),
        ("config.json", b"[]"),
        ("model.safetensors", b"\x00" * 64),
        ("model.safetensors", b""),
    ],
)
def test_a_damaged_file_of_a_model_is_told(
    aang: Aang,
    train_options: list[object],
    encoder: Path,
    tmp_path: Path,
    name: str,
    content: bytes,
) -> None:
    folder = shutil.copytree(encoder, tmp_path / "encoder")
    (folder / name).write_bytes(content)
    done = aang("train", *train_options, "--model", folder, "--steps", 1, "--out", tmp_path / "run")
    assert done.status == 2, done.err
    assert str(folder) in done.err
    assert "Traceback" not in done.err


def test_a_saved_tokenizer_does_not_depend_on_what_it_has_read(
    encoder: Path, tmp_path: Path
) -> None:
    """Whether token ids came from the cache must not show in the model."""
    tokenizer = load_tokenizer(str(encoder))
    model = load_text_model(str(encoder), tokenizer, ["a", "b"])
    model.save(tmp_path / "warm")
    tokenizer(["one text", "x"], padding=True, truncation="longest_first", max_length=3)
    model.save(tmp_path / "cold")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / "cold" / name).read_bytes() == (tmp_path / "warm" / name).read_bytes()


def test_more_tokens_than_embeddings_are_refused(
    aang: Aang, train_options: list[object], encoder: Path, tmp_path: Path
) -> None:
    """Before training, where a text with the token would be an index that is out of range."""
    folder = shutil.copytree(encoder, tmp_path / "encoder")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    known = len(tokenizer)
    tokenizer.add_tokens(["gluon"])
    tokenizer.save_pretrained(folder)
    done = aang("train", *train_options, "--model", folder, "--steps", 1, "--out", tmp_path / "run")
    assert done.status == 2, done.err
    assert f"has a token 'gluon' with the number {known}" in done.err
    assert f"embeddings for {known} tokens only" in done.err
    assert not (tmp_path / "run").exists()
