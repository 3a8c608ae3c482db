"""Environment: the world as it is declared, and the names its actions answer to."""

from pathlib import Path
from typing import Any

import pytest

from plural_gym.app import App, AppDeclaration, action
from plural_gym.environment import Actions, Environment, Limits, Resource
from plural_gym.errors import DefinitionError, UnknownName


class Desk(App):
    @action
    def read(self) -> str:
        return "desk"

    @action
    def file(self) -> str:
        return "filed"


class Crm(App):
    @action
    def read(self) -> str:
        return "crm"

    def terminated(self) -> bool:
        return True


def test_limits_are_lowered_and_never_raised() -> None:
    limits = Limits(turns=8, seconds=60)
    assert limits.lowered(None) is limits
    assert limits.lowered(Limits(turns=3)) == Limits(turns=3, seconds=60)
    assert limits.lowered(Limits(turns=9, seconds=90, cost_usd=1)) == Limits(turns=8, seconds=60, cost_usd=1)
    assert limits.lowered(Limits(seconds=None)) == limits
    # What one Task lowers is not lowered for the next.
    assert limits == Limits(turns=8, seconds=60)


@pytest.mark.parametrize(
    "fields", [{"turns": 0}, {"seconds": 0}, {"seconds": float("inf")}, {"cost_usd": -1}]
)
def test_limits_are_above_zero(fields: dict[str, Any]) -> None:
    with pytest.raises(DefinitionError, match=next(iter(fields))):
        Limits(**fields)


def test_an_action_answers_to_its_bare_name_where_that_is_unique() -> None:
    actions = Environment(name="e", apps={"desk": Desk, "crm": Crm}).actions
    assert set(actions.table) == {
        "file",
        *(f"desk.{name}" for name in ("read", "file")),
        *(f"desk__{name}" for name in ("read", "file")),
        "crm.read",
        "crm__read",
    }
    assert list(actions.public) == ["desk.read", "file", "crm.read"]
    assert [tool["function"]["name"] for tool in actions.tools()] == ["desk__read", "desk__file", "crm__read"]
    only = Environment(name="e", apps={"desk": Desk}).actions
    assert list(only.public) == ["read", "file"]
    assert [tool["function"]["name"] for tool in only.tools()] == ["read", "file"]


def test_a_name_that_is_no_action_is_explained() -> None:
    two = Environment(name="e", apps={"desk": Desk, "crm": Crm}).actions
    one = Environment(name="e", apps={"desk": Desk}).actions
    assert two.explain_unknown("read") == "several Apps have an action 'read'; say desk.read or crm.read."
    assert two.explain_unknown("fil") == "the Environment has no action 'fil'; did you mean 'file'?"
    assert one.explain_unknown("reed") == "App 'desk' has no action 'reed'; did you mean 'read'?"
    assert Actions({}).explain_unknown("x") == "the Environment has no action 'x'; there are none."


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"apps": [Desk]}, "apps is a mapping from a name to an App class"),
        ({"apps": {"my desk": Desk}}, "App name 'my desk' must be"),
        ({"apps": {"my__desk": Desk}}, "App name 'my__desk' must be"),
        ({"apps": {"desk": Desk()}}, "App 'desk' is .*; give a class derived from App"),
        ({"apps": {"desk": dict}}, "give a class derived from App"),
        ({"resources": ["a/x.md", "b/x.md"]}, "two Resources are named 'x.md'; give one a name"),
        ({"finish": "sometimes"}, "finish"),
        ({"limit": Limits()}, "limit is no field; did you mean 'limits'?"),
    ],
)
def test_a_world_that_cannot_be_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        Environment(name="e", **fields)


def test_apps_are_declared_by_class_or_by_kind() -> None:
    declared = AppDeclaration("python", {"class": Crm})
    environment = Environment(name="e", apps={"desk": Desk, "crm": declared}, runtime="local")
    assert environment.app("desk") == AppDeclaration("python", {"class": Desk})
    assert environment.app("crm") is declared and environment.ends_itself
    assert not Environment(name="e", apps={"desk": Desk}).ends_itself
    with pytest.raises(UnknownName, match=r"Environment 'e' has no App 'dsk'; did you mean 'desk'\?"):
        environment.app("dsk")
    with pytest.raises(TypeError):
        environment.apps["new"] = Desk  # type: ignore[index]


def test_equal_content_is_an_equal_world(tmp_path: Path) -> None:
    one = Environment(name="e", apps={"desk": Desk})
    assert one == Environment(name="e", apps={"desk": Desk}, title="T", version="2.0.0", description="D")
    assert len({one, Environment(name="e", apps={"desk": Desk})}) == 1
    policy = tmp_path / "policy.md"
    policy.write_text("be kind")
    others = [
        Environment(name="e", apps={"desk": Crm}),
        Environment(name="e", apps={"crm": Desk}),
        Environment(name="e", apps={"desk": Desk}, limits=Limits(turns=3)),
        Environment(name="e", apps={"desk": Desk}, finish="never"),
        Environment(name="e", apps={"desk": Desk}, resources=[policy]),
        Environment(name="e", apps={"desk": Desk}, resources=[Resource(path=policy, name="p.md")]),
        Environment(name="e", apps={"desk": Desk}, runtime={"kind": "local", "options": {"a": 1}}),
    ]
    assert all(one.content_hash != other.content_hash for other in others)
    assert len({other.content_hash for other in others}) == len(others)
    assert one != "e"


def test_a_resource_that_is_no_file_is_named(tmp_path: Path) -> None:
    environment = Environment(name="e", resources=[tmp_path / "policy.md"])
    with pytest.raises(DefinitionError, match=r"Environment 'e': resource '.*policy.md' is no file"):
        _ = environment.content_hash


def test_a_step_needs_an_episode() -> None:
    environment = Environment(name="e", apps={"desk": Desk})
    environment.close()
    with pytest.raises(DefinitionError, match="Environment 'e' has no episode yet; call reset"):
        environment.step("read")
    environment.reset(seed=1)
    saved = environment.checkpoint()
    assert environment.step("read")[0]["text"] == "desk"
    assert environment.restore(saved)[0]["turn"] == [0]
    environment.close()
    environment.close()
