"""The checks of a plug-in as tests.

``pytest -p aang_testing.pytest_plugin --aang-plugin NAME`` runs them after the other tests;
``--aang-set PRIMITIVE.OPTION=VALUE`` gives options to the primitives that are checked. Both can be
repeated; a plug-in gets the options of the primitives that it registers.

In a plug-in's own repository, in ``pyproject.toml``:

```toml
[tool.pytest.ini_options]
addopts = "-p aang_testing.pytest_plugin --aang-plugin aang-plugin-mine"
```
"""

from typing import Any

import pytest
from aang.config.values import parse_settings

from aang_core.errors import AangError
from aang_testing.conformance import Check, checks_of_each, require_path


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--aang-plugin``."""
    parser.addoption(
        "--aang-plugin",
        action="append",
        default=[],
        metavar="DIST|FILE.py",
        help="check an AANG plug-in: a distribution, a folder with one, or a file",
    )
    parser.addoption(
        "--aang-set",
        action="append",
        default=[],
        metavar="NAME.OPTION=VALUE",
        help="an option of a primitive or weighter of the plug-ins that are checked",
    )


def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Append the checks to the collected tests."""
    plugins: list[str] = config.getoption("--aang-plugin")
    try:
        options = parse_settings(config.getoption("--aang-set")) if plugins else {}
        found = checks_of_each([require_path(plugin) for plugin in plugins], options)
    except AangError as error:
        raise pytest.UsageError(f"--aang-plugin {' '.join(plugins)}: {error}") from error
    for plugin, checks in zip(plugins, found, strict=True):
        for check in checks:
            items.append(_Item.from_parent(session, name=f"{plugin}: {check.name}", check=check))


class _Item(pytest.Item):
    def __init__(self, *, check: Check, **given: Any) -> None:
        super().__init__(**given)
        self._check = check

    def runtest(self) -> None:
        self._check.run()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        return f"{excinfo.value}\n{self._check.advice}"

    def reportinfo(self) -> tuple[str, None, str]:
        return "aang", None, self.name
