"""Options from Python that have another form."""

import pytest

from aang_core.config import resolve_config
from aang_core.errors import ConfigError


@pytest.mark.parametrize("given", [["tapt.steps=2"], {"tapt": ["steps=2"]}])
def test_options_of_primitives_are_a_mapping(given: object) -> None:
    with pytest.raises(ConfigError, match=r"^--set.*valid dictionary"):
        resolve_config({}, {"set": given})
