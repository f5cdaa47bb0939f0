"""A planned search: the options that are fixed, those that are searched, and their settings."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from aang.assembly import option_owners, without_unread_text
from aang.config import TrainConfig, resolve_training
from aang_plugin_compare.settings import Owners, applying, layered, setting_text, with_setting

from aang_core import ConfigError, Registry
from aang_plugin_tune.dimensions import Choices, Dimension

if TYPE_CHECKING:
    from optuna.trial import Trial

METHOD = "method"
"""Name of the dimension that chooses between the methods that the user has named."""

FORMING = ("recipe", "space", "weighter")
"""The options that say which method a run is. They are chosen first, because the names of the
others, such as ``factored.lr``, depend on them."""

Setting = Mapping[str, Any]
"""The value of each option that a trial chooses."""


MOST_LISTED = 10_000
"""The most settings that a search lists."""


@dataclass(frozen=True)
class Search:
    """The options of a search, fixed and searched.

    Attributes:
        options: options of ``aang train`` that all runs have, without those of ``methods``.
        methods: the options of each method that the user has named; empty without ``--method``.
        dimensions: the values to search, by option.
        registry: where recipes, weighters and spaces are looked up.
    """

    options: Mapping[str, Any]
    methods: Mapping[str, Mapping[str, Any]]
    dimensions: Mapping[str, Dimension]
    registry: Registry
    _owners: dict[str, Owners] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def forming(self) -> dict[str, Dimension]:
        """The dimensions that say which method a run is."""
        named: dict[str, Dimension] = {METHOD: Choices(tuple(self.methods))} if self.methods else {}
        return named | {name: d for name, d in self.dimensions.items() if name in FORMING}

    @cached_property
    def others(self) -> dict[str, Dimension]:
        """The other dimensions."""
        return {name: d for name, d in self.dimensions.items() if name not in FORMING}

    def methods_chosen(self) -> Iterator[Setting]:
        """Every combination of the dimensions that say which method a run is."""
        probes = [dimension.probes for dimension in self.forming.values()]
        for values in itertools.product(*probes):
            yield dict(zip(self.forming, values, strict=True))

    def applying(self, chosen: Setting) -> dict[str, Dimension]:
        """The other dimensions that a run with this method has.

        An option of a weighter or primitive applies to the runs that use it.
        """
        names = applying(list(self.others), self.owners(chosen))
        return {name: self.others[name] for name in names}

    def setting(self, trial: "Trial") -> dict[str, Any]:
        """The setting that Optuna proposes for a trial."""
        chosen = {name: of.suggest(trial, name) for name, of in self.forming.items()}
        rest = self.applying(chosen).items()
        return chosen | {name: of.suggest(trial, name) for name, of in rest}

    def listed(self) -> list[dict[str, Any]] | None:
        """Every setting; None if some option has a range, or there are too many."""
        if not all(isinstance(of, Choices) for of in self.dimensions.values()):
            return None
        settings = []
        for chosen in self.methods_chosen():
            others = self.applying(chosen)
            for values in itertools.product(*(of.probes for of in others.values())):
                settings.append({**chosen, **dict(zip(others, values, strict=True))})
                if len(settings) > MOST_LISTED:
                    return None
        return settings

    def config(
        self, setting: Setting, *, test: bool = False, seed: int | None = None
    ) -> TrainConfig:
        """The options of a run, without text such as that of ``domain`` which it does not read.

        Args:
            setting: the setting.
            test: whether the run reads test data; a trial never does.
            seed: the seed; that of the search's options if None.

        Raises:
            ConfigError: the values do not go together.
        """
        own = self.methods[setting[METHOD]] if self.methods else {}
        options = layered(self.options, own)
        options = with_setting(options, {k: v for k, v in setting.items() if k != METHOD})
        if seed is not None:
            options["seed"] = seed
        given = options if test else _without_test(options)
        config = resolve_training(given, {}, self.registry)
        if config.train_on_dev:
            raise ConfigError(
                "--train-on-dev: a search chooses by scores on dev, which would then be of rows "
                "that were trained on; leave it out, and train with the best setting afterwards"
            )
        return without_unread_text(config, self.registry)

    def method(self, setting: Setting, recorded: TrainConfig | None = None) -> str:
        """The name of the method in tables.

        Args:
            setting: the setting.
            recorded: options that a run of the search has recorded, if any. If all runs have one
                method, it is read from these: the data may have replaced the default recipe.
        """
        config = self.config(setting) if recorded is None or self.forming else recorded
        named = setting[METHOD] if self.methods else config.recipe
        if named is None:
            return f"{config.space} {config.weighter}"
        others = [setting[name] for name in FORMING if name in setting]
        return " ".join([named, *(name for name in others if name != named)])

    def owners(self, chosen: Setting) -> Owners:
        """What may have options in a run with this method: see ``aang.assembly``.

        Raises:
            AangError: a recipe, a weighter or a space is unknown.
        """
        key = repr(chosen)
        if key not in self._owners:
            config = self.config(chosen).model_copy(update={"set": {}})
            self._owners[key] = option_owners(config, self.registry)
        return self._owners[key]


def _without_test(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options without anything that names test data."""
    dev_only = {name: value for name, value in options.items() if name != "test"}
    # The end task may be an --aux-task, whose files are in its own options.
    sets = dict(options["set"])
    for name in set(options.get("aux_task") or ()) & set(sets):
        sets[name] = {option: value for option, value in sets[name].items() if option != "test"}
    return {**dev_only, "set": sets, "test_score": False}


def shown(setting: Setting) -> str:
    """A setting as text for people, whose numbers are rounded."""
    return setting_text(
        {n: float(f"{v:.3g}") if isinstance(v, float) else v for n, v in setting.items()}
    )
