"""Predictions of a saved classifier for new texts, one by one or as a table."""

import copy
import itertools
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.tokenization_utils_base import LARGE_INTEGER

from aang.assembly.labelled_tasks import end_task_columns
from aang.assembly.prediction import predict
from aang.config import recorded_config
from aang.corpora.cache import cache_folder
from aang.corpora.columns import Columns
from aang.corpora.in_memory import table_in_memory
from aang.corpora.labelled import LabelledRows, texts_of
from aang.corpora.tables import TableInMemory, read_table
from aang.corpora.token_cache import encode_batch
from aang.corpora.tokenizer import special_ids, token_offsets
from aang.corpora.tokens import TokenRows, tokenize
from aang.modeling import load_classifier, load_tokenizer
from aang.modeling.loading import longest_row
from aang.runs.files import check_model, finished_result, inside
from aang.task_types.choose import task_type_of_model
from aang.task_types.task_type import Decoded, EncodedLabels, Offsets, TaskType
from aang_core.errors import DataError, ModelError
from aang_core.objectives.stages import ReadReport
from aang_core.plugins import load_plugins
from aang_core.plugins.registry import Registry

if TYPE_CHECKING:
    from pandas import DataFrame

PREDICTED = "predicted"
"""The column that a prediction is written to."""

WINDOW = 64
"""Batches that are read ahead when all texts are available."""

UNKNOWN_LENGTH = 512
"""Tokens that texts are cut to if neither a run nor the tokenizer names a limit."""

Text = tuple[str, str | None]
"""A text and, for models of pairs, the second one."""


class _Logits(nn.Module):
    """A transformers classifier that returns its logits."""

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, **inputs: Tensor) -> Tensor:
        logits: Tensor = self.model(**inputs).logits
        return logits


@dataclass(frozen=True)
class Predictor:
    """A classifier, its tokenizer, and the columns that it was trained with.

    Attributes:
        model: the classifier, in evaluation mode.
        tokenizer: its tokenizer.
        max_length: the number of tokens that texts are cut to.
        columns: the columns of the training data.
        task_type: the kind of end task that the model was trained for.
        pairs: whether it was trained on pairs of texts; None if unknown.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    max_length: int
    columns: Columns
    task_type: TaskType
    pairs: bool | None = None

    @classmethod
    def load(
        cls,
        source: Path,
        device: torch.device,
        *,
        trust_remote_code: bool = False,
        registry: Registry | None = None,
    ) -> "Predictor":
        """Load the model of a run folder, or of any other folder with a classifier.

        Args:
            source: the folder, or the name of a model on the hub.
            device: the device to compute on.
            trust_remote_code: whether Python code that comes with the model may run.
            registry: where kinds of end task are looked up; None for the installed ones.

        Raises:
            DataError: the run did not finish, or its model is not the one that it saved.
            ModelError: there is no classifier in the folder, or no folder; or it is for a kind of
                task that no plug-in knows.
        """
        registry = registry or load_plugins().registry
        for hook in registry.hooks:
            if hook.name == "aang_open_classifier":
                found: Predictor | None = hook.call(
                    source=source, device=device, trust_remote_code=trust_remote_code
                )
                if found is not None:
                    return found
        refuse_wrong_paths(source)
        columns, folder, limit, trained_as = Columns(), source, None, None
        run = _run_of(source)
        if run is not None:
            folder = inside(run, finished_result(run).model)
            check_model(run, folder)
            config = recorded_config(run / "config.yaml")
            columns, limit = end_task_columns(config), config.max_length
            trained_as = config.task_type
        try:
            model = load_classifier(str(folder), trust_remote_code=trust_remote_code)
            tokenizer = load_tokenizer(str(folder), trust_remote_code=trust_remote_code)
        except ModelError as error:
            if folder.exists():
                raise
            raise ModelError(
                f"{source}: there is no such folder, and as a name on the hub it cannot be loaded: "
                f"{error.__cause__ or error}"
            ) from error
        # Models of older runs do not say so.
        unsaid = None if run is None else columns.text_pair is not None
        pairs = getattr(model.config, "reads_pairs", unsaid)
        second = (columns.text_pair or "text_pair") if pairs else None
        columns = replace(columns, text_pair=second)
        model.to(device).eval()  # type: ignore[arg-type]
        if limit is None:
            unlimited = tokenizer.model_max_length > LARGE_INTEGER
            limit = UNKNOWN_LENGTH if unlimited else tokenizer.model_max_length
        longest = min(longest_row(model, tokenizer), limit)
        task_type = task_type_of_model(model.config, registry)
        if trained_as not in (None, task_type.name):
            raise ModelError(
                f"{source}: was trained as {trained_as}, but the model that it saved is read as "
                f"{task_type.name}, whose predictions would be wrong. Where a plug-in brings the "
                "kind, load it (aang --plugin FILE.py); for its authors: of_model must recognise "
                "what finish writes"
            )
        return cls(model, tokenizer, longest, columns, task_type, pairs)

    def __getstate__(self) -> dict[str, Any]:
        """What a pickle holds: the model on the CPU, which every machine has."""
        on_cpu = self.model.device.type == "cpu"
        return self.__dict__ | {"model": self.model if on_cpu else copy.deepcopy(self.model).cpu()}

    @property
    def labels(self) -> list[str]:
        """The classes that predictions have probabilities for, in the order of their ids."""
        return list(self.task_type.probable)

    def predict(
        self,
        texts: Iterable[Text],
        *,
        batch_size: int = 32,
        window: int = 1,
        report: ReadReport | None = None,
    ) -> Iterator[Decoded]:
        """Yield predictions in the order of the texts, holding one window in memory at a time.

        Args:
            texts: the texts.
            batch_size: texts per batch.
            window: number of batches that are read ahead, so that texts of similar length share a
                batch and there is little padding.
            report: where to count the texts that are cut.
        """
        report = ReadReport() if report is None else report
        remaining, special = iter(texts), special_ids(self.tokenizer)
        while part := list(itertools.islice(remaining, batch_size * window)):
            encoded = encode_batch(part, self.tokenizer, self.max_length, special)
            firsts = [text for text, _ in part]
            for text, cut in zip(firsts, encoded["cut"].tolist(), strict=True):
                if cut:
                    report.add(f"text longer than {self.max_length} tokens, cut", repr(text)[:42])
            rows = TokenRows(encoded, EncodedLabels(), self.tokenizer)
            logits = predict(_Logits(self.model), rows, batch_size=batch_size)
            offsets: Offsets = ()
            if self.task_type.reads_every_token:
                offsets = token_offsets(firsts, self.tokenizer, self.max_length)
            yield from self.task_type.decode(logits, firsts, offsets)

    def labelled_logits(
        self, rows: LabelledRows, task_type: TaskType, batch_size: int, report: ReadReport
    ) -> tuple[Tensor, Tensor]:
        """The labels of rows, and the logits that the model computes for them.

        Args:
            rows: the rows.
            task_type: the kind of end task, which knows all classes of the rows.
            batch_size: rows per batch.
            report: collects notes about the texts.

        Returns:
            Labels as ``task_type`` encodes them, and logits.
        """
        tokenized = tokenize(
            rows.examples,
            self.tokenizer,
            max_length=self.max_length,
            cache=cache_folder(),
            task_type=task_type,
            report=report,
        )
        logits = predict(_Logits(self.model), tokenized, batch_size=batch_size)
        return tokenized.truth(), logits


def predictions(predictor: Predictor, data: object, *, batch_size: int) -> "DataFrame":
    """Predict the labels of texts.

    Args:
        predictor: the classifier.
        data: a text; a list or Series of texts, or of pairs; a DataFrame, a Dataset, a list of
            records or a dict of columns, with the columns that the classifier was trained with; or
            the path of a file.
        batch_size: texts per batch.

    Returns:
        A row per text, under the index of ``data`` if it has one: ``predicted``, and the
        probability of each class, ``P(class)``.

    Raises:
        DataError: the data cannot be used; the message names the row.
    """
    from pandas import DataFrame

    columns, report = predictor.columns, ReadReport()
    source: Path | TableInMemory
    if isinstance(data, Path) or (isinstance(data, str) and os.path.isfile(data)):  # noqa: PTH113
        source = Path(data)  # unlike os.path, Path raises where a text is too long for a name
    else:
        several = [data] if isinstance(data, str) else data
        source = table_in_memory(several, "data", columns, labelled=False)
    table = read_table(source, columns.texts())
    if table.columns is not None:
        require_columns_of_training(table.columns, columns.texts(), table.source)
    texts = (texts_of(row, columns, table.where(number), report) for number, row in table.rows)
    found = predictor.predict(texts, batch_size=batch_size, window=WINDOW, report=report)
    rows = [
        {PREDICTED: p.label} | {f"P({name})": share for name, share in p.probabilities.items()}
        for p in found
    ]
    for line in report.lines():
        warnings.warn(line, stacklevel=3)
    names = [PREDICTED, *(f"P({label})" for label in predictor.labels)]
    # The index of a DataFrame or Series, so that its predictions can be joined to it.
    index = data.index if hasattr(data, "iloc") and hasattr(data, "index") else None
    if index is not None and (twice := index[index.duplicated()].tolist()):
        warnings.warn(
            f"the index holds {twice[0]!r} more than once, and DataFrame.join would pair each such "
            "row with several predictions; pd.concat([frame, predictions], axis=1) puts each "
            "prediction beside its row",
            stacklevel=3,
        )
    return DataFrame(rows, columns=names, index=index)


def require_columns_of_training(present: Sequence[str], wanted: Sequence[str], source: str) -> None:
    """Refuse data in memory without the columns that the classifier was trained with."""
    if absent := [name for name in wanted if name not in present]:
        raise DataError(
            f"{source}: there is no column {absent[0]!r}, which the classifier was trained with; "
            f"the columns are {', '.join(map(repr, present))}. Rename the right one"
        )


def _run_of(source: Path) -> Path | None:
    """The run folder, if ``source`` is one or is the model folder of one; else None."""
    if (source / "config.yaml").is_file():
        return source
    above = source.absolute().parent
    files = (above / name for name in ("config.yaml", "result.json"))
    if not all(file.is_file() for file in files):
        return None
    return above if above / finished_result(above).model == source.absolute() else None


def refuse_wrong_paths(source: Path) -> None:
    """Refuse a path that is neither a folder nor the name of a model on the hub.

    Without this, a misspelled folder would be asked for on the hub.

    Raises:
        ModelError: there is no such folder, or it is not a folder, or not one of a classifier.
    """
    if source.is_dir():
        if not any((source / name).is_file() for name in ("config.yaml", "config.json")):
            raise ModelError(
                f"{source}: has neither config.yaml, as a run folder has, nor config.json, as a "
                "classifier's folder has"
            )
        return
    if source.exists() or source.is_symlink():
        raise ModelError(f"{source}: is not a folder; give a run folder or a classifier's folder")
    local = source.is_absolute() or len(source.parts) != 2 or source.parent.exists()
    if local:
        raise ModelError(
            f"{source}: there is no such folder; give a run folder or a classifier's folder, or "
            "the name of a classifier on the hub with its owner, as OWNER/NAME. "
            f"Relative paths start at {Path.cwd()}"
        )
