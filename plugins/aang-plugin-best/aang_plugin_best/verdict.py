"""The verdict, in words and numbers."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aang.task_types.metrics import shown_score

from aang_plugin_best.next_steps import next_words

BASELINES = ("plain", "tf-idf")
"""The candidates that everybody asks about."""

NOT_ASKED = "not asked for"
"""Why a candidate that ``--candidate`` leaves out was not tried."""


def words(verdict: Mapping[str, Any]) -> Iterator[str]:
    """The verdict for people, a line each."""
    metric, chosen = verdict["metric"], verdict["chosen"]
    score = shown_score(verdict["score"], metric, verdict["interval"])
    members = verdict["members"]
    what = chosen if len(members) == 1 else f"{len(members)} models ({_listed(members)})"
    rows = f"{verdict['rows']} rows"
    if verdict["rows"] < verdict["labelled"]:
        rows = f"{verdict['rows']} of {verdict['labelled']} rows"
    yield f"{what}: {metric} {score} over {rows}, each predicted by a model that had not seen it"
    if verdict["deploy"] == "ensemble" and len(members) == 1:
        yield "  one model is deployed: no other was worth adding, or had the time to be trained"
    together = verdict["together"]
    if len(verdict["board"]) > 1 and together["single"] < verdict["score"]:
        yield (
            "  the best of several looks better than it is; those that the other folds choose have "
            f"{shown_score(together['single'], metric)}"
        )
    against = verdict["against"]
    order = sorted(against, key=lambda name: (name not in BASELINES, -against[name]["score"]))
    for name in order:
        of = against[name]
        rows = "" if of["rows"] == verdict["rows"] else f" over {of['rows']} rows"
        yield (
            f"  {name}: {shown_score(of['score'], metric)}{rows}; {chosen} is better with "
            f"probability {of['chance']:.0%}"
        )
    if len(together["members"]) > 1:
        names = _listed(together["members"])
        how = "not enough to prefer them"
        if together["confirmed"]:
            chosen_too = verdict["deploy"] == "ensemble"
            how = "so they are deployed" if chosen_too else "and --deploy ensemble deploys them"
        yield (
            f"  together: {names}: {shown_score(together['score'], metric)}, where the best single "
            f"model has {shown_score(together['single'], metric)} on the same terms; better with "
            f"probability {together['chance']:.0%}, {how}"
        )
    for name, why in verdict["not_tried"].items():
        if why != NOT_ASKED:
            yield f"  {name}: {why}"
    yield (
        f"  probabilities: calibrated with temperature {verdict['temperature']:.2f}; expected "
        f"calibration error {verdict['calibration_error']:.3f}"
    )
    for part, of in verdict.get("parts", {}).items():
        compared = of.get("new", of)
        if compared is None:
            score = shown_score(of["scores"][metric], metric, of["interval"])
            yield (
                f"  {part}: {score}, but all of its {of['rows']} texts are among the labelled "
                "rows, so that says nothing about new ones"
            )
            continue
        shown = [
            shown_score(one["scores"][metric], metric, one["interval"]) for one in (of, compared)
        ]
        known = of["rows"] - compared["rows"]
        others = f", {known} of them with texts of the labelled rows; {shown[1]} over the others"
        where = _beside(compared, verdict)
        yield (
            f"  {part}: {shown[0]} over {of['rows']} rows{others if known else ''}, {where}; "
            f"expected calibration error {of['calibration_error']:.3f}"
        )
    if "milliseconds" in verdict:
        yield f"  cost: {verdict['milliseconds']:.1f} ms a text, one at a time on this machine"
    yield from next_words(verdict)


def _beside(found: Mapping[str, Any], verdict: Mapping[str, Any]) -> str:
    """Where a score on held-out rows lies relative to the announced one and its interval.

    Held-out rows are a sample as well, often a smaller one. So how far their score may be off by
    chance comes from both intervals (Zou and Donner, 2008, for a difference). If all N rows are
    alike, an interval by resampling has no width, and 3 / N takes its place (Hanley and
    Lippman-Hand, 1983).
    """
    score, interval = found["scores"][verdict["metric"]], found["interval"]
    announced, (low, high) = verdict["score"], verdict["interval"]
    if low <= score <= high:
        return "within the interval above"
    ends = (high, interval[0]) if score > announced else (low, interval[1])
    chance = math.hypot(
        abs(ends[0] - announced) or 3 / verdict["rows"], abs(ends[1] - score) or 3 / found["rows"]
    )
    more = "more" if abs(score - announced) > chance else "no more"
    return f"outside the interval above, by {more} than chance explains"


def _listed(members: Iterable[tuple[str, int, int]]) -> str:
    """Members of an ensemble, each with its seed, and with how often it counts."""
    return ", ".join(
        f"{name} seed {seed}" + (f" ×{times}" if times > 1 else "") for name, seed, times in members
    )
