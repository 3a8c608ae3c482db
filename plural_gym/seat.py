"""The seat door: all that a Harness can reach of a live episode, observations and errors.

It holds its Session in closures rather than attributes, so that reward, score and State are not one dot away.
"""

import copy
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import PydanticSerializationError

from plural_gym.agent import Agent
from plural_gym.environment import FINISH
from plural_gym.errors import ActionRejected, EpisodeOver, MachineError, UsageError
from plural_gym.host.session import Session
from plural_gym.records.strict_json import legible
from plural_gym.state import freeze_value, thaw


class SeatedAgent:
    """What a Harness sees of the Agent it plays."""

    __slots__ = ("_name", "instructions", "model", "settings")

    def __init__(self, agent: Agent) -> None:
        self._name = agent.name
        self.model = agent.model
        self.instructions = agent.instructions
        self.settings: Mapping[str, Any] = copy.deepcopy(agent.settings)

    def complete(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Any] | None = None) -> Any:
        """One answer of the Agent's model.

        Raises:
            UsageError: the Agent has no model.
            MachineError: nothing here serves that model.
        """
        if self.model is None:
            raise UsageError(f"Agent {self._name!r} has no model to ask; give it one, or play without.")
        raise MachineError(f"Agent {self._name!r}: nothing here serves the model {self.model!r}.")


class SeatDoor:
    """One Agent's place in a live episode. Used by the Harness's thread; closed by the Trial's.

    What it shows are values: a Harness that changes them changes no record.
    """

    def __init__(self, session: Session, agent: Agent, tools: list[dict[str, Any]], finish: bool) -> None:
        lock = threading.Lock()
        closed = threading.Event()
        self.agent = SeatedAgent(agent)
        self.actions = [*tools, FINISH.tool()] if finish else tools
        shown: list[Any] = [copy.deepcopy(session.opening)]

        def act(name: Any, arguments: dict[str, Any]) -> Any:
            with lock:
                if closed.is_set():
                    raise EpisodeOver(f"the episode is over ({session.stop_reason or 'closed'}).")
                if finish and name == "finish":
                    unknown = [key for key in arguments if key != "answer"]
                    if unknown:
                        raise ActionRejected(f"finish: {unknown[0]} is no argument (it takes: answer).")
                    session.finish(json_answer(arguments.get("answer")))
                    return None
                if isinstance(name, str):
                    outcome = session.act(name, arguments)
                else:
                    said = ascii(name)[:80]
                    outcome = session.reject(said, f"an action is named by a string, got {said}.")
                if outcome.fault is not None:
                    raise EpisodeOver("the action failed, and the episode ends.")
                if outcome.error is not None:
                    shown[0] = {"error": outcome.error}
                    raise ActionRejected(outcome.error)
                shown[0] = copy.deepcopy(outcome.observation)
                return copy.deepcopy(outcome.observation)

        def close() -> None:
            with lock:
                closed.set()

        self._act = act
        self._close = close
        self._shown = shown

        def over() -> bool:
            return closed.is_set() or session.stop_reason is not None

        self._over = over

    @property
    def observation(self) -> Any:
        """The last thing seen: the opening observation, then what each action returned."""
        return self._shown[0]

    @property
    def finished(self) -> bool:
        """Whether the episode is over."""
        return self._over()

    def act(self, name: str, /, **arguments: Any) -> Any:
        """Take one action; returns its observation.

        Raises:
            ActionRejected: the input was not accepted; the episode goes on.
            EpisodeOver: the episode has ended.
        """
        return self._act(name, arguments)

    def view(self) -> Any:
        """What can be seen now."""
        return self._shown[0]

    def close(self) -> None:
        """Take no more actions; waits for one that is under way."""
        self._close()


def json_answer(answer: Any) -> Any:
    """A Harness's answer as a JSON value that nobody else holds; its text where it has no JSON form."""
    try:
        return thaw(freeze_value(answer))
    except (PydanticSerializationError, ValueError):
        return legible(str(answer))
