"""GymEnv: what a training loop can rely on, whatever Apps, Tasks and Verifiers do."""

import math
import pickle
import warnings
from collections.abc import Callable
from typing import Any, Literal

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pydantic import BaseModel

from plural_gym import (
    App,
    DeterministicVerifier,
    Environment,
    Limits,
    State,
    Step,
    Task,
    VerifierOutput,
    action,
    total_reward,
)
from plural_gym.errors import AppFault, CheckpointError, DefinitionError, UnknownName, UsageError


class Counts(State):
    count: int = 0
    words: list[str] = []
    goal: int = 3


class Strict(BaseModel):
    number: int


class Counter(App):
    """Counts up to a goal."""

    state: Counts

    @action
    def add(self, amount: int = 1) -> str:
        """Count up."""
        if amount < 0:
            raise ValueError("only up")
        self.state.count += amount
        self.state.words.append(f"+{amount}")
        return f"count {self.state.count}"

    @action
    def roll(self) -> int:
        """Roll a die."""
        return int(self.rng.integers(1, 1_000_000))

    @action
    def note(self, action: str) -> str:
        """Note a word; the argument has an awkward name."""
        return f"noted {action}"

    @action(read_only=True)
    def look(self) -> dict[str, int]:
        """Look at the count."""
        return {"count": self.state.count}

    @action(read_only=True)
    def cheat(self) -> str:
        """Look, and change what is looked at."""
        self.state.count += 1
        return "ok"

    @action
    def crash(self) -> str:
        """Fail in a way that would print State."""
        Strict(number="a secret")  # type: ignore[arg-type]
        return "never"

    @action
    def talk(self, length: int) -> str:
        """Say a long text."""
        return "x" * length

    def terminated(self) -> bool:
        return self.state.count >= self.state.goal


def grew(step: Step) -> float | None:
    growth = step.current_state["count"] - step.previous_state["count"]
    return float(growth) if growth else None


VERIFIER = DeterministicVerifier(name="grew", check=total_reward, reward=grew)
WORLD = Environment(name="counter", apps={"game": Counter}, limits=Limits(turns=20))
TASKS = [
    Task(
        name=f"to-{goal}",
        instructions=f"Count to {goal}.",
        environment=WORLD,
        setup={"game": {"goal": goal}},
        verifiers=(VERIFIER,),
        split="train" if goal < 8 else "test",
    )
    for goal in range(5, 10)
]


def world(**options: Any) -> Any:
    return WORLD.gym(**{"tasks": TASKS, **options})


def begun(**options: Any) -> Any:
    env = world(**options)
    env.reset(seed=0)
    return env


def rewarded(*functions: Callable[[Step], Any]) -> Any:
    env = WORLD.gym(verifiers=functions)
    env.reset(seed=0)
    return env


def test_every_form_of_an_action_does_the_same() -> None:
    env = world()
    forms: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (({"action": "add", "arguments": {"amount": 2}},), {}),
        (({"name": "add", "arguments": {"amount": 2}},), {}),
        (({"action": "game.add", "arguments": {"amount": 2}},), {}),
        (({"action": "game__add", "arguments": '{"amount": 2}'},), {}),
        (('{"action": "add", "arguments": {"amount": 2}}',), {}),
        (("add",), {"amount": 2}),
        (("game.add",), {"amount": 2}),
        (("game__add",), {"amount": 2}),
        ((env.encode("add", amount=2),), {}),
    ]
    for form, keywords in forms:
        env.reset(seed=0)
        observation, reward, terminated, truncated, info = env.step(*form, **keywords)
        assert (observation["text"], reward, terminated, truncated) == ("count 2", 2.0, False, False), form
        assert info == {"rewards": {"grew": 2.0}, "reward_status": {"grew": 1}, "action": "add", "error": ""}


def test_a_name_alone_is_an_action_without_arguments() -> None:
    env = begun()
    assert env.step("add")[0]["text"] == "count 1"
    assert env.step("look")[0]["text"] == '{"count":1}'


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("ad", "did you mean 'add'?"),
        (42.5, "is not an action"),
        (None, "is not an action"),
        ({"arguments": {}}, "names no action"),
        ({"action": "add", "arguments": {"amount": "many"}}, "add: amount"),
        ({"action": "add", "arguments": {"much": 1}}, "much is no argument of add"),
        ({"action": "note", "arguments": {}}, "action is missing"),
        ({"action": "add", "arguments": {"amount": -1}}, "only up"),
        ("{", "is not JSON"),
    ],
)
def test_wrong_input_is_a_rejected_step(wrong: Any, says: str) -> None:
    env = begun()
    observation, reward, terminated, truncated, info = env.step(wrong)
    assert says in info["error"]
    assert observation["text"].startswith('{"error":')
    assert (reward, terminated, truncated, observation["turn"][0]) == (0.0, False, False, 1)
    assert env.step("add")[0]["text"] == "count 1"


@pytest.mark.parametrize("form", ["keywords", "mapping", "json"])
def test_a_name_that_no_action_has_is_a_rejected_step_of_the_only_app(form: str) -> None:
    env = rewarded(lambda step: -1.0 if step.error and step.app == "game" else None)
    forms: dict[str, Callable[[], Any]] = {
        "keywords": lambda: env.step("ad", amount=1),
        "mapping": lambda: env.step({"action": "ad", "arguments": {"amount": 1}}),
        "json": lambda: env.step('{"action": "ad", "arguments": {"amount": 1}}'),
    }
    _, reward, _, _, info = forms[form]()
    assert (reward, info["action"]) == (-1.0, "ad")
    assert info["error"] == "App 'game' has no action 'ad'; did you mean 'add'?"
    assert env.episode.trajectory[0]["arguments"] == {"amount": 1}


def test_a_reward_reads_the_error_of_a_rejected_call() -> None:
    env = rewarded(lambda step: -1.0 if step.error else None)
    assert env.step("add", amount=-1)[1] == -1.0


def test_info_has_the_same_schema_at_every_step() -> None:
    env = world()
    _, first = env.reset(seed=0)
    schema = {key: type(value) for key, value in first.items()}
    for move in ("look", "nonsense", "add", {"action": "add", "arguments": {"amount": -1}}):
        info = env.step(move)[4]
        assert {key: type(value) for key, value in info.items()} == schema
        assert list(info["rewards"]) == list(info["reward_status"]) == ["grew"]
        assert type(info["rewards"]["grew"]) is float


def test_reward_status_tells_no_signal_from_a_value_from_a_fault() -> None:
    def silent(step: Step) -> None:
        return None

    def zero(step: Step) -> float:
        return 0.0

    def broken(step: Step) -> float:
        raise RuntimeError("boom")

    env = rewarded(silent, broken, zero)
    _, reward, terminated, _, info = env.step("add")
    assert info["reward_status"] == {"silent": 0, "broken": 2, "zero": 1}
    assert info["rewards"] == {"silent": 0.0, "broken": 0.0, "zero": 0.0}
    assert (reward, terminated) == (0.0, False)
    (fault,) = env.faults
    assert (fault.type, fault.message) == ("RuntimeError", "boom")
    assert fault.at.startswith("test_env.py:")


def test_a_reward_function_may_be_async() -> None:
    async def later(step: Step) -> float:
        return 0.5

    assert rewarded(later).step("add")[1] == 0.5


@pytest.mark.parametrize("wrong", [math.nan, math.inf, True, 10**400, "1.0", np.float32("nan"), [1.0]])
def test_what_is_no_finite_number_is_a_fault_and_never_a_reward(wrong: Any) -> None:
    _, reward, _, _, info = rewarded(lambda step: wrong).step("add")
    assert (reward, info["reward_status"]) == (0.0, {"<lambda>": 2})


@pytest.mark.parametrize("number", [2, np.float32(0.5), np.float64(0.25), np.int64(3), 0.75])
def test_other_real_numbers_are_rewards_as_floats(number: Any) -> None:
    _, reward, _, _, info = rewarded(lambda step: number).step("add")
    assert (reward, type(reward)) == (float(number), float)
    assert info["reward_status"] == {"<lambda>": 1}


def test_what_a_reward_changes_in_its_step_changes_nothing_else() -> None:
    seen: list[Any] = []

    def vandal(step: Step) -> None:
        for state in (step.previous_state, step.current_state):
            state["count"] = 99
            state["words"].append("vandal")
        step.arguments["amount"] = 99
        step.task.info["vandal"] = True

    def witness(step: Step) -> None:
        values = (step.previous_state, step.current_state, step.arguments, step.task.info)
        seen.append(tuple(dict(value) for value in values))

    env = rewarded(vandal, witness)
    env.step("add", amount=1)
    env.step("add", amount=1)
    assert seen == [
        (
            {"count": n, "words": ["+1"] * n, "goal": 3},
            {"count": n + 1, "words": ["+1"] * (n + 1), "goal": 3},
            {"amount": 1},
            {},
        )
        for n in range(2)
    ]
    assert env.episode.state == {"count": 2, "words": ["+1", "+1"], "goal": 3}


def test_states_of_a_step_stay_what_they_were() -> None:
    kept: list[Step] = []
    env = rewarded(kept.append)
    for _ in range(3):
        env.step("add")
    assert [len(step.previous_state["words"]) for step in kept] == [0, 1, 2]
    assert [len(step.current_state["words"]) for step in kept] == [1, 2, 3]


def test_an_action_that_is_changed_after_the_step_leaves_the_record_alone() -> None:
    env = begun()
    move = {"action": "add", "arguments": {"amount": 1}}
    env.step(move)
    move["arguments"]["amount"] = 2
    assert env.episode.trajectory[0]["arguments"] == {"amount": 1}


def test_observation_and_info_are_the_callers_own() -> None:
    env = begun()
    observation, _, _, _, info = env.step("look")
    observation["turn"][0] = 77
    info["rewards"]["grew"] = 5.0
    env.reset(seed=0)
    again, *_, fresh = env.step("look")
    assert again["turn"].tolist() == [1]
    assert fresh["rewards"] == {"grew": 0.0}


def test_stepping_needs_an_episode() -> None:
    env = world()
    with pytest.raises(gym.error.ResetNeeded, match="there is no episode yet"):
        env.step("add")
    env.reset(seed=0)
    assert env.step("add", amount=9)[2]
    with pytest.raises(gym.error.ResetNeeded, match=r"over \(environment_terminated\)"):
        env.step("add")
    env.reset()
    assert not env.step("add")[2]


def test_turns_run_out_as_a_truncation() -> None:
    env = begun()
    ends = [env.step("look")[2:4] for _ in range(20)]
    assert ends == [(False, False)] * 19 + [(False, True)]
    assert env.episode.stop_reason == "max_turns"


def play(env: Any, seed: int) -> list[str]:
    texts = [env.reset(seed=seed)[0]["text"]]
    texts += [env.step("roll")[0]["text"] for _ in range(3)]
    texts += [env.reset()[0]["text"], env.step("roll")[0]["text"]]
    return texts


def test_a_seed_repeats_tasks_and_the_randomness_of_apps() -> None:
    assert play(world(), 5) == play(world(), 5)
    assert play(world(), 5) != play(world(), 6)


def test_a_setup_is_given_anew_at_every_reset() -> None:
    env = begun()
    for _ in range(3):
        env.reset(options={"task": "to-7"})
        assert env.episode.state == {"count": 0, "words": [], "goal": 7}
        env.step("add")


def test_a_setup_that_was_changed_is_read_again() -> None:
    env, setup = begun(), {"game": {"goal": 4}}
    for goal in (4, 6):
        setup["game"]["goal"] = goal
        env.reset(options={"setup": setup})
        assert env.episode.state["goal"] == goal


def test_options_choose_task_setup_and_verifiers() -> None:
    env = world()
    assert env.reset(options={"task": "to-8"})[0]["text"] == "Count to 8."
    assert env.reset(options={"task": TASKS[0]})[0]["text"] == "Count to 5."
    env.reset(options={"setup": {"game": {"count": 2}}})
    assert env.step("add")[0]["text"] == "count 3"
    _, info = env.reset(options={"verifiers": [grew, lambda step: 1.0]})
    assert info["rewards"] == {"grew": 0.0, "<lambda>": 0.0}
    _, info = env.reset()
    assert info["rewards"] == {"grew": 0.0}


def test_names_that_nothing_has_are_answered_with_the_nearest() -> None:
    env = world()
    with pytest.raises(UsageError, match=r"no option 'tsk'; did you mean 'task'\?"):
        env.reset(options={"tsk": "to-5"})
    with pytest.raises(UnknownName, match=r"no Task 'to-55'; did you mean 'to-5'\?"):
        env.reset(options={"task": "to-55"})
    with pytest.raises(UnknownName, match=r"split 'trian'; did you mean 'train'\?"):
        world(split="trian")
    with pytest.raises(DefinitionError, match=r"setup game\.gaol"):
        env.reset(options={"setup": {"game": {"gaol": 1}}})
    with pytest.raises(UsageError, match="made without tasks"):
        WORLD.gym().reset(options={"task": "to-5"})
    with pytest.raises(UsageError, match="two verifiers are named 'grew'"):
        env.reset(verifiers=[grew, grew])


def test_a_split_and_a_task_narrow_what_is_drawn() -> None:
    env = world(split="test")
    assert {env.reset(seed=seed)[0]["text"] for seed in range(30)} == {"Count to 8.", "Count to 9."}
    assert world(task="to-6").reset()[0]["text"] == "Count to 6."


@pytest.mark.parametrize("move", ["crash", "cheat"])
def test_a_fault_of_an_app_raises_and_ends_the_episode(move: str) -> None:
    env = begun()
    with pytest.raises(AppFault, match="app game"):
        env.step(move)
    with pytest.raises(gym.error.ResetNeeded):
        env.step("add")


def test_a_fault_may_truncate_instead_and_the_agent_reads_none_of_it() -> None:
    env = begun(on_fault="truncate")
    observation, reward, terminated, truncated, info = env.step("crash")
    assert observation["text"] == '{"error":"the action failed"}'
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert "app game: ValidationError" in info["error"]


def test_a_read_only_action_that_changed_state_is_a_fault() -> None:
    _, _, _, truncated, info = begun(on_fault="truncate").step("cheat")
    assert truncated
    assert "read-only action 'cheat' changed State" in info["error"]


def test_a_read_only_action_is_never_blamed_for_what_others_changed() -> None:
    env = begun(verifiers=[])
    assert [env.step(move)[0]["text"] for move in ("look", "add", "look")] == [
        '{"count":0}',
        "count 1",
        '{"count":1}',
    ]


def test_the_score_is_added_to_the_last_reward_on_request() -> None:
    won = DeterministicVerifier(name="won", check=lambda episode: VerifierOutput(score=0.5))
    for asked, last in ((False, 2.0), (True, 2.5)):
        env = WORLD.gym(verifiers=[won, grew], score_as_reward=asked)
        env.reset(seed=0)
        assert env.step("add")[1] == 1.0
        assert env.step("add", amount=2)[1] == last
        assert env.score() == 0.5


def test_state_is_shown_on_request_only() -> None:
    env = world(reveal_state=True)
    _, info = env.reset(options={"task": "to-5"})
    assert info["state"] == {"game": {"count": 0, "words": [], "goal": 5}}
    assert env.step("add")[4]["state"]["game"]["count"] == 1
    assert "state" not in begun().step("add")[4]


def test_a_text_that_is_too_long_is_cut_with_a_mark() -> None:
    env = begun(max_chars=40)
    text = env.step("talk", length=100)[0]["text"]
    assert len(text) == 40
    assert text.endswith("… [100 characters in all]")
    assert env.observation_space["text"].max_length == 40


def test_an_argument_may_be_named_like_a_parameter_of_ours() -> None:
    assert begun().step("note", action="milk")[0]["text"] == "noted milk"


def test_a_checkpoint_can_be_played_from_any_number_of_times() -> None:
    env = begun()
    env.step("add")
    env.step("roll")
    saved = env.checkpoint()
    branches = []
    for _ in range(3):
        observation, info = env.restore(saved)
        assert observation["turn"].tolist() == [2]
        assert info["rewards"] == {"grew": 0.0}
        branch = [env.step(move)[:2] for move in ("add", "roll", "roll", "look")]
        branches.append([(seen["text"], int(seen["turn"][0]), reward) for seen, reward in branch])
        assert len(env.episode.trajectory) == 6
    assert branches[0] == branches[1] == branches[2]
    assert branches[0][0] == ("count 2", 3, 1.0)


def test_a_checkpoint_shows_the_last_text_again() -> None:
    env = begun()
    env.step("add")
    saved = env.checkpoint()
    env.step("add")
    assert env.restore(saved)[0]["text"] == "count 1"


def test_an_app_that_cannot_be_copied_is_named() -> None:
    class Holder(App):
        """Holds what no copy is made of."""

        def reset(self, task: object) -> None:
            self.lines = (line for line in "ab")

        @action
        def go(self) -> str:
            """Go on."""
            return "on"

    env = Environment(name="held", apps={"keeper": Holder}).gym()
    env.reset(seed=0)
    with pytest.raises(CheckpointError, match="keeper: App Holder holds something that cannot be copied"):
        env.checkpoint()


def test_a_checkpoint_of_another_world_is_refused() -> None:
    other = Environment(name="other", apps={"b": Counter}).gym()
    other.reset(seed=0)
    with pytest.raises(CheckpointError, match="no checkpoint of Environment 'counter'"):
        begun().restore(other.checkpoint())


def test_two_apps_with_an_action_of_one_name_are_told_apart() -> None:
    env = Environment(name="two", apps={"a": Counter, "b": Counter}).gym(verifiers=[grew])
    env.reset(seed=0)
    assert env.step("a.add", amount=2)[0]["text"] == "count 2"
    assert env.step("b__add")[0]["text"] == "count 1"
    info = env.step("add", amount=1)[4]
    assert "say a.add or b.add" in info["error"]
    assert info["reward_status"] == {"grew": 0}


def test_one_app_never_shifts_the_randomness_of_another() -> None:
    env = Environment(name="two", apps={"a": Counter, "b": Counter}).gym()
    env.reset(seed=0)
    alone = env.step("b.roll")[0]["text"]
    env.reset(seed=0)
    env.step("a.roll")
    assert env.step("b.roll")[0]["text"] == alone


class Endless(App):
    """Never ends by itself."""

    @action
    def wait(self) -> str:
        """Wait."""
        return "…"


@pytest.mark.parametrize(
    ("app", "finish", "offered"),
    [
        (Counter, "auto", False),
        (Endless, "auto", True),
        (Endless, "never", False),
        (Counter, "always", True),
    ],
)
def test_finish_is_offered_where_the_world_says_so(
    app: type[App], finish: Literal["auto", "always", "never"], offered: bool
) -> None:
    env = Environment(name="x", apps={"a": app}, finish=finish).gym()
    env.reset(seed=0)
    assert ("finish" in env.action_space.names) == offered
    assert any(tool["function"]["name"] == "finish" for tool in env.tools()) == offered
    _, _, terminated, _, info = env.step({"action": "finish", "arguments": {"answer": "42"}})
    assert terminated == offered
    assert bool(info["error"]) != offered
    if offered:
        assert (env.episode.answer, env.episode.trajectory) == ("42", ())


def test_a_world_without_apps_is_answered() -> None:
    def right(episode: Any) -> VerifierOutput:
        return VerifierOutput(score=float(episode.answer == episode.expected))

    world = Environment(name="quiz")
    grader = DeterministicVerifier(name="right", check=right)
    task = Task(name="q", instructions="2+2?", environment=world, expected="4", verifiers=(grader,))
    env = world.gym(tasks=[task], score_as_reward=True)
    assert env.reset(seed=0)[0]["text"] == "2+2?"
    _, reward, terminated, truncated, info = env.step("finish", answer="4")
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert info["rewards"] == {}
    assert env.episode.state == {}


def test_a_pickled_environment_plays_the_same() -> None:
    assert play(pickle.loads(pickle.dumps(world())), 3) == play(world(), 3)


@pytest.mark.parametrize("tasks", [TASKS, None])
def test_gymnasiums_own_check_finds_nothing(tasks: Any) -> None:
    safe = Environment(name="desk", apps={"a": Endless})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(safe.gym(render_mode="ansi"))
        check_env(WORLD.gym(tasks=tasks, on_fault="truncate", render_mode="ansi"))


def test_an_environment_can_be_played_directly() -> None:
    world = Environment(name="direct", apps={"game": Counter})
    with pytest.raises(DefinitionError, match=r"no episode yet; call reset\(\) first"):
        world.step("add")
    observation, info = world.reset(seed=0, verifiers=[VERIFIER])
    assert (observation["text"], info["rewards"]) == ("", {"grew": 0.0})
    assert world.step("add", amount=2)[1] == 2.0
    saved = world.checkpoint()
    assert world.step("add")[2]
    world.restore(saved)
    assert world.step("look")[0]["text"] == '{"count":2}'
    world.close()
    world.close()


def test_the_transcript_is_rendered() -> None:
    env = begun(render_mode="ansi")
    env.step("add", amount=2)
    assert "> add(amount=2)\ncount 2\nreward +2" in env.render()


def test_the_first_failure_of_a_reward_is_a_warning_and_no_more() -> None:
    def broken(step: Step) -> float:
        raise KeyError("done")

    env = Environment(name="counting", apps={"counter": Counter}).gym(verifiers=[broken])
    env.reset(seed=0)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            env.step("no such action")
    assert len(seen) == 1 and "Verifier broken's reward failed" in str(seen[0].message)


def test_text_that_no_record_can_hold_is_escaped_or_rejected() -> None:
    env = Environment(name="counting", apps={"counter": Counter}).gym()
    odd: list[Any] = [
        '{"action": "\\ud83d"}',
        "\ud83d",
        {"action": "\ud83d", "arguments": {"\ud83d": "\ud83d"}},
    ]
    for call in odd:
        env.reset(seed=0)
        observation, _, terminated, truncated, info = env.step(call)
        assert info["error"] and not (terminated or truncated)
        assert observation in env.observation_space
        assert env.unwrapped.episode.trajectory[0]["error"]


def test_a_checkpoint_of_another_world_with_the_same_apps_is_refused() -> None:
    first = Environment(name="one", apps={"counter": Counter}).gym()
    other = Environment(name="two", apps={"counter": Counter}).gym()
    first.reset(seed=0)
    other.reset(seed=0)
    with pytest.raises(CheckpointError, match="no checkpoint of Environment 'two'"):
        other.restore(first.checkpoint())
