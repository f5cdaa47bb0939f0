"""An auxiliary objective, as the tasks layer sees it: four stages turned into a loss over rows."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from aang_core.build.end_task import encoder_inputs
from aang_core.build.stream_rows import StreamRows
from aang_core.corpora.tokens import TokenRows
from aang_core.stages import (
    CorruptedRows,
    Output,
    Representation,
    Transform,
    Vocabulary,
)
from aang_core.tasks import Batch, RowLosses


@dataclass(frozen=True)
class ObjectiveTask:
    """data → transform → representation → output over one source's tokenised rows.

    name: such as ``task/bert-op/bidirectional/denoise``.
    factors: the primitive of each stage, by stage.
    """

    name: str
    factors: Mapping[str, str]
    rows: TokenRows | StreamRows
    vocabulary: Vocabulary
    transform: Transform
    representation: Representation
    output: Output
    head: nn.Module

    @property
    def lengths(self) -> Tensor:
        return self.rows.lengths

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, rows: Tensor, generator: torch.Generator) -> Batch:
        padded = self.rows.rows(rows)
        ids, selected = self.transform(padded.ids, padded.ordinary, self.vocabulary, generator)
        attention = self.representation(padded.real, generator)
        targets = self.output.targets(
            CorruptedRows(
                original=padded.ids,
                corrupted=ids,
                selected=selected,
                ordinary=padded.ordinary,
                real=padded.real,
                labels=padded.labels,
                statistics=self.rows.document_statistics(),
                sees=attention,
                vocabulary=self.vocabulary,
            )
        )
        return Batch(encoder_inputs(padded, ids, attention), targets, len(ids))

    def losses(self, head: nn.Module, features: Tensor, targets: Mapping[str, Tensor]) -> RowLosses:
        return self.output.losses(head, features, targets)
