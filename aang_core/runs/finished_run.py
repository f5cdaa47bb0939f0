"""A finished run, taken up again from its folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel

from aang_core.assembly.labelled_tasks import end_task_files
from aang_core.assembly.prediction import predict
from aang_core.config import TrainConfig, recorded_config
from aang_core.corpora.cache import cache_folder
from aang_core.corpora.labelled import Columns, read_rows
from aang_core.corpora.tokens import tokenize
from aang_core.errors import DataError
from aang_core.modeling import load_classifier, load_tokenizer
from aang_core.objectives.stages import ReadReport
from aang_core.plugins import Plugins
from aang_core.plugins.comparison import plugin_differences
from aang_core.runs.drawn_rows import check_recorded
from aang_core.runs.run_files import inside, read_part, refuse_links
from aang_core.training.evaluation import scores


class _Logits(nn.Module):
    """A transformers classifier that returns its logits."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, **inputs: Tensor) -> Tensor:
        logits: Tensor = self.model(**inputs).logits
        return logits


@dataclass(frozen=True)
class FinishedRun:
    """What a run folder says of a run that came to its end."""

    folder: Path
    config: TrainConfig
    result: Mapping[str, Any]
    plugins: Mapping[str, Any]

    @classmethod
    def load(cls, folder: Path) -> "FinishedRun":
        """Read a run folder.

        Raises:
            DataError: it is no run folder, or the run did not finish.
        """
        refuse_links(folder)
        if not (folder / "config.yaml").is_file():
            raise DataError(f"{folder}: is no run folder, it holds no config.yaml")
        try:
            result = read_part(folder, "result.json")
            plugins = read_part(folder, "plugins.json")
        except FileNotFoundError as error:
            raise DataError(
                f"{folder}: the run did not finish, {Path(str(error.filename)).name} is missing"
            ) from error
        config = recorded_config(folder / "config.yaml")
        check_recorded(folder, config.train_rows)
        return cls(folder, config, result, plugins)

    def differences(self, installed: Plugins) -> list[str]:
        """How the plug-ins that the run used differ from those installed, a sentence each."""
        return plugin_differences(self.plugins, installed)

    @property
    def model(self) -> Path:
        """The folder of the classifier.

        Raises:
            DataError: ``result.json`` names one that is not in the run folder.
        """
        return inside(self.folder, self.result["model"])

    @property
    def columns(self) -> Columns:
        """The columns of the end task."""
        files = end_task_files(self.config)
        if files is not None:
            return files.columns
        return Columns(self.config.text, self.config.text_pair, self.config.label)

    def evaluate(
        self, path: Path, report: ReadReport, *, trust_remote_code: bool = False
    ) -> Mapping[str, float]:
        """Scores of the saved model on a labelled file with the run's columns.

        trust_remote_code: whether the Python code that comes with the model may be run.

        Raises:
            DataError: the file cannot be used, or has a label that the model does not know.
        """
        labelled = read_rows(path, self.columns, report)
        if not labelled.examples:
            raise DataError(f"{path}: there is no example in it.")
        source = str(self.model)
        tokenizer = load_tokenizer(source, trust_remote_code=trust_remote_code)
        model = load_classifier(source, trust_remote_code=trust_remote_code)
        label_ids = {name: int(i) for name, i in (model.config.label2id or {}).items()}
        for example, place in zip(labelled.examples, labelled.places, strict=True):
            if example.label not in label_ids:
                raise DataError(
                    f"{place}: the model knows no label {example.label!r}; it knows "
                    f"{', '.join(sorted(label_ids))}"
                )
        rows = tokenize(
            labelled.examples,
            tokenizer,
            max_length=min(self.config.max_length, tokenizer.model_max_length),
            cache=cache_folder(),
            label_ids=label_ids,
            report=report,
        )
        assert rows.labels is not None
        predictions = predict(_Logits(model), rows).argmax(dim=-1)
        return scores(rows.labels.tolist(), predictions.tolist())
