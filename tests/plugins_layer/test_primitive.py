from collections.abc import Callable
from typing import Any

import pytest

from aang_core import AangError, ConfigError, PluginError, Primitive
from tests.plugins_layer.made_up import primitive
from tests.plugins_layer.on_disk import Site


class Sized:
    def __init__(self, size: int, *, rate: float = 0.5) -> None:
        self.made = (size, rate)


def lazy(target: str | Callable[..., Any]) -> Primitive:
    return primitive("transform", "mine", target=target)


def test_nothing_is_imported_before_it_is_needed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.module("explosive", "raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(site.folder)
    made = lazy("explosive:Thing")
    with pytest.raises(PluginError) as caught:
        made.load()
    for fragment in ("aang-plugin-x 1.0", "explosive:Thing", "SystemExit: imported"):
        assert fragment in str(caught.value)


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("no_such_module:Thing", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("json:no_such_object", "no_such_object"),
        ("json:decoder.nothing", "nothing"),
        ("json:__name__", "is not callable"),
    ],
)
def test_a_target_that_does_not_exist_names_distribution_and_target(target: str, says: str) -> None:
    with pytest.raises(PluginError) as caught:
        lazy(target).make()
    for fragment in ("transform mine of aang-plugin-x 1.0", target, says, "--disable-plugin x"):
        assert fragment in str(caught.value)


def test_a_lazy_target_may_lie_inside_a_class() -> None:
    assert lazy("collections:OrderedDict.fromkeys").make(iterable="ab") == {"a": None, "b": None}


def test_what_the_target_raises_is_its_own_affair() -> None:
    def strict(rate: float = 0.0) -> None:
        raise ConfigError(f"rate must be positive, not {rate}")

    with pytest.raises(ConfigError, match=r"rate must be positive, not 0\.0"):
        lazy(strict).make()


def test_make_passes_arguments_and_options() -> None:
    assert lazy(Sized).make(size=3).made == (3, 0.5)
    assert lazy(Sized).make(3, rate=1).made == (3, 1)


def test_options_of_the_space_are_passed_and_those_of_the_call_win() -> None:
    made = lazy(Sized).with_options({"size": 3, "rate": 1}).with_options({"size": 4})
    assert made.make().made == (4, 1)
    assert made.make(rate=2).made == (4, 2)


def test_an_unknown_option_lists_those_that_exist() -> None:
    with pytest.raises(ConfigError) as caught:
        lazy(Sized).make(size=1, sise=2, rates=3)
    assert "transform mine (aang-plugin-x) has no option rates, sise; its options: size, rate" in (
        str(caught.value)
    )


def test_an_option_where_there_are_none() -> None:
    with pytest.raises(ConfigError, match="has no option rate; it has no options"):
        lazy(object).make(rate=1)


def test_a_missing_option_is_named() -> None:
    with pytest.raises(ConfigError, match="needs a value for its option size"):
        lazy(Sized).make(rate=0.5)


def test_arguments_are_no_options() -> None:
    """A weighter's cards cannot be given again as options, nor are they offered as such."""

    def weighter(end_task: str, auxiliaries: tuple[str, ...], lr: float = 1.0, **more: int) -> Any:
        return end_task, auxiliaries, lr, more

    made = primitive("weighter", "mine", target=weighter)
    assert made.make("e", ("a",), lr=2.0, other=1) == ("e", ("a",), 2.0, {"other": 1})
    with pytest.raises(ConfigError, match="has no option end_task; its options: lr"):
        made.make("e", ("a",), end_task="x")


def test_a_target_that_does_not_take_the_arguments_breaks_its_contract() -> None:
    made = primitive("weighter", "mine", target=lambda: None)
    with pytest.raises(
        PluginError,
        match=r"raised TypeError.* takes 0 positional arguments but 2 were given",
    ):
        made.make("e", ())


def test_a_target_with_an_argument_that_no_option_can_fill_breaks_its_contract() -> None:
    def positional(size: int, /) -> None: ...

    with pytest.raises(PluginError, match="making it raised TypeError"):
        lazy(positional).make()


def test_a_target_without_a_signature_is_called_all_the_same() -> None:
    assert lazy(dict).make(a=1) == {"a": 1}


def test_every_error_is_of_the_family() -> None:
    with pytest.raises(AangError):
        lazy("nowhere:x").load()
