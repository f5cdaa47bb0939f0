"""Values by task, as checkpoints hold them."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from aang_core.errors import ConfigError

Value = TypeVar("Value")


def restored_by_task(saved: Mapping[str, Value], tasks: Iterable[str]) -> dict[str, Value]:
    """The saved values of these tasks, for the `load_state_dict` of a weighter.

    Args:
        saved: a value by task, from the state that is restored.
        tasks: the tasks of this run that have one.

    Returns:
        The values in the order of ``tasks``.

    Raises:
        ConfigError: ``saved`` is of other tasks; it names those that differ.

    Examples:
        >>> from aang_core import ConfigError, restored_by_task
        >>> restored_by_task({"a": 0.5, "end": -0.5}, ["end", "a"])
        {'end': -0.5, 'a': 0.5}
        >>> try:
        ...     restored_by_task({"a": 0.5, "end": -0.5}, ["end", "b"])
        ... except ConfigError as error:
        ...     print(str(error).split(";")[1])
         they differ in: a, b. Continue with the space and the end task of the saved run
    """
    names = [*tasks]
    if saved.keys() != set(names):
        odd = ", ".join(sorted(saved.keys() ^ set(names)))
        raise ConfigError(
            f"the saved weights belong to other tasks than this run's; they differ in: {odd}. "
            "Continue with the space and the end task of the saved run"
        )
    return {name: saved[name] for name in names}
