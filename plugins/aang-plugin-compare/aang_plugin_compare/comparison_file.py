"""The content of a comparison file, checked.

```yaml
tasks:
  acl-arc: {train: acl-arc/train.jsonl, dev: acl-arc/dev.jsonl, test: acl-arc/test.jsonl}
methods:
  fine-tuning: {weighter: single-task}
  tapt: {recipe: tapt}
  aang: {space: td, weighter: factored}
  more-rows: {as: fine-tuning, same_compute_as: aang}
seeds: [0, 1, 2]
baseline: fine-tuning        # optional
options: {model: roberta-base, steps: 300, train-rows: 500}   # optional, for all runs
grid: {lr: [1e-4, 1e-3], factored.lr: [0.1, 1.0]}   # optional
```
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from aang_core import ConfigError, did_you_mean
from aang_core.storage import Source
from aang_plugin_compare.control_results import QUICK_CONTROLS

_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=100)]
"""Folders get these names, so a name must not be a path and must fit every file system."""

_Options = dict[str, Any]


class ComparisonFile(BaseModel):
    """The validated content of a comparison file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tasks: Annotated[dict[_Name, _Options], Field(min_length=1)]
    methods: Annotated[dict[_Name, _Options], Field(min_length=1)]
    seeds: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)] = (0, 1, 2)
    baseline: str | None = None
    options: _Options = {}
    grid: str | dict[str, tuple[Any, ...]] = {}

    @field_validator("seeds")
    @classmethod
    def _each_seed_once(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(seeds)) < len(seeds):
            raise ValueError("a seed is given twice; each is one run")
        return seeds


def read_content(value: object, source: Source) -> ComparisonFile:
    """Check the form of a comparison, and the names of its methods.

    Args:
        value: the parsed YAML of the file.
        source: where it comes from, for messages.

    Raises:
        ConfigError: it is not a comparison; the message names the line.
    """
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{source.at(())}: a comparison is a mapping with the keys "
            f"{', '.join(ComparisonFile.model_fields)}"
        )
    try:
        given = ComparisonFile.model_validate(dict(value))
    except ValidationError as error:
        first = min(error.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
        raise ConfigError(f"{source.at(first['loc'])}: {_explain(first)}") from error
    if given.baseline is not None and given.baseline not in given.methods:
        hint = did_you_mean(given.baseline, given.methods, "the methods are")
        raise ConfigError(
            f"{source.at(('baseline',))}: baseline: there is no method {given.baseline!r}; {hint}"
        )
    if taken := set(given.methods) & set(QUICK_CONTROLS):
        name = min(taken)
        raise ConfigError(
            f"{source.at(('methods', name))}: {name} is the name of a quick control; give the "
            "method another name"
        )
    return given


def _explain(error: Mapping[str, Any]) -> str:
    key = ".".join(str(part) for part in error["loc"])
    match error["type"]:
        case "missing":
            return f"the key {key} is missing"
        case "extra_forbidden":
            hint = did_you_mean(key, ComparisonFile.model_fields, "the keys are")
            return f"unknown key {key}; {hint}"
        case "too_short":
            return f"{key} is empty"
        case "string_too_long":
            return f"the name {error['input']:.40}… is too long; the most is 100 characters"
        case "string_pattern_mismatch":
            return f"{error['input']!r} is not a name; use letters, digits and . _ + -"
        case _:
            return f"{key}: {error['msg']}"
