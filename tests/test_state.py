"""State: an App's private truth, and State as a value."""

import math
import warnings
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import ValidationError, field_serializer

from plural_gym.state import State, check_setup, freeze_value, freezer, frozen_json, thaw


class Plain(State):
    status: Literal["open", "closed"] = "open"
    count: int = 0
    note: str | None = None
    tags: list[str] = []
    ratings: dict[str, int] = {}


class Deep(State):
    rows: list[dict[str, int]] = [{"n": 1}]
    share: float = 0.5


class Colour(Enum):
    RED = "red"


class Odd(State):
    colour: Colour = Colour.RED
    items: set[int] = {3}
    secret: str = "s"

    @field_serializer("secret")
    def hide(self, value: str) -> str:
        return "*" * len(value)


@pytest.mark.parametrize("state", [Plain(tags=["a"], ratings={"x": 1}), Deep(), Odd()])
def test_a_value_never_changes_with_the_state_it_was_taken_of(state: State) -> None:
    take = freezer(type(state))
    value = take(state)
    before = thaw(value)
    if isinstance(state, Plain):
        state.tags.append("b")
        state.ratings["y"] = 2
        state.count = 9
    elif isinstance(state, Deep):
        state.rows[0]["n"] = 2
        state.rows.append({})
    else:
        state.items.add(4)
    assert thaw(value) == before and take(state) != value
    before_again = thaw(value)
    for field in before_again.values():
        if isinstance(field, list | dict):
            field.clear()
    assert thaw(value) == before


@pytest.mark.parametrize("state_class", [Plain, Deep, Odd])
def test_equal_states_have_equal_values_and_json_says_the_same(state_class: type[State]) -> None:
    take = freezer(state_class)
    assert take(state_class()) == take(state_class())
    value = take(state_class())
    assert thaw(frozen_json(value)) == thaw(value)


def test_values_are_json_whatever_the_fields_are() -> None:
    assert thaw(freezer(Odd)(Odd())) == {"colour": "red", "items": [3], "secret": "*"}
    infinite = thaw(freezer(Deep)(Deep(share=math.inf)))
    assert infinite["share"] == "Infinity"
    assert thaw(freeze_value({"when": (1, 2), "who": Colour.RED})) == {"when": [1, 2], "who": "red"}


def test_a_state_checks_what_is_assigned_and_knows_its_fields() -> None:
    state = Plain()
    with pytest.raises(ValidationError):
        state.status = "lost"  # type: ignore[assignment]
    with pytest.raises(ValidationError):
        state.stauts = "open"  # type: ignore[attr-defined]
    assert state.status == "open"


def test_a_default_list_is_not_shared_between_episodes() -> None:
    first = Plain()
    first.tags.append("mine")
    assert Plain().tags == []


def test_a_setup_is_checked_against_the_fields() -> None:
    assert check_setup(Plain, {"count": 3}).model_dump()["count"] == 3
    for setup in ({"cuont": 3}, {"count": "three"}, {"status": "lost"}):
        with pytest.raises(ValidationError):
            check_setup(Plain, setup)


def test_fields_may_be_named_as_methods_of_the_library_are() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        class Named(State):
            schema: str = "a"  # type: ignore[assignment]
            copy: str = "b"  # type: ignore[assignment]
            json: str = "c"  # type: ignore[assignment]
            model_name: str = "d"

    assert thaw(freezer(Named)(Named())) == {"schema": "a", "copy": "b", "json": "c", "model_name": "d"}


@pytest.mark.parametrize("value", [object(), {"a": [object()]}])
def test_what_has_no_json_form_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        freeze_value(value)
