"""The four stages of an auxiliary objective: data → transform → representation → output.

Each stage is one protocol, in a module of its own. Shapes throughout: B rows, T tokens, H hidden
size, V vocabulary size, C classes. All randomness comes from the generator that is passed in.
"""

from aang_core.objectives.stages.data import (
    Data,
    DataContext,
    EndTaskData,
    Example,
    Label,
    ReadReport,
    StepData,
    StreamingData,
    TaggedWord,
    TextStream,
)
from aang_core.objectives.stages.output import (
    CorruptedRows,
    CountsHits,
    DocumentStatistics,
    HeadBuilder,
    Output,
    RowsBefore,
    View,
)
from aang_core.objectives.stages.representation import (
    Representation,
    ShownRows,
    TextRepresentation,
)
from aang_core.objectives.stages.transform import (
    SELECTION_RATE,
    Corruption,
    Transform,
    random_tokens,
    select_tokens,
)
from aang_core.objectives.stages.vocabulary import Vocabulary, sentence_starts, word_starts

__all__ = [
    "SELECTION_RATE",
    "CorruptedRows",
    "Corruption",
    "CountsHits",
    "Data",
    "DataContext",
    "DocumentStatistics",
    "EndTaskData",
    "Example",
    "HeadBuilder",
    "Label",
    "Output",
    "ReadReport",
    "Representation",
    "RowsBefore",
    "ShownRows",
    "StepData",
    "StreamingData",
    "TaggedWord",
    "TextRepresentation",
    "TextStream",
    "Transform",
    "View",
    "Vocabulary",
    "random_tokens",
    "select_tokens",
    "sentence_starts",
    "word_starts",
]
