"""What this plug-in registers."""

from pathlib import Path

from aang_core import (
    RegisterCandidate,
    RegisterObjective,
    RegisterPrimitive,
    RegisterRecipe,
    RegisterSpace,
    hookimpl,
)

_SPACES = Path(__file__).parent / "spaces"


@hookimpl
def aang_register_outputs(register: RegisterPrimitive) -> None:
    """Contrast over the classes, and over views of one text."""
    register(
        "supervised-contrast",
        "texts of one class are alike, those of other classes are not",
        "aang_plugin_contrast.supervised:SupervisedContrast",
        requires=("labels:end-task", "end-task:single-label", "sentence-representation"),
    )
    register(
        "simcse",
        "two views of a text are alike, other texts are not",
        "aang_plugin_contrast.simcse:SimCSE",
        provides=("several-views",),
        requires=("text", "sentence-representation"),
    )


@hookimpl
def aang_register_objectives(register: RegisterObjective) -> None:
    """The two objectives by their authors' names."""
    register(
        "contrast",
        "supervised contrast over the rows that the end task trains on (Gunel et al., 2021)",
        "end-task-rows/no-op/bidirectional/supervised-contrast",
    )
    register(
        "simcse",
        "SimCSE on the task's own text (Gao et al., 2021)",
        "task/no-op/bidirectional/simcse",
    )
    register(
        "unlabelled",
        "masked language modelling on the text of --unlabelled",
        "unlabelled/bert-op/bidirectional/denoise",
    )


@hookimpl
def aang_register_spaces(register: RegisterSpace) -> None:
    """AANG's spaces with the contrastive outputs."""
    register("td+c", "td, and contrast over labels and over views", _SPACES / "td+c.yaml")
    register("td+ed+c", "td+ed, and contrast over labels and over views", _SPACES / "td+ed+c.yaml")


@hookimpl
def aang_register_recipes(register: RegisterRecipe) -> None:
    """Supervised contrast as its authors train it, and after a stage of pre-training."""
    contrast = {"space": "contrast", "weighter": "static"}
    half = {"static": {"end_task_weight": 0.5}}
    register(
        "contrast",
        "supervised contrast on the end task's own rows, for half of the loss (Gunel et al., 2021)",
        options={**contrast, "set": half},
    )
    register(
        "tapt+contrast",
        "200 steps of pre-training on the task's own text, then the recipe contrast",
        pretraining=("tapt",),
        options={**contrast, "set": {**half, "tapt": {"steps": 200}}},
    )
    register(
        "unlabelled+contrast",
        "600 steps of pre-training on the text of --unlabelled, then the recipe contrast",
        pretraining=("unlabelled",),
        options={**contrast, "set": {**half, "unlabelled": {"steps": 600}}},
    )


@hookimpl
def aang_register_candidates(register: RegisterCandidate) -> None:
    """Contrast, with and without pre-training, and among learned objectives."""
    register(
        "contrast",
        "supervised contrast on the same rows, for half of the loss",
        options={"recipe": "contrast"},
        cost=1.1,
    )
    register(
        "tapt+contrast",
        "pre-training on the labelled texts, then contrast",
        options={"recipe": "tapt+contrast"},
        cost=2.0,
    )
    register(
        "unlabelled+contrast",
        "pre-training on the unlabelled texts, then contrast",
        options={"recipe": "unlabelled+contrast"},
        needs="unlabelled",
        cost=3.5,
    )
    register(
        "factored",
        "AANG: the objectives of td+c, weighted by the dev gradient",
        options={"space": "td+c", "weighter": "factored"},
        cost=4.0,
    )
