"""A dev set for tasks that have none, split off the training data."""

from collections import Counter
from collections.abc import Sequence

from aang.corpora.labelled import LabelledRows
from aang.task_types.single_label import ONE_CLASS
from aang.task_types.task_type import TaskType
from aang_core.errors import ConfigError, DataError
from aang_core.objectives.stages.data import ReadReport


def split_dev(
    train: LabelledRows,
    fraction: float,
    seed: int,
    report: ReadReport,
    task_type: TaskType = ONE_CLASS,
) -> tuple[LabelledRows, LabelledRows]:
    """Split off ``fraction`` of the examples, stratified by class.

    Both parts keep the order of the file. A class with a single example stays in train; every other
    class keeps at least one example there. Dev has at least one example of each class that has two,
    or as close to that as stratification allows. Kinds of task without classes have other groups;
    see :meth:`.task_type.TaskType.strata`.

    Args:
        train: the training examples.
        fraction: the share that becomes the dev set, above 0 and at most 0.5.
        seed: of the draw.
        report: where to note the split.
        task_type: says what the classes are.

    Returns:
        The remaining training examples, and the dev set.

    Raises:
        ConfigError: ``fraction`` is out of range.
        DataError: no class has two examples, so there is nothing to split.
    """
    if not 0 < fraction <= 0.5:
        raise ConfigError(f"--dev-fraction is {fraction}; it must be above 0 and at most 0.5.")
    labels = task_type.strata([e.label for e in train.examples if e.label is not None])
    sizes = Counter(labels)
    splittable = [index for index, label in enumerate(labels) if sizes[label] > 1]
    if not splittable:
        raise DataError(
            f"{train.source}: no class has two examples, so no dev set can be split off. "
            "Name a dev set with --dev."
        )
    # Imported here: scikit-learn takes a second, and most tasks bring a dev set.
    from sklearn.model_selection import train_test_split

    classes = len({labels[index] for index in splittable})
    wanted = max(classes, round(fraction * len(labels)))
    kept, drawn = train_test_split(
        splittable,
        test_size=min(wanted, len(splittable) // 2),
        random_state=seed % 2**32,  # all that scikit-learn takes
        stratify=[labels[index] for index in splittable],
    )
    singles = [index for index, label in enumerate(labels) if sizes[label] == 1]
    report.note(
        f"{train.source}: {len(drawn)} of {len(labels)} examples split off as the dev set, "
        f"{task_type.draws}, seed {seed}; --dev names one of your own"
    )
    for index in singles:
        report.add("class with a single example, so absent from dev", train.places[index])
    return _rows(train, sorted([*kept, *singles])), _rows(train, sorted(drawn))


def _rows(rows: LabelledRows, indices: Sequence[int]) -> LabelledRows:
    return LabelledRows(
        rows.source,
        tuple(rows.examples[index] for index in indices),
        tuple(rows.places[index] for index in indices),
    )
