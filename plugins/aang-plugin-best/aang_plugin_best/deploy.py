"""What is deployed: the chosen way, trained again on all rows, with probabilities to believe."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from aang.modeling import load_classifier, load_tokenizer
from aang_plugin_compare.cells import Job
from torch import nn

from aang_core import ConfigError
from aang_core.storage import write_folder
from aang_plugin_best.quick import save_quick
from aang_plugin_best.race import Candidate, Race
from aang_plugin_best.together import Member


def trained_on_all(race: Race, candidate: Candidate, seed: int) -> Path:
    """Train a candidate on all rows, for as many steps as the folds liked best.

    Returns:
        Its run folder; for a quick candidate a folder with a scikit-learn model.

    Raises:
        ConfigError: the training has failed.
    """
    board, root = race.board, race.runs.root
    if candidate.model is not None:
        folder = root / "quick" / candidate.name
        if not folder.is_dir():
            model = candidate.model(race.config(candidate))
            model.fit(board.rows.texts, board.rows.truth)
            write_folder(folder, lambda to: save_quick(model, to))
        return folder
    every = torch.ones(len(board.rows.truth), dtype=torch.bool).numpy()
    place = board.steps(candidate.name, every)
    steps = board.found[candidate.name][board.complete(candidate.name)[0]].steps[place]
    config = race.config(
        candidate, train=str(root / "data" / "rows.jsonl"), seed=seed, stop_after=steps
    )
    folder = Path("runs", candidate.name, f"seed-{seed}", "all-rows")
    done = race.run([Job(folder, config)], race.clock.limit, {folder: f"{candidate.name} again"})
    if not done:
        raise ConfigError(f"{folder} has failed: {race.failed[f'{candidate.name} again']}")
    return root / folder


def soften(model: nn.Module, classes: int, temperature: float) -> None:
    """Divide the logits of a classifier by a temperature, in the weights of its last layer.

    So the plain folder has probabilities that can be believed, whoever loads it.

    Args:
        model: a transformers classifier.
        classes: C.
        temperature: the divisor.

    Raises:
        ConfigError: its last layer is not found.
    """
    last = [m for m in model.modules() if isinstance(m, nn.Linear) and m.out_features == classes]
    if not last:
        raise ConfigError("the classifier's last layer is no nn.Linear, so nothing can calibrate it")
    with torch.no_grad():
        last[-1].weight /= temperature
        if last[-1].bias is not None:
            last[-1].bias /= temperature


def deploy_model(run: Path, out: Path, temperature: float, card: str) -> None:
    """Write the model of a run as a plain Hugging Face folder, calibrated.

    Args:
        run: the run folder.
        out: the folder to write, complete or not at all.
        temperature: what its logits are divided by.
        card: the text of its README.md.
    """
    model, tokenizer = load_classifier(str(run / "model")), load_tokenizer(str(run / "model"))
    soften(model, int(model.config.num_labels), temperature)

    def write(folder: Path) -> None:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        (folder / "README.md").write_text(card, encoding="utf-8")

    write_folder(out, write)
