"""The model card: what somebody who finds the model folder needs to know."""

from importlib.metadata import version

from huggingface_hub import EvalResult, ModelCardData

from aang_core.runs.markdown import plain, table
from aang_core.runs.run import Run
from aang_core.task_types.names import MODELS

LISTED = 10


def model_card(run: Run) -> str:
    """``README.md`` of a model folder, with the metadata header that the Hugging Face hub reads."""
    sections = [_header(run), _what(run), _use(run), _data(run), _scores(run), _weights(run)]
    return "\n".join([*filter(None, sections), _made(run)])


def _header(run: Run) -> str:
    metric, task = run.outcome.metric, run.records.data.task
    part = "test" if metric.test is not None else "validation"
    value = metric.dev if metric.test is None else metric.test
    encoder = run.options.get("model")
    data = ModelCardData(
        library_name="transformers",
        pipeline_tag=run.outcome.pipeline,
        base_model=encoder if encoder and "/" not in str(encoder).strip("./") else None,
        tags=["auxiliary-learning", "aang"],
        model_name=run.name,
        eval_results=[
            EvalResult(
                task_type=run.outcome.pipeline,
                dataset_type=task,
                dataset_name=task,
                dataset_split=part,
                metric_type=run.metric,
                metric_value=round(value, 4),
            )
        ],
    )
    return f"---\n{data.to_yaml()}\n---\n"


def _what(run: Run) -> str:
    labels = ", ".join(_code(label) for label in run.records.evaluation.labels)
    result = run.outcome
    how = f"with the weighter `{result.weighter}`"
    if result.objectives:
        how += f" over {result.objectives} objectives of the space `{result.space}`"
    if result.recipe:
        how += f", recipe `{result.recipe}`"
    encoder = run.options.get("model") or "The small encoder of AANG's demo"
    what = MODELS[run.records.data.task_type]
    if labels:
        what += f" with the classes {labels}"
    return (
        f"# {plain(run.records.data.task)}\n\n"
        f"{what}. {plain(encoder)} was fine-tuned by "
        f"AANG {how}; seed {result.seed}, best on dev at step "
        f"{result.best_step} of {result.steps}.\n"
    )


def _use(run: Run) -> str:
    pair = run.options.get("text_pair")
    argument = '{"text": "…", "text_pair": "…"}' if pair else '"…"'
    return (
        "## How to load it\n\n```python\nfrom transformers import pipeline\n\n"
        f'classify = pipeline("{run.outcome.pipeline}", model=".")\nclassify({argument})\n```\n\n'
        f"Texts were cut to {run.options['max_length']} tokens in training.{_chosen(run)}\n"
    )


def _chosen(run: Run) -> str:
    """What was chosen on dev for predictions, which transformers leaves to its user."""
    chosen = run.records.evaluation.chosen
    return "".join(f" The {name} chosen on dev is {value:g}." for name, value in chosen.items())


def _data(run: Run) -> str:
    parts = run.records.data.parts
    header = ["class", *parts]
    rows = [
        [plain(label), *(str(part.labels[label]) for part in parts.values())]
        for label in run.records.evaluation.labels
    ]
    rows.append(["all", *(str(part.examples) for part in parts.values())])
    return "## Data\n\n" + table(header, rows)


def _scores(run: Run) -> str:
    parts = run.records.evaluation.parts
    names = list(run.records.evaluation.dev.scores)
    rows = [[name, *(f"{part.scores[name]:.4f}" for part in parts.values())] for name in names]
    majority = [_score(run.outcome.majority.on(part)) for part in parts]
    rows.append([f"{run.metric} of the {run.outcome.baseline}", *majority])
    return (
        "## Scores\n\n"
        + table(["score", *parts], rows)
        + "\nDev stopped the training and chose the model; test was read once, at the end.\n"
    )


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _weights(run: Run) -> str:
    records = run.records
    if not records.objectives:
        return ""
    late = records.mean_weights(0.5, 1)
    ranked = sorted(late, key=lambda name: -late[name])[:LISTED]
    return (
        "## What was learned\n\nMean weight in the last half of training, the heaviest "
        f"{len(ranked)} of {len(late)} objectives; λ_e was "
        f"{records.rounds[-1].end_task_weight:.3f} at the end.\n\n"
        + table(["objective", "weight"], [[f"`{n}`", f"{late[n]:.4f}"] for n in ranked])
    )


def _made(run: Run) -> str:
    used = set(run.plugins.primitives.values())
    rows = [
        [plugin.distribution, plugin.version]
        for plugin in run.plugins.plugins
        if plugin.distribution in used or plugin.distribution == "aang-core"
    ]
    rows += [[name, version(name)] for name in ("torch", "transformers")]
    return "## Made with\n\n" + table(["distribution", "version"], rows)


def _code(label: str) -> str:
    return f"“{plain(label)}”"
