"""Runs notebooks from their first cell on, in a folder that is thrown away, and keeps their outputs.

    python notebooks/execute.py                     all of them, written back in place
    python notebooks/execute.py train_and_plot      one of them

The tests run them in the same way and write nothing back.
"""

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.ipynb"))
TIMEOUT_S = 120
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
"""Where an object lies in memory, which every run tells otherwise."""


def executed(name: str, folder: Path) -> Any:
    """A notebook with the outputs of a fresh run whose working directory is `folder`.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised; shows it with its traceback.
    """
    notebook = nbformat.read(HERE / f"{name}.ipynb", as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT_S,
        record_timing=False,  # else every run would be a difference
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    notebook.metadata.language_info = {"name": "python"}  # not the version of whoever ran it
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if "text/plain" in output.get("data", ()):
                output.data["text/plain"] = _ADDRESS.sub("", output.data["text/plain"])
    return notebook


def main(names: list[str]) -> None:
    """Run notebooks and write them back."""
    for name in names or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            notebook = executed(name, Path(folder))
        nbformat.write(notebook, HERE / f"{name}.ipynb")
        print(f"{name}: {len(notebook.cells)} cells")


if __name__ == "__main__":
    main(sys.argv[1:])
