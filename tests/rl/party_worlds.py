"""Small worlds with seats: turns with elimination, and moves at the same time."""

from collections.abc import Collection
from typing import Annotated, Any

from pydantic import Field

from plural_gym.app import App, action
from plural_gym.environment import Environment, Limits
from plural_gym.episode import Episode
from plural_gym.state import State
from plural_gym.step import Step
from plural_gym.task import Task
from plural_gym.verifier import VerifierOutput
from plural_gym.verifiers.deterministic import DeterministicVerifier


class Ring(State):
    seats: list[str] = []
    stones: int = 12
    turn: str = ""
    out: list[str] = []
    secrets: dict[str, int] = {}
    last: str = ""


class Stones(App):
    """Take one to three stones; who takes too many is out; who takes the last one wins."""

    state: Ring

    def reset(self, task: Any) -> str:
        self.state.seats = list(task.info.get("seats", ["seat_0", "seat_1"]))
        self.state.turn = self.state.seats[0]
        self.state.secrets = {seat: int(self.rng.integers(1000, 10_000)) for seat in self.state.seats}
        return f"{self.state.stones} stones"

    def _next(self) -> None:
        seats = self.state.seats
        start = seats.index(self.state.turn)
        order = [seats[(start + step) % len(seats)] for step in range(1, len(seats) + 1)]
        self.state.turn = next(seat for seat in order if seat not in self.state.out)

    @action
    def take(self, count: int) -> str:
        """Take stones."""
        assert self.seat is not None
        if not 1 <= count <= 6:
            raise ValueError(f"take 1 to 6 stones, not {count}")
        if count > 3:
            self.state.out = [*self.state.out, self.seat]
            self._next()
            return "too many: you are out"
        self.state.stones = max(self.state.stones - count, 0)
        self.state.last = self.seat
        self._next()
        return f"{self.state.stones} left"

    @action
    def wait(self) -> str:
        """Take none."""
        self._next()
        return "you waited"

    def turn(self) -> str:
        return self.state.turn

    def view(self, seat: str) -> Any:
        return {"stones": self.state.stones, "secret": self.state.secrets[seat]}

    def eliminated(self) -> Collection[str]:
        return self.state.out

    def terminated(self) -> bool:
        return self.state.stones == 0 or len(self.state.out) >= len(self.state.seats) - 1


class Bids(State):
    made: dict[str, int] = {}
    round: int = 0
    won: dict[str, int] = {}


class Auction(App):
    """Three rounds of sealed bids."""

    state: Bids

    @action
    def bid(self, amount: Annotated[int, Field(ge=0, le=10)]) -> str:
        """Bid in this round."""
        assert self.seat is not None
        self.state.made = {**self.state.made, self.seat: amount}
        if len(self.state.made) == 2:
            high = max(self.state.made, key=lambda seat: (self.state.made[seat], seat))
            self.state.won = {**self.state.won, high: self.state.won.get(high, 0) + 1}
            self.state.made = {}
            self.state.round += 1
        return "noted"

    def turn(self) -> list[str]:
        return [seat for seat in ("left", "right") if seat not in self.state.made]

    def view(self, seat: str) -> Any:
        return {"round": self.state.round, "won": self.state.won}

    def terminated(self) -> bool:
        return self.state.round == 3


def taken(step: Step) -> Any:
    if step.error is not None:
        return -0.5
    return float(step.arguments.get("count", 0)) / 10


def last_one(episode: Episode) -> VerifierOutput:
    final = episode.apps["pot"].final
    return VerifierOutput(score=float(final["last"] == episode.seat))


def zero_sum(step: Step) -> Any:
    before, after = step.previous_state["won"], step.current_state["won"]
    if before == after:
        return None
    return {seat: 1.0 if after.get(seat, 0) > before.get(seat, 0) else -1.0 for seat in ("left", "right")}


def stones(count: int = 2, turns: int = 60) -> tuple[Environment, list[Task]]:
    """A ring of so many seats, and its Task."""
    seats = [f"seat_{number}" for number in range(count)]
    environment = Environment(
        name="stones", apps={"pot": Stones}, party=tuple(seats), limits=Limits(turns=turns), finish="never"
    )
    verifier = DeterministicVerifier(name="taken", reward=taken, check=last_one)
    task = Task(
        name="ring",
        instructions="Take the last stone.",
        environment=environment,
        info={"seats": seats},
        verifiers=[verifier],
    )
    return environment, [task]


def auction() -> Environment:
    """Two seats that bid at the same time."""
    return Environment(
        name="auction", apps={"house": Auction}, party=("left", "right"), limits=Limits(turns=60)
    )
