"""AppHost: actions, State and faults of one world."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ValidationError

from plural_gym.app import App, AppDeclaration, action
from plural_gym.errors import ActionRejected, AppFault, QueryRefused, UnknownName
from plural_gym.host.host import AppHost
from plural_gym.state import State, thaw
from plural_gym.step import TaskView

ORDER: list[str] = []


class Board(State):
    secret: Literal["crane", "slate"] = "crane"
    n: int = 0
    log: list[str] = []


class Seen(BaseModel):
    n: int


class Game(App):
    state: Board

    def reset(self, task: TaskView) -> Any:
        ORDER.append(f"reset {self.state.secret} {task.name}")
        self.state.log.append("reset")
        return {"letters": 5}

    @action
    def add(self, by: int = 1) -> Seen:
        if by > 9:
            raise ValueError("by is at most 9")
        self.state.n += by
        return Seen(n=self.state.n)

    @action
    async def later(self) -> str:
        return "later"

    @action
    def reject(self) -> None:
        raise ActionRejected("not now")

    @action
    def miss(self) -> None:
        self.state.secret = "sesame"  # type: ignore[assignment]

    @action
    def deep(self) -> None:
        raise UnicodeDecodeError("utf-8", b"", 0, 1, "a ValueError, but none that the author raised")

    @action
    def leave(self) -> None:
        raise SystemExit(3)

    @action
    def roll(self) -> int:
        return int(self.rng.integers(10**9))

    @action(read_only=True)
    def look(self) -> dict[str, Any]:
        return {"n": self.state.n, "log": self.state.log}

    @action(read_only=True)
    def sneak(self) -> str:
        self.state.log.append("sneaked")
        return "seen"

    @action(read_only=True)
    def picky(self, at: int) -> int:
        raise ValueError("no such place")

    @action(read_only=True)
    def broken(self) -> None:
        raise KeyError("gone")

    def terminated(self) -> bool:
        return self.state.n >= 3


class Quiet(App):
    @action
    def add(self) -> str:
        return "added"

    @action
    def wave(self) -> int:
        return int(self.rng.integers(10**9))


def opened(seed: int = 0, setup: dict[str, Any] | None = None, **apps: type[App]) -> AppHost:
    host = AppHost({name: AppDeclaration("python", {"class": app}) for name, app in apps.items()})
    host.open(TaskView("word", "Guess."), setup or {}, seed, Path("/nowhere"))
    return host


@pytest.fixture
def host() -> AppHost:
    return opened(game=Game)


def test_an_episode_starts_with_defaults_then_setup_then_reset() -> None:
    ORDER.clear()
    host = AppHost({"game": AppDeclaration("python", {"class": Game})})
    opening = host.open(TaskView("word", ""), {"game": {"secret": "slate"}}, 0, Path("/nowhere"))
    assert opening == {"letters": 5} and ORDER == ["reset slate word"]
    assert thaw(host.snapshot("game")) == {"secret": "slate", "n": 0, "log": ["reset"]}  # type: ignore[arg-type]
    ORDER.clear()
    with pytest.raises(AppFault, match="app game: ValidationError"):
        host.open(TaskView("word", ""), {"game": {"secret": "sesame"}}, 0, Path("/nowhere"))
    assert ORDER == []


def test_several_opening_observations_are_told_by_app() -> None:
    host = AppHost({name: AppDeclaration("python", {"class": Game}) for name in ("a", "b")})
    opening = host.open(TaskView("", ""), {}, 0, Path("/nowhere"))
    assert opening == {"a": {"letters": 5}, "b": {"letters": 5}}
    assert opened(quiet=Quiet).controls() == {"quiet": "full"}


def test_state_before_and_after_an_action_are_two_values(host: AppHost) -> None:
    first, second = host.act("add", {"by": 2}), host.act("add", {})
    for outcome, before, after in ((first, 0, 2), (second, 2, 3)):
        assert outcome.before is not None and outcome.after is not None
        assert (thaw(outcome.before)["n"], thaw(outcome.after)["n"]) == (before, after)
        assert outcome.error is outcome.fault is None
    assert first.observation == {"n": 2} and not first.terminated and second.terminated
    assert (first.app, first.action, first.arguments) == ("game", "add", {"by": 2})


def test_an_observation_is_a_value(host: AppHost) -> None:
    seen = host.act("look", {}).observation
    seen["log"].append("mine")
    assert host.act("look", {}).observation["log"] == ["reset"]
    assert host.act("later", {}).observation == "later"


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("add", {"by": 10}, "by is at most 9"),
        ("reject", {}, "not now"),
        (
            "add",
            {"by": "x"},
            "add: by: Input should be a valid integer, unable to parse string as an integer, got 'x'.",
        ),
        ("add", {"bye": 1}, "add: bye is no argument of add (it takes: by)."),
        ("ad", {}, "App 'game' has no action 'ad'; did you mean 'add'?"),
    ],
)
def test_wrong_input_is_rejected_and_the_episode_goes_on(
    name: str, arguments: dict[str, Any], error: str, host: AppHost
) -> None:
    outcome = host.act(name, arguments)
    assert outcome.error == error and outcome.fault is None and outcome.observation is None
    assert outcome.app == "game" and outcome.before == outcome.after and outcome.arguments == arguments
    assert host.act("add", {}).observation == {"n": 1}


@pytest.mark.parametrize("name", ["miss", "deep", "leave", "sneak", "broken"])
def test_anything_else_is_the_apps_fault_and_tells_the_agent_nothing(name: str, host: AppHost) -> None:
    outcome = host.act(name, {})
    assert outcome.fault is not None and outcome.fault.where == "app game"
    assert outcome.error is None and outcome.observation is None


def test_a_state_that_refuses_a_value_is_a_fault_although_it_is_a_value_error(host: AppHost) -> None:
    assert issubclass(ValidationError, ValueError)
    fault = host.act("miss", {}).fault
    assert fault is not None and fault.type == "ValidationError" and fault.at.startswith("test_host.py:")


def test_query_answers_read_only_actions_alone(host: AppHost) -> None:
    host.act("add", {"by": 2})
    assert host.query("game", "look", {}) == {"n": 2, "log": ["reset"]}
    for call, error, message in (
        (
            ("game", "add", {}),
            QueryRefused,
            "query refuses 'add': it can change State. Use a read-only action.",
        ),
        (("game", "lok", {}), UnknownName, "App 'game' has no action 'lok'; did you mean 'look'?"),
        (("gme", "look", {}), UnknownName, "the Environment has no App 'gme'; did you mean 'game'?"),
        (("game", "state", {}), UnknownName, "App 'game' has no action 'state'"),
        (("game", "picky", {"at": 1}), ActionRejected, "no such place"),
        (("game", "picky", {}), ActionRejected, "at is missing"),
        (("game", "broken", {}), AppFault, "KeyError: 'gone'"),
        (("game", "sneak", {}), AppFault, "read-only action 'sneak' changed State"),
    ):
        with pytest.raises(error, match=message.replace(".", r"\.").replace("?", r"\?")):
            host.query(*call)


def test_two_apps_with_one_action_name_are_told_apart() -> None:
    host = opened(game=Game, quiet=Quiet)
    assert host.act("game.add", {}).observation == {"n": 1}
    assert host.act("quiet__add", {}).observation == "added"
    assert host.act("game.look", {}).observation["n"] == 1
    unclear = host.act("add", {})
    assert unclear.app is None and unclear.before is unclear.after is None
    assert unclear.error == "several Apps have an action 'add'; say game.add or quiet.add."
    unknown = host.act("adds", {})
    assert (
        unknown.app is None and unknown.error is not None and "the Environment has no action" in unknown.error
    )


def draws(host: AppHost, name: str) -> list[int]:
    return [host.act(name, {}).observation for _ in range(3)]


def test_a_seed_repeats_each_apps_draws_whatever_the_others_draw() -> None:
    alone = draws(opened(seed=5, game=Game), "roll")
    both = opened(seed=5, game=Game, quiet=Quiet)
    waves = draws(both, "wave")
    assert draws(both, "roll") == alone and waves != alone
    assert draws(opened(seed=5, game=Game, quiet=Quiet), "wave") == waves
    assert draws(opened(seed=6, game=Game), "roll") != alone


def test_arguments_are_kept_as_they_were_sent(host: AppHost) -> None:
    sent = {"by": [1, {"a": 1}]}
    outcome = host.act("add", sent)
    sent["by"].append(2)
    assert outcome.arguments == {"by": [1, {"a": 1}]} and outcome.error is not None


def test_a_saved_world_goes_on_as_it_was(host: AppHost) -> None:
    host.act("add", {})
    host.act("roll", {})
    saved = host.save()
    future = [host.act("roll", {}).observation, host.act("add", {}).observation]
    for _ in range(2):
        host.restore(saved)
        assert [host.act("roll", {}).observation, host.act("add", {}).observation] == future
    host.close()
    host.close()


@pytest.mark.parametrize("watch", [True, False])
def test_a_read_only_action_is_watched_always(watch: bool, host: AppHost) -> None:
    assert host.act("sneak", {}, watch).fault is not None


def test_state_is_taken_anew_after_each_action(host: AppHost) -> None:
    taken: list[Any] = []
    calls: list[Callable[[], Any]] = [
        lambda: host.act("add", {}),
        lambda: host.query("game", "look", {}),
        lambda: host.act("later", {}, False),
        lambda: host.act("add", {}, False),
        lambda: host.snapshots(),
        lambda: host.act("add", {}),
    ]
    for call in calls:
        call()
        taken.append(thaw(host.snapshot("game"))["n"])  # type: ignore[arg-type]
    assert taken == [1, 1, 1, 2, 2, 3]
    last = host.act("look", {})
    assert last.before == last.after == host.snapshot("game")
