"""Sentences of the pages on Verifiers and Reviews that no test elsewhere shows as they stand."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plural_gym import refs
from plural_gym.cli.main import app
from plural_gym.environment import Environment, Limits
from plural_gym.project import Project
from plural_gym.task import Task
from plural_gym.verifier import VerifierOutput, total_reward
from plural_gym.verifiers.deterministic import DeterministicVerifier

SAMPLES = Path(__file__).parent / "samples"


def sample(reference: str) -> Any:
    return refs.load(reference, SAMPLES)


@pytest.fixture
def plural(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[str, str]]:
    """`plural("job", "list", code=0)`: runs the command in this process; its stdout and stderr."""

    def plural(*arguments: str, code: int = 0) -> tuple[str, str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            app([*arguments])
        out, err = capfd.readouterr()
        assert ended.value.code == code, (out, err)
        return out, err

    return plural


def progress_of(counter: Any, run: Callable[..., Any], **limits: Any) -> list[float | None]:
    """Scores of a Verifier whose score is its reward, one a Trial that adds up to four times."""

    def reward(step: Any) -> float:
        return 0.5

    environment = Environment(name="counter", apps={"counter": counter.Counter}, limits=Limits(**limits))
    verifiers = [DeterministicVerifier(name="progress", check=total_reward, reward=reward)]
    task = Task(name="t", instructions="Count.", environment=environment, verifiers=verifiers)

    def play(task: Any, seat: Any) -> None:
        for _ in range(4):
            seat.act("roll")

    return [trial.score for trial in run(task, play).trials]


def test_the_horizon_that_a_reward_sums_over_is_the_worlds(counter: Any, run: Callable[..., Any]) -> None:
    assert progress_of(counter, run) == [2.0]
    assert progress_of(counter, run, turns=3) == [1.5]


def test_one_verifier_scores_every_task_against_its_own_answer(run: Callable[..., Any]) -> None:
    verifier = DeterministicVerifier(name="team", check=sample("right_team.py:right_team"))
    nowhere = Environment(name="nowhere")
    tasks = [
        Task(name=name, instructions="?", environment=nowhere, verifiers=[verifier], expected=name)
        for name in ("billing", "shipping", "returns")
    ]
    scores = {trial.task: trial.score for trial in run(tasks, lambda task, seat: "shipping").trials}
    assert scores == {"billing": 0.0, "shipping": 1.0, "returns": 0.0}


def test_a_check_sees_everything_about_the_attempt(
    counter: Any, run: Callable[..., Any], tmp_path: Path
) -> None:
    """States, trajectory, last observation, answer, artifacts and usage, as the page lists them."""

    def check(episode: Any) -> VerifierOutput:
        app, [first, second] = episode.apps["counter"], episode.trajectory
        [file] = episode.artifacts
        seen = {
            "initial": app.initial["n"] == 0,
            "final": app.final["n"] == episode.state["n"] == 3,
            "control": app.control == "full",
            "trajectory": (first["action"], second["arguments"]) == ("look", {"by": 3}),
            "observation": episode.observation == 3,
            "answer": episode.answer == "three" and episode.expected == 3,
            "artifacts": (file["path"], file["size"]) == ("report.md", 5),
            "usage": episode.usage.turns == 2 and episode.usage.cost_usd is None,
        }
        return VerifierOutput(score=float(all(seen.values())), scores=seen)

    environment = Environment(name="counter", apps={"counter": counter.Counter})
    verifiers = [DeterministicVerifier(name="all", check=check)]
    task = Task(name="t", instructions="Count.", environment=environment, verifiers=verifiers, expected=3)

    def play(task: Any, seat: Any) -> str:
        [folder] = (tmp_path / "jobs").glob("*/trials/*/artifacts")
        seat.act("look")
        seat.act("add", by=3)
        (folder / "report.md").write_text("three")
        return "three"

    [trial] = run(task, play).trials
    assert trial.score == 1.0, trial.result["scores"]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the manifests of the page."""
    root = tmp_path / "shop"
    for name, file in (("correct-resolution", "resolved_correctly.py"), ("reply-quality", None)):
        folder = root / "verifiers" / name
        folder.mkdir(parents=True)
        shutil.copy(SAMPLES / f"{name}.yaml", folder / "verifier.yaml")
        if file is not None:
            shutil.copy(SAMPLES / file, folder / "verify.py")
    (root / "project.yaml").write_text("name: shop\n")
    monkeypatch.chdir(root)
    return root


def test_the_manifests_of_the_page_are_valid(shop: Path, plural: Any) -> None:
    found = Project.open(shop).verifiers
    assert found["correct-resolution"].functions()["check"].__name__ == "resolved_correctly"
    judge = found["reply-quality"]
    assert (judge.kind, judge.model, judge.weight) == ("agent", "openai/gpt-5.6-luna", 1.0)  # type: ignore[attr-defined]
    out, err = plural("verifier", "validate", "correct-resolution")
    assert out.startswith("verifier/correct-resolution is valid\n") and err == ""


def test_a_name_that_is_not_the_folders_is_refused(shop: Path, plural: Any) -> None:
    (shop / "verifiers/correct-resolution").rename(shop / "verifiers/resolution")
    _, err = plural("verifier", "validate", "resolution", code=3)
    assert "verifier.yaml:1: name 'correct-resolution' is not the folder's, 'resolution'" in err


def test_the_three_graders_of_the_page_can_be_combined(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = Environment(name="support-desk", apps={"desk": sample("desk.py:Desk")})
    task = Task(
        name="ticket-1",
        instructions="Inspect, categorize, answer, and resolve the ticket.",
        info={"ticket_id": "ticket-1"},
        environment=environment,
        verifiers=[
            sample("resolved_correctly.py:completion"),
            sample("reply_quality.py:reply_quality"),
            sample("human_review.py:human_review"),
        ],
    )
    assert [verifier.kind for verifier in task.verifiers] == ["deterministic", "agent", "human"]
    assert all(verifier.scores and verifier.weight == 1.0 for verifier in task.verifiers)
    two = task.model_copy(update={"verifiers": (task.verifiers[0], task.verifiers[2])})
    [trial] = run(two, sample("desk.py:play_desk")).trials
    assert (trial.status, trial.score) == ("awaiting_review", None)
    assert trial.result["scores"][0]["score"] == 1.0


PROGRESS = """\
from plural import Step

SIGNS = {
    "done": 1.0,
}


def seen(step: Step) -> dict:
    return {}


def progress(step: Step) -> float | None:
    done = step.turn > 0
    return seen(step)["done"]


def check(episode):
    from plural import VerifierOutput

    return VerifierOutput(score=1.0)
"""


def test_a_reward_that_raises_is_shown_as_on_the_page(workshop: Any, plural: Any, monkeypatch: Any) -> None:
    """12 steps in 3 Trials, `KeyError: 'done'` at line 14: the page's own lines."""
    workshop.write("verifiers/progress/verifier.py", PROGRESS)
    manifest = "name: progress\nversion: 0.1.0\ncheck: verifier.py:check\nreward: verifier.py:progress\n"
    workshop.write("verifiers/progress/verifier.yaml", manifest)
    workshop.edit("tasks/count/task.yaml", "verifiers: [full]", "verifiers: [progress]")
    monkeypatch.chdir(workshop.root)
    _, err = plural("run", "--task", "count", "--agent", "ada")
    shown = (
        "! Verifier progress's reward raised on 12 steps in 3 Trials, which earned it no reward\n"
        "  there: KeyError: 'done' (at verifier.py:14)\n"
    )
    assert shown in err
    [job] = (workshop.root / ".plural/jobs").iterdir()
    trial = min((job / "trials").iterdir())
    out, err = plural("trial", "show", trial.name)
    assert "! Verifier progress's reward raised on 4 steps in 1 Trial, which earned it no reward\n" in err
    assert "  there: KeyError: 'done' (at verifier.py:14)\n" in err and "Score      1.000\n" in out
    # Fixed and applied, it is gone.
    workshop.edit("verifiers/progress/verifier.py", "return {}", "return SIGNS")
    plural("verifier", "apply", "progress", "--job", job.name)
    out, err = plural("trial", "show", trial.name)
    assert "raised" not in err and "1.000" in out
