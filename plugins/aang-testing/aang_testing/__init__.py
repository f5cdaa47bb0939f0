"""The contract of every stage, as checks to run against your own primitives.

Call the check of your stage from a test. It generates inputs of all shapes with hypothesis, awkward
ones included, and raises an ``AssertionError`` that says what was checked, expected and found:

```python
from aang_testing import check_transform
from my_plugin.shuffle import Shuffle

def test_shuffle_keeps_the_contract():
    check_transform(Shuffle())
```

Pass the traits that the primitive is registered to provide as ``provides``: those with a meaning
here are checked too. ``aang check-plugin`` runs all checks over a whole plug-in, and so does
``pytest -p aang_testing.pytest_plugin --aang-plugin NAME``.

| name | what it is |
|---|---|
| check_data | texts and labels as declared, the same every time; streams without end that resume |
| check_transform | corrupts ordinary tokens only, and draws from the generator only |
| check_representation | no token sees padding, every token sees something, the traits are true |
| check_output | losses per row, finite, with gradients; none from rows without targets |
| check_weighter | weights that sum to one, state that survives JSON, any tasks accepted |
| RecordingWorkbench | a workbench that trains nothing, for a weighter's own tests |
| quadratic_problem, Pull, QuadraticProblem | a real training of two numbers, to compute by hand |
| SmallHeads | heads on a small hidden size for any kind of end task, for an output's own tests |
| SampleRows, token_rows | rows of tokens, and a hypothesis strategy for them |
| corrupted_rows | a hypothesis strategy for rows as an output receives them |
| VOCABULARY | the forty token ids of those rows |
| task_cards | a hypothesis strategy for the tasks that a weighter receives |
"""

from typing import TYPE_CHECKING

from aang_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from aang_testing.data import check_data
    from aang_testing.heads import SmallHeads
    from aang_testing.outputs import check_output
    from aang_testing.quadratic import Pull, QuadraticProblem, quadratic_problem
    from aang_testing.representations import check_representation
    from aang_testing.rows import VOCABULARY, SampleRows, corrupted_rows, token_rows
    from aang_testing.transforms import check_transform
    from aang_testing.weighters import check_weighter, task_cards
    from aang_testing.workbench import RecordingWorkbench

__all__ = [
    "VOCABULARY",
    "Pull",
    "QuadraticProblem",
    "RecordingWorkbench",
    "SampleRows",
    "SmallHeads",
    "check_data",
    "check_output",
    "check_representation",
    "check_transform",
    "check_weighter",
    "corrupted_rows",
    "quadratic_problem",
    "task_cards",
    "token_rows",
]

_HOMES = {
    "aang_testing.data": "check_data",
    "aang_testing.heads": "SmallHeads",
    "aang_testing.outputs": "check_output",
    "aang_testing.quadratic": "Pull QuadraticProblem quadratic_problem",
    "aang_testing.representations": "check_representation",
    "aang_testing.rows": "VOCABULARY SampleRows corrupted_rows token_rows",
    "aang_testing.transforms": "check_transform",
    "aang_testing.weighters": "check_weighter task_cards",
    "aang_testing.workbench": "RecordingWorkbench",
}

# Hidden from type checkers: with it they would take any misspelled name for an attribute.
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
