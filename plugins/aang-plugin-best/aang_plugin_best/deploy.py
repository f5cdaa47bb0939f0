"""The deployed model: the chosen candidate, trained again on all rows and calibrated.

One trained model is a plain Hugging Face folder. Several models, or one of scikit-learn, are a
folder with ``together.json`` and a folder for each member, which ``aang predict`` and ``AangBest``
read.
"""

import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from aang.corpora.columns import Columns
from aang.corpora.labelled import LabelledRows
from aang.modeling import load_classifier, load_tokenizer
from aang.runs.predict import Predictor, Text
from aang.task_types.single_label import SingleLabel
from aang.task_types.task_type import Decoded, TaskType
from aang_plugin_compare.cells import Job
from torch import nn

from aang_core import ConfigError, DataError, ReadReport
from aang_core.storage import write_folder
from aang_plugin_best.quick import load_fitted, log_probabilities, save_fitted
from aang_plugin_best.race import Candidate, Race
from aang_plugin_best.together import Member, Probabilities, logs_of, probabilities_of

TOGETHER = "together.json"
BEST, CLOCK = "best.json", "clock.json"
KEPT_OUT = Path("data", "kept-out.jsonl")
"""The rows that the deployed model is scored on at the end, in the folder of the search."""
MODEL = "model"
"""The folder of the deployed model, in the folder of the search."""


def trained_on_all(race: Race, candidate: Candidate, seed: int) -> Path:
    """Train a candidate on all rows, for the number of steps that was best on the folds.

    Returns:
        Its run folder; for a fitted candidate a folder with a scikit-learn model.

    Raises:
        ConfigError: the training has failed.
    """
    board, root = race.board, race.runs.root
    folder = Path("runs", candidate.name, f"seed-{seed}", "all-rows")
    if candidate.is_fitted:
        if not (root / folder).is_dir():
            config = race.config(candidate, seed=seed)
            model = candidate.fitted(config, board.rows, np.ones(len(board.rows.truth), dtype=bool))
            write_folder(root / folder, lambda to: save_fitted(model, to))
        return root / folder
    config = race.config(
        candidate,
        train=str(root / "data" / "rows.jsonl"),
        seed=seed,
        stop_after=board.liked_steps(candidate.name),
    )
    kept_out = root / KEPT_OUT
    if kept_out.is_file() and (config.unlabelled or config.domain or config.out_of_domain):
        # As the run's test set, their texts are left out of text without labels.
        config = config.model_copy(update={"test": kept_out})
    again = f"{candidate.name} on all rows"
    # Time was reserved for it, so it is never stopped.
    if not race.run([Job(folder, config)], None, {folder: again}):
        raise ConfigError(f"training {again} failed: {race.failed[again]}")
    return root / folder


def soften(model: nn.Module, classes: int, temperature: float) -> None:
    """Divide the logits of a classifier by a temperature, in the weights of its last layer.

    So the plain folder has calibrated probabilities, whatever loads it.

    Args:
        model: a transformers classifier.
        classes: C.
        temperature: the divisor.

    Raises:
        ConfigError: its last layer is not found.
    """
    last = [m for m in model.modules() if isinstance(m, nn.Linear) and m.out_features == classes]
    if not last:
        raise ConfigError("the classifier's last layer is no nn.Linear, so it cannot be calibrated")
    with torch.no_grad():
        for parameter in last[-1].parameters():
            parameter.div_(temperature)


def deploy_one(run: Path, out: Path, temperature: float, card: str) -> None:
    """Write the model of a run as a plain Hugging Face folder, calibrated.

    Args:
        run: the run folder.
        out: the folder to write, complete or not at all.
        temperature: what its logits are divided by.
        card: the text of its README.md.
    """
    model, tokenizer = load_classifier(str(run / "model")), load_tokenizer(str(run / "model"))
    soften(model, len(model.config.id2label or ()), temperature)

    def write(folder: Path) -> None:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        (folder / "README.md").write_text(card, encoding="utf-8")

    write_folder(out, write)


def deploy_several(
    race: Race,
    candidates: Mapping[str, Candidate],
    members: Mapping[Member, int],
    out: Path,
    temperature: float,
) -> None:
    """Train several members on all rows, and write a folder with all of them."""
    trained = {m: trained_on_all(race, candidates[m[0]], m[1]) for m in members}
    listed = [
        {"folder": f"{name}-{seed}", "weight": times, "fitted": candidates[name].is_fitted}
        for (name, seed), times in members.items()
    ]
    first = race.config(next(iter(candidates.values())))
    content = {
        "classes": list(race.board.rows.kind.labels),
        "temperature": temperature,
        "pairs": race.board.rows.examples[0].text_pair is not None,
        "max_length": first.max_length,
        "members": listed,
    }

    def write(folder: Path) -> None:
        from shutil import copytree

        for member, place in zip(members, listed, strict=True):
            source = trained[member]
            copytree(source if place["fitted"] else source / "model", folder / str(place["folder"]))
        (folder / TOGETHER).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")

    write_folder(out, write)


@dataclass(frozen=True)
class Together:
    """One model or several, as a single classifier; commands use it as they use a `Predictor`.

    Attributes:
        parts: the models, each with its weight in the mean of their probabilities.
        task_type: knows the classes.
        columns: the columns of the training data.
        temperature: what the logarithms of the mean probabilities are divided by.
        pairs: whether it reads pairs of texts.
        answer_at: the probability below which it gives no answer; 0 to always answer.
    """

    parts: Sequence[tuple[float, Any]]
    task_type: SingleLabel
    columns: Columns
    temperature: float = 1.0
    pairs: bool | None = None
    answer_at: float = 0.0

    @property
    def labels(self) -> list[str]:
        """The classes, in the order of the probabilities."""
        return list(self.task_type.labels)

    def probabilities(
        self, texts: Sequence[Text], batch_size: int = 32, report: ReadReport | None = None
    ) -> Probabilities:
        """The probabilities of N texts, float64 ``[N, C]``; ``report`` counts those it cuts."""
        cutting = [i for i, (_, part) in enumerate(self.parts) if isinstance(part, Predictor)][:1]
        found = [
            self._of_part(part, texts, batch_size, report if [i] == cutting else None)
            for i, (_, part) in enumerate(self.parts)
        ]
        mean = np.average(found, axis=0, weights=[weight for weight, _ in self.parts])
        return probabilities_of(np.log(mean.clip(1e-12)), self.temperature)

    def _of_part(
        self, part: Any, texts: Sequence[Text], batch_size: int, report: ReadReport | None
    ) -> Probabilities:
        if isinstance(part, Predictor):
            found = part.predict(texts, batch_size=batch_size, window=len(texts), report=report)
            return np.array([[p.probabilities[name] for name in self.labels] for p in found])
        given: Any = [text for text, _ in texts]
        if texts[0][1] is not None:
            given = np.array(texts, dtype=object)
        return probabilities_of(log_probabilities(part, given, len(self.labels)))

    def predict(
        self,
        texts: Iterable[Text],
        *,
        batch_size: int = 32,
        window: int = 1,
        report: ReadReport | None = None,
    ) -> Iterator[Decoded]:
        """Yield predictions in the order of the texts; an uncertain one has an empty label."""
        remaining = iter(texts)
        while part := list(islice(remaining, batch_size * window)):
            for shares in self.probabilities(part, batch_size, report):
                best = int(shares.argmax())
                label = self.labels[best] if shares[best] >= self.answer_at else ""
                by_name = dict(zip(self.labels, shares.tolist(), strict=True))
                yield Decoded(label, by_name)

    def labelled_logits(
        self, rows: LabelledRows, task_type: TaskType, batch_size: int, report: ReadReport
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The classes of labelled rows, int64 ``[N]``, and logits ``[N, C]``."""
        if self.answer_at:
            report.note("every text counts with its most probable class, uncertain ones, too")
        ids = task_type.ids([example.label for example in rows.examples], rows.source)
        found = self.probabilities([(e.text, e.text_pair) for e in rows.examples], batch_size)
        return torch.tensor(ids), torch.from_numpy(logs_of(found))

    def milliseconds(self, texts: Sequence[Text]) -> float:
        """Mean milliseconds per text, one at a time as a service would get them."""
        self.probabilities(texts[:1])
        begin = time.perf_counter()
        for text in texts:
            self.probabilities([text])
        return 1000 * (time.perf_counter() - begin) / len(texts)


def open_classifier(
    source: Path, device: torch.device, trust_remote_code: bool = False
) -> Together | None:
    """Open the folder of a search, or several members that it has deployed; None for other folders.

    Raises:
        AangError: a member cannot be loaded, or the search has not ended.
    """
    if (source / BEST).is_file():
        verdict = _read(source / BEST)
        found = open_model(source / MODEL, device, trust_remote_code)
        wanted = verdict.get("answer_at", {"threshold": 0.0})["threshold"]
        # Where no threshold reaches the accuracy that was asked for, nothing is answered.
        threshold = math.inf if wanted is None else float(wanted)
        return replace(found, columns=Columns(**verdict["columns"]), answer_at=threshold)
    if (source / CLOCK).is_file():
        raise ConfigError(
            f"{source}: holds a search that has not ended; repeat its aang best command to go on"
        )
    several = (source / TOGETHER).is_file()
    return open_model(source, device, trust_remote_code) if several else None


def open_model(source: Path, device: torch.device, trust_remote_code: bool = False) -> Together:
    """Open a deployed model: a plain Hugging Face folder, or several members.

    Raises:
        AangError: it cannot be loaded.
    """
    if not (source / TOGETHER).is_file():
        one = Predictor.load(source, device, trust_remote_code=trust_remote_code)
        kind = SingleLabel(one.task_type.labels)
        return Together([(1.0, one)], kind, one.columns, pairs=one.pairs)
    content = _read(source / TOGETHER)
    parts: list[tuple[float, Any]] = []
    for member in content["members"]:
        folder = source / member["folder"]
        model: Any = (
            load_fitted(folder, content["max_length"])
            if member["fitted"]
            else Predictor.load(folder, device, trust_remote_code=trust_remote_code)
        )
        parts.append((float(member["weight"]), model))
    pairs = content["pairs"]
    columns = Columns(text_pair="text_pair" if pairs else None)
    kind = SingleLabel(tuple(content["classes"]))
    return Together(parts, kind, columns, content["temperature"], pairs)


def _read(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: is damaged: {error}") from error
    return content
