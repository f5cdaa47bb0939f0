"""What this plug-in registers."""

from aang_core import RegisterCandidate, hookimpl


@hookimpl
def aang_register_candidates(register: RegisterCandidate) -> None:
    """Register ``setfit``."""
    register(
        "setfit",
        "logistic regression on an encoder tuned on pairs of texts, alike or not by class",
        "aang_plugin_setfit.setfit:setfit",
        # A step of 16 pairs takes as long as one of 32 rows, and all texts are encoded after it.
        cost=1.2,
    )
