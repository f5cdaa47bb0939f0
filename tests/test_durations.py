"""The default tests stay fast; ``tests/durations.tsv`` says what each of them took."""

from pathlib import Path

ALLOWED_SECONDS = 2.0


def test_no_default_test_is_slow() -> None:
    """A slower one is made cheaper, or marked ``full``: ``pytest -n 2 --record-durations`` then."""
    lines = Path(__file__).with_name("durations.tsv").read_text(encoding="utf-8").splitlines()
    default = [line.split("\t")[1:] for line in lines if line.startswith("default\t")]
    assert default, "no default test is recorded"
    slow = [f"{seconds} s: {test}" for seconds, test in default if float(seconds) > ALLOWED_SECONDS]
    assert not slow, "\n".join(slow)
