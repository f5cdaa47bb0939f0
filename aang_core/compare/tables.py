"""The outcome of a comparison: mean ± std by method and task, and whether it means anything."""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from aang_core.compare.spec import Cell, Comparison
from aang_core.compare.statistics import holm, paired_t_p, permutation_p
from aang_core.run_files import read_part


@dataclass(frozen=True)
class Entry:
    """A method on a task: the setting that is best on dev, and its scores by seed.

    tried: how many settings of hyper-parameters there were to choose from, on dev alone.
    permutation, t_test: p against the baseline, Holm-corrected over the table.
    """

    task: str
    method: str
    metric: str
    seeds: Sequence[int]
    dev: Sequence[float]
    test: Sequence[float]
    setting: str
    tried: int
    missing: int
    permutation: float | None = None
    t_test: float | None = None
    best: bool = False

    @property
    def scores(self) -> Sequence[float]:
        """Test scores, or dev scores where there is no test set."""
        return self.test or self.dev


def outcome(comparison: Comparison, root: Path) -> list[Entry]:
    """An entry for each method and task of which a run has finished.

    Raises:
        DataError: the result of a run is damaged.
    """
    entries = []
    for task in comparison.tasks:
        for method in comparison.methods:
            cells = [c for c in comparison.cells if (c.task, c.method) == (task, method)]
            entry = _entry(task, method, cells, root)
            if entry is not None:
                entries.append(entry)
    return _judged(entries, comparison.baseline)


def _entry(task: str, method: str, cells: Sequence[Cell], root: Path) -> Entry | None:
    settings: dict[int | None, list[tuple[Cell, Mapping[str, Any]]]] = {}
    for cell in cells:
        folder = root / cell.folder
        if (folder / "result.json").is_file():
            result = read_part(folder, "result.json")
            settings.setdefault(cell.choice, []).append((cell, result["metric"]))
    if not settings:
        return None
    of_setting = len({cell.seed for cell in cells})
    # A setting of which seeds are missing is not compared with one that has them all.
    most = max(len(runs) for runs in settings.values())
    whole = {choice: runs for choice, runs in settings.items() if len(runs) == most}
    chosen = max(whole.values(), key=lambda runs: statistics.mean(m["dev"] for _, m in runs))
    chosen = sorted(chosen, key=lambda run: run[0].seed)
    tests = [metric["test"] for _, metric in chosen]
    return Entry(
        task=task,
        method=method,
        metric=chosen[0][1]["name"],
        seeds=[cell.seed for cell, _ in chosen],
        dev=[metric["dev"] for _, metric in chosen],
        test=[] if None in tests else tests,
        setting=chosen[0][0].setting,
        tried=len({cell.choice for cell in cells}),
        missing=of_setting - len(chosen),
    )


def _judged(entries: Sequence[Entry], baseline: str | None) -> list[Entry]:
    """The entries with p values against the baseline, and the best of each task marked."""
    against = {e.task: e for e in entries if e.method == baseline}
    compared = [e for e in entries if e.method != baseline and e.task in against]
    values: dict[tuple[str, str], tuple[float | None, float | None]] = {}
    pairs = [_pairs(e, against[e.task]) for e in compared]
    permutations = holm([permutation_p(*pair) for pair in pairs])
    t_tests = holm([paired_t_p(*pair) for pair in pairs])
    for entry, permutation, t_test in zip(compared, permutations, t_tests, strict=True):
        values[entry.task, entry.method] = permutation, t_test
    best = {
        task: max((e for e in entries if e.task == task), key=lambda e: statistics.mean(e.scores))
        for task in {e.task for e in entries}
    }
    judged = []
    for e in entries:
        permutation, t_test = values.get((e.task, e.method), (None, None))
        given = {**_fields(e), "permutation": permutation, "t_test": t_test}
        judged.append(Entry(**{**given, "best": best[e.task] is e}))
    return judged


def _fields(entry: Entry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in Entry.__dataclass_fields__}


def _pairs(entry: Entry, baseline: Entry) -> tuple[list[float], list[float]]:
    """The scores of the seeds that both have."""
    theirs = dict(zip(baseline.seeds, baseline.scores, strict=True))
    own = dict(zip(entry.seeds, entry.scores, strict=True))
    shared = [seed for seed in own if seed in theirs]
    return [own[seed] for seed in shared], [theirs[seed] for seed in shared]


FORMATS = ("text", "markdown", "latex", "json")


def table(entries: Sequence[Entry], kind: str, baseline: str | None) -> str:
    """The table in one of :data:`FORMATS`."""
    if kind == "json":
        return json.dumps([asdict(entry) for entry in entries], indent=2) + "\n"
    header = ["task", "method", "dev", "test", "seeds", "tried"]
    if baseline is not None:
        header += ["p permutation", "p t-test"]
    rows = [_row(entry, kind, baseline) for entry in entries]
    if kind == "latex":
        return _latex(header, rows)
    if kind == "markdown":
        lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
        return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    ]
    return "\n".join(lines) + "\n"


def _row(entry: Entry, kind: str, baseline: str | None) -> list[str]:
    seeds = str(len(entry.seeds))
    if entry.missing:
        seeds += f" of {len(entry.seeds) + entry.missing}"
    dev, test = _spread(entry.dev, kind), _spread(entry.test, kind)
    if entry.best:
        bold = {"markdown": "**{}**", "latex": r"\textbf{{{}}}", "text": "{} *"}[kind]
        if entry.test:
            test = bold.format(test)
        else:
            dev = bold.format(dev)
    row = [entry.task, entry.method, dev, test, seeds, str(entry.tried)]
    if baseline is not None:
        row += ["–" if p is None else f"{p:.3f}" for p in (entry.permutation, entry.t_test)]
    return row


def _spread(scores: Sequence[float], kind: str) -> str:
    if not scores:
        return "–"
    plus = r"$\pm$" if kind == "latex" else "±"
    spread = f" {plus} {100 * statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
    return f"{100 * statistics.mean(scores):.2f}{spread}"


_SPECIAL = str.maketrans(
    {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "–": "--", "{": r"\{", "}": r"\}"}
)


def _latex(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for the package booktabs."""
    body = [
        " & ".join(
            cell.translate(_SPECIAL) if i < 2 else cell.replace("–", "--")
            for i, cell in enumerate(row)
        )
        for row in rows
    ]
    lines = [
        rf"\begin{{tabular}}{{ll{'r' * (len(header) - 2)}}}",
        r"\toprule",
        " & ".join(header) + r" \\",
        r"\midrule",
        *(line + r" \\" for line in body),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"
