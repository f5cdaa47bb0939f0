"""What went wrong on the way to the hub, in one line that says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

from huggingface_hub.errors import (
    HfHubHTTPError,
    HFValidationError,
    LocalTokenNotFoundError,
    OfflineModeIsEnabled,
)

from aang_core import AangError


class HubError(AangError):
    """The hub does not take the model, or cannot be reached."""


@contextmanager
def told(endpoint: str, name: str) -> Iterator[None]:
    """Turn an error of the hub's client into one for the user.

    Args:
        endpoint: the address of the hub.
        name: what is being pushed.

    Raises:
        HubError: the client raised something.
    """
    try:
        yield
    except AangError:
        raise
    # An upload wraps its errors, a lost connection raises those of the HTTP library, and a
    # malformed answer anything at all.
    except Exception as error:
        raise HubError(f"{name}: {_reason(endpoint, error)}") from error


def _reason(endpoint: str, error: Exception) -> str:
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, HfHubHTTPError):
            return _refusal(endpoint, cause)
        if isinstance(cause, LocalTokenNotFoundError):
            return no_token(endpoint)
        if isinstance(cause, OfflineModeIsEnabled):
            return "HF_HUB_OFFLINE forbids the network; unset it to push"
        if isinstance(cause, HFValidationError):
            return f"is no name on the hub ({_first_line(cause)})"
    for cause in causes:
        # The HTTP library wraps what the socket raises; an error about a file names it.
        if isinstance(cause, OSError) and cause.filename is None:
            return (
                f"{endpoint} cannot be reached ({_first_line(cause)}). Push when there is a "
                "network: aang push RUN NAME"
            )
    return f"the hub's client failed with {type(error).__name__}: {_first_line(causes[-1])}"


def no_token(endpoint: str) -> str:
    """What to do about a missing token."""
    return (
        f"there is no token to push with. Create one that may write at {endpoint}/settings/tokens, "
        "then run hf auth login or set HF_TOKEN"
    )


def _refusal(endpoint: str, error: HfHubHTTPError) -> str:
    status = error.response.status_code if error.response is not None else None
    if status == 409:
        return taken()
    said = " ".join((error.server_message or _first_line(error)).split("\n"))
    known = {401: "the hub does not accept the token", 403: "the token may not write there"}
    if status not in known:
        return f"the hub refused it: {said}"
    return (
        f"{known[status]} ({said}). Give a name of your own, and a token that may write, "
        f"from {endpoint}/settings/tokens, with hf auth login or HF_TOKEN"
    )


def taken() -> str:
    """What to do about a name that is taken."""
    return "there is a model of that name already; give another name, or --update to replace it"


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
