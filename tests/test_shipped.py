"""The shipped worlds are a Plural project like anybody's."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from plural_gym import shipped
from plural_gym.errors import MachineError
from plural_gym.project import Project


def test_the_repository_is_the_shipped_project() -> None:
    assert shipped.root() == Path(__file__).parents[1]
    assert shipped.project() is shipped.project()


def test_the_shipped_project_has_no_problem() -> None:
    assert [str(problem) for problem in shipped.project().validate().problems] == []


def test_a_wheel_carries_it_inside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "plural_gym"
    monkeypatch.setattr(shipped, "_PACKAGE", package)
    with pytest.raises(MachineError, match="the shipped worlds are missing"):
        shipped.root()
    (package / "shipped" / "envs").mkdir(parents=True)
    (package / "shipped" / "project.yaml").write_text("name: worlds\n")
    assert shipped.root() == package / "shipped"


def test_opening_it_and_taking_one_task_is_quick() -> None:
    began = time.perf_counter()
    assert Project.open(shipped.root()).tasks["crane"].name == "wordle/crane"
    assert time.perf_counter() - began < 0.3


def test_importing_the_package_does_not_open_it() -> None:
    code = "import plural_gym, sys; print('plural_gym.shipped' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"
