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

from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from aang_core import ConfigError, did_you_mean
from aang_core.storage import Source
from aang_plugin_compare.control_results import QUICK_CONTROLS
from aang_plugin_compare.settings import Name, Options, layered, validated, with_sets


def _no_control(name: str) -> str:
    if name in QUICK_CONTROLS:
        raise ValueError("is the name of a quick control; give the method another name")
    return name


def _each_once(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(seeds)) < len(seeds):
        raise ValueError("a seed is given twice; each is one run")
    return seeds


class Method(BaseModel):
    """A method, which may be defined by others: fine-tuning with the same compute, for example.

    Attributes:
        like: the method whose options it starts from.
        same_compute_as: the method whose compute it gets.
        same_seconds_as: the method whose seconds it gets.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    like: str | None = Field(None, validation_alias="as")
    same_compute_as: str | None = Field(
        None, validation_alias=AliasChoices("same_compute_as", "same-compute-as")
    )
    same_seconds_as: str | None = Field(
        None, validation_alias=AliasChoices("same_seconds_as", "same-seconds-as")
    )

    @model_validator(mode="after")
    def _makes_sense(self) -> "Method":
        if self.same_compute_as and self.same_seconds_as:
            raise ValueError("same_compute_as and same_seconds_as: give one of them")
        with_sets(self.options)
        return self

    @property
    def options(self) -> dict[str, Any]:
        """Its own options of ``aang train``."""
        return self.model_extra or {}

    @property
    def of(self) -> str | None:
        """The method whose compute or seconds it gets."""
        return self.same_compute_as or self.same_seconds_as


class ComparisonFile(BaseModel):
    """The validated content of a comparison file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tasks: Annotated[dict[Name, Options], Field(min_length=1)]
    methods: Annotated[
        dict[Annotated[Name, AfterValidator(_no_control)], Method], Field(min_length=1)
    ]
    seeds: Annotated[
        tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1), AfterValidator(_each_once)
    ] = (0, 1, 2)
    baseline: str | None = None
    options: Options = {}
    grid: str | dict[str, tuple[Any, ...]] = {}

    @field_validator("baseline")
    @classmethod
    def _is_a_method(cls, baseline: str | None, info: ValidationInfo) -> str | None:
        methods = info.data.get("methods", {})
        if baseline is not None and methods and baseline not in methods:
            hint = did_you_mean(baseline, methods, "the methods are")
            raise ValueError(f"there is no method {baseline!r}; {hint}")
        return baseline

    def options_of(self, method: str) -> dict[str, Any]:
        """The options of a method, with those of the method that it starts from."""
        like = self.methods[method].like
        return layered(self.methods[like].options if like else {}, self.methods[method].options)


def read_content(value: object, source: Source) -> ComparisonFile:
    """Check the form of a comparison, and the references between its methods.

    Args:
        value: the parsed YAML of the file.
        source: where it comes from, for messages.

    Raises:
        ConfigError: it is not a comparison, or a method refers to one that does not exist, or to
            one that itself refers to another; the message names the line.
    """
    given = validated(ComparisonFile, value, source)
    for name, method in given.methods.items():
        where = f"{source.at(('methods', name))}: method {name}"
        for other in filter(None, (method.like, method.of)):
            if other not in given.methods:
                hint = did_you_mean(other, given.methods, "the methods are")
                raise ConfigError(f"{where}: there is no method {other!r}; {hint}")
            its = given.methods[other]
            if other == name or its.of or (other == method.like and its.like):
                raise ConfigError(
                    f"{where}: {other!r} itself refers to another method; name one that does not"
                )
    return given
