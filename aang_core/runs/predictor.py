"""Predictions of a saved classifier for new texts."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from aang_core.assembly.labelled_tasks import end_task_columns
from aang_core.corpora.labelled import Columns
from aang_core.corpora.tables import read_table
from aang_core.corpora.text_files import well_formed
from aang_core.errors import DataError
from aang_core.modeling import load_classifier, load_tokenizer
from aang_core.runs.finished import finished_result, recorded_options
from aang_core.runs.run_files import inside

Text = tuple[str, str | None]
"""A text and, for models of pairs, the second one."""


@dataclass(frozen=True)
class Prediction:
    """The prediction for one text.

    Attributes:
        text: the text.
        text_pair: the second text, for models of pairs.
        label: the most probable class.
        probabilities: the probability of every class; they sum to one.
    """

    text: str
    text_pair: str | None
    label: str
    probabilities: Mapping[str, float]


@dataclass(frozen=True)
class Predictor:
    """A classifier, its tokenizer, and the columns that it was trained with.

    Attributes:
        model: the classifier, in evaluation mode.
        tokenizer: its tokenizer.
        max_length: the number of tokens that texts are cut to.
        columns: the columns of the training data.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    max_length: int
    columns: Columns

    @classmethod
    def load(
        cls, source: Path, device: torch.device, *, trust_remote_code: bool = False
    ) -> "Predictor":
        """Load the model of a run folder, or of any other folder with a classifier.

        Args:
            source: the folder.
            device: the device to compute on.
            trust_remote_code: whether Python code that comes with the model may run.

        Raises:
            DataError: the run did not finish.
            ModelError: there is no classifier in the folder.
        """
        columns, folder, limit = Columns(), source, None
        if (source / "config.yaml").is_file():
            config = recorded_options(source)
            folder = inside(source, finished_result(source).model)
            columns, limit = end_task_columns(config), config.max_length
        model = load_classifier(str(folder), trust_remote_code=trust_remote_code)
        tokenizer = load_tokenizer(str(folder), trust_remote_code=trust_remote_code)
        model.to(device).eval()  # type: ignore[arg-type]
        longest = min(tokenizer.model_max_length, 512 if limit is None else limit)
        return cls(model, tokenizer, longest, columns)

    @property
    def labels(self) -> list[str]:
        """The classes in the order of their ids."""
        names = {int(i): str(name) for i, name in (self.model.config.id2label or {}).items()}
        return [names[i] for i in sorted(names)]

    def predict(self, texts: Iterable[Text], *, batch_size: int = 32) -> Iterator[Prediction]:
        """Yield predictions in the order of the texts, holding one batch in memory at a time."""
        remaining = iter(texts)
        while batch := list(itertools.islice(remaining, batch_size)):
            yield from self._batch(batch)

    @torch.inference_mode()
    def _batch(self, batch: Sequence[Text]) -> Iterator[Prediction]:
        pairs = [pair for _, pair in batch]
        inputs = self.tokenizer(
            [text for text, _ in batch],
            None if pairs[0] is None else pairs,
            padding=True,
            truncation=True,
            max_length=self.max_length,
            return_tensors="pt",
        ).to(self.model.device)
        shares = self.model(**inputs).logits.float().softmax(dim=-1).cpu()
        labels = self.labels
        for (text, pair), row in zip(batch, shares, strict=True):
            probabilities = dict(zip(labels, row.tolist(), strict=True))
            yield Prediction(text, pair, labels[int(row.argmax())], probabilities)


def read_texts(path: Path, columns: Columns) -> Iterator[Text]:
    """Read the texts of a file in any format that training reads; labels are ignored.

    Raises:
        DataError: the file cannot be read, a column is missing, or a value is not a text.
    """
    wanted = [columns.text, *([columns.text_pair] if columns.text_pair else [])]
    table = read_table(path, wanted)
    for number, values in table.rows:
        found = []
        for name in wanted:
            if name not in values:
                raise DataError(
                    f"{table.where(number)}: there is no column {name!r}; the columns are "
                    f"{', '.join(map(repr, list(values)[:20]))}. Name it with --text or --text-pair"
                )
            value = values[name]
            if not isinstance(value, str):
                raise DataError(
                    f"{table.where(number)}: column {name!r} holds {value!r:.60}, which is not text"
                )
            found.append(well_formed(value))
        yield found[0], found[1] if len(found) > 1 else None
