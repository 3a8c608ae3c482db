"""Proof: what real Trials show about a Task."""

from typing import Any

import pytest

from plural_gym.proof import prove_task
from plural_gym.shipped import project as shipped


@pytest.fixture
def counted(workshop: Any) -> Any:
    """A project whose Task has an oracle that solves it and an answer key that is read."""
    workshop.write(
        "verifiers/full/verify.py",
        """
        from plural import Episode, VerifierOutput

        def full(episode: Episode) -> VerifierOutput:
            return VerifierOutput(score=float(episode.state["n"] == episode.expected))
        """,
    )
    workshop.write(
        "verifiers/full/verifier.yaml",
        "name: full\nversion: 0.1.0\nkind: deterministic\ncheck: verify.py:full\n",
    )
    workshop.write("harnesses/counting/play.py", "def play(task, seat):\n    seat.act('add', by=2)\n")
    workshop.write(
        "tasks/two/task.yaml",
        """
        name: two
        version: 0.1.0
        instructions: Count to two.
        environment: counter
        verifiers: [full]
        expected: 2
        oracle: ada
        """,
    )
    return workshop


def warnings(workshop: Any, **options: Any) -> list[str]:
    project = workshop.project
    return prove_task(project.tasks.get("two"), project, **options)


def test_a_task_that_its_oracle_alone_solves_gives_no_warning(counted: Any) -> None:
    assert warnings(counted, runs=2) == []
    assert not (counted.root / ".plural").exists()


def test_a_shipped_task_gives_no_warning() -> None:
    project = shipped()
    assert prove_task(project.tasks.get("support-desk/ticket-1"), project) == []


def test_a_task_that_is_solved_by_doing_nothing_is_suspicious(counted: Any) -> None:
    counted.edit("verifiers/full/verify.py", "== episode.expected", "<= episode.expected")
    assert warnings(counted) == [
        "an Agent that does nothing solves it (score 1); make its Verifiers ask for work."
    ]


def test_points_for_doing_nothing_are_told(counted: Any) -> None:
    counted.edit("verifiers/full/verify.py", "float(episode", "0.25 + float(episode")
    assert warnings(counted) == ["an Agent that does nothing scores 0.25; make sure that this is meant."]


def test_an_oracle_that_fails_is_suspicious(counted: Any) -> None:
    counted.edit("harnesses/counting/play.py", "by=2", "by=1")
    assert warnings(counted) == ["its oracle, Agent 'ada', does not solve it (score 0; agent_response)."]
    assert warnings(counted, threshold=-1.0)[0].startswith("an Agent that does nothing solves it")


def test_an_oracle_that_raises_is_told_with_what_it_raised(counted: Any) -> None:
    counted.edit("harnesses/counting/play.py", "seat.act('add', by=2)", "raise KeyError('plan')")
    [said] = warnings(counted)
    assert said.startswith("its oracle, Agent 'ada', does not solve it (no score; failure: agent).")
    assert said.endswith("KeyError: 'plan' (at play.py:2).")


def test_a_check_that_returns_nothing_is_told_as_what_it_returned(counted: Any) -> None:
    counted.edit("verifiers/full/verify.py", "return VerifierOutput(", "VerifierOutput(")
    said = warnings(counted)
    assert said[0].startswith(
        "Verifier full's check returned None, which is no VerifierOutput (at verify.py:"
    )
    assert "GradingFault" not in said[0]


def test_a_check_that_raises_is_told_once(counted: Any) -> None:
    counted.edit("verifiers/full/verify.py", 'episode.state["n"]', 'episode.state["total"]')
    said = warnings(counted, runs=2)
    assert said[0].startswith("Verifier full's check raised KeyError: 'total' (at verify.py:")
    assert said[1].startswith("its oracle, Agent 'ada', does not solve it (no score; failure: grader).")
    assert len(said) == 2
