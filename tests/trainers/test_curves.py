"""Curves of training runs: what is measured, kept and drawn."""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PICTURES = Path(__file__).parents[2] / "docs/images"
MEASURED = Path(__file__).parents[2] / "docs/trainers/measured.jsonl"


@pytest.fixture
def curves(script: Callable[..., ModuleType]) -> Any:
    return script("curves")


def test_runs_that_were_saved_are_drawn(
    curves: Any, script: Callable[..., ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    progress: Any = script("progress")
    for seed, end in enumerate((0.9, 1.0)):
        run = progress.Progress("my_ppo", seed, baseline={"train": 0.03, "test": 0.03})
        run.add(0, train=0.02, test=0.0)
        run.add(1_000, train=end, test=0.5)
        run.save(tmp_path / "runs.jsonl")
    capsys.readouterr()
    curves.main(tmp_path / "runs.jsonl", tmp_path)
    drawn = ElementTree.parse(tmp_path / "my-ppo.svg")
    lines = drawn.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 8  # for each split two runs, their mean, and the random player
    assert "95.0% [31.5%, 100.0%]: 90.0%, 100.0% | 50.0% [50.0%, 50.0%]" in capsys.readouterr().out


def test_time_spent_aside_does_not_count(script: Callable[..., ModuleType]) -> None:
    progress: Any = script("progress")
    run = progress.Progress("my_ppo", 0)
    with run.aside():
        sum(range(30_000_000))
    run.add(1, train=0.5)
    assert run.last["cpu_s"] <= 0.1


def test_the_pictures_of_the_docs_are_drawn_from_the_runs_beside_them(curves: Any) -> None:
    for script, runs in curves.read(MEASURED).items():
        picture = PICTURES / f"{script.replace('_', '-')}.svg"
        assert picture.read_text(encoding="utf-8") == curves.picture(script, runs)


def test_the_page_tells_what_the_runs_reached(curves: Any) -> None:
    page = (PICTURES.parent / "training-loops.md").read_text(encoding="utf-8")
    for row in curves.table(curves.read(MEASURED)).splitlines()[2:]:
        name, *_ = row.strip("| ").split(" | ")
        assert row in page, f"docs/training-loops.md tells something else of {name}; write: {row}"
    assert all(json.loads(line)["points"] for line in MEASURED.read_text(encoding="utf-8").splitlines())
