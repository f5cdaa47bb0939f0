"""The example notebook, run by a kernel as a reader runs it."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"

# A kernel's sockets outlive the test that opened them.
pytestmark = [
    pytest.mark.release,
    pytest.mark.filterwarnings("default::ResourceWarning"),
]


def outputs(cell: Any) -> list[Any]:
    return [output for output in cell.outputs if output.output_type != "stream"]


def stream(cell: Any, name: str) -> str:
    return "".join(o.text for o in cell.outputs if o.output_type == "stream" and o.name == name)


def test_every_cell_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress is lines with dev scores, a run is three lines, predictions are tables."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    book = nbformat.read(NOTEBOOK, as_version=4)
    client = NotebookClient(book, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    cells = {cell.source.splitlines()[-1]: cell for cell in book.cells if cell.cell_type == "code"}
    training = next(cell for cell in book.cells if "run = train(" in cell.source)
    assert stream(training, "stderr").count(": dev macro-f1 ") == 5
    (run,) = outputs(cells["run"])
    assert len(run.data["text/plain"].splitlines()) == 3
    assert "majority class" in run.data["text/plain"]
    assert len(stream(cells["print(run)"], "stdout").splitlines()) == 3
    (predicted,) = outputs(
        cells['run.predict(["The sound is clear. It arrived a day early.", "It is too small."])']
    )
    assert "P(positive)" in predicted.data["text/html"]
    (scores,) = outputs(cells["run.evaluate(reviews[64:])"])
    assert scores.data["text/plain"].startswith("data DataFrame: macro-f1 ")
    (best,) = outputs(cells["search.best_params_"])
    assert best.data["text/plain"] in ("{'lr': 0.0001}", "{'lr': 0.001}")


def test_the_outputs_that_are_kept_are_those_of_its_cells() -> None:
    """The notebook is shown with what it printed, and without traces of a machine."""
    book = nbformat.read(NOTEBOOK, as_version=4)
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert "/home/" not in text
    assert "/tmp/" not in text
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    (training,) = (c for c in cells if not (outputs(c) or stream(c, "stdout")))
    assert stream(training, "stderr").count(": dev macro-f1 ") == 5
    assert "IProgress" not in text
