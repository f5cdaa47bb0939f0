"""``aang push`` and ``aang train --push-to-hub`` against a hub that runs on this machine."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from aang import Run
from huggingface_hub import HfApi, constants

from aang_core.cli import main
from tests.one_layer_encoder import write_one_layer_encoder

HERE = Path(__file__).parent

# The client's own use of its HTTP library.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str


Aang = Callable[..., Done]


@pytest.fixture
def aang(capsys: pytest.CaptureFixture[str]) -> Aang:
    def run(*arguments: object) -> Done:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Done(int(end.value.code or 0), captured.out, captured.err)

    return run


@dataclass(frozen=True)
class LocalHub:
    """A hub in a process of its own, and the folder that it keeps everything in."""

    folder: Path
    endpoint: str

    def files(self, name: str) -> set[str]:
        """The files of a repository, without the hub's own."""
        own = {".gitattributes", "commits.json", "visibility"}
        found = {p.relative_to(self.folder / name).as_posix() for p in self.all_files(name)}
        return found - own

    def all_files(self, name: str) -> list[Path]:
        return [path for path in (self.folder / name).rglob("*") if path.is_file()]

    def commits(self, name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((self.folder / name / "commits.json").read_text())
        return found

    def card(self, name: str) -> tuple[dict[str, Any], str]:
        """The metadata and the text of a repository's card."""
        text = (self.folder / name / "README.md").read_text(encoding="utf-8")
        _, header, body = text.split("---\n", 2)
        return yaml.safe_load(header), body


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalHub]:
    folder = tmp_path_factory.mktemp("hub")
    command = [sys.executable, str(HERE / "local_hub.py"), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield LocalHub(folder, f"http://127.0.0.1:{int(process.stdout.readline())}")
        finally:
            process.terminate()


@pytest.fixture
def hub(served: LocalHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalHub:
    """An empty hub; the client of this process talks to it with a token that may write."""
    for path in served.folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    monkeypatch.setenv("HF_ENDPOINT", served.endpoint)
    monkeypatch.setenv("HF_TOKEN", "hf_writes")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    # Before its first request, the client would ask huggingface.co for a list of coding agents.
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
    # Xet's storage is a service of its own; without it the client uploads by Git LFS.
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    return served


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A one-layer encoder in a folder of this machine, with a card."""
    folder = tmp_path_factory.mktemp("encoders") / "my-encoder"
    write_one_layer_encoder(folder)
    card = "---\nlicense: mit\nlanguage: [en, de]\n---\nAn encoder.\n"
    (folder / "README.md").write_text(card)
    return folder


@pytest.fixture(scope="module")
def training(encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """The options of a training of two steps."""
    folder = tmp_path_factory.mktemp("reviews")
    rows = [{"text": f"{'good' if i % 2 else 'bad'} {i}", "label": i % 2} for i in range(24)]
    for part in ("train", "dev", "test"):
        (folder / f"{part}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    files = [(f"--{part}", folder / f"{part}.jsonl") for part in ("train", "dev", "test")]
    small = ("--steps", 2, "--eval-every", 1, "--max-length", 16, "--batch-size", 4, "--quiet")
    return [part for pair in files for part in pair] + [
        *("--model", encoder, "--weighter", "single-task", *small)
    ]


@pytest.fixture(scope="module")
def trained(training: list[object], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "run"
    with pytest.raises(SystemExit) as end:
        main(["train", *map(str, training), "--out", str(folder)])
    assert not end.value.code
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of the run, to be changed."""
    return Path(shutil.copytree(trained, tmp_path / "run"))


def test_a_push_is_one_commit_of_the_model_and_its_card(
    aang: Aang, hub: LocalHub, run: Path
) -> None:
    done = aang("push", run, "reviews", "--private")
    assert done.status == 0, done.err
    assert done.out == f"The model is at {hub.endpoint}/ada/reviews\n"
    (commit,) = hub.commits("ada/reviews")
    model = run / "model"
    assert hub.files("ada/reviews") == {path.name for path in model.iterdir()}
    assert commit["keys"].count("lfsFile") == 1
    for name in hub.files("ada/reviews") - {"README.md"}:
        assert (hub.folder / "ada/reviews" / name).read_bytes() == (model / name).read_bytes(), name
    assert (hub.folder / "ada/reviews/visibility").read_text() == "private"


def test_a_public_model_is_not_updated_as_private(aang: Aang, hub: LocalHub, run: Path) -> None:
    assert aang("push", run, "reviews").status == 0
    done = aang("push", run, "reviews", "--private", "--update")
    assert done.status == 2
    assert "ada/reviews: is public" in done.err
    assert len(hub.commits("ada/reviews")) == 1


def test_the_card(aang: Aang, hub: LocalHub, run: Path) -> None:
    done = aang("push", run, "reviews")
    assert done.status == 0, done.err
    metadata, body = hub.card("ada/reviews")
    assert metadata["license"] == "mit"
    assert metadata["language"] == ["en", "de"]
    assert metadata["metrics"] == ["accuracy", "f1"]
    assert metadata["library_name"] == "transformers"
    assert metadata["pipeline_tag"] == "text-classification"
    assert "base_model" not in metadata
    (index,) = metadata["model-index"]
    assert index["name"] == "reviews"
    result = Run.open(run).outcome.metric
    for entry, score in zip(index["results"], (result.test, result.dev), strict=True):
        assert entry["metrics"][0]["name"] == "macro-f1"
        assert entry["metrics"][0]["value"] == pytest.approx(score, abs=1e-4)
    assert [entry["dataset"]["split"] for entry in index["results"]] == ["test", "validation"]
    for words in (
        'pipeline("text-classification", model="ada/reviews", truncation=True)',
        "Texts are cut to 16 tokens",
        "The encoder my-encoder",
        "| `--lr` | 0.0001 |",
        "2 steps",
    ):
        assert words in body, words


def test_no_path_of_this_machine_is_pushed(
    aang: Aang, hub: LocalHub, run: Path, encoder: Path, tmp_path: Path
) -> None:
    """Not in any file, even where a library wrote one into its settings."""
    (run / "model" / "adapter").mkdir()
    settings = {"base_model_name_or_path": str(encoder), "r": 8, "id2label": {"0": "/sports"}}
    (run / "model" / "adapter" / "adapter_config.json").write_text(json.dumps(settings))
    (run / "model" / "adapter" / "README.md").write_text(f"base_model: {encoder}\n")
    config = json.loads((run / "model" / "config.json").read_text())
    config["_name_or_path"] = str(run / "model")
    (run / "model" / "config.json").write_text(json.dumps(config))
    done = aang("push", run, "reviews")
    assert done.status == 0, done.err
    secrets = [str(encoder), str(encoder.parent), str(tmp_path), str(Path.home()), str(Path.cwd())]
    pushed = hub.all_files("ada/reviews")
    assert len(pushed) > 8
    for path in pushed:
        content = path.read_bytes()
        for secret in secrets:
            assert len(secret) < 3 or secret.encode() not in content, f"{path.name}: {secret}"
    adapter = json.loads((hub.folder / "ada/reviews/adapter/adapter_config.json").read_text())
    assert adapter == settings | {"base_model_name_or_path": "my-encoder"}


def test_what_the_user_says_wins_over_the_encoder(aang: Aang, hub: LocalHub, run: Path) -> None:
    done = aang("push", run, "engines/reviews", "--license", "cc-by-4.0", "--language", "fr")
    assert done.status == 0, done.err
    metadata, _ = hub.card("engines/reviews")
    assert metadata["license"] == "cc-by-4.0"
    assert metadata["language"] == ["fr"]


def test_a_card_that_lacks_something_is_told(
    aang: Aang, hub: LocalHub, run: Path, encoder: Path
) -> None:
    options = (run / "config.yaml").read_text().replace(str(encoder), str(run))
    (run / "config.yaml").write_text(options)
    done = aang("push", run, "reviews", "--language", "en")
    assert done.status == 0, done.err
    assert "Its card names no licence (--license); push again with --update" in done.out
    metadata, _ = hub.card("ada/reviews")
    assert "license" not in metadata
    assert metadata["language"] == ["en"]


def test_the_card_of_an_encoder_on_the_hub(
    aang: Aang, hub: LocalHub, run: Path, encoder: Path
) -> None:
    """Its name, its licence, its language."""
    from tests.support.runs import Origins, card_of

    base = hub.folder / "engines" / "base"
    base.mkdir(parents=True)
    (base / "commits.json").write_text("[]")
    (base / "README.md").write_text("---\nlicense: apache-2.0\nlanguage: en\n---\nAn encoder.\n")
    options = (run / "config.yaml").read_text().replace(str(encoder), "engines/base")
    (run / "config.yaml").write_text(options)
    assert Origins.of_options(Run.open(run).options).base_model == "engines/base"
    (run / "model" / "README.md").write_text(card_of(Run.open(run)))
    done = aang("push", run, "reviews")
    assert done.status == 0, done.err
    metadata, body = hub.card("ada/reviews")
    assert metadata["base_model"] == "engines/base"
    assert metadata["license"] == "apache-2.0"
    assert metadata["language"] == ["en"]
    assert "engines/base was fine-tuned" in body


def test_a_pushed_model_is_found_by_its_name(
    aang: Aang, hub: LocalHub, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And predicts what it predicts here."""
    assert aang("push", run, "reviews").status == 0
    texts = ("good 1", "bad 2", "good bad " * 300)
    here = [json.loads(x) for x in aang("predict", run, *texts).out.splitlines()]
    shutil.rmtree(run)
    load_from(hub, monkeypatch)
    done = aang("predict", "ada/reviews", *texts)
    assert done.status == 0, done.err
    there = [json.loads(line) for line in done.out.splitlines()]
    for one, other in zip(here, there, strict=True):
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-6)


def load_from(hub: LocalHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let transformers and huggingface_hub load models from this hub, in this process."""
    # The client reads HF_ENDPOINT when it is imported, and transformers keeps a client.
    monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
    monkeypatch.setattr("transformers.utils.hub._hf_api", HfApi(endpoint=hub.endpoint))
    files = hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)


def test_a_sentence_encoder_of_the_hub_is_known(
    aang: Aang,
    hub: LocalHub,
    encoder: Path,
    training: list[object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So contrast classifies it by the mean; where that cannot be read, the user is told."""
    load_from(hub, monkeypatch)
    for name in ("sentences", "words"):
        folder = shutil.copytree(encoder, hub.folder / "ada" / name)
        (folder / "commits.json").write_text(json.dumps([name]))
    pooling = hub.folder / "ada" / "sentences" / "1_Pooling" / "config.json"
    pooling.parent.mkdir()
    pooling.write_text(json.dumps({"pooling_mode": "mean"}))
    plain = ("--model", encoder, "--weighter", "single-task", "--quiet")
    contrast = [option for option in training if option not in plain]

    def said(name: str, out: str) -> str:
        given = ("--recipe", "contrast", "--model", f"ada/{name}", "--out", tmp_path / out)
        done = aang("train", *contrast, *given)
        assert done.status == 0, done.err
        return done.err

    assert "a layer is added whose first token begins as the mean" in said("sentences", "first")
    assert "layer" not in said("words", "second")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "no mean layer is added, since 1_Pooling/config.json of ada/words" in said(
        "words", "third"
    )


@pytest.mark.full
def test_a_pushed_model_is_loaded_from_the_hub(
    aang: Aang, hub: LocalHub, run: Path, tmp_path: Path
) -> None:
    """By name, in a process that has no other way to it; long texts are cut as in training."""
    assert aang("push", run, "reviews").status == 0
    texts = ("good 1", "bad 2", "good bad " * 300)
    here = [json.loads(x) for x in aang("predict", run, *texts).out.splitlines()]
    command = [sys.executable, "-m", "aang_core", "predict", "ada/reviews", *texts]
    environment = os.environ | {"HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    there = [json.loads(line) for line in done.stdout.splitlines()]
    for one, other in zip(here, there, strict=True):
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-6)


def test_update_replaces_the_files_in_one_commit(aang: Aang, hub: LocalHub, run: Path) -> None:
    """Files of the old model are removed, a file of the hub's own stays."""
    (run / "model" / "old.json").write_text("{}")
    assert aang("push", run, "reviews").status == 0
    done = aang("push", run, "reviews")
    assert done.status == 2
    assert "--update" in done.err
    (run / "model" / "old.json").unlink()
    done = aang("push", run, "reviews", "--update", "--license", "mit")
    assert done.status == 0, done.err
    assert len(hub.commits("ada/reviews")) == 2
    assert hub.files("ada/reviews") == {path.name for path in (run / "model").iterdir()}
    assert (hub.folder / "ada/reviews/.gitattributes").exists()


def refused(done: Done) -> str:
    assert done.status == 2, done.out
    (line,) = done.err.splitlines()
    assert line.startswith("Error: ")
    return line


def test_tokens(aang: Aang, hub: LocalHub, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_reads")
    assert "may only read" in refused(aang("push", run, "reviews"))
    monkeypatch.setenv("HF_TOKEN", "hf_stale")
    said = refused(aang("push", run, "reviews"))
    assert "does not accept the token" in said
    assert f"{hub.endpoint}/settings/tokens" in said
    monkeypatch.delenv("HF_TOKEN")
    said = refused(aang("push", run, "reviews"))
    assert "there is no token" in said
    assert "hf auth login" in said


def test_names(aang: Aang, hub: LocalHub, run: Path) -> None:
    assert "is no name on the hub" in refused(aang("push", run, "a b"))
    assert "is no name on the hub" in refused(aang("push", run, "ada/x/y"))
    said = refused(aang("push", run, "others/reviews"))
    assert "ada may not write to others" in said
    assert "engines/…" in said
    (hub.folder / "engines" / "taken").mkdir(parents=True)
    (hub.folder / "engines" / "taken" / "commits.json").write_text("[]")
    assert "already" in refused(aang("push", run, "engines/taken"))
    assert not (hub.folder / "ada").exists()


def test_without_a_network(
    aang: Aang, hub: LocalHub, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    said = refused(aang("push", run, "reviews"))
    assert "http://127.0.0.1:9 cannot be reached" in said
    assert "aang push" in said
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "unset it to push" in refused(aang("push", run, "reviews"))


@pytest.mark.parametrize(
    "path",
    [
        "/api/repos/create",
        "/api/models/ada/reviews/preupload",
        "/ada/reviews.git",
        "/lfs",
        "/api/models/ada/reviews/commit",
    ],
)
def test_nothing_is_left_of_a_push_that_fails(
    aang: Aang, hub: LocalHub, run: Path, path: str
) -> None:
    """Wherever the hub refuses it; and the same name can be pushed to afterwards."""
    (hub.folder / "refuse").write_text(path)
    assert "the token may not write there" in refused(aang("push", run, "reviews"))
    assert not (hub.folder / "ada" / "reviews").exists()
    (hub.folder / "refuse").unlink()
    assert aang("push", run, "reviews").status == 0


def test_a_licence_that_the_hub_does_not_know(aang: Aang, hub: LocalHub, run: Path) -> None:
    said = refused(aang("push", run, "reviews", "--license", "mine"))
    assert "unknown license mine" in said
    assert not (hub.folder / "ada" / "reviews").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("generation_config.json", "{"),
        ("config.json", "\udcff"),
        ("README.md", "---\nlicense: [\n---\n"),
        ("README.md", None),
    ],
)
def test_a_damaged_file_is_named(
    aang: Aang, hub: LocalHub, run: Path, name: str, content: str | None
) -> None:
    """And nothing is pushed."""
    path = run / "model" / name
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert f"{path}: " in refused(aang("push", run, "reviews"))
    assert not (hub.folder / "ada" / "reviews").exists()


def test_an_unfinished_run_is_not_pushed(aang: Aang, hub: LocalHub, run: Path) -> None:
    (run / "result.json").unlink()
    assert "did not finish" in refused(aang("push", run, "reviews"))


def test_train_and_push(aang: Aang, hub: LocalHub, training: list[object], tmp_path: Path) -> None:
    run = tmp_path / "pushed"
    options = ["--push-to-hub", "reviews", "--hub-private", "--hub-license", "mit"]
    done = aang("train", *training, *options, "--hub-language", "en", "--json", "--out", run)
    assert done.status == 0, done.err
    json.loads(done.out)
    assert f"{hub.endpoint}/ada/reviews" in done.err
    assert len(hub.commits("ada/reviews")) == 1
    assert (hub.folder / "ada/reviews/visibility").read_text() == "private"
    metadata, _ = hub.card("ada/reviews")
    assert (metadata["license"], metadata["language"]) == ("mit", ["en"])

    again = tmp_path / "again"
    done = aang("train", *training, *options, "--out", again)
    assert done.status == 2
    assert "there is a model of that name already" in done.err
    assert not again.exists()


def test_a_push_that_fails_after_the_training_does_not_harm_the_run(
    aang: Aang, hub: LocalHub, training: list[object], tmp_path: Path
) -> None:
    (hub.folder / "refuse").write_text("/api/models/ada/reviews/commit")
    run = tmp_path / "run"
    about = ("--hub-private", "--hub-license", "mit", "--hub-language", "fr")
    done = aang("train", *training, "--push-to-hub", "reviews", *about, "--out", run)
    assert done.status == 0, done.err
    (line,) = [line for line in done.err.splitlines() if "aang-plugin-hub" in line]
    assert "failed after the run, which is complete without it" in line
    assert "may not write there" in line
    assert Run.open(run).result["steps"] == 2
    assert not (hub.folder / "ada/reviews").exists()
    (hub.folder / "refuse").unlink()
    done = aang("push", run, "reviews")
    assert done.status == 0, done.err
    # What the training was told holds for the push that repeats its own.
    assert (hub.folder / "ada/reviews/visibility").read_text() == "private"
    metadata, _ = hub.card("ada/reviews")
    assert (metadata["license"], metadata["language"]) == ("mit", ["fr"])
    assert aang("push", run, "shown", "--public", "--license", "cc-by-4.0").status == 0
    assert (hub.folder / "ada/shown/visibility").read_text() != "private"
    assert hub.card("ada/shown")[0]["license"] == "cc-by-4.0"


def test_options_about_a_push_that_is_not_asked_for(
    aang: Aang, training: list[object], tmp_path: Path
) -> None:
    done = aang("train", *training, "--hub-private", "--out", tmp_path / "run")
    assert done.status == 2
    assert "goes with --push-to-hub; give that too" in done.err
    options = ["--push-to-hub", "reviews", "--out", tmp_path / "run"]
    done = aang("--disable-plugin", "hub", "train", *training, *options)
    assert done.status == 2
    assert "aang-plugin-hub is disabled" in done.err
