"""An Agent is a model, instructions, and a Harness that can play."""

from typing import Any

import pytest

from plural_gym import kinds
from plural_gym.agent import Agent
from plural_gym.errors import DefinitionError, UnknownName
from plural_gym.harness import FunctionHarness


def play(task: Any, seat: Any) -> str:
    return "done"


def other(task: Any, seat: Any) -> str:
    return "other"


def test_a_function_plays_an_agent() -> None:
    agent = Agent(name="keyword", harness=play)
    assert isinstance(agent.driver(), FunctionHarness)
    assert agent.driver() is agent.driver()
    assert (agent.model, agent.instructions, agent.credentials, agent.folder) == (None, "", (), None)


def test_identity_is_how_it_plays() -> None:
    base = Agent(name="a", harness=play)
    assert base.content_hash == Agent(name="b", title="B", version="9.0.0", harness=play).content_hash
    for changed in (
        Agent(name="a", harness=other),
        Agent(name="a", harness=play, model="m"),
        Agent(name="a", harness=play, instructions="Be brief."),
        Agent(name="a", harness=play, settings={"temperature": 0}),
    ):
        assert changed.content_hash != base.content_hash


def test_one_credential_may_be_written_bare() -> None:
    assert Agent(name="a", harness=play, credentials="CRM_KEY").credentials == ("CRM_KEY",)


def test_a_harness_that_cannot_play_is_refused_when_the_agent_is_built() -> None:
    with pytest.raises(DefinitionError, match=r"Agent 'a': 7 is no Harness; give a function \(task, seat\)"):
        Agent(name="a", harness=7)
    with pytest.raises(DefinitionError, match="modle is no field; did you mean 'model'"):
        Agent(name="a", modle="m")  # type: ignore[call-arg]


def test_a_kind_that_is_not_there_is_told_with_those_that_are() -> None:
    agent = Agent(name="a", harness="nativ")
    known = kinds.names("plural.harnesses")
    with pytest.raises(UnknownName, match="there is no harness kind 'nativ'; ") as caught:
        agent.driver()
    assert any(kind in str(caught.value) for kind in known)
