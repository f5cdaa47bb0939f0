"""Recipes: systems and baselines under one name. Plug-ins register the recipes that they own."""

from aang_core.errors import UnknownNameError
from aang_core.plugins.registry import RecipeEntry, Registry


def find_recipe(name: str, registry: Registry) -> RecipeEntry:
    """Look up a recipe.

    Raises:
        UnknownNameError: nobody registered it; the message says which plug-in supplies it, or
            offers similar names.
        AmbiguousNameError: several plug-ins own the short name.
    """
    try:
        return registry.recipes.find(name)
    except UnknownNameError as error:
        reason = str(error).removeprefix(f"there is no recipe {name}")
        raise UnknownNameError(f"--recipe {name}: there is no such recipe{reason}") from error
