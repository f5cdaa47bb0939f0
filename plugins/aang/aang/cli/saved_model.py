"""What the commands that use a trained classifier have in common."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aang.config.schema import Section
from aang.config.values import Positive
from aang_core.plugins import Plugins

if TYPE_CHECKING:
    from aang.runs.predict import Predictor

model_argument = click.argument("model", metavar="RUN|MODEL", type=click.Path(path_type=Path))
"""RUN is a run folder, MODEL any folder with a transformers classifier or its name on the hub."""


class ClassifierOptions(Section):
    """What a trained classifier reads, and how it is loaded."""

    text: str | None = None
    """column of the text; default: the run's"""
    text_pair: str | None = None
    """column of the second text; default: the run's"""
    batch_size: Positive = 32
    """texts that are computed together"""
    device: str = "auto"
    """torch device"""
    trust_remote_code: bool = False
    """run the Python code that comes with the model, for models that have some"""

    def load(self, model: Path, plugins: Plugins) -> "Predictor":
        """Load the classifier, which computes on the usable cores until the command ends.

        Its columns of texts are those that the user names, else those of the run.

        Raises:
            AangError: there is no such model or device, or it is of an unknown kind; or a second
                text is named, and the run was trained on single texts.
        """
        from aang.runs.devices import choose_device, on_usable_cores
        from aang.runs.predict import Predictor
        from aang.runs.prediction_files import check_pairs

        click.get_current_context().with_resource(on_usable_cores())
        predictor = Predictor.load(
            model,
            choose_device(self.device),
            trust_remote_code=self.trust_remote_code,
            registry=plugins.registry,
        )
        if self.text_pair is not None:
            check_pairs(predictor, model, pairs=True)
        own = predictor.columns
        columns = replace(
            own, task=None, text=self.text or own.text, text_pair=self.text_pair or own.text_pair
        )
        return replace(predictor, columns=columns)
