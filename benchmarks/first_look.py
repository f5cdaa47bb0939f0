"""A first comparison with few labels: contrast, td and their controls on three tasks, five draws.

    python -m benchmarks.first_look DATA MODEL OUT
    aang compare OUT/scierc.yaml --out OUT/scierc --jobs 2 --difference

DATA holds the folders ``acl-arc`` and ``scierc`` with ``train.jsonl``, ``dev.jsonl`` and
``test.jsonl``; MODEL is an encoder's folder. The script writes a comparison file for each task and
prints the commands. ``aang compare`` continues where it was stopped; with ``--jobs 2`` and
``OMP_NUM_THREADS=1`` two runs share two cores. Each seed draws its own 500 training rows of ACL-ARC
and SciERC; the demo has 200 and trains on all of them.

Methods are matched by rows per step: 64 rows go through the body in a step of ``single-task``,
``contrast``, ``contrast-other-rows`` and ``masked-lm``. ``factored-td`` takes 64, and 96 in every
fourth step, which measures; ``factored-td+c`` takes 80, and 112 in every fourth step.
``single-task-96`` is a control with more than that.
"""

from typing import Any

from benchmarks.comparison_files import writing_command

CONTRAST_OWN = "end-task-rows/no-op/bidirectional/supervised-contrast"
CONTRAST_OTHER = "task/no-op/bidirectional/supervised-contrast"
MASKED_LM = "task/bert-op/bidirectional/denoise"
HALF = {"static": {"end_task_weight": 0.5}}
THIRDS = {"batch_size": 32, "dev_batch_size": 32, "aux_batch_size": 32}

METHODS: dict[str, dict[str, Any]] = {
    "single-task": {"weighter": "single-task", "batch_size": 64},
    "single-task-32": {"weighter": "single-task", "batch_size": 32},
    "single-task-96": {"weighter": "single-task", "batch_size": 96},
    "contrast": {"recipe": "contrast", "batch_size": 64},
    "contrast-other-rows": {
        "weighter": "static",
        "space": CONTRAST_OTHER,
        "batch_size": 32,
        "aux_batch_size": 32,
        "set": HALF,
    },
    "contrast-two-views": {
        "recipe": "contrast",
        "batch_size": 32,
        "set": {"supervised-contrast": {"views": 2}},
    },
    "factored-td": {"weighter": "factored", "space": "td", "meta_every": 4, **THIRDS},
    "factored-td+c": {
        "weighter": "factored",
        "space": "td+c",
        "batch_size": 64,
        "dev_batch_size": 32,
        "aux_batch_size": 16,
        "meta_every": 4,
        "set": {"factored": {"n": 1}},
    },
    "bandit-td+c": {"weighter": "factored-bandit", "space": "td+c", **THIRDS},
    "masked-lm": {
        "weighter": "static",
        "space": MASKED_LM,
        "batch_size": 32,
        "aux_batch_size": 32,
        "set": HALF,
    },
}

main = writing_command(METHODS, rows=500, seeds={"demo": 5, "acl-arc": 5, "scierc": 5})

if __name__ == "__main__":
    main()
