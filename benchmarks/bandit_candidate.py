"""A plug-in that makes ``factored-bandit`` a candidate of ``aang best``, for a comparison."""

from aang_core import RegisterCandidate, hookimpl


@hookimpl
def aang_register_candidates(register: RegisterCandidate) -> None:
    """Register the bandit over AANG's factors."""
    register(
        "factored-bandit",
        "the objectives of td+c, weighted by a bandit over the dev score",
        options={"space": "td+c", "weighter": "factored-bandit"},
        cost=4.0,
    )
