"""Which standard plug-in supplies which primitive, space, objective, recipe, command or grid.

Says what to install when a name is unknown, and whose name it is when others register it too;
nothing else in the core names a plug-in.
"""

from collections.abc import Mapping

from aang_core.plugins.primitive import Stage

STANDARD: Mapping[Stage, Mapping[str, str]] = {
    "data": {
        "task": "aang-plugin-task",
        "end-task-rows": "aang-plugin-task",
        "unlabelled": "aang-plugin-task",
        "s2orc": "aang-plugin-s2orc",
        "out-of-domain": "aang-plugin-text",
        "neural-lm": "aang-plugin-electra",
    },
    "transform": {
        "bert-op": "aang-plugin-bert",
        "mask": "aang-plugin-bert",
        "replace": "aang-plugin-bert",
        "delete": "aang-plugin-bart",
        "permute-sentences": "aang-plugin-bart",
        "infill": "aang-plugin-bart",
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
        "consistency": "aang-plugin-consistency",
        "pseudo-label": "aang-plugin-consistency",
        "tf-idf": "aang-plugin-tfidf",
        "next-token": "aang-plugin-gpt",
        "real-synthetic": "aang-plugin-electra",
    },
    "weighter": {
        "static": "aang-plugin-tartan",
        "meta-tartan": "aang-plugin-tartan",
        "factored": "aang-plugin-factored",
        "alpha-vil": "aang-plugin-alphavil",
        "diw": "aang-plugin-alphavil",
        "autosem": "aang-plugin-bandit",
        "factored-bandit": "aang-plugin-bandit",
        "pcgrad": "aang-plugin-surgery",
        "cagrad": "aang-plugin-surgery",
        "uncertainty": "aang-plugin-balance",
        "gradnorm": "aang-plugin-balance",
        "dwa": "aang-plugin-balance",
        "forkmerge": "aang-plugin-fork",
        "tapweight": "aang-plugin-fork",
    },
}

STANDARD_COMMANDS: Mapping[str, str] = {
    "compare": "aang-plugin-compare",
    "prepare-domain": "aang-plugin-s2orc",
    "push": "aang-plugin-hub",
    "report": "aang-plugin-report",
    "tune": "aang-plugin-tune",
}

STANDARD_GRIDS: Mapping[str, str] = {"paper-td": "aang-plugin-factored"}

STANDARD_RECIPES: Mapping[str, str] = {
    "tapt": "aang-plugin-bert",
    "dapt": "aang-plugin-bert",
    "dapt+tapt": "aang-plugin-bert",
    "contrast": "aang-plugin-contrast",
    "tapt+contrast": "aang-plugin-contrast",
    "multitask": "aang-plugin-tartan",
    "static-td": "aang-plugin-tartan",
    "gpt-style": "aang-plugin-tartan",
    "xlnet-style": "aang-plugin-tartan",
    "bert-style": "aang-plugin-tartan",
    "aang-td": "aang-plugin-factored",
    "aang-td+ed": "aang-plugin-factored",
    "x+y+z": "aang-plugin-factored",
}

STANDARD_SPACES: Mapping[str, str] = {
    "td+c": "aang-plugin-contrast",
    "td+ed+c": "aang-plugin-contrast",
    "td+u": "aang-plugin-task",
}

STANDARD_OBJECTIVES: Mapping[str, str] = {
    "tapt": "aang-plugin-bert",
    "bert": "aang-plugin-bert",
    "bert-style": "aang-plugin-bert",
    "contrast": "aang-plugin-contrast",
    "simcse": "aang-plugin-contrast",
    "electra": "aang-plugin-electra",
    "gpt": "aang-plugin-gpt",
    "elmo": "aang-plugin-gpt",
    "gpt-style": "aang-plugin-gpt",
    "dapt": "aang-plugin-s2orc",
    "xlnet": "aang-plugin-xlnet",
    "xlnet-style": "aang-plugin-xlnet",
}

STANDARD_HOOKS: Mapping[str, str] = {
    "aang_plot_run": "aang-plugin-report",
    "aang_plot_diagnosis": "aang-plugin-report",
    "aang_check_push": "aang-plugin-hub",
}
"""Who implements the hooks that a command or a method cannot work without."""
