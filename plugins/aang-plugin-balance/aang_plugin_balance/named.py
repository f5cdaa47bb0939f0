"""Numbers by task, as checkpoints hold them."""

from collections.abc import Iterable, Mapping

from aang_core import ConfigError


def restored(state: Mapping[str, float], tasks: Iterable[str]) -> dict[str, float]:
    """The saved numbers of these tasks.

    Raises:
        ConfigError: they belong to other tasks.
    """
    names = [*tasks]
    if state.keys() != set(names):
        odd = ", ".join(sorted(state.keys() ^ set(names)))
        raise ConfigError(
            f"the saved weights belong to other tasks than this run's; they differ in: {odd}. "
            "Continue with the space and the end task of the saved run"
        )
    return {name: float(state[name]) for name in names}


def shares(weights: Mapping[str, float], tasks: Iterable[str]) -> dict[str, float]:
    """The weights of some tasks, divided by their sum."""
    chosen = {task: weights[task] for task in tasks}
    total = sum(chosen.values())
    return {task: weight / total for task, weight in chosen.items()}
