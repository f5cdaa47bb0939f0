"""The options that the result of a quick control depends on."""

from collections.abc import Mapping, Sequence
from typing import Any

from aang.config import TrainConfig
from aang.runs import PENALTIES as OF_TF_IDF
from aang.runs import TF_IDF

from aang_plugin_compare.control_results import FROZEN

PENALTIES: Mapping[str, Sequence[float]] = {
    TF_IDF: OF_TF_IDF,
    **dict.fromkeys(FROZEN, (0.001, 0.01, 0.1, 1.0, 10.0)),
}
"""The inverse penalties C that each control tries, equally many for all."""

ENCODED = ("model", "from_scratch", "allow_missing_weights", "max_length")
"""Options that features of the encoder depend on."""

_READ = (
    *("train", "dev", "test", "dataset", "text", "text_pair", "label", "dev_fraction"),
    "skip_bad_rows",
    *("task_type", "train_rows", "aux_task", "target", "seed", "metric"),
)


def asked_of(config: TrainConfig, control: str) -> dict[str, Any]:
    """The options that a quick control is computed with.

    Args:
        config: options of the run whose data and encoder it has.
        control: its name.
    """
    names = _READ if control == TF_IDF else (*_READ, *ENCODED)
    values = config.model_dump(mode="json", include=set(names), exclude_none=True)
    # Only where they matter, so that results of before these two were written down stay valid.
    if not config.test_score:
        values["test_score"] = False
    if config.target in config.aux_task and config.target in config.set:
        values["set"] = config.model_dump(mode="json")["set"][config.target]
    return {**values, "penalties": list(PENALTIES[control])}
