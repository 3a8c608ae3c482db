"""The Verifier that grades with code, be it functions or a program."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plural_gym.cases import run_cases
from plural_gym.command import Command
from plural_gym.environment import Environment
from plural_gym.errors import DefinitionError, Fault, ProjectError
from plural_gym.job import Job
from plural_gym.relabel import apply_verifier, try_verifier
from plural_gym.task import Task
from plural_gym.verifier import VerifierOutput, total_reward
from plural_gym.verifiers.deterministic import DeterministicVerifier


def check(episode: Any) -> VerifierOutput:
    return VerifierOutput(score=1.0)


def reward(step: Any) -> float:
    return 0.5


def late(trial: Any) -> list[Any]:
    return []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "Verifier 'v' needs at least one of check, reward and hindsight"),
        (
            {"check": total_reward},
            "total_reward needs a reward function; without one the score would always be 0",
        ),
        ({"check": total_reward, "hindsight": late}, "total_reward needs a reward function"),
        ({"check": "verify.py:check"}, "check 'verify.py:check' is no function; pass the function itself"),
        (
            {"check": ["pytest", "-q"]},
            r"is no function; write Command\(\['pytest', '-q'\]\) for a program",
        ),
        ({"check": {"command": []}}, "command is empty; name a program"),
        ({"check": {"command": ["true"], "shell": True}}, "shell is no field"),
        ({"check": {}}, "command is empty"),
        ({"reward": {"command": ["true"]}}, "reward {'command': \\['true'\\]} is no function"),
        ({"hindsight": Command(["true"])}, "hindsight .* is no function"),
        ({"reward": 0.5}, "reward 0.5 is no function"),
        ({"check": check, "weight": 0}, "weight"),
        ({"check": check, "weight": float("inf")}, "weight"),
        ({"check": check, "timeout_s": 0}, "timeout_s"),
        ({"check": check, "rewards": reward}, "rewards is no field; did you mean 'reward'?"),
    ],
)
def test_a_verifier_that_cannot_grade_is_refused_when_it_is_built(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(DefinitionError, match=message):
        DeterministicVerifier(name="v", **fields)


def test_only_a_check_scores() -> None:
    assert DeterministicVerifier(name="v", check=check).scores
    assert DeterministicVerifier(name="v", check=total_reward, reward=reward).scores
    assert not DeterministicVerifier(name="v", reward=reward).scores
    assert not DeterministicVerifier(name="v", hindsight=late).scores


def test_its_functions_and_their_time() -> None:
    made = DeterministicVerifier(name="v", check=check, hindsight=late, timeout_s=3, reward_timeout_s=1)
    assert made.functions() == {"check": check, "hindsight": late}
    assert made.timeouts_s() == {"check": 3.0, "reward": 1.0, "hindsight": 3.0}


def test_its_identity_is_its_code_and_weight() -> None:
    made = DeterministicVerifier(name="v", check=check)
    same = DeterministicVerifier(name="other", check=check, version="9.0.0", title="T", description="D")
    assert made.content_hash == same.content_hash
    for changed in ({"weight": 2}, {"reward": reward}, {"check": total_reward, "reward": reward}):
        assert (
            DeterministicVerifier(**{"name": "v", "check": check, **changed}).content_hash
            != made.content_hash
        )


# --- a check that is a program ---

GRADE = """
import json, os, sys
episode = json.load(open(os.environ["PLURAL_EPISODE"]))
n, goal = episode["state"]["n"], episode["expected"]
print(json.dumps({"score": n / goal, "scores": {"n": n}, "evidence": [f"{n} of {goal}"]}))
"""


def test_a_program_is_a_check_and_no_function() -> None:
    made = DeterministicVerifier(name="v", check={"command": ["true"], "timeout_s": 3}, reward=reward)
    assert made == DeterministicVerifier(name="v", check=Command(["true"], timeout_s=3), reward=reward)
    assert made.scores and made.functions() == {"reward": reward}
    assert made.timeouts_s() == {"check": 3.0, "reward": 5.0, "hindsight": 60.0}
    assert DeterministicVerifier(name="v", check=Command(["true"]), timeout_s=9).timeouts_s()["check"] == 9.0
    other = DeterministicVerifier(name="v", check=Command(["false"]), reward=reward)
    assert other.content_hash != made.content_hash


def test_a_program_that_does_not_grade_says_why_and_where(
    counter: Any, code: Any, run: Callable[..., Any]
) -> None:
    grader = code("import os\n\nraise KeyError('done')  # here\n", "grade.py")

    def task(name: str, *command: str) -> Task:
        check = Command(command, folder=grader.path.parent, timeout_s=10)
        verifiers = [DeterministicVerifier(name=name, check=check)]
        environment = Environment(name="counter", apps={"counter": counter.Counter})
        return Task(name=name, instructions="Count.", environment=environment, verifiers=verifiers)

    ends = {
        "raises": (["python", "grade.py"], "it raised KeyError: 'done' (at grade.py:3), for which Python"),
        "exits": (["sh", "-c", "echo why >&2; exit 4"], "it exited with status 4\n    why"),
        "missing": (["pytes"], "there is no program 'pytes' on the PATH; install it on this machine"),
    }
    tasks = [task(name, *command) for name, (command, _) in ends.items()]
    result = run([*tasks, task("passes", "true"), task("fails", "false")], lambda task, seat: None)
    by_task = {trial.task: trial for trial in result.trials}
    assert (by_task["passes"].score, by_task["fails"].score) == (1.0, 0.0)
    for name, (_, message) in ends.items():
        one = by_task[name].result
        assert (one["status"], one["failure"], one["score"]) == ("failed", "grader", None)
        fault = one["scores"][0]["fault"]
        assert (fault["where"], fault["type"]) == (f"verifier {name} check", "GradingFault")
        assert fault["message"].startswith(message)
    assert by_task["raises"].result["scores"][0]["fault"]["at"] == "python grade.py"
    log = by_task["exits"].folder.logs_path / "verifiers.log"
    assert "\nwhy\n" in log.read_text()


@pytest.fixture
def graded(workshop: Any) -> Any:
    """The workshop, its Verifier a program that is a file of its folder."""
    workshop.write("verifiers/full/grade.py", GRADE)
    workshop.write("verifiers/full/grade.sh", '#!/bin/sh\nexec python3 "$(dirname "$0")/grade.py" "$@"\n')
    (workshop.root / "verifiers/full/grade.sh").chmod(0o755)
    workshop.write(
        "verifiers/full/verifier.yaml",
        """
        name: full
        version: 0.1.0
        check:
          command: [./grade.sh, all]
          timeout_s: 20
        reward: verify.py:growth
        """,
    )
    workshop.edit("tasks/count/task.yaml", "rows:", "expected: 10\nrows:")
    return workshop


def test_a_program_of_a_project_grades_jobs_and_their_reruns(graded: Any) -> None:
    result = graded.job(seed=3).run()
    for trial in result.trials:
        [row] = trial.result["scores"]
        assert (trial.status, trial.score) == ("succeeded", row["scores"]["n"] / 10)
        assert row["evidence"] == [f"{row['scores']['n']:g} of 10"] and row["kind"] == "deterministic"
    assert result.folder.pins()["why_not"] == []
    graded.edit("verifiers/full/grade.py", "n / goal", "-1")
    again = Job.open(result.folder, fresh=True).run()
    assert [trial.score for trial in again.trials] == [trial.score for trial in result.trials]
    assert again.trials[0].receipt.verifiers == result.trials[0].receipt.verifiers


def test_a_program_built_in_python_can_be_repeated(
    counter: Any, code: Any, run: Callable[..., Any], tmp_path: Path
) -> None:
    grader = code("print('{\"score\": 0.25}')\n", "grade.py")
    other = code("def reward(step):\n    return 0.5\n")
    play = code("def play(task, seat):\n    pass\n", "play.py")
    environment = Environment(name="counter", apps={"counter": counter.Counter})
    verifiers = [
        DeterministicVerifier(
            name="beside",
            check=Command(["python", "grade.py"], folder=grader.path.parent),
            reward=other.reward,
        ),
        DeterministicVerifier(name="alone", check=Command(["python", "-c", "assert 0"], timeout_s=9)),
    ]
    task = Task(name="t", instructions="Count.", environment=environment, verifiers=verifiers)
    result = run(task, play.play)
    assert result.trials[0].score == 0.125 and result.folder.pins()["why_not"] == []
    for one in (grader, other, play, counter):
        one.path.unlink()
    again = Job.open(result.folder, fresh=True).run()
    assert again.trials[0].score == 0.125
    assert again.trials[0].receipt.verifiers == result.trials[0].receipt.verifiers


def test_an_edit_after_it_was_pinned_is_never_run(counter: Any, code: Any, run: Callable[..., Any]) -> None:
    grader = code("", "grade.py")
    check = Command(["python", "grade.py"], folder=grader.path.parent)
    verifier = DeterministicVerifier(name="v", check=check)
    environment = Environment(name="counter", apps={"counter": counter.Counter})
    task = Task(name="t", instructions="Count.", environment=environment, verifiers=[verifier])

    def play(task: Any, seat: Any) -> None:
        grader.path.write_text("raise SystemExit(1)")

    [trial] = run(task, play).trials
    assert trial.score is None
    assert trial.result["faults"][0]["message"].startswith("its files have changed since they were pinned")


def test_what_an_agent_produced_is_judged_in_a_job_and_in_replay(
    counter: Any, run: Callable[..., Any], tmp_path: Path
) -> None:
    judged = 'test "$(cat "$PLURAL_ARTIFACTS"/report.md)" = done'
    verifier = DeterministicVerifier(name="report", check=Command(["sh", "-c", judged]))
    environment = Environment(name="counter", apps={"counter": counter.Counter})
    task = Task(name="t", instructions="Count.", environment=environment, verifiers=[verifier])

    def play(task: Any, seat: Any) -> None:
        [folder] = (tmp_path / "jobs").glob("*/trials/*/artifacts")
        (folder / "report.md").write_text("done\n")

    result = run(task, play)
    assert result.trials[0].score == 1.0
    [one] = try_verifier(verifier, result.folder).trials
    assert one.score == 1.0 and not one.faults
    stricter = DeterministicVerifier(name="report", check=Command(["sh", "-c", judged + "; exit 1"]))
    [one] = apply_verifier(stricter, result.folder).trials
    assert one.score == 0.0 and result.trials[0].score == 1.0
    (result.trials[0].folder.artifacts_path / "report.md").write_text("tampered")
    [one] = try_verifier(verifier, result.folder).trials
    assert one.score is None and "is not what was recorded" in one.faults[0].message


def test_a_program_scores_a_live_environment(counter: Any, tmp_path: Path) -> None:
    (tmp_path / "grade.py").write_text(GRADE)
    verifiers = [
        DeterministicVerifier(
            name="share", check=Command(["python", "grade.py"], folder=tmp_path), reward=reward, weight=3
        ),
        DeterministicVerifier(name="full", check=check),
    ]
    environment = Environment(name="counter", apps={"counter": counter.Counter})
    task = Task(name="t", instructions="Count.", environment=environment, verifiers=verifiers, expected=4)
    env = environment.gym(tasks=[task], score_as_reward=True)
    env.reset(seed=0)
    assert env.step("add", by=1)[1] == 0.5
    assert env.score() == (3 * 0.25 + 1) / 4
    _, total, terminated, _, info = env.step("add", by=2)
    assert terminated and total == 0.5 + (3 * 0.75 + 1) / 4 and info["rewards"] == {"share": 0.5}
    output = env.outputs()["share"]
    assert isinstance(output, VerifierOutput) and output.evidence == ("3 of 4",)
    (tmp_path / "grade.py").write_text("raise OSError('disk')")
    fault = env.outputs()["share"]
    assert isinstance(fault, Fault) and "its files have changed" in fault.message and env.score() is None
    env.close()


CASE = """
name: halfway
{attempt}
expect: {{score: 0.5, scores: {{n: 5}}}}
"""


@pytest.mark.parametrize(
    "attempt",
    [
        "episode: {state: {n: 5}, expected: 10}",
        "play: {task: count/a, actions: [{action: add, arguments: {by: 5}}]}",
    ],
)
def test_a_program_is_proved_on_cases(graded: Any, attempt: str) -> None:
    graded.write("verifiers/full/cases/incomplete.yaml", CASE.format(attempt=attempt))
    verifier = graded.project.verifiers["full"]
    [result] = run_cases(verifier, verifier.folder, graded.project)
    assert result.passed, result


@pytest.mark.parametrize(
    ("check", "line", "message"),
    [
        ("{command: []}", 3, "'check.command' must hold at least 1 entry, and holds 0."),
        ("{command: python grade.py}", 3, "'check.command' must be a list, not 'python grade.py'"),
        ("{command: [python, 3]}", 3, "'check.command[1]' must be text, not 3; put it in quotes."),
        ("{command: ['']}", 3, "command[0] is empty; it names the program"),
        ("{commands: [python]}", 3, "unknown key 'commands' in 'check'; did you mean 'command'?"),
        ("{command: [python, grad.py]}", 3, "'grad.py' not found: verifiers/full has no 'grad.py'; did you"),
        ("{command: [./grad.sh]}", 3, "'grad.sh' not found"),
        ("{command: [../../x.sh]}", 3, "not found"),
        ("{command: [true], timeout_s: 0}", 3, "'check.timeout_s' must be greater than 0, not 0"),
        ("{command: ['true'], folder: grader}", 3, "'grader' not found: verifiers/full has no 'grader'"),
        ("{command: ['true'], folder: ../../..}", 3, "leaves the project"),
        ("[python, grade.py]", 3, "; for a program write {command: ['python', 'grade.py']}."),
        ("", 1, "one of 'check', 'reward' and 'hindsight' is needed"),
    ],
)
def test_a_program_that_cannot_be_run_is_told_with_its_line(
    graded: Any, check: str, line: int, message: str
) -> None:
    graded.write("verifiers/full/verifier.yaml", f"name: full\nversion: 0.1.0\ncheck: {check}\n")
    with pytest.raises(ProjectError) as caught:
        _ = graded.project.verifiers["full"]
    assert any(
        f"verifiers/full/verifier.yaml:{line}: " in str(one) and message in str(one)
        for one in caught.value.problems
    ), caught.value


def test_a_program_may_have_a_folder_of_its_own(graded: Any) -> None:
    graded.write("verifiers/full/grader/run.py", "import os; print(os.listdir())")
    manifest = "name: full\nversion: 0.1.0\ncheck: {command: [python, run.py], folder: grader}\n"
    graded.write("verifiers/full/verifier.yaml", manifest)
    verifier = graded.project.verifiers["full"]
    assert [str(inside) for _, inside in verifier.program.files()] == ["run.py"]
    assert [one for one in os.listdir(verifier.program.folder)] == ["run.py"]
