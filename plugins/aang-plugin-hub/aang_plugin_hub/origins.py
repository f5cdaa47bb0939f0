"""What a model's card says about its encoder, data set, licence and languages."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from aang import Run
from huggingface_hub import ModelCard, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError
from yaml import YAMLError

from aang_core import DataError
from aang_plugin_hub.account import Account
from aang_plugin_hub.errors import told

_ON_THE_HUB = re.compile(r"[\w.-]{1,96}(/[\w.-]{1,96})?")


@dataclass(frozen=True)
class Origins:
    """What a model's card says about its origin and licence.

    Attributes:
        name: the model's name on the hub; None for a folder.
        base_model: the encoder's name on the hub; None if it has none.
        dataset: the data set's name on the hub; None if it has none.
        licence: the hub's identifier of the licence, such as ``apache-2.0``; None if unknown.
        languages: ISO 639-1 codes, such as ``en``.
    """

    name: str | None = None
    base_model: str | None = None
    dataset: str | None = None
    licence: str | None = None
    languages: tuple[str, ...] = ()

    @classmethod
    def of_options(cls, options: Mapping[str, Any]) -> "Origins":
        """What the options of a run say: names on the hub, and what the encoder's own card says.

        Call it where the run was trained: a source that is a folder there is not a name on the hub.
        """
        dataset, model = options.get("dataset"), options.get("model")
        said = _card_of_encoder(model)
        return cls(
            base_model=_hub_name(model),
            dataset=_hub_name(dataset.partition(":")[0] if dataset else None),
            licence=options.get("hub_license") or said.get("license"),
            languages=languages_in(options.get("hub_language") or said.get("language")),
        )


def languages_in(said: object) -> tuple[str, ...]:
    """The languages that the header of a card names, one or a list.

    YAML takes ``no``, Norwegian, for false.
    """
    several = said if isinstance(said, list | tuple) else [said]
    codes = ("no" if code is False else code for code in several)
    return tuple(code for code in codes if isinstance(code, str))


def _card_of_encoder(model: str | None) -> Mapping[str, Any]:
    """The header of the card of an encoder, if the card is on this machine; empty otherwise."""
    card = (demo_encoder() if model is None else Path(model)) / "README.md"
    if not card.is_file():
        name = _hub_name(model)
        cached = try_to_load_from_cache(name, "README.md") if name else None
        if not isinstance(cached, str):
            return {}
        card = Path(cached)
    try:
        said: Mapping[str, Any] = ModelCard.load(card, ignore_metadata_errors=True).data.to_dict()
    except (ValueError, TypeError, OSError, YAMLError):  # not text, or not such a header
        return {}
    return said


def _hub_name(source: str | None) -> str | None:
    """``source`` if it is a name on the hub and not a path."""
    if source is None or Path(source).exists() or not _ON_THE_HUB.fullmatch(source):
        return None
    return None if set(source) <= set("./") or source.startswith(".") else source


def origins_of(
    run: Run,
    name: str,
    account: Account,
    *,
    licence: str | None = None,
    languages: tuple[str, ...] = (),
) -> Origins:
    """What the card of the pushed model says about where it comes from.

    The encoder's own card is read from the hub or, for a folder, from the folder.

    Args:
        run: the run.
        name: the model's full name on the hub.
        account: who pushes.
        licence: the licence; None takes the encoder's.
        languages: the languages; empty takes the encoder's.

    Raises:
        HubError: the encoder's card cannot be read from the hub.
        DataError: that card, or the one in the run's model folder, is missing or damaged.
    """
    # The card in the run folder was written where the run was trained: whether the encoder is a
    # folder or a name on the hub was known there.
    trained = _card(run.model_folder / "README.md")
    base, datasets = (trained.data.get(key) for key in ("base_model", "datasets"))
    found = Origins(
        name, base_model=base, dataset=datasets[0] if datasets else None, licence=licence
    )
    found = replace(found, languages=languages)
    if licence is not None and languages:
        return found
    card = _encoder_card(run, base, account, name)
    if card is None:
        return found
    return replace(
        found,
        licence=licence or card.data.get("license"),
        languages=languages or languages_in(card.data.get("language")),
    )


def _encoder_card(run: Run, base: str | None, account: Account, name: str) -> ModelCard | None:
    if base is not None:
        with told(account.endpoint, name):
            try:
                path = account.api.hf_hub_download(base, "README.md")
            except EntryNotFoundError:
                return None
            return _card(Path(path))
    source = run.config.model
    folder = demo_encoder() if source is None else Path(source)
    return _card(folder / "README.md") if (folder / "README.md").is_file() else None


def demo_encoder() -> Path:
    """The folder of the demo's small encoder."""
    return Path(str(files("aang"))) / "assets" / "demo-encoder"


def _card(path: Path) -> ModelCard:
    try:
        card: ModelCard = ModelCard.load(path, ignore_metadata_errors=True)
    except (OSError, ValueError, TypeError, YAMLError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: the card cannot be read: {reason}") from error
    return card
