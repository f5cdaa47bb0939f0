"""Who pushes: a token, and the names that it may write to."""

import os
from dataclasses import dataclass

from huggingface_hub import HfApi, constants, get_token

from aang_plugin_hub.errors import HubError, no_token, taken, told


@dataclass(frozen=True)
class Account:
    """The user of the hub that a token belongs to.

    Attributes:
        api: the hub's client, with the token.
        user: the user's name.
        namespaces: the names before the slash that the user may write to.
    """

    api: HfApi
    user: str
    namespaces: tuple[str, ...]

    @classmethod
    def of_token(cls) -> "Account":
        """The account of the token in ``HF_TOKEN``, or of ``hf auth login``.

        Raises:
            HubError: there is no token, it may only read, or the hub cannot be reached.
        """
        endpoint = (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")
        token = get_token()
        if token is None:
            raise HubError(no_token(endpoint))
        api = HfApi(endpoint=endpoint, token=token, library_name="aang")
        with told(endpoint, "the hub"):
            who = api.whoami()
        if who.get("auth", {}).get("accessToken", {}).get("role") == "read":
            raise HubError(
                f"the token of {who['name']} may only read; create one that may write at "
                f"{endpoint}/settings/tokens, then run hf auth login or set HF_TOKEN"
            )
        writable = [org["name"] for org in who.get("orgs", ()) if org.get("roleInOrg") != "read"]
        return cls(api, who["name"], (who["name"], *writable))

    @property
    def endpoint(self) -> str:
        """The address of the hub."""
        return self.api.endpoint

    def place(self, name: str, *, update: bool = False, private: bool = False) -> tuple[str, bool]:
        """Where a model of this name goes.

        Args:
            name: ``model`` or ``owner/model``; without an owner it is the user's.
            update: whether a model that exists may be replaced.
            private: whether a public model of that name is refused.

        Returns:
            Its full name, and whether there is a model of that name.

        Raises:
            HubError: it is not a name on the hub, somebody else's, taken, or public although it is
                to be private, or the hub cannot be reached.
        """
        full = name if "/" in name else f"{self.user}/{name}"
        owner = full.partition("/")[0]
        if owner not in self.namespaces:
            raise HubError(
                f"{full}: {self.user} may not write to {owner}; give one of "
                f"{', '.join(f'{n}/…' for n in self.namespaces)}, or a token of {owner}"
            )
        with told(self.endpoint, full):
            exists = self.api.repo_exists(full)
            public = exists and private and not self.api.model_info(full).private
        if exists and not update:
            raise HubError(f"{full}: {taken()}")
        if public:
            raise HubError(
                f"{full}: is public, and --private hides new models only; make it private in its "
                "settings on the hub first, or leave out --private"
            )
        return full, exists
