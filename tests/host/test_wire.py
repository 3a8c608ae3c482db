"""What travels between a Job and its workers arrives as it was."""

from typing import Any

from plural_gym.app import App, AppDeclaration, action
from plural_gym.episode import Credit, Episode, HindsightTrial, Usage, recorded_apps
from plural_gym.errors import Fault
from plural_gym.host import wire
from plural_gym.host.hooks import HookSet
from plural_gym.host.host import Outcome
from plural_gym.state import freeze_value, thaw
from plural_gym.step import TaskView
from plural_gym.verifier import total_reward

FAULT = Fault("app a", "KeyError", "'x'", "app.py:3", "Traceback …")
TASK = TaskView("t", "Do.", {"a": 1}, {}, None)


class Desk(App):
    @action
    def read(self) -> str:
        return ""


def test_an_outcome() -> None:
    before, after = freeze_value({"n": 1}), freeze_value({"n": 2})
    sent = Outcome("a", "add", {"by": 1}, {"n": 2}, None, FAULT, before, after, False, True)
    got = wire.outcome_of(wire.outcome_json(sent))
    for name in ("app", "action", "arguments", "observation", "error", "fault", "terminated", "truncated"):
        assert getattr(got, name) == getattr(sent, name)
    assert got.before is not None and got.after is not None
    assert (thaw(got.before), thaw(got.after)) == ({"n": 1}, {"n": 2})
    assert wire.outcome_of(wire.outcome_json(sent, before=False)).before is None
    assert wire.fault_of(wire.fault_json(None)) is None


def test_an_episode_and_a_finished_trial() -> None:
    states: Any = {"a": ("full", freeze_value({"n": 0}), freeze_value({"n": 2})), "b": ("none", None, None)}
    apps = recorded_apps(states)
    episode = Episode(
        TASK, apps, ({"event_id": "s1"},), "seen", "answer", "max_turns", (), Usage(turns=1), None
    )
    data = {
        "states": wire.states_json({name: app.frozen() for name, app in apps.items()}),
        "trajectory": list(episode.trajectory),
        "observation": episode.observation,
        "answer": episode.answer,
        "stop_reason": episode.stop_reason,
        "artifacts": [],
        "usage": {"turns": 1},
        "seat": None,
    }
    got = wire.episode_of(data, TASK, None)
    assert (got.trajectory, got.answer, got.usage) == (episode.trajectory, "answer", Usage(turns=1))
    assert (
        got.apps["a"].final == {"n": 2} and got.apps["b"].initial is None and got.apps["b"].control == "none"
    )
    trial = wire.trial_of({**data, "score": 0.5, "calls": [{"event_id": "x"}]}, TASK)
    assert (
        isinstance(trial, HindsightTrial)
        and trial.score == 0.5
        and trial.credit("x", 1).target == "model_call"
    )
    assert wire.credit_json(Credit("x", 1.0, "step")) == {"event_id": "x", "value": 1.0, "target": "step"}


def test_apps_hooks_and_tasks() -> None:
    (app,) = wire.unpack_apps(
        wire.pack_apps({"desk": AppDeclaration("python", {"class": Desk, "n": 1})})
    ).values()
    assert app.kind == "python" and app.options["n"] == 1 and app.options["class"].read.__name__ == "read"
    hooks = wire.unpack_hooks(wire.pack_hooks(HookSet("v", "1.0.0", total_reward, lambda step: 0.5)))
    assert (hooks.name, hooks.version, hooks.check) == ("v", "1.0.0", None)
    assert hooks.reward is not None and hooks.reward(None) == 0.5
    assert wire.task_view(wire.task_json(TASK)).to_json() == TASK.to_json()
