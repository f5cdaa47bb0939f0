"""Makes the site's pages from files elsewhere in the repository and from the code.

Run by mkdocs. Relative links in a file are rewritten to suit the location of its page.
"""

import ast
import re
from pathlib import Path

import mkdocs_gen_files

ROOT = Path(__file__).parents[2]

NOTES = [
    "tests/reliability.md",
    *(
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "benchmarks" / "results").rglob("*.*"))
        if path.suffix in {".md", ".png"}
    ),
]
"""What pages link to as their sources: on the site, but neither in its navigation nor searched."""

ELSEWHERE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "LICENSE",
    "CITATION.cff": "CITATION.cff",
    "plugins/aang/aang/assets/demo-encoder/README.md": "model-card.md",
    **{
        str(path.relative_to(ROOT)): f"standard-plugins/{path.parent.name}.md"
        for path in sorted((ROOT / "plugins").glob("*/README.md"))
    },
    **{
        str(path.relative_to(ROOT)): str(path.relative_to(ROOT))
        for path in sorted((ROOT / "examples").glob("*.*"))
    },
    **{
        str(path.relative_to(ROOT)): str(path.relative_to(ROOT))
        for path in sorted((ROOT / "examples" / "plugins").glob("**/*.*"))
        if path.suffix in {".md", ".py", ".toml", ".yaml"} and "tests" not in path.parts
    },
    **{name: name for name in NOTES},
}
"""File in the tree → page of the site."""

IN_REFERENCE = {
    "plugins": "standard-plugins/index.md",
    "aang_core/hookspecs.py": "reference/hooks.md",
    "aang_core/objectives/stages/__init__.py": "reference/stages.md",
    "aang_core/tasks/weighting.py": "reference/weighters.md",
    "aang_core/tasks/workbench.py": "reference/weighters.md",
    "aang_core/cli/__init__.py": "reference/for-commands.md",
    "aang_core/gradients/engine.py": "reference/for-commands.md",
    "plugins/aang/aang/task_types/task_type.py": "reference/for-commands.md",
}
"""Source file or folder → the page that documents it."""


def index_of(package: str) -> list[str]:
    """Full names of the package and of each name that its index imports from another module."""
    folder = ROOT if package.startswith("aang_core") else ROOT / "plugins" / "aang"
    file = folder / package.replace(".", "/") / "__init__.py"
    imports = [
        node
        for part in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(part, ast.If)
        for node in part.body
        if isinstance(node, ast.ImportFrom)
    ]
    return [package, *(f"{node.module}.{alias.name}" for node in imports for alias in node.names)]


REFERENCE = {
    "hooks": ("Hooks", ["aang_core.hookspecs"]),
    "stages": (
        "Stages",
        [
            "aang_core.objectives.stages.data",
            "aang_core.objectives.stages.rows",
            "aang_core.objectives.stages.output",
        ],
    ),
    "weighters": (
        "Weighters",
        [
            "aang_core.tasks.weighting",
            "aang_core.tasks.workbench",
            "aang_core.plugins.primitive",
        ],
    ),
    "training": (
        "Training",
        [
            "aang.from_python.training.train",
            "aang_plugin_best.estimator.AangClassifier",
            "aang.runs.evaluate.AppliedScores",
            "aang.runs.run.Run",
            "aang_core.fitting",
            "aang_core.tasks.task",
            "aang_core.errors",
        ],
    ),
    "for-commands": (
        "For commands of plug-ins",
        [
            *index_of("aang_core.cli"),
            "aang.config",
            *index_of("aang_core.storage"),
            *index_of("aang.runs"),
            *index_of("aang.assembly"),
            *index_of("aang.corpora"),
            *index_of("aang.modeling"),
            "aang.task_types.task_type",
            "aang_core.gradients",
        ],
    ),
    "checks": (
        "Checks",
        [
            "aang_testing",
            "aang_testing.data.check_data",
            "aang_testing.transforms.check_transform",
            "aang_testing.representations.check_representation",
            "aang_testing.outputs.check_output",
            "aang_testing.weighters.check_weighter",
            "aang_testing.workbench",
        ],
    ),
}

_LINK = re.compile(r"\]\(([^)\s]+)\)")


def rewritten(text: str, source: Path, page: str) -> str:
    """The text of ``source`` with its relative links rewritten for the page ``page``."""

    def replaced(match: re.Match[str]) -> str:
        target, hash_, anchor = match[1].partition("#")
        if not target or re.match(r"[a-z]+:", target):
            return match[0]
        file = (source.parent / target).resolve().relative_to(ROOT)
        known = ELSEWHERE | IN_REFERENCE
        to = known.get(str(file)) or str(file).removeprefix("docs/")
        up = "../" * page.count("/")
        return f"]({up}{to}{hash_}{anchor})"

    return _LINK.sub(replaced, text)


for file, page in ELSEWHERE.items():
    content = (ROOT / file).read_bytes()
    if file.endswith(".md"):
        # The card starts with metadata for the hub, which mkdocs would read as its own.
        text = re.sub(r"\A---\n.*?\n---\n", "", content.decode(), flags=re.DOTALL)
        searched = "---\nsearch:\n  exclude: true\n---\n" if file in NOTES else ""
        content = (searched + rewritten(text, ROOT / file, page)).encode()
    with mkdocs_gen_files.open(page, "wb") as out:
        out.write(content)

for source in sorted((ROOT / "docs").rglob("*.md")):
    page = str(source.relative_to(ROOT / "docs"))
    with mkdocs_gen_files.open(page, "w") as out:
        out.write(rewritten(source.read_text(encoding="utf-8"), source, page))

for name, (title, modules) in REFERENCE.items():
    with mkdocs_gen_files.open(f"reference/{name}.md", "w") as out:
        out.write(f"# {title}\n\n" + "\n\n".join(f"::: {module}" for module in modules) + "\n")

with mkdocs_gen_files.open("standard-plugins/index.md", "w") as out:
    out.write("# Standard plug-ins\n\n")
    for readme in sorted((ROOT / "plugins").glob("*/README.md")):
        name, summary = readme.parent.name, readme.read_text(encoding="utf-8").split("\n\n")[1]
        # A link in it is relative to the plug-in's folder.
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(summary.split()))
        out.write(f"- [`{name}`]({name}.md): {words}\n")

with mkdocs_gen_files.open("reference/commands.md", "w") as out:
    out.write(
        "# Commands\n\n::: mkdocs-click\n    :module: aang_core.cli.app\n    :command: aang\n"
        "    :prog_name: aang\n    :depth: 1\n    :style: table\n"
    )
