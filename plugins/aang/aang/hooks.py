"""What the text application registers."""

from aang_core import RegisterCommand, hookimpl


@hookimpl
def aang_register_commands(register: RegisterCommand) -> None:
    """Register the commands that train and use classifiers."""
    register("train", "Train a classifier with auxiliary objectives.", "aang.cli.train:train")
    register("evaluate", "Evaluate a trained classifier.", "aang.cli.evaluate:evaluate")
    register("predict", "Predict the labels of texts.", "aang.cli.predict:predict")
