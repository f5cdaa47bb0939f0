"""The four stages of an auxiliary objective: data → transform → representation → output.

Each stage is one protocol, in a module of its own. Shapes throughout: B rows, T tokens, H hidden
size, V vocabulary size, C classes. All randomness comes from the generator that is passed in.
Each name is imported when it is first used, so that data can be read without torch.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_names

if TYPE_CHECKING:
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

_HOMES = {
    "aang_core.objectives.stages.data": (
        "Data DataContext EndTaskData Example Label ReadReport StepData StreamingData TaggedWord "
        "TextStream"
    ),
    "aang_core.objectives.stages.output": (
        "CorruptedRows CountsHits DocumentStatistics HeadBuilder Output RowsBefore View"
    ),
    "aang_core.objectives.stages.representation": "Representation ShownRows TextRepresentation",
    "aang_core.objectives.stages.transform": (
        "SELECTION_RATE Corruption Transform random_tokens select_tokens"
    ),
    "aang_core.objectives.stages.vocabulary": "Vocabulary sentence_starts word_starts",
}

# Hidden from type checkers: with it they would take any misspelled name for an attribute.
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
