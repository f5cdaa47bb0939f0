"""Which standard plug-in supplies which primitive.

Needed only to say what to install when a name is unknown: nothing else in the core knows a plug-in
by name.
"""

from collections.abc import Mapping

from aang_core.plugins.primitive import Stage

STANDARD: Mapping[Stage, Mapping[str, str]] = {
    "data": {
        "task": "aang-plugin-task",
        "end-task-rows": "aang-plugin-task",
        "s2orc": "aang-plugin-s2orc",
        "out-of-domain": "aang-plugin-text",
        "neural-lm": "aang-plugin-electra",
    },
    "transform": {
        "bert-op": "aang-plugin-bert",
        "mask": "aang-plugin-bert",
        "replace": "aang-plugin-bert",
    },
    "representation": {
        "bidirectional": "aang-plugin-bert",
        "left-to-right": "aang-plugin-gpt",
        "right-to-left": "aang-plugin-gpt",
        "random-factorized": "aang-plugin-xlnet",
    },
    "output": {
        "denoise": "aang-plugin-bert",
        "end-task": "aang-plugin-task",
        "own-label": "aang-plugin-task",
        "supervised-contrast": "aang-plugin-contrast",
        "simcse": "aang-plugin-contrast",
        "tf-idf": "aang-plugin-tfidf",
        "next-token": "aang-plugin-gpt",
        "real-synthetic": "aang-plugin-electra",
    },
    "weighter": {
        "single-task": "aang-plugin-tartan",
        "static": "aang-plugin-tartan",
        "meta-tartan": "aang-plugin-tartan",
        "factored": "aang-plugin-factored",
        "alpha-vil": "aang-plugin-alphavil",
        "diw": "aang-plugin-alphavil",
        "autosem": "aang-plugin-bandit",
        "factored-bandit": "aang-plugin-bandit",
    },
}

STANDARD_HOOKS: Mapping[str, str] = {
    "aang_plot_run": "aang-plugin-report",
    "aang_plot_diagnosis": "aang-plugin-report",
}
"""For hooks without which a command or method cannot do its work, who implements them."""
