"""Minari writes and reads data sets of environments of plural_gym; with the real package."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from plural_gym import App, Environment, State, action
from plural_gym.errors import UsageError
from plural_gym.rl.codec import codec_for, observation_space
from plural_gym.rl.spaces import ActionSpace, Utf8Text
from plural_gym.rl.wrappers import BytesObservation, DiscreteActions, JsonAction

pytestmark = [pytest.mark.trainers, pytest.mark.filterwarnings("ignore")]  # of Minari's own

CALLS: list[Any] = [
    "read_ticket",
    {"action": "categorize", "arguments": {"category": "billing"}},
    {"action": "draft_reply", "arguments": {"text": "Wir zahlen 3 € zurück ✓"}},
    "a string",
    {"name": "send_reply"},
    "resolve",
]


@pytest.fixture(autouse=True)
def datasets(trainers: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    trainers("minari", "jax", "h5py", "PIL")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


def desk() -> Any:
    return gym.make("plural_gym:plural/SupportDesk-v0")


def recorded(env: Any, name: str, calls: list[Any]) -> Any:
    import minari

    for seed in range(2):
        env.reset(seed=seed)
        for call in calls:
            env.step(call)
    env.create_dataset(name, algorithm_name="test")
    env.close()
    return minari.load_dataset(name)


@pytest.mark.parametrize("infos", [False, True], ids=["", "infos"])
@pytest.mark.parametrize("form", ["hdf5", "arrow", "parquet"])
def test_calls_as_text_come_back_as_they_were(form: str, infos: bool) -> None:
    import minari

    import plural_gym.rl.integrations.minari  # noqa: F401

    env = minari.DataCollector(JsonAction(desk()), data_format=form, record_infos=infos)
    sent = [call if isinstance(call, str) else json.dumps(call, ensure_ascii=False) for call in CALLS]
    data = recorded(env, "desk/text-v0", sent)
    assert data.total_episodes == 2 and data.action_space == env.env.action_space
    assert data.observation_space == env.env.observation_space
    episode = data[0]
    assert list(episode.actions) == sent
    assert len(episode.observations["text"]) == len(sent) + 1
    assert episode.observations["text"][3] == "draft saved"
    assert episode.observations["turn"].ravel().tolist() == list(range(len(sent) + 1))
    assert episode.rewards.shape == (len(sent),) and episode.terminations.tolist()[-1] is True
    again = data.recover_environment()
    assert again.reset(seed=0)[0]["text"] == episode.observations["text"][0]
    assert again.step(sent[1])[0]["text"] == "filed under billing"


@pytest.mark.parametrize("form", ["hdf5", "arrow"])
def test_actions_in_any_form_are_written_as_text(form: str) -> None:
    from plural_gym.rl.integrations import minari as integration

    env = integration.collector(desk(), data_format=form, record_infos=True)
    element = env.unwrapped.encode("categorize", category="billing")
    calls = ["read_ticket", element, *CALLS[2:4], (np.int64(3), np.int64(0)), 4]
    data = recorded(env, "desk/any-v0", calls)
    assert list(data[0].actions) == [
        "read_ticket",
        '{"action":"categorize","arguments":{"category":"billing"}}',
        '{"action":"draft_reply","arguments":{"text":"Wir zahlen 3 € zurück ✓"}}',
        "a string",
        '{"action":"send_reply","arguments":{}}',
        '{"action":"resolve","arguments":{}}',
    ]
    assert isinstance(data.action_space, Utf8Text)
    assert json.loads(data.action_space.sample())["action"] in env.unwrapped.action_space.names


def test_worlds_without_verifiers_and_ids_are_recorded_too() -> None:
    from plural_gym.rl.integrations import minari as integration

    class Sum(State):
        total: int = 0

    class Adder(App):
        state: Sum

        @action
        def add(self, by: int, note: str | None = None) -> str:
            """Add."""
            self.state.total += by
            return f"é {self.state.total}"

        def is_legal(self, action: str, arguments: Any = None) -> bool:
            return True

        def terminated(self) -> bool:
            return self.state.total > 5

    env = Environment(name="adder", apps={"adder": Adder}).gym()
    data = recorded(
        integration.collector(env, data_format="arrow", record_infos=True),
        "adder/plain-v0",
        [{"action": "add", "arguments": {"by": 3}}, {"action": "add", "arguments": {"by": 4, "note": "x"}}],
    )
    assert data[1].observations["text"] == ["", "é 3", "é 7"]
    assert data[1].infos["action_mask"].tolist() == [[1], [1], [1]]


def test_numbers_and_bytes_need_nothing_of_ours() -> None:
    import minari

    env = minari.DataCollector(
        BytesObservation(DiscreteActions(desk(), ["read_ticket", "resolve"]), 64), data_format="arrow"
    )
    data = recorded(env, "desk/numbers-v0", [0, 1, 0])
    assert data[0].actions.tolist() == [0, 1, 0]
    assert data[0].observations["text"].shape == (4, 64)


SPACES = [
    {"type": "string", "maxLength": 9},
    {"type": "string", "pattern": "^[A-Z]{3}$"},
    {"type": "string", "format": "date"},
    {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 3}, "maxItems": 4},
    {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"anyOf": [{"type": "string"}, {"type": "null"}]},
    {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "number"}}},
    {},
]


@pytest.mark.parametrize("schema", SPACES, ids=str)
def test_spaces_come_back_as_they_were(schema: dict[str, Any]) -> None:
    from minari.serialization import deserialize_space, serialize_space

    import plural_gym.rl.integrations.minari  # noqa: F401

    space = codec_for(schema).space
    for whole in (space, ActionSpace(["one", "two"], [gym.spaces.Discrete(1), space]), observation_space(9)):
        again = deserialize_space(serialize_space(whole))
        assert again == whole
        whole.seed(0)
        again.seed(0)
        assert repr([again.sample() for _ in range(5)]) == repr([whole.sample() for _ in range(5)])
    assert isinstance(serialize_space(space, to_string=False), dict)


def test_texts_of_others_are_read_as_before() -> None:
    from minari.serialization import deserialize_space, serialize_space

    import plural_gym.rl.integrations.minari  # noqa: F401

    space = gym.spaces.Text(5, charset="ab")
    again = deserialize_space(serialize_space(space))
    assert type(again) is gym.spaces.Text and again == space


READS = """
import sys
import minari
data = minari.load_dataset("desk/text-v0")
assert not any(name.startswith("plural_gym") for name in sys.modules)
print(type(data.action_space).__name__, len(data[0].actions), data[0].observations["text"][3])
"""


def test_whoever_lacks_this_package_reads_the_data() -> None:
    import minari

    import plural_gym.rl.integrations.minari  # noqa: F401

    recorded(minari.DataCollector(JsonAction(desk()), data_format="hdf5"), "desk/text-v0", ["resolve"] * 3)
    said = subprocess.run([sys.executable, "-c", READS], capture_output=True, text=True, check=True).stdout
    assert said.startswith("Text 3 ")


def test_actions_that_were_changed_are_refused() -> None:
    from plural_gym.rl.integrations import minari as integration

    with pytest.raises(UsageError, match="collector needs the actions as GymEnv has them"):
        integration.collector(DiscreteActions(desk(), ["resolve"]))
    with pytest.raises(UsageError, match="collector needs a GymEnv inside"):
        integration.collector(gym.make("CartPole-v1"))
