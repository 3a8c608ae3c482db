import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from plural_gym.cli.main import app

runner = CliRunner()


def doctor(*arguments: str, **env: str) -> Any:
    return runner.invoke(app, ["doctor", *arguments], env=env)


def findings(*arguments: str, **env: str) -> dict[str, dict[str, str]]:
    return {row["part"]: row for row in json.loads(doctor(*arguments, "--json", **env).stdout)}


def test_the_table_tells_each_part_with_a_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctor()
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["part", "found", "what", "would", "help"]
    assert any(line.startswith("ok  runtime local") and "a worker started" in line for line in lines)
    assert any(line.startswith("ok  gymnasium ids") and "plural/Wordle-v0" in line for line in lines)
    assert any(line.startswith("–   project") and "plural init" in line for line in lines)


def test_a_docker_engine_that_does_not_answer_is_no_failure(tmp_path: Path) -> None:
    socket = f"unix://{tmp_path}/no-such.sock"
    found = findings(DOCKER_HOST=socket)["Docker engine"]
    assert found["status"] == "missing"
    assert found["found"] == f"no engine at {socket}; not used, as the only Runtime is local"
    assert found["remedy"] == ""


def test_help_with_docker_is_given_where_a_runtime_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plural_gym.kinds.names", lambda group: ("docker", "local"))
    socket = f"unix://{tmp_path}/no-such.sock"
    found = findings(DOCKER_HOST=socket)["runtime docker"]
    assert (found["status"], found["found"]) == ("missing", f"no engine at {socket}")
    assert "DOCKER_HOST" in found["remedy"]


def test_inside_a_project_its_folder_and_room_are_told(tmp_path: Path) -> None:
    assert runner.invoke(app, ["init", str(tmp_path)]).exit_code == 0
    found = findings("--project", str(tmp_path / "tasks"))
    assert found["project"]["found"] == str(tmp_path)
    assert "GB free" in found["records"]["found"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    found = findings("--project", str(tmp_path))["records"]
    assert found["status"] == "broken" and "--directory" in found["remedy"]


def test_a_machine_without_a_working_local_runtime_ends_with_5(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")
    result = doctor()
    assert result.exit_code == 5
    assert "✗   runtime local" in result.stdout
    assert "fork()" in result.stdout
