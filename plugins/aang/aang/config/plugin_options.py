"""The schema of a training with the options that plug-ins have added."""

from contextlib import suppress
from functools import lru_cache
from typing import Annotated, Any, get_origin

from pydantic import BeforeValidator, Field, PydanticUserError, TypeAdapter, create_model

from aang.config.schema import TrainConfig
from aang.config.values import in_a_list
from aang_core.errors import AmbiguousNameError, UnknownNameError
from aang_core.plugins.primitive import CORE, OptionEntry
from aang_core.plugins.registry import Registry


def schema_of(registry: Registry) -> type[TrainConfig]:
    """The options of ``aang train``, with those that plug-ins have added.

    Raises:
        PluginError: an option of a plug-in has the name of another one, or its type cannot be used.
    """
    # A third-party plug-in that reuses the name of a standard option must not change its default.
    ours = registry.as_meant_by(CORE).options
    by_name = {option.name: option for option in reversed(list(registry.options))}
    for name in by_name:
        with suppress(AmbiguousNameError, UnknownNameError):
            by_name[name] = ours.find(name)
    return _schema(tuple(option for option in registry.options if option in by_name.values()))


@lru_cache(maxsize=8)
def _schema(options: tuple[OptionEntry, ...]) -> type[TrainConfig]:
    added: dict[str, Any] = {}
    for option in options:
        if option.name in TrainConfig.model_fields:
            raise option.fault("aang train has an option of that name")
        type_ = option.imported()
        if get_origin(type_) is tuple:
            type_ = Annotated[type_, BeforeValidator(in_a_list)]
        field = Field(option.default, description=option.summary)
        try:
            type_ = type_ | None if option.default is None else type_
            value: Any = Annotated[type_, field]
            TypeAdapter(value)
        except (PydanticUserError, TypeError) as error:
            raise option.fault(f"{type_!r} is no type of a value") from error
        added[option.name] = (type_, field)
    schema = create_model("TrainConfig", __base__=TrainConfig, **added)
    schema.plugin_options = {option.name: option for option in options}
    return schema


def check_plugin_option(name: str, registry: Registry) -> None:
    """Check that an option, if it is a plug-in's, belongs to exactly one installed plug-in.

    Raises:
        UnknownNameError: no plug-in has it, and those that may are missing; the message names them.
        AmbiguousNameError: several plug-ins have it.
    """
    owners = [o.origin for o in registry.options if o.name == name]
    if len(owners) > 1:
        raise AmbiguousNameError(
            f"the option {name} is registered by more than one plug-in: "
            f"{', '.join(map(str, owners))}; --disable-plugin leaves one of them out"
        )
    if not owners and name not in TrainConfig.model_fields and registry.absent():
        registry.options.find(name, TrainConfig.model_fields)
