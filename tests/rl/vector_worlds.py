"""Worlds for the tests of the vector environment: everything that a step can come to, and how to compare."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from plural_gym import (
    App,
    DeterministicVerifier,
    Environment,
    Limits,
    State,
    Step,
    Task,
    action,
    total_reward,
)


class Pantry(State):
    stock: int = 3
    kind: Literal["sweet", "sour"] = "sweet"
    broken: bool = False


class Kitchen(App):
    """Takes, refuses, draws, fails and ends."""

    state: Pantry

    def reset(self, task: Any) -> str | None:
        if self.state.broken:
            raise RuntimeError("the oven is broken")
        return None if self.state.stock < 9 else f"{self.state.stock} jars"

    @action
    def eat(self, kind: Literal["sweet", "sour"], much: int) -> str:
        """Eat."""
        if much < 1 or much > 4:
            raise ValueError(f"{much} is no meal")
        if kind != self.state.kind:
            self.state.kind = kind
        self.state.stock -= much
        return f"{self.state.stock} left"

    @action
    def draw(self) -> int:
        """Draw a number."""
        drawn = int(self.rng.integers(1_000_000))
        self.state.stock += drawn % 2
        return drawn

    @action
    def burn(self) -> str:
        """Fail."""
        raise KeyError("smoke")

    @action(read_only=True)
    def look(self) -> dict[str, Any]:
        """Look."""
        return {"stock": self.state.stock}

    def terminated(self) -> bool:
        return self.state.stock <= 0


class Careful(Kitchen):
    """A kitchen that says what is legal."""

    def is_legal(self, action: str, arguments: Mapping[str, Any] | None = None) -> bool:
        return action != "draw" or self.state.stock % 2 == 0


def eaten(step: Step) -> float | None:
    before, after = step.previous_state["stock"], step.current_state["stock"]
    if step.error:
        return -0.5
    if after == 7:
        raise LookupError("seven")
    return None if after > before else (before - after) / 4


def thrift(step: Step) -> float | None:
    return 0.25 if step.action == "look" else None


EATEN = DeterministicVerifier(name="eaten", check=total_reward, reward=eaten)
THRIFT = DeterministicVerifier(name="thrift", check=total_reward, reward=thrift)


def world(kitchen: type[App] = Kitchen) -> Environment:
    return Environment(name="kitchen", apps={"kitchen": kitchen}, limits=Limits(turns=7))


def tasks(environment: Environment, *verifiers: tuple[DeterministicVerifier, ...]) -> list[Task]:
    """Tasks that begin differently; those in turn that are graded so."""
    graded = verifiers or ((EATEN,),)
    return [
        Task(
            name=f"meal-{stock}",
            instructions=f"Eat {stock}.",
            environment=environment,
            setup={"kitchen": {"stock": stock}},
            verifiers=graded[stock % len(graded)],
        )
        for stock in range(2, 14)
    ]


def same(ours: Any, theirs: Any, place: str = "") -> None:
    """Hold two answers against each other, to the last bit and type."""
    assert type(ours) is type(theirs), place
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys(), place
        for key in ours:
            same(ours[key], theirs[key], f"{place}/{key}")
    elif isinstance(ours, np.ndarray):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), place
        if ours.dtype == object:
            for index, pair in enumerate(zip(ours, theirs, strict=True)):
                same(*pair, f"{place}[{index}]")
        else:
            assert ours.tobytes() == theirs.tobytes(), (place, ours, theirs)
    elif isinstance(ours, tuple | list):
        assert len(ours) == len(theirs), place
        for index, pair in enumerate(zip(ours, theirs, strict=True)):
            same(*pair, f"{place}[{index}]")
    else:
        assert ours == theirs, (place, ours, theirs)
