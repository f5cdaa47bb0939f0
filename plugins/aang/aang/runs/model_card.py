"""The model card: what somebody who finds the model folder needs to know."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData, try_to_load_from_cache
from jinja2 import Environment, StrictUndefined
from yaml import YAMLError

from aang.runs.run import Run
from aang.task_types.choose import task_type_named
from aang.task_types.metrics import shown_score
from aang.task_types.task_type import TaskType
from aang_core.cli.output import printable
from aang_core.errors import AangError

LISTED = 10
TRAINED_WITH = (
    *("steps", "stop_after", "eval_every", "patience"),
    *("batch_size", "dev_batch_size", "aux_batch_size"),
    *("optimizer", "lr", "head_lr", "schedule", "weight_decay", "warmup", "max_grad_norm"),
    *("max_length", "seed"),
)
"""Options that the card lists; none of them can hold a path."""

_ON_THE_HUB = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?")
_METRICS = {"macro-f1": "f1", "micro-f1": "f1"}
_SPLITS = {"dev": "validation"}


@dataclass(frozen=True)
class Origins:
    """What a model's card says about its origin and licence.

    Attributes:
        name: the model's name on the hub; None for a folder.
        base_model: the encoder's name on the hub; None if it has none.
        dataset: the data set's name on the hub; None if it has none.
        licence: the hub's identifier of the licence, such as ``apache-2.0``; None if unknown.
        languages: ISO 639-1 codes, such as ``en``.
    """

    name: str | None = None
    base_model: str | None = None
    dataset: str | None = None
    licence: str | None = None
    languages: tuple[str, ...] = ()

    @classmethod
    def of_options(cls, options: Mapping[str, Any]) -> "Origins":
        """What the options of a run say: names on the hub, and what the encoder's own card says.

        Call it where the run was trained: a source that is a folder there is not a name on the hub.
        """
        dataset, model = options.get("dataset"), options.get("model")
        said = _card_of_encoder(model)
        return cls(
            base_model=_hub_name(model),
            dataset=_hub_name(dataset.partition(":")[0] if dataset else None),
            licence=options.get("hub_license") or said.get("license"),
            languages=languages_in(options.get("hub_language") or said.get("language")),
        )


def languages_in(said: object) -> tuple[str, ...]:
    """The languages that the header of a card names, one or a list.

    YAML takes ``no``, Norwegian, for false.
    """
    several = said if isinstance(said, list | tuple) else [said]
    codes = ("no" if code is False else code for code in several)
    return tuple(code for code in codes if isinstance(code, str))


def _card_of_encoder(model: str | None) -> Mapping[str, Any]:
    """The header of the card of an encoder, if the card is on this machine; empty otherwise."""
    folder = files("aang") / "assets" / "demo-encoder" if model is None else Path(model)
    card = Path(str(folder)) / "README.md"
    if not card.is_file():
        name = _hub_name(model)
        cached = try_to_load_from_cache(name, "README.md") if name else None
        if not isinstance(cached, str):
            return {}
        card = Path(cached)
    try:
        said: Mapping[str, Any] = ModelCard.load(card, ignore_metadata_errors=True).data.to_dict()
    except (ValueError, TypeError, OSError, YAMLError):  # not text, or not such a header
        return {}
    return said


def _hub_name(source: str | None) -> str | None:
    """``source`` if it is a name on the hub and not a path."""
    if source is None or Path(source).exists() or not _ON_THE_HUB.fullmatch(source):
        return None
    return None if set(source) <= set("./") or source.startswith(".") else source


def card_of(run: Run, origins: Origins | None = None) -> str:
    """``README.md`` of a model folder, with the metadata header that the Hugging Face hub reads.

    No path of this machine is in it.

    Args:
        run: the run.
        origins: where the model comes from; default: what the run's options say.
    """
    known = Origins.of_options(run.options) if origins is None else origins
    records, options = run.records, run.options
    weights = records.mean_weights(0.5, 1) if records.objectives else {}
    given = {name: options.get(name) for name in TRAINED_WITH}
    return filled(
        files("aang.runs") / "model_card.md",
        run=run,
        origins=known,
        header=_header(run, known).to_yaml(),
        kind=_kind_of(run),
        encoder=_encoder(run, known),
        space=Path(run.outcome.space).stem,
        example='{"text": "…", "text_pair": "…"}' if options.get("text_pair") else '"…"',
        longest=_longest_text(run),
        shown_score=shown_score,
        options={name: value for name, value in given.items() if isinstance(value, int | float)},
        weights=weights,
        heaviest=sorted(weights, key=lambda name: -weights[name])[:LISTED],
        used={"aang-core", *run.plugins.primitives.values()},
    )


def filled(template: Traversable, **values: Any) -> str:
    """A card from its template.

    Args:
        template: a Markdown file with Jinja markup. It may use the filters ``plain`` and ``cell``
            for text that others wrote, and ``version(distribution)``.
        **values: the variables of the template.
    """
    environment = Environment(
        trim_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined
    )
    environment.filters |= {"plain": plain, "cell": cell}
    environment.globals["version"] = version
    return environment.from_string(template.read_text(encoding="utf-8")).render(values)


def _header(run: Run, origins: Origins) -> ModelCardData:
    evaluated = run.records.evaluation.parts
    return ModelCardData(
        library_name="transformers",
        pipeline_tag=run.outcome.pipeline,
        base_model=origins.base_model,
        license=origins.licence,
        language=list(origins.languages) or None,
        datasets=[origins.dataset] if origins.dataset else None,
        metrics=sorted({_METRICS.get(name, name) for name in evaluated["dev"].scores}),
        tags=["auxiliary-learning", "aang"],
        model_name=(origins.name or run.name).rpartition("/")[2],
        eval_results=[
            result
            for part in reversed(evaluated)
            if part != "dev" or not run.outcome.trained_on_dev
            for result in _eval_results(run, part, origins)
        ]
        or None,
    )


def _eval_results(run: Run, part: str, origins: Origins) -> list[EvalResult]:
    """The scores on ``dev`` or ``test``, the metric that chose the model first."""
    task, scores = run.records.data.task, run.records.evaluation.parts[part].scores
    return [
        EvalResult(
            task_type=run.outcome.pipeline,
            dataset_type=origins.dataset or task,
            dataset_name=task,
            dataset_split=_SPLITS.get(part, part),
            metric_type=_METRICS.get(name, name),
            metric_name=name,
            metric_value=round(scores[name], 4),
        )
        for name in sorted(scores, key=lambda name: name != run.metric)
    ]


def _encoder(run: Run, origins: Origins) -> str:
    source = run.options.get("model")
    if not source:
        return "The small encoder of AANG's demo"
    return plain(origins.base_model or f"The encoder {Path(source).name} of a local folder")


def _kind_of(run: Run) -> type[TaskType]:
    """The kind of end task; the base class if its plug-in is not installed."""
    try:
        return task_type_named(run.records.data.task_type)
    except AangError:
        return TaskType


def _longest_text(run: Run) -> int:
    """The number of tokens that texts were cut to, which may be below ``--max-length``."""
    settings = json.loads((run.model_folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    return int(settings["model_max_length"])


def cell(text: Any) -> str:
    """:func:`plain` for a table cell, which a bar would end even in code."""
    return re.sub(r"(?<!\\)\|", r"\|", plain(text))


def plain(text: Any) -> str:
    """Escape Markdown and HTML: labels come from untrusted files.

    Addresses, mentions, formulas and names of emoji act without markup and cannot be escaped,
    because renderers look for them after resolving escapes. A text that has one becomes code.
    """
    shown = printable(" ".join(str(text).split()))
    if _ACTING.search(shown):
        return _fenced(shown)
    escaped = "".join(f"\\{c}" if c in "\\`*_[]#|" else c for c in shown)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_ACTING = re.compile(r"://|\bwww\.|@|\$|:[\w+-]+:", re.IGNORECASE)


def _fenced(text: str) -> str:
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{text}{space}{fence}"
