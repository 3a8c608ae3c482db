import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from plural_gym.cli.init import files, slug
from plural_gym.cli.main import app

runner = CliRunner()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "My Project"
    assert runner.invoke(app, ["init", str(folder)]).exit_code == 0
    monkeypatch.chdir(folder)
    return folder


def test_a_new_project_is_valid_without_a_warning(project: Path) -> None:
    result = runner.invoke(app, ["validate"])
    assert result.exit_code == 0
    assert result.stderr == ""
    assert result.stdout.startswith("project my-project is valid\n")


def test_a_new_project_runs_at_once(project: Path) -> None:
    arguments = ["run", "--benchmark", "three-numbers", "--agent", "halver", "--agent", "counter", "--json"]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    first, second = json.loads(result.stdout)["leaderboard"]["rows"]
    assert (first["agent"], first["score"]) == ("halver", 1.0)
    assert second["agent"] == "counter" and second["score"] < 1.0


def test_the_readme_shows_commands_that_work(project: Path) -> None:
    readme = (project / "README.md").read_text(encoding="utf-8")
    commands = [
        line.split("#")[0].split()[1:] for line in readme.splitlines() if line.startswith("    plural")
    ]
    assert len(commands) == 5
    for command in commands:
        result = runner.invoke(app, command, input="guess 7\n")
        assert result.exit_code == 0, (command, result.output)


def test_the_cases_of_its_verifier_hold(project: Path) -> None:
    result = runner.invoke(app, ["verifier", "test", "found"])
    assert result.exit_code == 0, result.output


def test_its_tasks_are_solved_by_their_oracle_and_not_by_idleness(project: Path) -> None:
    result = runner.invoke(app, ["task", "validate", "higher-lower", "--run", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["warnings"] == []


def test_its_code_is_formatted_and_clean(project: Path) -> None:
    for command in (["check", "--isolated", "--select", "E,F,I,UP,B"], ["format", "--isolated", "--check"]):
        line = [sys.executable, "-m", "ruff", *command, "--line-length", "110", "."]
        done = subprocess.run(line, cwd=project, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_records_of_runs_stay_out_of_version_control(project: Path) -> None:
    assert ".plural/" in (project / ".gitignore").read_text(encoding="utf-8").splitlines()


def test_nothing_is_overwritten_and_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine", encoding="utf-8")
    result = runner.invoke(app, ["init", str(tmp_path)])
    assert result.exit_code == 2
    assert "README.md exists already" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == "mine"


def test_of_many_files_in_the_way_the_first_five_are_listed(project: Path) -> None:
    result = runner.invoke(app, ["init"])
    assert result.exit_code == 2
    taken = len(files(["project"], {}))
    listed = result.stderr.partition("nothing was written: ")[2]
    assert listed.count(", ") == 5
    assert listed.endswith(f", … and {taken - 5} more exist already. Choose another folder or name.\n")


def test_the_files_made_are_told_on_stdout(tmp_path: Path) -> None:
    result = runner.invoke(app, ["init", str(tmp_path / "one"), "--json"])
    told = json.loads(result.stdout)
    assert told["name"] == "one"
    assert all(Path(file).is_file() for file in told["files"])
    assert str(tmp_path / "one" / "project.yaml") in told["files"]


def test_a_name_is_held_to_the_rules_of_names(tmp_path: Path) -> None:
    result = runner.invoke(app, ["init", str(tmp_path), "--name", "My World"])
    assert result.exit_code == 2
    assert "try 'my-world'" in result.stderr
    assert runner.invoke(app, ["init", str(tmp_path), "--name", "my-world"]).exit_code == 0
    assert (tmp_path / "project.yaml").read_text(encoding="utf-8").startswith("name: my-world\n")


@pytest.mark.parametrize(
    ("folder", "name"),
    [("My Project", "my-project"), ("wordle-v2", "wordle"), ("__", "project"), ("ö", "project")],
)
def test_a_projects_name_comes_from_its_folder(folder: str, name: str) -> None:
    assert slug(folder) == name


def test_no_template_keeps_a_gap(project: Path) -> None:
    for template in ("app", "counter", "environment", "task", "verifier", "agent", "harness", "benchmark"):
        keys = ["name", "environment", "verifiers", "instructions", "model", "harness", "tasks"]
        keys += ["class", "setup"]
        made = files([template], dict.fromkeys(keys, "x"))
        assert made, template
        assert not any("{{" in content for content in made.values())
