"""Several seats share one world: whose turn it is, who is out, who earns what."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from plural_gym.app import App, action
from plural_gym.environment import Environment, Limits
from plural_gym.errors import AppFault, DefinitionError, EpisodeOver, UsageError
from plural_gym.host.client import RemoteHooks, RemoteHost
from plural_gym.host.hooks import HookSet, LocalHooks
from plural_gym.host.host import AppHost
from plural_gym.host.party import PartySession
from plural_gym.party import Party, Split
from plural_gym.runtimes.local import LocalRuntime
from plural_gym.state import State
from plural_gym.step import Step, TaskView


class Pot(State):
    stones: int = 6
    turn: str = "north"
    out: list[str] = []
    secret: dict[str, int] = {"north": 1, "east": 2, "south": 3}


class Stones(App):
    """Who takes too many stones is out; who takes the last one ends the game."""

    state: Pot

    def _next(self) -> None:
        seats = ["north", "east", "south"]
        left = [seat for seat in seats if seat not in self.state.out]
        after = [seat for seat in left if seats.index(seat) > seats.index(self.state.turn)]
        self.state.turn = (after or left)[0]

    @action
    def take(self, count: int) -> str:
        """Take stones."""
        assert self.seat is not None
        if count < 1:
            raise ValueError("take at least one")
        if count > 3:
            self.state.out = [*self.state.out, self.seat]
            self._next()
            return "too many: you are out"
        self.state.stones = max(self.state.stones - count, 0)
        self._next()
        return f"{self.state.stones} left"

    def turn(self) -> str:
        return self.state.turn

    def view(self, seat: str) -> Any:
        return {"stones": self.state.stones, "your secret": self.state.secret[seat]}

    def eliminated(self) -> Collection[str]:
        return self.state.out

    def terminated(self) -> bool:
        return self.state.stones == 0 or len(self.state.out) == 2


class Polite(Stones):
    """As Stones, and a seat may leave."""

    def forfeit(self, seat: str) -> None:
        self.state.out = [*self.state.out, seat]
        self._next()


class Bids(State):
    made: dict[str, int] = {}


class Auction(App):
    """Sealed bids of both seats at the same time."""

    state: Bids

    @action
    def bid(self, amount: int) -> str:
        """Bid once."""
        assert self.seat is not None
        self.state.made = {**self.state.made, self.seat: amount}
        return "noted"

    def turn(self) -> list[str]:
        return [seat for seat in ("left", "right") if seat not in self.state.made]

    def terminated(self) -> bool:
        return len(self.state.made) == 2


THREE = Party(seats=("north", "east", "south"))
TWO = Party(seats=("left", "right"))


def one_each(step: Step) -> Any:
    """The taker earns what it took; a mapping where everybody does."""
    if step.error is not None:
        return None
    count = step.arguments["count"]
    return count if count < 3 else {"north": 1.0, "south": -1.0}


def session(
    app: type[App] = Stones, party: Party = THREE, limits: Limits | None = None, reward: Any = one_each
) -> PartySession:
    environment = Environment(name="stones", apps={"pot": app}, party=party)
    host = AppHost(environment.declarations, environment.actions, seats=party.names)
    hooks = LocalHooks((HookSet("taken", reward=reward),), seats=party.names)
    made = PartySession(host, hooks, limits or Limits(), party)
    made.open(TaskView("t", ""), {}, 0, Path("."))
    return made


def test_the_app_says_who_moves_and_nobody_else_can() -> None:
    game = session()
    assert game.movers == ("north",)
    with pytest.raises(UsageError, match="not the turn of seat 'south'; it is that of: north"):
        game.act("take", {"count": 1}, "south")
    outcome = game.act("take", {"count": 1}, "north")
    assert (outcome.seat, outcome.observation, game.movers) == ("north", "5 left", ("east",))
    assert game.turns == {"north": 1, "east": 0, "south": 0}


def test_each_seat_sees_its_own_view() -> None:
    game = session()
    assert game.view("east") == {"stones": 6, "your secret": 2}


def test_a_seat_that_is_out_acts_no_more_while_the_others_go_on() -> None:
    game = session()
    game.act("take", {"count": 9}, "north")
    assert (game.out, game.movers, game.stop_reason) == (("north",), ("east",), None)
    game.act("take", {"count": 1}, "east")
    game.act("take", {"count": 1}, "south")
    assert game.movers == ("east",)


def test_a_rejected_move_leaves_the_turn_where_it_is() -> None:
    game = session()
    assert game.act("take", {"count": 0}, "north").error == "take at least one"
    assert game.reject("tke", "no such action", seat="north").seat == "north"
    assert (game.movers, game.turns["north"]) == (("north",), 2)
    assert game.view("north") == {"stones": 6, "your secret": 1}


def test_a_number_rewards_the_acting_seat_and_a_mapping_every_seat_it_names() -> None:
    game = session()
    game.act("take", {"count": 2}, "north")
    outcome = game.act("take", {"count": 3}, "east")
    assert isinstance(outcome.rewards[0][0], Split)
    assert game.own_rewards("taken", "north") == [2.0, 1.0]
    assert game.own_rewards("taken", "east") == []
    assert game.own_rewards("taken", "south") == [-1.0]


def test_a_reward_for_a_seat_that_does_not_exist_is_a_fault() -> None:
    game = session(reward=lambda step: {"noth": 1.0})
    ((value, fault),) = game.act("take", {"count": 2}, "north").rewards
    assert value is None and fault is not None and "did you mean 'north'?" in fault.message


def test_seats_that_move_at_the_same_time_act_in_any_order() -> None:
    game = session(Auction, TWO, reward=lambda step: None)
    assert game.movers == ("left", "right")
    game.act("bid", {"amount": 3}, "right")
    assert game.movers == ("left",)
    game.act("bid", {"amount": 4}, "left")
    assert (game.stop_reason, game.movers) == ("environment_terminated", ())
    with pytest.raises(EpisodeOver):
        game.act("bid", {"amount": 5}, "left")


def test_a_seat_has_a_turn_limit_of_its_own() -> None:
    game = session(limits=Limits(seat_turns=1))
    for seat in ("north", "east", "south"):
        assert game.stop_reason is None
        game.act("take", {"count": 1}, seat)
    assert (game.stop_reason, game.truncated) == ("max_turns", True)


def test_a_seat_that_was_left_is_forfeited_when_its_turn_comes() -> None:
    game = session(Polite)
    game.leave("east", "no idea")
    assert game.movers == ("north",)
    game.act("take", {"count": 1}, "north")
    assert (game.movers, game.out, game.stop_reason) == (("south",), ("east",), None)
    assert game.seat_episode("east").answer == "no idea"


def test_an_app_that_cannot_go_on_without_a_seat_ends_there() -> None:
    game = session(Stones)
    game.leave("north")
    assert (game.stop_reason, game.truncated) == ("seat_left", True)


def test_the_last_seats_forfeit_ends_the_game_as_the_app_says() -> None:
    game = session(Polite)
    game.leave("north")
    game.leave("east")
    assert (game.stop_reason, game.terminated) == ("environment_terminated", True)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("noth", "turn: there is no seat 'noth'; did you mean 'north'?"),
        ((), "turn names no seat, and the episode is not over"),
        (5, "turn: 5 names no seat"),
        ("south", "turn names seat 'south', which is out"),
    ],
)
def test_an_app_that_names_no_seat_that_can_act_is_at_fault(said: Any, message: str) -> None:
    class Wrong(Stones):
        def turn(self) -> Any:
            return said if self.state.stones < 6 else "north"

        def eliminated(self) -> Any:
            return ["south"]

    game = session(Wrong)
    outcome = game.act("take", {"count": 1}, "north")
    assert outcome.fault is not None and message in outcome.fault.message
    assert (game.stop_reason, game.observation) == ("error", None)

    class WrongAtOnce(Wrong):
        def turn(self) -> Any:
            return said

    with pytest.raises(AppFault, match="app pot"):
        session(WrongAtOnce)


def test_an_episode_is_put_back_with_its_seats() -> None:
    game = session()
    game.act("take", {"count": 9}, "north")
    apps, kept = game.host.save(), game.save()  # type: ignore[attr-defined]
    game.act("take", {"count": 1}, "east")
    game.host.restore(apps)  # type: ignore[attr-defined]
    game.load(kept)
    assert (game.movers, game.out, game.turns["east"]) == (("east",), ("north",), 0)


def test_the_apps_of_a_party_play_in_a_worker_just_so(tmp_path: Path) -> None:
    environment = Environment(name="stones", apps={"pot": Polite}, party=THREE)
    runtime = LocalRuntime({})
    try:
        host = RemoteHost(
            runtime.open("apps", tmp_path / "log"), environment.declarations, environment.actions, THREE.names
        )
        hooks = RemoteHooks(
            lambda: runtime.open("hooks", tmp_path / "log"),
            [HookSet("taken", reward=one_each)],
            {},
            TaskView("t", ""),
            ["pot"],
            THREE.names,
        )
        game = PartySession(host, hooks, Limits(), THREE)
        game.open(TaskView("t", ""), {}, 0, tmp_path)
        assert (game.movers, game.view("south")) == (("north",), {"stones": 6, "your secret": 3})
        game.act("take", {"count": 3}, "north")
        assert game.own_rewards("taken", "south") == [-1.0]
        game.leave("east")
        assert (game.movers, game.out) == (("south",), ("east",))
        assert game.act("take", {"count": 3}, "south").terminated
        hooks.close()
        host.close()
    finally:
        runtime.close()


@pytest.mark.parametrize(
    ("seats", "message"),
    [
        (("north", "north"), "two seats are named 'north'"),
        (("north",), "at least 2"),
        (("north", "so uth"), "letters, digits"),
    ],
)
def test_a_party_that_cannot_be_told_apart_is_refused(seats: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        Environment(name="stones", apps={"pot": Stones}, party=seats)
    with pytest.raises(DefinitionError, match="needs an App"):
        Environment(name="stones", party=("north", "south"))


def test_seats_are_part_of_what_an_environment_is() -> None:
    one = Environment(name="stones", apps={"pot": Stones}, party=("a", "b"))
    two = Environment(name="stones", apps={"pot": Stones}, party=("a", {"name": "b", "role": "dealer"}))
    assert one != two and two.party is not None and two.party.role("b") == "dealer"
