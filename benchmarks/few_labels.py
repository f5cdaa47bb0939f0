"""200 labels and the rest of the text without them: AANG, FixMatch, contrast and fine-tuning.

    python -m benchmarks.few_labels DATA MODEL OUT
    aang compare OUT/scierc.yaml --out OUT/scierc --jobs 2 --difference

DATA holds the folders ``acl-arc`` and ``scierc`` with ``train.jsonl``, ``dev.jsonl`` and
``test.jsonl``; MODEL is an encoder's folder. The script writes a comparison file for each task and
prints the commands. ``aang compare`` continues where it was stopped; with ``--jobs 2`` and
``OMP_NUM_THREADS=1`` two runs share two cores. On ACL-ARC and SciERC each seed draws its own
training rows, and those that it leaves out are the text without labels. The demo trains on all of
its 200, and the comments of its packages are the text without labels.

Methods are matched by rows per step: 64 rows go through the body in a step of ``single-task``,
``contrast`` and ``fixmatch``, which shows each of its 16 texts clean and corrupted. ``factored``
takes 64, and 96 in every fourth step, which measures.
"""

from typing import Any

from benchmarks.comparison_files import writing_command

FIXMATCH = "unlabelled/bert-op/bidirectional/pseudo-label"
ROWS = {"batch_size": 32, "dev_batch_size": 32, "aux_batch_size": 32}

METHODS: dict[str, dict[str, Any]] = {
    "single-task": {"weighter": "single-task", "batch_size": 64},
    "contrast": {"recipe": "contrast", "batch_size": 64},
    "fixmatch": {
        "weighter": "static",
        "space": FIXMATCH,
        "set": {"static": {"end_task_weight": 0.5}},
        **ROWS,
    },
    "factored-td": {"weighter": "factored", "space": "td", "meta_every": 4, **ROWS},
    "factored-td+u": {"weighter": "factored", "space": "td+u", "meta_every": 4, **ROWS},
}

main = writing_command(
    METHODS,
    rows=200,
    seeds={"demo": 5, "acl-arc": 3, "scierc": 3},
    unlabelled_for=("fixmatch", "factored-td+u"),
)

if __name__ == "__main__":
    main()
