"""The content of a search file, checked.

```yaml
methods:                     # optional; whole recipes to choose from
  fine-tuning: {weighter: single-task}
  contrast: {recipe: contrast}
search:
  lr: 1e-5..1e-3:log
  batch-size: [16, 32]
grid: paper-td               # optional; by the name that a plug-in gives it
options: {train: acl-arc/train.jsonl, dev: acl-arc/dev.jsonl, model: roberta-base}
```
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from aang_core import ConfigError, did_you_mean
from aang_core.storage import NumberLoader, Source, parse_yaml

_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=100)]


class SearchFile(BaseModel):
    """The validated content of a search file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    methods: dict[_Name, dict[str, Any]] = {}
    search: dict[str, Any] = {}
    grid: str | None = None
    options: dict[str, Any] = {}


def read_search_file(path: Path) -> tuple[SearchFile, Source]:
    """Read a search file.

    Returns:
        Its content, and where each part of it is, for messages.

    Raises:
        ConfigError: it cannot be read or is no search file; the message names the line.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"the search {path} cannot be read: {error.strerror}") from error
    value, source = parse_yaml(content, str(path), NumberLoader)
    keys = ", ".join(SearchFile.model_fields)
    if not isinstance(value, Mapping):
        raise ConfigError(f"{source.at(())}: a search is a mapping with the keys {keys}")
    try:
        return SearchFile.model_validate(dict(value)), source
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = f"{source.at(first['loc'])}: {'.'.join(map(str, first['loc']))}"
        if first["type"] == "extra_forbidden":
            hint = did_you_mean(str(first["loc"][0]), SearchFile.model_fields, "the keys are")
            raise ConfigError(f"{where}: there is no such key; {hint}") from error
        raise ConfigError(f"{where}: {first['msg']}") from error
