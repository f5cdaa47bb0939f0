from pathlib import Path

import pytest

from tests.plugins_layer.on_disk import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    folder = tmp_path / "site"
    folder.mkdir()
    return Site(folder)
