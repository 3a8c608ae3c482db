"""TrialRecorder: what a Session's record looks like on disk, and how small it stays."""

import json
from pathlib import Path
from typing import Any

import pytest

from plural_gym.app import App, AppDeclaration, action
from plural_gym.environment import Limits
from plural_gym.episode import Credit
from plural_gym.errors import Fault
from plural_gym.host.direct import DirectSession
from plural_gym.host.hooks import HookSet, LocalHooks
from plural_gym.host.host import AppHost
from plural_gym.host.recorder import SMALL_STATE, TrialRecorder
from plural_gym.host.session import Session
from plural_gym.records.strict_json import legible
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.state import State
from plural_gym.step import TaskView


class Shelf(State):
    n: int = 0
    texts: list[str] = []
    rows: list[dict[str, int]] = [{"n": row} for row in range(3)]


class Library(App):
    state: Shelf

    @action
    def add(self) -> int:
        self.state.n += 1
        self.state.rows[self.state.n % 3]["n"] += 1
        return self.state.n

    @action(read_only=True)
    def look(self) -> int:
        return self.state.n

    @action
    def fail(self) -> None:
        raise RuntimeError("shelf fell")


class Other(App):
    @action
    def wave(self) -> str:
        return "wave"


@pytest.fixture
def folder(tmp_path: Path) -> TrialFolder:
    made = TrialFolder(tmp_path / "trl_1")
    made.create()
    return made


def recorded(folder: TrialFolder, names: list[str], setup: dict[str, Any], **rewards: Any) -> TrialRecorder:
    recorder = TrialRecorder(
        folder.steps_path, folder.rewards_path, "trl_1", {"v": "1.2.0"}, {"v": "sha256:1"}
    )
    host = AppHost(
        {
            "library": AppDeclaration("python", {"class": Library}),
            "other": AppDeclaration("python", {"class": Other}),
        }
    )
    hooks = LocalHooks([HookSet(name, reward=function) for name, function in rewards.items()])
    session = Session(host, hooks, Limits(turns=5000), recorder)
    session.open(TaskView("t", ""), {"library": setup}, 0, Path("/nowhere"))
    for name in names:
        session.act(name, {})
    return recorder


def test_a_large_state_over_many_steps_stays_small_on_disk(folder: TrialFolder) -> None:
    texts = [f"{number} " + "x" * 990 for number in range(1000)]
    recorded(folder, ["add"] * 1000, {"texts": texts}).close()
    assert 1_000_000 < folder.steps_path.stat().st_size < 5_000_000
    last = None
    for last in folder.steps():  # noqa: B007
        pass
    assert last is not None and last["states"]["library"]["n"] == 1000
    assert last["states"]["library"]["texts"] == texts and last["states_before"]["library"]["n"] == 999
    assert [row["n"] for row in last["states"]["library"]["rows"]] == [333, 335, 335]


def test_every_readable_app_is_recorded_at_every_step(folder: TrialFolder) -> None:
    recorded(folder, ["add", "wave", "look", "lok"], {}).close()
    steps = list(folder.steps())
    assert [step["app"] for step in steps] == ["library", "other", "library", None]
    assert [step["states"]["library"]["n"] for step in steps] == [1, 1, 1, 1]
    assert all(step["states"]["other"] == {} for step in steps)
    lines = [json.loads(line) for line in folder.steps_path.read_text().splitlines()]
    assert [bool(line["state"]) for line in lines] == [True, True, False, False, False]
    assert steps[3]["error"].startswith("the Environment has no action 'lok'")


def test_the_three_states_of_a_reward_are_told_apart(folder: TrialFolder) -> None:
    def varied(step: Any) -> Any:
        return {1: 0.5, 2: None}.get(step.turn, "x")

    recorder = recorded(folder, ["add"] * 3 + ["fail"], {}, v=varied)
    recorder.close()
    rows = list(folder.rewards())
    assert [(row["value"], row["status"]) for row in rows] == [(0.5, "ok"), (None, "none"), (None, "error")]
    assert rows[2]["error_type"] == "GradingFault" and rows[2]["error_at"].startswith("test_recorder.py:")
    assert rows[0]["event_id"] == "trl_1-s1" == recorder.event_id(1) and rows[0]["error_at"] is None
    assert {row["verifier_version"] for row in rows} == {"1.2.0"} and rows[0]["code_sha256"] == "sha256:1"
    assert len({row["reward_id"] for row in rows}) == 3 and [fault.type for fault in recorder.faults] == [
        "GradingFault"
    ]
    last = list(folder.steps())[-1]
    assert "shelf fell" in last["error"] and last["observation"] is None and last["truncated"]


def test_late_credit_names_what_it_credits(folder: TrialFolder) -> None:
    recorder = recorded(folder, ["add"], {})
    (step,) = folder.steps()
    recorder.credited("v", Credit(step["event_id"], 0.7, "step"), step, "hindsight", "live")
    recorder.credited("v", Credit("x1", -1.0, "model_call"), None, "apply", "run-2")
    recorder.failed(
        "v", "hindsight", Fault("verifier v hindsight", "KeyError", "'x'", "verify.py:3"), "hindsight", "live"
    )
    recorder.close()
    step_row, call_row, failed = folder.rewards()
    assert (step_row["value"], step_row["turn"], step_row["action"], step_row["kind"]) == (
        0.7,
        1,
        "add",
        "hindsight",
    )
    assert (call_row["target"], call_row["exchange_id"], call_row["source"]) == ("model_call", "x1", "apply")
    assert (failed["value"], failed["status"], failed["error_at"]) == (None, "error", "verify.py:3")


class Note(State):
    text: str = ""


class Notes(App):
    state: Note

    @action
    def write(self, text: str) -> str:
        self.state.text = text
        return text


def noted(folder: TrialFolder, texts: list[str]) -> list[dict[str, Any]]:
    """The steps of an App that writes texts, recorded on the short way."""
    recorder = TrialRecorder(folder.steps_path, folder.rewards_path, "trl_1", {})
    host = AppHost({"notes": AppDeclaration("python", {"class": Notes})})
    session = DirectSession(host, LocalHooks([HookSet("v", reward=lambda step: 0.1)]), Limits(), recorder)
    session.open(TaskView("t", ""), {}, 0, Path("/nowhere"))
    for text in texts:
        session.act("write", {"text": text})
    recorder.close()
    return list(folder.steps())


def test_a_small_state_is_written_whole_and_a_larger_one_as_its_difference(folder: TrialFolder) -> None:
    long = "x" * 2 * SMALL_STATE
    texts = ["a", "a", long, long + "y", "b"]
    assert [step["states"]["notes"]["text"] for step in noted(folder, texts)] == texts
    lines = [json.loads(line)["state"] for line in folder.steps_path.read_text().splitlines()]
    assert lines[:3] == [{"notes": {"value": {"text": ""}}}, {"notes": {"value": {"text": "a"}}}, {}]
    assert "value" not in lines[4]["notes"] and len(json.dumps(lines[4])) < 100


@pytest.mark.parametrize("text", ['ü \u2028\n"', "%s %b %%", "<hole 5b21c4>", "\ud800"])
def test_any_text_of_an_agent_is_recorded_as_it_was(folder: TrialFolder, text: str) -> None:
    first, second = noted(folder, [text, "next"])
    seen = legible(text)  # of half a surrogate pair the Agent's side shows the escape
    assert (first["arguments"], first["observation"]) == ({"text": seen}, seen)
    assert first["states"]["notes"] == {"text": text} and second["states_before"]["notes"] == {"text": text}
    assert [row["value"] for row in folder.rewards()] == [0.1, 0.1]
