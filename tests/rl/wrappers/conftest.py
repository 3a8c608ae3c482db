"""A small world for the wrappers: finite actions, text beside, and an App that says what is legal."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import gymnasium as gym
import pytest

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


class Room(State):
    lamp: Literal["off", "red", "blue"] = "off"
    moves: int = 0
    note: str = ""


class House(App):
    """A lamp to switch, a door to leave by."""

    state: Room

    @action
    def switch(self, color: Literal["red", "blue"], bright: bool) -> str:
        """Switch the lamp on in a colour."""
        if self.state.lamp == color:
            raise ValueError(f"the lamp is {color} already")
        self.state.lamp = color
        self.state.moves += 1
        return f"the lamp is {color}" + (" and bright" if bright else "")

    @action
    def off(self) -> str:
        """Switch the lamp off."""
        self.state.lamp = "off"
        self.state.moves += 1
        return "it is dark — Ünïcödé ✓"

    def is_legal(self, action: str, arguments: Mapping[str, Any] | None = None) -> bool:
        if action == "off":
            return self.state.lamp != "off"
        return arguments is None or arguments["color"] != self.state.lamp

    def terminated(self) -> bool:
        return self.state.moves >= 5


class Writing(House):
    """The same with a note, which no list of calls can hold."""

    state: Room

    @action
    def write(self, note: str, times: Literal[1, 2] = 1) -> str:
        """Write a note."""
        self.state.note = note * times
        return note


class Mute(App):
    """Says nothing of what is legal."""

    @action
    def knock(self, times: Literal[1, 2, 3]) -> str:
        """Knock."""
        return "knock " * times


def moved(step: Step) -> float | None:
    if step.error is not None:
        return None
    return float(step.current_state["moves"] - step.previous_state["moves"])


WORLDS = {
    "house": Environment(name="house", apps={"house": House}, limits=Limits(turns=12)),
    "writing": Environment(name="writing", apps={"house": Writing}, limits=Limits(turns=12)),
    "mute": Environment(name="mute", apps={"door": Mute}, limits=Limits(turns=12)),
}
VERIFIER = DeterministicVerifier(name="moved", check=total_reward, reward=moved)


@pytest.fixture
def world() -> Callable[..., Any]:
    """`world("house")`: a GymEnv of one of the worlds above, with a Task."""

    def world(name: str = "house", **options: Any) -> Any:
        environment = WORLDS[name]
        verifiers = (VERIFIER,) if name != "mute" else ()
        options.setdefault("verifiers", verifiers)
        task = Task(
            name="dusk", instructions="Play with the lamp.", environment=environment, verifiers=(VERIFIER,)
        )
        return environment.gym(tasks=[task], **options)

    return world


@pytest.fixture
def desk() -> Callable[..., Any]:
    """The shipped support desk, by its id: an EnvSpec of it can be written as JSON."""

    def desk() -> Any:
        return gym.make("plural_gym:plural/SupportDesk-v0")

    return desk
