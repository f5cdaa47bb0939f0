"""The licence and the languages of a model: those that the user gives, else its encoder's."""

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from aang import Run
from aang.runs import Origins, languages_in
from huggingface_hub import ModelCard
from huggingface_hub.errors import EntryNotFoundError
from yaml import YAMLError

from aang_core import DataError
from aang_plugin_hub.account import Account
from aang_plugin_hub.errors import told


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
