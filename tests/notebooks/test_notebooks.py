"""The notebooks run from their first cell on, and what is kept of them is what they show."""

import importlib.util
import os
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
PACKAGES = ("duckdb", "ipykernel", "matplotlib", "nbclient", "pandas", "PIL", "polars")


@pytest.fixture
def execute() -> ModuleType:
    """`notebooks/execute.py`; skips where a package is missing, and fails where CI lacks it."""
    for package in PACKAGES:
        if importlib.util.find_spec(package) is None:
            missing = f"notebooks need {package}: pip install -e '.[dev]'"
            (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    spec = importlib.util.spec_from_file_location("execute_notebooks", FOLDER / "execute.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shapes(notebook: Any) -> list[tuple[str, list[tuple[str, ...]]]]:
    """Every cell, and of what kind its outputs are."""
    return [
        (cell.source, [(one.output_type, *sorted(one.get("data", ()))) for one in cell.get("outputs", ())])
        for cell in notebook.cells
    ]


def test_there_are_notebooks() -> None:
    assert {"reward_ledger", "step_by_hand", "train_and_plot"} <= set(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_shows_what_is_kept_of_it(
    name: str, execute: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import nbformat

    work, own = tmp_path / "work", tmp_path / "own"
    work.mkdir()
    for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(variable, str(own))
    before = sorted(FOLDER.rglob("*"))
    notebook = execute.executed(name, work)
    assert {path.name for path in work.iterdir()} <= {".plural"}
    assert sorted(FOLDER.rglob("*")) == before
    kept = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    nbformat.validate(kept)
    assert shapes(kept) == shapes(notebook), f"run: python notebooks/execute.py {name}"


@pytest.mark.parametrize("name", NAMES)
def test_what_is_kept_tells_nothing_of_who_ran_it(name: str) -> None:
    text = (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert not re.findall(r"/(?:home|root|tmp|Users)/[\w.-]+| at 0x[0-9a-f]{6,}|\"iopub", text)
    assert len(text) < 400_000, "a picture is too large"
