"""Episode and HindsightTrial: a finished attempt, as those who grade it see it."""

import math
from typing import Any

import pytest

from plural_gym.episode import Credit, Episode, HindsightTrial, Usage, recorded_apps
from plural_gym.errors import GradingFault, QueryRefused, UnknownName
from plural_gym.state import freeze_value
from plural_gym.step import TaskView


def apps(*names: str) -> Any:
    return recorded_apps(
        {
            name: ("full", freeze_value({"n": 0}), freeze_value({"n": index}))
            for index, name in enumerate(names, 1)
        }
    )


TASK = TaskView("t", "", {}, {}, "key")
STEPS = (
    {"event_id": "s1", "action": "guess", "error": None},
    {"event_id": "s2", "action": "guess", "error": "no"},
    {"event_id": "s3", "action": "look", "error": None},
)


def test_state_is_the_only_apps_or_one_of_each() -> None:
    assert Episode(TASK, apps("a"), ()).state == {"n": 1}
    assert Episode(TASK, apps("a", "b"), ()).state == {"a": {"n": 1}, "b": {"n": 2}}
    assert Episode(TASK, apps(), ()).state == {}
    assert Episode(TASK, apps(), ()).expected == "key"


def test_first_and_last_state_are_values() -> None:
    episode = Episode(TASK, apps("a"), ())
    app = episode.apps["a"]
    app.initial["n"] = app.final["n"] = episode.state["n"] = 99
    assert (app.initial, app.final, app.control) == ({"n": 0}, {"n": 1}, "full")
    unreadable = recorded_apps({"a": ("none", None, None)})["a"]
    assert unreadable.initial is unreadable.final is None


def test_apps_of_a_record_cannot_be_queried() -> None:
    with pytest.raises(QueryRefused, match="gone in replay"):
        apps("a")["a"].query("look")
    with pytest.raises(UnknownName, match="no App 'b'"):
        apps("a")["b"]
    assert list(apps("a", "b")) == ["a", "b"] and len(apps("a", "b")) == 2


def test_usage_that_nobody_reported_is_unknown() -> None:
    assert Usage().cost_usd is None and Usage().prompt_tokens is None


def test_hindsight_credits_steps_and_model_calls_by_their_id() -> None:
    trial = HindsightTrial(1.0, apps("a"), TASK, STEPS, ({"event_id": "x1"},))
    assert [record["event_id"] for record in trial.steps("guess")] == ["s1", "s2"]
    assert len(trial.steps()) == 3 and trial.model_calls() == [{"event_id": "x1"}]
    assert trial.credit("s2", 1) == Credit("s2", 1.0, "step")
    assert trial.credit("x1", -0.5) == Credit("x1", -0.5, "model_call")
    with pytest.raises(GradingFault, match="no step or model call has the event_id 's9'"):
        trial.credit("s9", 1.0)


@pytest.mark.parametrize("value", [True, math.nan, math.inf, "1", None])
def test_credit_is_a_finite_number(value: Any) -> None:
    trial = HindsightTrial(1.0, apps("a"), TASK, STEPS)
    with pytest.raises(GradingFault, match="is not a finite number"):
        trial.credit("s1", value)
