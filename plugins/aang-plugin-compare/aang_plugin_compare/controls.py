"""Methods defined by another method, for example fine-tuning with the same compute."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from aang_core import ConfigError, did_you_mean
from aang_core.storage import Source
from aang_plugin_compare.settings import merged_settings

What = Literal["compute", "seconds"]

_MEASURES: Mapping[str, What] = {"same_compute_as": "compute", "same_seconds_as": "seconds"}
_LIKE = "as"

Options = dict[str, Any]


@dataclass(frozen=True)
class Control:
    """How a method refers to other methods.

    Attributes:
        like: the method whose options it starts from.
        what: whether it gets the same compute or the same seconds as another method.
        of: that other method.
    """

    like: str | None = None
    what: What | None = None
    of: str | None = None


def controls_of(
    methods: Mapping[str, Options], source: Source
) -> tuple[dict[str, Control], dict[str, Options]]:
    """How each method refers to others, and the options that each ends up with.

    Args:
        methods: options by method, as in the file.
        source: the file, for messages.

    Raises:
        ConfigError: a method refers to one that does not exist, or to one that itself refers to
            another.
    """
    controls: dict[str, Control] = {}
    own: dict[str, Options] = {}
    for name, options in methods.items():
        try:
            controls[name], own[name] = _control(options)
        except ConfigError as error:
            raise ConfigError(f"{source.at(('methods', name))}: method {name}: {error}") from error
    for name, control in controls.items():
        where = f"{source.at(('methods', name))}: method {name}"
        for key, other in ((_LIKE, control.like), (control.what, control.of)):
            if other is None:
                continue
            if other not in own:
                hint = did_you_mean(other, own, "the methods are")
                raise ConfigError(f"{where}: there is no method {other!r}; {hint}")
            its = controls[other]
            if other == name or its.what is not None or (key == _LIKE and its.like is not None):
                raise ConfigError(
                    f"{where}: {other!r} itself refers to another method; name one that does not"
                )
    return controls, {
        name: own[name] if control.like is None else _over(own[control.like], own[name])
        for name, control in controls.items()
    }


def _control(options: Options) -> tuple[Control, Options]:
    spelt = {name.replace("-", "_"): name for name in options}
    given = [key for key in _MEASURES if key in spelt]
    if len(given) > 1:
        raise ConfigError(f"{' and '.join(given)}: give one of them")
    for key in (_LIKE, *given):
        if key in spelt and not isinstance(options[spelt[key]], str):
            raise ConfigError(f"{spelt[key]}: must name another method of this comparison")
    measure = given[0] if given else None
    control = Control(
        options.get(_LIKE),
        _MEASURES[measure] if measure else None,
        options[spelt[measure]] if measure else None,
    )
    kept = {n: v for n, v in options.items() if n.replace("-", "_") not in (_LIKE, *_MEASURES)}
    return control, kept


def _over(base: Options, over: Options) -> Options:
    """The options of ``base``, replaced by those of ``over``, with hyphens or underscores."""
    spelt = {name.replace("-", "_") for name in over}
    options = {n: v for n, v in base.items() if n.replace("-", "_") not in spelt} | over
    if "set" in base and "set" in over:
        options["set"] = merged_settings([base["set"], over["set"]])
    return options
