from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from aang_core import ConfigError
from tests.support.spaces import SpaceFile, parse_space_file, read_space_file

GOOD = """\
name: mine
summary: a space
data: [task]
transform:
  - mask
  - replace: {rate: 0.3}
representation: [bidirectional]
output: [denoise]
exclude: [task/mask/bidirectional/denoise]
"""


def test_a_good_file() -> None:
    content, _ = parse_space_file(GOOD, "f.yaml")
    assert content.name == "mine"
    assert [(p.name, p.options) for p in content.transform] == [
        ("mask", {}),
        ("replace", {"rate": 0.3}),
    ]
    assert content.exclude == ["task/mask/bidirectional/denoise"]


def test_summary_and_exclude_may_be_left_out() -> None:
    text = "\n".join(line for line in GOOD.splitlines() if line[:3] not in ("sum", "exc"))
    content, _ = parse_space_file(text, "f.yaml")
    assert (content.summary, content.exclude) == ("", [])


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("name: mine\n", "", 1, "the key name is missing"),
        ("data: [task]\n", "", 1, "the key data is missing"),
        ("name: mine", "name: My Space", 1, "name: 'My Space': String should match pattern"),
        ("name: mine", "name: 7", 1, "name: 7: Input should be a valid string"),
        ("summary: a space", "summary: [a]", 2, "summary: ['a']: Input should be a valid string"),
        ("data: [task]", "data: []", 3, "data is empty; list at least one primitive"),
        ("data: [task]", "data: task", 3, "data: 'task': Input should be a valid list"),
        ("data: [task]", "data:", 3, "data: None: Input should be a valid list"),
        ("data: [task]", "data: {task: 1}", 3, "Input should be a valid list"),
        ("data: [task]", "data: [no]", 3, "False is neither the name of a primitive"),
        ("  - mask", "  - 7", 5, "7 is neither the name of a primitive"),
        ("  - mask", "  - [mask]", 5, "['mask'] is neither the name of a primitive"),
        ("  - mask", "  - {a: {}, b: {}}", 5, "is neither the name of a primitive"),
        ("  - mask", "  - ''", 5, "at least 1 character"),
        ("{rate: 0.3}", "0.3", 6, "{'replace': 0.3} is neither the name of a primitive"),
        ("{rate: 0.3}", "{1: 0.3}", 6, "transform"),
        ("exclude: [task/", "exclude: [7, task/", 9, "exclude: 7: Input should be a valid string"),
        ("output:", "outputs:", 8, "unknown key outputs; did you mean output?"),
        ("exclude:", "exlude:", 9, "unknown key exlude; did you mean exclude?"),
        ("exclude:", "7:", 9, "unknown key 7"),
        ("exclude:", "data:", 9, "the key data is given twice"),
        ("{rate: 0.3}", "{rate: 0.3, rate: 1}", 6, "the key rate is given twice"),
        ("output: [denoise]", "output: [denoise", 9, "not valid YAML"),
        ("output: [denoise]", "output: *nothing", 8, "not valid YAML: found undefined alias"),
        ("output: [denoise]", "output: !!python/name:os.system", 8, "not valid YAML"),
        ("output: [denoise]", "--- 1", 8, "not valid YAML"),
    ],
)
def test_a_mistake_is_told_with_its_line(old: str, new: str, line: int, says: str) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        parse_space_file(GOOD.replace(old, new), "f.yaml")
    message = str(caught.value)
    assert message.startswith(f"f.yaml:{line}: ")
    assert says in message
    assert "\n" not in message


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n...", "null"])
def test_an_empty_file(text: str) -> None:
    with pytest.raises(ConfigError, match=r"f\.yaml(:\d)?: a space is a mapping"):
        parse_space_file(text, "f.yaml")


@pytest.mark.parametrize("text", ["just text", "[a, b]", "7"])
def test_a_file_that_is_no_mapping(text: str) -> None:
    with pytest.raises(ConfigError, match=r"f\.yaml:1: a space is a mapping"):
        parse_space_file(text, "f.yaml")


@pytest.mark.parametrize(
    "text",
    [
        "name: 2001-99-99",
        "name: !!int abc",
        "name: !!timestamp abc",
        "? [a]\n: b",
        "? {a: b}\n: c",
        "name: =",
        "name: \x00",
        "name: \udcff",
        "[" * 2000,
        "a: " * 50,
        "&a {name: *a}",
        "<<: 7",
        "data: &a [*a]",
        "name: " + "9" * 5000,
    ],
)
def test_what_trips_a_yaml_parser_is_still_told_as_a_mistake(text: str) -> None:
    with pytest.raises(ConfigError, match=r"f\.yaml"):
        parse_space_file(text, "f.yaml")


def test_a_file_that_is_no_text() -> None:
    with pytest.raises(ConfigError, match=r"f\.yaml"):
        parse_space_file(b"name: \xff\xfe\xfa", "f.yaml")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_space_file(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="directory"):
        read_space_file(tmp_path)


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(scalars, inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from([*SpaceFile.model_fields, "other"]) | scalars
near_spaces = st.dictionaries(keys, values, max_size=8)


def holds_or_says_why(content: str | bytes) -> None:
    """What cannot be a space raises ConfigError that names the file, and nothing else."""
    try:
        parsed, source = parse_space_file(content, "f.yaml")
    except ConfigError as error:
        message = str(error)
    else:
        assert isinstance(parsed, SpaceFile)
        message = source.at(("data", 0))
    assert message.startswith("f.yaml")


@settings(deadline=None)
@given(st.text() | st.binary())
def test_any_content_is_a_space_or_a_mistake(content: str | bytes) -> None:
    holds_or_says_why(content)


@settings(deadline=None)
@given(st.text(alphabet="[]{}&*!|>'\"%@`,:-?#<=~ \n\tadtm01", max_size=40))
def test_any_punctuation_is_a_space_or_a_mistake(content: str) -> None:
    holds_or_says_why(f"name: mine\n{content}")


@settings(deadline=None)
@given(near_spaces)
def test_any_yaml_is_a_space_or_a_mistake(value: object) -> None:
    holds_or_says_why(yaml.safe_dump(value))


@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "name": st.from_regex(r"[a-z0-9+-]+", fullmatch=True),
            **{
                stage: st.lists(st.text(min_size=1), min_size=1, max_size=3)
                for stage in ("data", "transform", "representation", "output")
            },
        }
    )
)
def test_any_well_formed_space_is_read_back(value: dict[str, object]) -> None:
    content, _ = parse_space_file(yaml.safe_dump(value), "f.yaml")
    assert content.name == value["name"]
    assert [listed.name for listed in content.data] == value["data"]
