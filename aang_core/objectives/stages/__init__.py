"""The four stages of an auxiliary objective: data → transform → representation → output.

Shapes throughout: B rows, T tokens, H hidden size, V vocabulary size, C classes. All randomness
comes from the generator that is passed in.
Each name is imported when it is first used, so that data can be read without torch.
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_index

if TYPE_CHECKING:
    from aang_core.objectives.stages.data import Data as Data
    from aang_core.objectives.stages.data import DataContext as DataContext
    from aang_core.objectives.stages.data import Example as Example
    from aang_core.objectives.stages.data import Label as Label
    from aang_core.objectives.stages.data import ReadReport as ReadReport
    from aang_core.objectives.stages.data import TaggedWord as TaggedWord
    from aang_core.objectives.stages.data import TextStream as TextStream
    from aang_core.objectives.stages.output import HeadBuilder as HeadBuilder
    from aang_core.objectives.stages.output import Output as Output
    from aang_core.objectives.stages.output import View as View
    from aang_core.objectives.stages.rows import SELECTION_RATE as SELECTION_RATE
    from aang_core.objectives.stages.rows import CorruptedRows as CorruptedRows
    from aang_core.objectives.stages.rows import Corruption as Corruption
    from aang_core.objectives.stages.rows import DocumentStatistics as DocumentStatistics
    from aang_core.objectives.stages.rows import EmbeddedRows as EmbeddedRows
    from aang_core.objectives.stages.rows import NoisesEmbeddings as NoisesEmbeddings
    from aang_core.objectives.stages.rows import Representation as Representation
    from aang_core.objectives.stages.rows import RowsBefore as RowsBefore
    from aang_core.objectives.stages.rows import ShownRows as ShownRows
    from aang_core.objectives.stages.rows import TextRepresentation as TextRepresentation
    from aang_core.objectives.stages.rows import Transform as Transform
    from aang_core.objectives.stages.rows import Vocabulary as Vocabulary
    from aang_core.objectives.stages.rows import random_tokens as random_tokens
    from aang_core.objectives.stages.rows import select_tokens as select_tokens
    from aang_core.objectives.stages.rows import sentence_starts as sentence_starts
    from aang_core.objectives.stages.rows import word_starts as word_starts
else:
    __getattr__, __dir__, __all__ = lazy_index(__name__)
