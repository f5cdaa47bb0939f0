"""Recipes: systems and baselines, each by one name. The plug-ins that own them register them."""

from aang_core.errors import UnknownNameError
from aang_core.plugins.registry import RecipeEntry, Registry


def find_recipe(name: str, registry: Registry) -> RecipeEntry:
    """The recipe of that name.

    Raises:
        UnknownNameError: there is none; the message says which plug-in supplies it, or offers near
            names.
        AmbiguousNameError: several plug-ins own the short name.
    """
    try:
        return registry.recipes.find(name)
    except UnknownNameError as error:
        reason = str(error).removeprefix(f"there is no recipe {name}")
        raise UnknownNameError(f"--recipe {name}: there is no such recipe{reason}") from error
