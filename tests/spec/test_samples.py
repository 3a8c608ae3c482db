"""Every code sample of the specification, as it stands there: `samples/` holds their text, unchanged."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plural_gym import refs
from plural_gym.errors import ActionRejected, QueryRefused

SAMPLES = Path(__file__).parent / "samples"


def sample(reference: str) -> Any:
    return refs.load(reference, SAMPLES)


@pytest.fixture
def desk() -> Any:
    from plural import Environment

    return Environment(name="support-desk", apps={"desk": sample("desk.py:Desk")})


@pytest.fixture
def office() -> Any:
    from plural import Environment

    return Environment(name="office", apps={"desk": sample("desk.py:Desk"), "crm": sample("desk.py:Crm")})


def test_the_check_of_a_correct_resolution(desk: Any, run: Callable[..., Any]) -> None:
    from plural import Task

    completion = sample("resolved_correctly.py:completion")
    task = Task(
        name="ticket-1",
        instructions="Inspect, categorize, answer, and resolve the ticket.",
        info={"ticket_id": "ticket-1"},
        environment=desk,
        verifiers=[completion],
    )

    def claims(task: Any, seat: Any) -> str:
        return "I filed it under billing."

    def misfiles(task: Any, seat: Any) -> None:
        seat.act("categorize", category="bug")

    (right,) = run(task, sample("desk.py:play_desk")).trials
    (claimed,) = run(task, claims).trials
    (wrong,) = run(task, misfiles).trials
    assert (right.score, claimed.score, wrong.score) == (1.0, 0.0, 0.0)
    (row,) = right.result["scores"]
    assert row["scores"] == {"correct_category": 1.0}
    assert row["evidence"] == ["category: billing; expected: billing; correct: True"]


@pytest.mark.parametrize("file", ["ticket_closed.py", "ticket_closed_by_query.py"])
def test_a_check_reads_an_app_of_several(file: str, office: Any, run: Callable[..., Any]) -> None:
    from plural import DeterministicVerifier, Task

    verifier = DeterministicVerifier(name="closed", check=sample(f"{file}:ticket_closed"))
    task = Task(name="close", instructions="Close T-7.", environment=office, verifiers=[verifier])

    def play(ticket: str) -> Callable[..., Any]:
        return lambda task, seat: seat.act("close_ticket", id=ticket)

    (right,) = run(task, play("T-7")).trials
    (wrong,) = run(task, play("T-8")).trials
    assert (right.score, wrong.score) == (1.0, 0.0)
    if file == "ticket_closed.py":
        assert right.result["scores"][0]["evidence"] == ["1 of 2 tickets closed"]


def test_a_check_of_the_answer_needs_no_apps(run: Callable[..., Any]) -> None:
    from plural import DeterministicVerifier, Environment, Task

    nowhere = Environment(name="nowhere")
    verifier = DeterministicVerifier(name="team", check=sample("right_team.py:right_team"))
    tasks = [
        Task(name=team, instructions="Which team?", environment=nowhere, verifiers=[verifier], expected=team)
        for team in ("billing", "shipping")
    ]
    trials = run(tasks, lambda task, seat: " Billing ").trials
    assert {trial.task: trial.score for trial in trials} == {"billing": 1.0, "shipping": 0.0}
    (silent,) = run(tasks[0], lambda task, seat: None).trials
    assert silent.score == 0.0 and silent.result["answer"] is None
    assert silent.result["scores"][0]["evidence"] == ["answered '', expected 'billing'"]


def test_a_reward_for_progress_at_each_step(desk: Any) -> None:
    from plural import DeterministicVerifier

    completion = DeterministicVerifier(
        name="correct-resolution",
        check=sample("resolved_correctly.py:resolved_correctly"),
        reward=sample("progress.py:progress"),
    )
    environment = desk
    environment.reset(verifiers=[completion])
    _observation, reward, terminated, truncated, info = environment.step("categorize", category="billing")
    assert (reward, terminated, truncated) == (0.25, False, False)
    assert info["rewards"] == {"correct-resolution": 0.25}
    assert environment.step("categorize", category="bug")[1] == -0.1
    assert environment.step("resolve")[1:4] == (0.5, True, False)
    environment.close()


def test_a_plain_function_of_a_step_serves_as_verifier(desk: Any) -> None:
    desk.reset(verifiers=[sample("progress.py:progress")])
    assert desk.step("resolve")[4]["rewards"] == {"progress": 0.75}
    desk.close()


def test_a_reward_asks_another_app(office: Any, run: Callable[..., Any]) -> None:
    from plural import DeterministicVerifier, Task

    verifier = DeterministicVerifier(
        name="names-the-customer",
        check=sample("ticket_closed.py:ticket_closed"),
        reward=sample("reply_matches_crm.py:reply_matches_crm"),
    )
    task = Task(
        name="reply",
        instructions="Answer.",
        environment=office,
        info={"customer_id": "C-1"},
        verifiers=[verifier],
    )

    def play(task: Any, seat: Any) -> None:
        seat.act("send_reply", text="Dear Ada, …")
        seat.act("send_reply", text="Dear Bob, …")
        seat.act("resolve")

    (trial,) = run(task, play).trials
    assert [row["value"] for row in trial.rewards] == [1.0, 0.0, None]
    env = office.gym(tasks=[task])
    env.reset(seed=0)
    assert env.step("send_reply", text="Dear Ada, …")[1] == 1.0
    env.close()


def test_credit_in_hindsight_for_the_solving_guess(run: Callable[..., Any]) -> None:
    from plural import DeterministicVerifier, Environment, Task, VerifierOutput

    def solved(episode: Any) -> VerifierOutput:
        return VerifierOutput(score=float(episode.state["secret"] in episode.state["guesses"]))

    verifier = DeterministicVerifier(
        name="fewer", check=solved, hindsight=sample("fewer_guesses.py:fewer_guesses")
    )
    environment = Environment(name="game", apps={"game": sample("desk.py:Game")})
    task = Task(name="crane", instructions="Guess.", environment=environment, verifiers=[verifier])

    def play(task: Any, seat: Any) -> None:
        seat.act("guess", word="slate")
        with pytest.raises(ActionRejected):
            seat.act("guess", word="four")
        seat.act("guess", word="crane")

    (solving,) = run(task, play).trials
    (credit,) = [row for row in solving.rewards if row["kind"] == "hindsight"]
    # Rejected guesses count among `trial.steps("guess")`.
    assert credit["value"] == pytest.approx(0.8) and credit["turn"] == 3
    assert credit["event_id"] == solving.steps[-1]["event_id"] and credit["source"] == "hindsight"
    (failing,) = run(task, lambda task, seat: seat.act("guess", word="slate")).trials
    assert failing.score == 0.0 and failing.rewards == []


def test_the_reward_made_the_score(desk: Any, run: Callable[..., Any]) -> None:
    from plural import DeterministicVerifier, Task, total_reward

    progress = sample("progress.py:progress")
    verifier = DeterministicVerifier(name="progress", check=total_reward, reward=progress)
    task = Task(name="ticket-1", instructions="Resolve.", environment=desk, verifiers=[verifier])

    def halfway(task: Any, seat: Any) -> None:
        seat.act("categorize", category="billing")

    assert run(task, sample("desk.py:play_desk")).trials[0].score == 0.75
    assert run(task, halfway).trials[0].score == 0.25


def test_query_refuses_an_action_that_can_change_state(office: Any) -> None:
    office.reset()
    office.step("close_ticket", id="T-7")
    crm = office._live().episode.apps["crm"]
    assert crm.query("get_ticket", id="T-7") == {"id": "T-7", "status": "closed"}
    assert crm.initial["tickets"][0]["status"] == "open" and crm.control == "full"
    with pytest.raises(QueryRefused, match="query refuses 'close_ticket': it can change State"):
        crm.query("close_ticket", id="T-8")
    assert crm.final["tickets"][1]["status"] == "open"
    office.close()


def test_the_design_in_one_example(tmp_path: Path) -> None:
    from plural import Agent, DeterministicVerifier, Environment, Job, Limits, Task, total_reward

    environment = Environment(
        name="support-desk", apps={"desk": sample("desk.py:Desk")}, limits=Limits(turns=8)
    )
    verifier = DeterministicVerifier(
        name="progress", check=total_reward, reward=sample("progress.py:progress")
    )

    _observation, info = environment.reset(verifiers=[verifier], seed=0)
    _observation, reward, _, _, info = environment.step("categorize", category="billing")
    assert reward == 0.25 and info["rewards"] == {"progress": 0.25}
    environment.close()

    task = Task(
        name="ticket-1",
        instructions="Categorise the ticket.",
        environment=environment,
        setup={"desk": {"expected": "billing"}},
        info={"ticket_id": "ticket-1"},
        expected="billing",
        verifiers=[verifier],
    )
    env = environment.gym(tasks=[task])
    env.reset(seed=1)
    env.step({"action": "categorize", "arguments": {"category": "billing"}})
    env.step('{"action": "send_reply", "arguments": {"text": "x"}}')
    env.step(env.action_space.sample())
    env.reset(seed=1)
    assert env.step("resolve")[2]
    env.close()

    def play(task: Any, seat: Any) -> str:
        seat.act("categorize", category="billing")
        return "done"

    agent = Agent(name="keyword", harness=play)
    result = Job(tasks=[task], agents=[agent], attempts=2, concurrency=4, directory=tmp_path / "jobs").run()
    for trial in result.trials:
        assert (trial.status, trial.score, trial.result["answer"]) == ("succeeded", 0.25, "done")
        assert [row["value"] for row in trial.rewards] == [0.25]
    assert "keyword" in str(result.leaderboard)


def test_every_sample_gets_the_same_words_as_plural_gym() -> None:
    import plural
    import plural_gym

    verifier = sample("resolved_correctly.py:DeterministicVerifier")
    assert verifier is plural.DeterministicVerifier is plural_gym.DeterministicVerifier
