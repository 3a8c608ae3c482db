import json
import os
import pty
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from plural_gym.cli.main import BUG, PluralCommand, app, guarded
from plural_gym.errors import CredentialMissing, MachineError, PluralError, Problem, ProjectError, UsageError

runner = CliRunner()
HEAVY = ("gymnasium", "numpy", "pyarrow", "docker", "pydantic", "ruamel", "pettingzoo")


def ended(error: BaseException, *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command that raises `error`."""
    small = typer.Typer(cls=PluralCommand, pretty_exceptions_enable=False)

    @small.command()
    def fail(as_json: bool = typer.Option(False, "--json")) -> None:
        raise error

    @small.command()
    def other() -> None: ...

    result = runner.invoke(small, ["fail", *arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PluralError("a score is too low"), 1),
        (UsageError("say which Task"), 2),
        (ProjectError([Problem("task.yaml", 4, "'name' is missing.")]), 3),
        (CredentialMissing("PLURAL_API_KEY is not set"), 4),
        (MachineError("no Docker"), 5),
    ],
)
def test_every_error_ends_with_the_code_of_its_class(error: PluralError, code: int) -> None:
    exit_code, stdout, stderr = ended(error)
    assert exit_code == code
    assert stdout == ""
    assert str(error) in stderr
    assert "Traceback" not in stderr


def test_every_problem_of_a_project_is_told_with_file_and_line() -> None:
    problems = [Problem("a.yaml", 4, "'name' is missing."), Problem("b.yaml", None, "is empty.")]
    code, _, stderr = ended(ProjectError(problems))
    assert code == 3
    assert stderr.splitlines() == ["a.yaml:4: 'name' is missing.", "b.yaml: is empty.", "2 problems."]


def test_errors_are_json_on_stdout_where_json_was_asked_for() -> None:
    code, stdout, stderr = ended(ProjectError([Problem("a.yaml", 4, "'name' is missing.")]), "--json")
    assert code == 3
    assert stderr == ""
    error = json.loads(stdout)["error"]
    assert error["type"] == "ProjectError"
    assert error["exit_code"] == 3
    assert error["problems"] == [{"file": "a.yaml", "line": 4, "message": "'name' is missing."}]


def test_a_disk_that_refuses_is_the_machines_fault() -> None:
    code, _, stderr = ended(PermissionError(13, "Permission denied", "/srv/jobs"))
    assert (code, stderr) == (5, "Error: Permission denied (/srv/jobs).\n")


def test_ctrl_c_ends_with_130_and_without_a_traceback() -> None:
    assert ended(KeyboardInterrupt()) == (130, "", "")
    code, stdout, _ = ended(KeyboardInterrupt(), "--json")
    assert code == 130
    assert json.loads(stdout)["error"]["type"] == "Interrupted"


def test_a_bug_of_ours_shows_its_traceback_and_asks_to_report_it() -> None:
    code, stdout, stderr = ended(AttributeError("no such thing"))
    assert code == BUG
    assert stdout == ""
    assert "Traceback" in stderr and "AttributeError: no such thing" in stderr
    assert "please report it" in stderr
    code, stdout, _ = ended(AttributeError("no such thing"), "--json")
    assert json.loads(stdout)["error"]["exit_code"] == code == BUG


def test_an_aborted_question_counts_as_interrupted() -> None:
    assert ended(typer.Abort())[0] == 130


def test_a_command_that_returns_nothing_is_done() -> None:
    assert guarded(lambda: None, as_json=False) == 0
    assert guarded(lambda: 1, as_json=False) == 1


@pytest.mark.parametrize(
    "arguments", [["rnu"], ["task", "lits"], ["run", "--attempts", "0"], ["run", "--nope"]]
)
def test_a_wrong_command_line_ends_with_2_and_shows_what_would_work(arguments: list[str]) -> None:
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "--help'" in result.stderr
    as_json = runner.invoke(app, [*arguments, "--json"])
    assert as_json.exit_code == 2
    assert json.loads(as_json.stdout)["error"]["type"] == "UsageError"


def test_a_mistyped_command_is_answered_with_the_near_one() -> None:
    assert "Did you mean 'run'?" in runner.invoke(app, ["rnu"]).stderr
    assert "Did you mean 'list'?" in runner.invoke(app, ["task", "lits"]).stderr


def test_help_is_shown_without_a_command() -> None:
    for arguments in ([], ["--help"], ["-h"], ["task"]):
        result = runner.invoke(app, arguments)
        assert result.exit_code == 0
        assert "Usage:" in result.output


def test_help_names_every_command() -> None:
    told = runner.invoke(app, ["--help"]).stdout
    for command in ("init", "run", "play", "validate", "doctor", "app", "environment", "task", "verifier"):
        assert f" {command} " in told
    for command in ("agent", "harness", "benchmark", "job", "trial"):
        assert f" {command} " in told


def test_the_version_is_that_of_the_distribution() -> None:
    result = runner.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.startswith("plural-gym ")


def test_the_version_is_json_where_json_was_asked_for() -> None:
    for arguments in (["--version", "--json"], ["--json", "--version"]):
        told = json.loads(runner.invoke(app, arguments).stdout)
        assert list(told) == ["version"] and told["version"][0].isdigit()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--json"], "say which command; plural --help lists them."),
        (["--json", "task", "list"], "--json stands after the command: plural task ... --json"),
    ],
)
def test_json_without_a_command_of_its_own_is_wrong_use_told_as_json(arguments: list[str], said: str) -> None:
    result = runner.invoke(app, arguments)
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["message"] == said


def test_problems_of_a_project_stand_in_a_frame_in_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "project.yaml").write_text("nme: x\n", encoding="utf-8")
    told = at_a_terminal("validate", "--project", str(tmp_path), NO_COLOR="1")
    assert "╭─ Error" in told and "unknown key 'nme'" in told and "2 problems." in told


def completed(*words: str, cwd: Path) -> list[str]:
    """What bash is offered for the last of these words."""
    line = " ".join(["plural", *words])
    code = "from plural_gym.cli.main import app; app(prog_name='plural')"
    given = {"_PLURAL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd, env={**os.environ, **given}
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_completion_is_on() -> None:
    assert "--install-completion" in runner.invoke(app, ["--help"]).stdout


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("task", "show", ""), ["beds"]),
        (("run", "--agent", "s"), ["slow"]),
        (("run", "--benchmark", ""), ["beds"]),
        (("verifier", "try", "gro"), ["grown", "growth"]),
        (("verifier", "show", ""), ["grown", "growth"]),
        (("job", "show", "job_"), ["job_both"]),
        (("job", "show", "nope"), []),
        (("harness", "validate", ""), ["hands"]),
    ],
)
def test_names_and_ids_are_completed_without_loading_code(
    garden: Any, words: tuple[str, ...], offered: list[str]
) -> None:
    for code in garden.root.rglob("*.py"):
        code.write_text("raise SystemExit('loaded')", encoding="utf-8")
    assert completed(*words, cwd=garden.root) == offered


def test_completion_stays_silent_where_nothing_can_be_told(tmp_path: Path) -> None:
    assert completed("task", "show", "", cwd=tmp_path) == []
    (tmp_path / "project.yaml").write_text("{", encoding="utf-8")
    assert completed("run", "--agent", "", cwd=tmp_path) == []
    assert completed("job", "show", "", cwd=tmp_path) == []


def plural(*arguments: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "plural_gym", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env={**os.environ, **env})


def test_the_package_runs_as_a_module_and_outside_a_project_says_what_to_do(tmp_path: Path) -> None:
    result = plural("validate", cwd=tmp_path)
    assert result.returncode == 3
    assert result.stdout == ""
    assert result.stderr == (
        f"{tmp_path}: no project.yaml here or in a folder above; run `plural init`, or name the project's "
        "folder.\n"
    )


def test_what_is_no_terminal_gets_neither_colours_nor_frames(tmp_path: Path) -> None:
    result = plural("run", cwd=Path(__file__).parents[2])
    assert result.returncode == 2
    assert "\x1b" not in result.stderr and "─" not in result.stderr


def at_a_terminal(*arguments: str, **env: str) -> str:
    """What a command writes to stderr where that is a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "plural_gym", *arguments]
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    given = {**kept, "TERM": "xterm", "COLUMNS": "80", **env}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=given) as process:
        os.close(theirs)
        told = b""
        # The kernel answers EIO once the other end of a terminal is closed.
        with suppress(OSError):
            while part := os.read(ours, 4096):
                told += part
        process.communicate()
    os.close(ours)
    return told.decode()


def test_a_terminal_gets_a_frame_and_colours_unless_it_asks_for_none() -> None:
    told = at_a_terminal("agent", "show", "nope")
    assert "╭─" in told and "\x1b[31m" in told
    told = at_a_terminal("agent", "show", "nope", NO_COLOR="1")
    assert "╭─" in told and "\x1b[" not in told


def test_a_terminal_gets_a_bar_in_place_of_lines(tmp_path: Path) -> None:
    place = ("--directory", str(tmp_path), "--project", str(Path(__file__).parents[2]))
    told = at_a_terminal("run", "--task", "support-desk/ticket-[12]", "--agent", "keyword", *place)
    assert "━" in told and "2/2" in told
    assert "trl_" not in told
    assert "plural job show job_" in told


def test_the_command_line_loads_nothing_heavy() -> None:
    code = f"import sys, plural_gym.cli.main; print([name for name in {HEAVY} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_help_comes_at_once() -> None:
    def spent() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    took = []
    for _ in range(3):
        before = spent()
        plural("--help")
        took.append(spent() - before)
    assert min(took) < 0.5, "processor seconds, since the tests share the machine; it takes 0.2"
