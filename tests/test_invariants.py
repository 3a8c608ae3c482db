"""What of docs/invariants.md no other test holds, such as that rewards come from Verifiers alone."""

from collections.abc import Callable
from typing import Any

import pytest

from plural_gym import DeterministicVerifier, Environment, Task, VerifierOutput
from plural_gym.errors import Fault
from plural_gym.records import ledger

GENEROUS = """
from plural import App, State, action

class Purse(State):
    reward: float = 5.0
    score: float = 1.0

class Generous(App):
    "Says in every way it can that it gives a reward."
    state: Purse
    reward = 5.0
    score = 1.0

    def reset(self, task):
        return {"reward": 5.0}

    @action
    def pay(self) -> dict:
        return {"reward": 5.0, "score": 1.0}

    def terminated(self) -> bool:
        return True
"""


def test_an_app_gives_no_reward_and_no_score(code: Callable[..., Any], run: Callable[..., Any]) -> None:
    environment = Environment(name="bank", apps={"bank": code(GENEROUS, "app.py").Generous})
    env = environment.gym()
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step("pay")
    assert (reward, terminated, info["rewards"], env.score()) == (0.0, True, {}, None)
    env.close()
    nothing = DeterministicVerifier(name="nothing", check=lambda episode: VerifierOutput(score=0.0))
    task = Task(name="t", instructions="Pay.", environment=environment, verifiers=[nothing])
    (trial,) = run(task, lambda task, seat: seat.act("pay")).trials
    assert (trial.score, trial.result["return"], trial.rewards) == (0.0, None, [])


@pytest.fixture
def world(counter: Any) -> Environment:
    return Environment(name="counter", apps={"counter": counter.Counter})


def full(episode: Any) -> VerifierOutput:
    return VerifierOutput(score=float(episode.state["n"] >= episode.state["goal"]))


def score_of(verifiers: list[DeterministicVerifier], world: Environment, run: Callable[..., Any]) -> Any:
    task = Task(name="t", instructions="Count.", environment=world, verifiers=verifiers)

    def play(task: Any, seat: Any) -> None:
        for _ in range(3):
            seat.act("add")

    (trial,) = run(task, play, job_id=f"job_{len(verifiers)}_{verifiers[0].weight:g}").trials
    return trial


def test_a_reward_never_changes_a_score(world: Environment, run: Callable[..., Any]) -> None:
    bare = score_of([DeterministicVerifier(name="full", check=full)], world, run)
    paid = score_of(
        [
            DeterministicVerifier(name="full", check=full, reward=lambda step: -100.0, weight=3),
            DeterministicVerifier(
                name="more",
                reward=lambda step: 50.0,
                hindsight=lambda trial: [trial.credit(trial.steps()[0]["event_id"], 9.0)],
            ),
        ],
        world,
        run,
    )
    assert bare.score == paid.score == 1.0 and bare.rewards == []
    # A Verifier's weight scales no step reward.
    assert [row["value"] for row in paid.rewards if row["verifier"] == "full"] == [-100.0] * 3
    assert paid.result["return"] == -150.0


def test_a_fault_is_no_number_anywhere(world: Environment, run: Callable[..., Any]) -> None:
    def broken(value: Any) -> Any:
        raise KeyError("done")

    task = Task(
        name="t",
        instructions="Count.",
        environment=world,
        verifiers=[
            DeterministicVerifier(name="broken", check=broken, reward=broken),
            DeterministicVerifier(name="full", check=full),
        ],
    )
    env = world.gym(tasks=[task])
    env.reset(seed=0)
    *_, info = env.step("add")
    assert info["reward_status"] == {"broken": 2}
    assert env.score() is None and isinstance(env.outputs()["broken"], Fault)
    env.close()

    result = run(task, lambda task, seat: seat.act("add"))
    (trial,) = result.trials
    assert trial.score is None and trial.result["return"] is None
    assert [(row["value"], row["status"]) for row in trial.rewards] == [(None, "error")]
    (row,) = result.leaderboard.rows
    assert (row.score, row.rank, row.failures) == (None, None, {"grader": 1})
    assert ledger.read(result.folder, "episodes")["score"].to_pylist() == [None]
    rewards = ledger.read(result.folder, "rewards")
    assert rewards["value"].to_pylist() == [None] and rewards["status"].to_pylist() == ["error"]
    assert ledger.read(result.folder, "steps")["reward"].to_pylist() == [None, None]


def test_query_changes_nothing(world: Environment) -> None:
    from plural_gym.errors import QueryRefused

    world.reset(verifiers=[])
    world.step("add")
    counter = world._live().episode.apps["counter"]
    assert counter.query("look") == {"n": 1}
    with pytest.raises(QueryRefused):
        counter.query("add")
    assert world._live().episode.state["n"] == 1
    world.close()
