"""Options that plug-ins add to ``aang train``, and the hooks around a training that read them."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from aang import AangClassifier, Run, train

from aang_core import AmbiguousNameError, ConfigError, PluginError, UnknownNameError, load_plugins
from tests.docs.documents import ROOT
from tests.support.plugins import DISABLE_VARIABLE, LOAD_VARIABLE, checks_of
from tests.support.runs import recorded_config, resolve_config
from tests.training.conftest import Aang

SHOUT = """
import json
from pathlib import Path

from aang import TrainedPart
from aang_core import ConfigError, hookimpl


@hookimpl
def aang_register_options(register):
    register("shout", "train with loud embeddings", bool, default=False)
    register("volume", "how loud", float, goes_with="shout")
    register("shout_to", "who hears it", tuple[str, ...], default=(), reporting=True)


@hookimpl
def aang_before_training(options, resumed):
    if options["volume"] == 11:
        raise ConfigError("--volume 11: is too loud; give at most 10")
    if options["volume"] == 12:
        raise ValueError("my ears")


@hookimpl
def aang_prepare_model(model, options):
    if not options["shout"]:
        return None
    embeddings = model.body.base.get_input_embeddings()
    embeddings.weight.data.mul_(options["volume"] or 2)
    embeddings.weight.requires_grad_(False)
    return TrainedPart("the word embeddings are loud and not trained")


class Watch:
    def __init__(self, file):
        self.file, self.steps = file, []

    def after_round(self, step, record):
        self.steps.append(step)

    def after_evaluation(self, step, dev, best, losses):
        pass

    def close(self):
        self.file.write_text(json.dumps(self.steps))


@hookimpl
def aang_observe(folder, options):
    return Watch(folder / "heard.json") if options["shout_to"] else None
"""

SMALL = ("--weighter", "single-task", "--steps", 2, "--eval-every", 1)


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    path = tmp_path / "shouting.py"
    path.write_text(SHOUT, encoding="utf-8")
    return path


def test_the_help_lists_them_under_their_plugin(aang: Aang, plugin: Path) -> None:
    said = aang("--plugin", plugin, "train", "--help-all").out
    _, _, after = said.partition("Options of shouting.py ")
    section, _, _ = after.partition("\n\n")
    for words in ("--shout / --no-shout", "--volume FLOAT", "how loud", "--shout-to TEXT"):
        assert words in section
    # It trains nothing that is reported.
    assert "--shout-to" not in aang("--plugin", plugin, "diagnose", "--help-all").out
    assert "--volume" in aang("--plugin", plugin, "diagnose", "--help-all").out


def test_a_training_with_options_of_a_plugin(
    aang: Aang, train_options: list[object], plugin: Path, tmp_path: Path
) -> None:
    """From a file and from the command line, in the summary, in the run, and while it trains."""
    file, run = tmp_path / "options.yaml", tmp_path / "run"
    file.write_text("shout: true\nvolume: 3\nshout-to: everybody\n", encoding="utf-8")
    options = [file, *train_options, *SMALL, "--volume", 4]
    done = aang("--plugin", plugin, "train", *options, "--dry-run", "--json")
    assert done.status == 0, done.err
    given = {"shout": True, "volume": 4.0, "shout_to": ["everybody"]}
    assert {name: of["value"] for name, of in json.loads(done.out)["options"].items()} == given
    done = aang("--plugin", plugin, "train", *options, "--out", run)
    assert done.status == 0, done.err
    assert "volume 4.0 (shouting.py)" in done.err
    assert "the word embeddings are loud and not trained: " in done.err
    assert json.loads((run / "heard.json").read_text()) == [1, 2]
    recorded = yaml.safe_load((run / "config.yaml").read_text())
    assert {name: recorded[name] for name in given} == given
    assert set(json.loads((run / "inputs.json").read_text())["options"]) & set(given) == {
        *("shout", "volume")
    }
    # A run is read without its plug-ins, too.
    assert Run.open(run).config.steps == 2


def test_the_example_trains_the_bias_terms_alone(
    aang: Aang, train_options: list[object], tmp_path: Path
) -> None:
    plugin = ROOT / "examples" / "plugins" / "aang_plugin_bitfit.py"
    options = ["--plugin", plugin, "train", *train_options, *SMALL, "--bitfit", "--out"]
    refused = aang(*options, tmp_path / "refused", "--from-scratch")
    assert "--from-scratch makes them at random" in refused.err
    done = aang(*options, tmp_path / "run")
    assert done.status == 0, done.err
    assert "bias terms alone are trained: " in done.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--volume", 3], "--volume goes with --shout; give that too"),
        (["--volume", "loud"], "'loud' is not a valid float"),
        (["--shout", "--volume", 11], "--volume 11: is too loud; give at most 10"),
        (["--shout", "--volume", 12], "hook aang_before_training of shouting.py "),
        (["--shout", "--volume", 12], ": raised ValueError: my ears"),
        (["--shuot"], "No such option '--shuot'. One of a plug-in in a file needs aang --plugin"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(
    aang: Aang, train_options: list[object], plugin: Path, options: list[object], says: str
) -> None:
    done = aang("--plugin", plugin, "train", *train_options, *SMALL, "--quiet", *options)
    assert done.status == 2
    assert says in done.err.splitlines()[-1]
    assert "Traceback" not in done.err


def test_from_python(
    plugin: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, train_options: list[object]
) -> None:
    """``train`` takes them as keywords, and the classifier as parameters."""
    monkeypatch.setenv(LOAD_VARIABLE, str(plugin))
    with pytest.raises(ConfigError, match="volume= goes with shout=; give that too"):
        train(volume=2, steps=2, quiet=True)
    with pytest.raises(ConfigError, match="shuot: there is no such option; did you mean shout"):
        train(shuot=True)


def test_the_classifier_has_the_options_of_installed_plugins() -> None:
    classifier = AangClassifier(lora=8, freeze_layers=1)
    assert classifier.get_params()["lora"] == 8
    assert "push_to_hub" in classifier.get_params()


def test_an_option_whose_plugin_is_not_there(
    aang: Aang, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says so, for a file, the command line and Python; a run can be read all the same."""
    file = tmp_path / "config.yaml"
    file.write_text("lora: 8\nlog: []\n", encoding="utf-8")
    says = "there is no option lora: aang-plugin-lora is disabled"
    for options in ([file], ["--lora", 8]):
        done = aang("--disable-plugin", "lora", "train", *options)
        assert (done.status, done.err) == (2, f"Error: {says}\n")
    monkeypatch.setenv(DISABLE_VARIABLE, "lora,tracking")
    with pytest.raises(UnknownNameError, match=says):
        train(lora=8)
    registry = load_plugins().registry
    with pytest.raises(UnknownNameError, match=says):
        recorded_config(file, registry)
    file.write_text("lora: null\nlog: []\nsteps: 3\n", encoding="utf-8")
    assert recorded_config(file, registry).steps == 3
    assert recorded_config(file).steps == 3


def options_of(tmp_path: Path, *lines: str) -> Any:
    """The registry with plug-ins that register an option each."""
    files = []
    for number, line in enumerate(lines):
        path = tmp_path / f"plugin_{number}.py"
        path.write_text(
            "from aang_core import hookimpl\n@hookimpl\ndef aang_register_options(register):\n"
            f"    register({line})\n",
            encoding="utf-8",
        )
        files.append(str(path))
    return load_plugins(local=files, environ={})


def test_two_plugins_with_the_same_option(tmp_path: Path) -> None:
    """Nobody else is in the way; who gives it hears of both. Ours keeps its default."""
    lines = ("'mine', 's', int", "'mine', 's', str", "'lora', 's', int, default=8")
    registry = options_of(tmp_path, *lines).registry
    assert resolve_config({}, {}, registry).by_name["lora"] is None
    with pytest.raises(AmbiguousNameError, match=r"plugin_0\.py .*, plugin_1\.py .*; --disable"):
        resolve_config({}, {"mine": 1}, registry)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("'steps', 's', int", "aang train has an option of that name"),
        ("'mine', 's', print", "is no type of a value"),
        ("'mine', 's', 'nowhere:Type'", "importing nowhere:Type raised ModuleNotFoundError"),
    ],
)
def test_an_option_that_cannot_be_made(tmp_path: Path, line: str, says: str) -> None:
    """One line says whose it is, and the checks of a plug-in find it."""
    with pytest.raises(PluginError, match=says):
        resolve_config({}, {}, options_of(tmp_path, line).registry)
    (check,) = [c for c in checks_of(str(tmp_path / "plugin_0.py")) if "options" in c.name]
    with pytest.raises(PluginError, match=says):
        check.run()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("'my-option', 's', int", "the name must match"),
        ("'mine', '', int", "the summary must be one line"),
        ("'mine', 's', 'int'", "'int' must read 'module:object'"),
    ],
)
def test_a_registration_of_the_wrong_form_fails(tmp_path: Path, line: str, says: str) -> None:
    (failed,) = options_of(tmp_path, line).failed
    assert says in str(failed.error)
