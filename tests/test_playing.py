"""Trials of a party: an Agent in every seat, each with its own answer, rewards and score."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from plural_gym.agent import Agent
from plural_gym.app import App, action
from plural_gym.environment import Environment, Limits
from plural_gym.episode import Episode, HindsightTrial
from plural_gym.errors import DefinitionError
from plural_gym.job import Job, JobResult
from plural_gym.relabel import apply_verifier
from plural_gym.seating import round_robin
from plural_gym.state import State
from plural_gym.step import Step
from plural_gym.task import Task, TaskSet
from plural_gym.verifier import VerifierOutput
from plural_gym.verifiers.deterministic import DeterministicVerifier


class Hands(State):
    turn: str = "north"
    cards: dict[str, int] = {"north": 1, "south": 2}
    played: dict[str, int] = {}
    gone: list[str] = []


class Cards(App):
    """Each seat holds a secret card; both play a number, in turn; the higher one wins."""

    state: Hands

    @action
    def play(self, number: int) -> str:
        """Play a number once."""
        assert self.seat is not None
        if number < 0:
            raise ValueError("numbers begin at 0")
        if number == 13:
            raise RuntimeError("secret card " + str(self.state.cards))
        self.state.played = {**self.state.played, self.seat: number}
        self.state.turn = "south"
        return f"you played {number}"

    def turn(self) -> str:
        return self.state.turn

    def view(self, seat: str) -> Any:
        return {"card": self.state.cards[seat], "played": self.state.played}

    def forfeit(self, seat: str) -> None:
        self.state.gone = [*self.state.gone, seat]
        self.state.turn = "south"

    def terminated(self) -> bool:
        return len(self.state.played) + len(self.state.gone) == 2


def won(episode: Episode) -> VerifierOutput:
    played = episode.apps["cards"].final["played"]
    assert episode.seat is not None
    return VerifierOutput(score=float(max(played, key=played.get) == episode.seat))


def points(step: Step) -> Any:
    if len(step.current_state["played"]) < 2:
        return None
    high = max(step.current_state["played"], key=step.current_state["played"].get)
    return {seat: 1.0 if seat == high else -1.0 for seat in ("north", "south")}


def after(trial: HindsightTrial) -> Any:
    for step in trial.steps("play"):
        if step["seat"] == trial.seat and trial.score:
            yield trial.credit(step["event_id"], 0.5)


ENVIRONMENT = Environment(
    name="cards",
    apps={"cards": Cards},
    party=({"name": "north", "role": "You begin."}, "south"),
    limits=Limits(turns=20),
)
TASK = Task(
    name="duel",
    instructions="Play high.",
    environment=ENVIRONMENT,
    verifiers=[
        DeterministicVerifier(name="won", check=won, hindsight=after),
        DeterministicVerifier(name="points", reward=points),
    ],
)


def playing(number: int) -> Any:
    def play(task: Any, seat: Any) -> Any:
        seen = seat.view()
        seat.act("play", number=number)
        return {"saw": seen, "told": task.instructions}

    return play


LOW, HIGH = Agent(name="low", harness=playing(3)), Agent(name="high", harness=playing(9))


def run(tmp_path: Path, agents: Any = (), task: Task = TASK, **options: Any) -> JobResult:
    return Job(tasks=[task], agents=agents, directory=tmp_path, concurrency=1, **options).run()


def test_every_seat_has_its_own_agent_score_answer_and_rewards(tmp_path: Path) -> None:
    result = run(tmp_path, seats=[{"north": LOW, "south": HIGH}])
    (trial,) = result.trials
    assert (trial.status, trial.agent, trial.score) == ("succeeded", "north=low,south=high", None)
    north, south = trial.result["seats"]
    assert (north["seat"], north["agent"], north["score"], north["return"]) == ("north", "low", 0.0, -1.0)
    assert (south["seat"], south["agent"], south["score"], south["return"]) == ("south", "high", 1.0, 1.0)
    assert north["answer"] == {"saw": {"card": 1, "played": {}}, "told": "Play high.\n\nYou begin."}
    assert south["answer"]["saw"] == {"card": 2, "played": {"north": 3}}
    rows = [(row["verifier"], row["seat"], row["value"], row["kind"]) for row in trial.rewards]
    assert ("points", "north", -1.0, "step") in rows and ("points", "south", 1.0, "step") in rows
    assert ("won", "south", 0.5, "hindsight") in rows
    assert [step["seat"] for step in trial.steps] == ["north", "south"]
    assert [(row["agent"], row["score"]) for row in result.rows()] == [("low", 0.0), ("high", 1.0)]
    assert trial.receipt.seats["south"].name == "high"
    assert len({row["reward_id"] for row in trial.rewards}) == len(rows)


def test_one_agent_alone_plays_all_seats(tmp_path: Path) -> None:
    (trial,) = run(tmp_path, [HIGH]).trials
    assert (trial.agent, trial.score) == ("high", 0.5)
    assert [seat["agent"] for seat in trial.result["seats"]] == ["high", "high"]


def test_a_round_robin_meets_in_every_seat(tmp_path: Path) -> None:
    result = run(tmp_path, [LOW, HIGH], seats="round-robin")
    assert sorted(trial.agent for trial in result.trials) == ["north=high,south=low", "north=low,south=high"]
    first, second = result.leaderboard.to_json()["rows"]
    assert (first["agent"], first["score"], second["score"]) == ("high", 1.0, 0.0)


def test_an_agent_that_fails_forfeits_its_seat_and_the_other_is_graded(tmp_path: Path) -> None:
    def fails(task: Any, seat: Any) -> None:
        raise KeyError("no plan")

    (trial,) = run(tmp_path, seats=[{"north": Agent(name="bad", harness=fails), "south": HIGH}]).trials
    north, south = trial.result["seats"]
    assert (trial.status, trial.result["failure"]) == ("succeeded", "none")
    assert (north["failure"], north["score"]) == ("agent", None)
    assert (south["failure"], south["score"], south["n_steps"]) == ("none", 1.0, 1)
    assert trial.result["faults"][0]["type"] == "KeyError"


def test_a_seat_never_hears_of_another_seats_secret_or_of_why_an_app_failed(tmp_path: Path) -> None:
    heard: list[str] = []

    def curious(task: Any, seat: Any) -> None:
        heard.append(json.dumps([task.instructions, seat.actions, seat.observation, seat.view()]))
        try:
            seat.act("play", number=13)
        except Exception as error:
            heard.append(str(error))

    (trial,) = run(tmp_path, seats=[{"north": Agent(name="curious", harness=curious), "south": HIGH}]).trials
    assert (trial.status, trial.result["failure"]) == ("failed", "environment")
    assert heard and not any('"card": 2' in said or "secret" in said or "south" in said for said in heard)


def test_a_rejected_move_is_told_to_its_seat_alone_and_the_turn_stays(tmp_path: Path) -> None:
    def wrong_first(task: Any, seat: Any) -> Any:
        with pytest.raises(Exception, match="numbers begin at 0"):
            seat.act("play", number=-1)
        said = seat.observation
        seat.act("play", number=5)
        return said

    (trial,) = run(
        tmp_path, seats=[{"north": Agent(name="wrong", harness=wrong_first), "south": HIGH}]
    ).trials
    north, south = trial.result["seats"]
    assert (north["answer"], north["n_steps"]) == ({"error": "numbers begin at 0"}, 2)
    assert "error" not in south["answer"]["saw"]


def test_seats_wait_for_their_turn_in_threads_of_their_own(tmp_path: Path) -> None:
    order: list[str] = []
    asked = threading.Event()

    def first(task: Any, seat: Any) -> None:
        asked.wait(5)
        order.append("first acts")
        seat.act("play", number=1)

    def second(task: Any, seat: Any) -> None:
        asked.set()
        seat.act("play", number=2)
        order.append("second acted")

    line_up = {"north": Agent(name="first", harness=first), "south": Agent(name="second", harness=second)}
    (trial,) = run(tmp_path, seats=[line_up]).trials
    assert (trial.status, order) == ("succeeded", ["first acts", "second acted"])


@pytest.mark.parametrize(
    ("seats", "message"),
    [
        ([{"north": LOW}], "has no Agent for seat 'south'"),
        ([{"north": LOW, "south": HIGH, "soth": LOW}], "no seat 'soth'; did you mean 'south'"),
        ([{"north": LOW, "south": "high"}], "'high', which is no Agent"),
        ([{"north": LOW, "south": HIGH}] * 2, "given twice"),
        ([], "empty"),
        ("knockout", "list of line-ups or 'round-robin'"),
        ("round-robin", "at least two Agents"),
    ],
)
def test_seats_that_cannot_be_filled_are_refused_before_anything_runs(
    tmp_path: Path, seats: Any, message: str
) -> None:
    with pytest.raises(DefinitionError, match=message):
        run(tmp_path, [LOW] if isinstance(seats, str) else [], seats=seats)
    assert not list(tmp_path.iterdir())


def test_a_line_up_needs_a_party(tmp_path: Path) -> None:
    alone = Task(
        name="alone",
        instructions="",
        environment=Environment(name="alone", apps={"cards": Cards}),
        verifiers=[DeterministicVerifier(name="won", check=won)],
    )
    with pytest.raises(DefinitionError, match="needs a party"):
        run(tmp_path, seats=[{"north": LOW, "south": HIGH}], task=alone)


def test_a_round_robin_with_fewer_agents_than_seats_leaves_out_tables_of_one_agent() -> None:
    tables = round_robin([LOW, HIGH], ["a", "b", "c"])
    assert len(tables) == 6 and all(len({agent.name for agent in table.values()}) == 2 for table in tables)


def test_rewards_of_a_party_are_given_anew_seat_by_seat(tmp_path: Path) -> None:
    result = run(tmp_path, seats=[{"north": LOW, "south": HIGH}])
    (trial,) = result.trials
    before = [(row["seat"], row["value"]) for row in trial.rewards if row["verifier"] == "points"]
    doubled = DeterministicVerifier(
        name="points", reward=lambda step: {seat: 2 * value for seat, value in (points(step) or {}).items()}
    )
    given = apply_verifier(doubled, result.folder, tasks=TaskSet.of([TASK]))
    assert given.skipped == {} and len(given.trials) == 1
    after = [(row["seat"], row["value"]) for row in trial.rewards if row["verifier"] == "points"]
    assert [(seat, value) for seat, value in before if value] == [("north", -1.0), ("south", 1.0)]
    assert [(seat, value) for seat, value in after if value] == [("north", -2.0), ("south", 2.0)]
    assert [seat["return"] for seat in trial.result["seats"]] == [-2.0, 2.0]
    assert [row["value"] for row in trial.rewards if row["kind"] == "hindsight"] == [0.5]
