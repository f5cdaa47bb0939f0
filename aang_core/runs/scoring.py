"""Scores of a finished run's classifier on further labelled data."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn
from transformers import PreTrainedModel

from aang_core.assembly.labelled_tasks import end_task_files
from aang_core.assembly.prediction import predict
from aang_core.corpora.cache import cache_folder
from aang_core.corpora.labelled import Columns, read_rows
from aang_core.corpora.tokens import tokenize
from aang_core.errors import DataError
from aang_core.modeling import load_classifier, load_tokenizer
from aang_core.objectives.stages import ReadReport
from aang_core.runs.run import Run
from aang_core.training.evaluation import scores


class _Logits(nn.Module):
    """A transformers classifier that returns its logits."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, **inputs: Tensor) -> Tensor:
        logits: Tensor = self.model(**inputs).logits
        return logits


def columns_of(run: Run) -> Columns:
    """The columns of the end task that the run was trained on."""
    files = end_task_files(run.config)
    if files is not None:
        return files.columns
    return Columns(run.config.text, run.config.text_pair, run.config.label)


def score_file(
    run: Run, path: Path, report: ReadReport, *, trust_remote_code: bool = False
) -> Mapping[str, float]:
    """Score the saved model on a labelled file with the run's columns.

    Args:
        run: the run.
        path: the file.
        report: collects notes about the file.
        trust_remote_code: whether Python code that comes with the model may run.

    Returns:
        The scores by name.

    Raises:
        DataError: the file cannot be used, or has a label that the model does not know.
    """
    config = run.config
    labelled = read_rows(path, columns_of(run), report)
    if not labelled.examples:
        raise DataError(f"{path}: there is no example in it.")
    source = str(run.model_folder)
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
        max_length=min(config.max_length, tokenizer.model_max_length),
        cache=cache_folder(),
        label_ids=label_ids,
        report=report,
    )
    assert rows.labels is not None
    predictions = predict(_Logits(model), rows).argmax(dim=-1)
    return scores(rows.labels.tolist(), predictions.tolist())
