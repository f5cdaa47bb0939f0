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

from aang_core.lazy_names import lazy_index

if TYPE_CHECKING:
    from aang_testing.data import check_data as check_data
    from aang_testing.heads import SmallHeads as SmallHeads
    from aang_testing.outputs import check_output as check_output
    from aang_testing.quadratic import Pull as Pull
    from aang_testing.quadratic import QuadraticProblem as QuadraticProblem
    from aang_testing.quadratic import quadratic_problem as quadratic_problem
    from aang_testing.representations import check_representation as check_representation
    from aang_testing.rows import VOCABULARY as VOCABULARY
    from aang_testing.rows import SampleRows as SampleRows
    from aang_testing.rows import corrupted_rows as corrupted_rows
    from aang_testing.rows import token_rows as token_rows
    from aang_testing.transforms import check_transform as check_transform
    from aang_testing.weighters import check_weighter as check_weighter
    from aang_testing.weighters import task_cards as task_cards
    from aang_testing.workbench import RecordingWorkbench as RecordingWorkbench
else:
    __getattr__, __dir__, __all__ = lazy_index(__name__)
