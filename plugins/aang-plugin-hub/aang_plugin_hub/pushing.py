"""A push: one commit with all files, or nothing."""

import contextlib

from aang import Run
from huggingface_hub import CommitOperationAdd, CommitOperationDelete
from huggingface_hub.utils.tqdm import disable_progress_bars

from aang_plugin_hub.account import Account
from aang_plugin_hub.errors import told
from aang_plugin_hub.files import additions
from aang_plugin_hub.origins import origins_of

_HUBS_OWN = {".gitattributes"}


def push(
    run: Run,
    name: str,
    *,
    private: bool | None = None,
    update: bool = False,
    licence: str | None = None,
    languages: tuple[str, ...] = (),
) -> str:
    """Push a run's model, its tokenizer and its card in one commit.

    If anything fails, the hub is as it was: a repository made for this push is removed again.

    Args:
        run: the run.
        name: the name on the hub, ``model`` or ``owner/model``.
        private: whether only the owner can see the model; a public one of that name is refused.
            None takes what the run's ``--hub-private`` says.
        update: whether to replace all files of a model that exists.
        licence: the licence, as the hub calls it; None takes the run's, else the encoder's.
        languages: the languages; empty takes the run's, else the encoder's.

    Returns:
        A text for the user: the model's address, and what its card does not say.

    Raises:
        HubError: there is no token, no network, or the name is taken or somebody else's.
        DataError: a file of the run is damaged.
    """
    disable_progress_bars()
    options = run.options
    private = bool(options.get("hub_private")) if private is None else private
    licence = licence or options.get("hub_license")
    languages = languages or tuple(options.get("hub_language") or ())
    account = Account.of_token()
    full, exists = account.place(name, update=update, private=private)
    origins = origins_of(run, full, account, licence=licence, languages=languages)
    operations = additions(run, origins)
    if not exists:
        with told(account.endpoint, full):
            account.api.create_repo(full, private=private)
    try:
        with told(account.endpoint, full):
            _commit(account, full, operations, replace=exists)
    # An interrupt, too, must leave nothing behind.
    except BaseException:
        if not exists:
            _remove(account, full)
        raise
    silent = {"licence (--license)": origins.licence, "language (--language)": origins.languages}
    text = f"The model is at {account.endpoint}/{full}"
    if missing := [what for what, said in silent.items() if not said]:
        names = " and no ".join(missing)
        text += f"\nIts card names no {names}; push again with --update to add it"
    return text


def _commit(account: Account, name: str, files: list[CommitOperationAdd], *, replace: bool) -> None:
    pushed = {file.path_in_repo for file in files}
    old = set(account.api.list_repo_files(name)) - pushed - _HUBS_OWN if replace else set()
    account.api.create_commit(
        name,
        [*files, *(CommitOperationDelete(path) for path in sorted(old))],
        commit_message="Model trained by AANG",
    )


def _remove(account: Account, name: str) -> None:
    """Remove the repository that this push has made; only the first error is reported."""
    with contextlib.suppress(Exception):
        account.api.delete_repo(name, missing_ok=True)
