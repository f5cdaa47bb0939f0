"""The model card: what somebody who finds the model folder needs to know."""

import json
import re
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from aang import Run
from aang.assembly.labelled_tasks import end_task_columns
from aang.runs import shown_score
from aang.task_types import TaskType
from aang.task_types.choose import task_type_named
from huggingface_hub import EvalResult, ModelCardData
from jinja2 import Environment, StrictUndefined

from aang_core import AangError, DataError
from aang_core.cli import printable
from aang_plugin_hub.origins import Origins

LISTED = 10
TRAINED_WITH = (
    *("steps", "stop_after", "eval_every", "patience"),
    *("batch_size", "dev_batch_size", "aux_batch_size"),
    *("optimizer", "lr", "head_lr", "schedule", "weight_decay", "warmup", "max_grad_norm"),
    *("max_length", "seed"),
)
"""Options that the card lists; none of them can hold a path."""

_METRICS = {"macro-f1": "f1", "micro-f1": "f1"}
_SPLITS = {"dev": "validation"}


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
    pairs = _reads_pairs(run)
    given = {name: options.get(name) for name in TRAINED_WITH}
    return filled(
        files("aang_plugin_hub") / "card.md",
        run=run,
        origins=known,
        header=_header(run, known).to_yaml(),
        kind=_kind_of(run),
        encoder=_encoder(run, known),
        space=Path(run.outcome.space).stem,
        example='{"text": "…", "text_pair": "…"}' if pairs else '"…"',
        longest=_longest_text(run),
        shown_score=shown_score,
        options={name: value for name, value in given.items() if value is not None},
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


def _reads_pairs(run: Run) -> bool:
    path = run.model_folder / "config.json"
    try:
        config = json.loads(path.read_bytes())
    except ValueError as error:
        raise DataError(f"{path}: is damaged: {error}") from error
    # Older models do not say so.
    return bool(config.get("reads_pairs", end_task_columns(run.config).text_pair is not None))


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
