"""States that are made from one setup over and over."""

import itertools
from typing import Any

import pytest
from pydantic import Field, PrivateAttr, ValidationError, field_validator

from plural_gym import State
from plural_gym.state import maker


class Plain(State):
    name: str = ""
    number: int | bool = 0
    items: list[str] = []
    counts: dict[str, int] = {}

    @field_validator("name")
    @classmethod
    def _short(cls, name: str) -> str:
        if len(name) > 5:
            raise ValueError("too long")
        return name.lower()


def test_a_state_made_again_equals_the_validated_one_and_shares_nothing() -> None:
    make, setup = maker(Plain), {"name": "ANN", "items": ["a"]}
    first, second = make(setup), make(setup)
    assert first == second == Plain(**setup)  # type: ignore[arg-type]
    assert second.model_fields_set == {"name", "items"}
    assert repr(second) == repr(first)
    second.items.append("b")  # type: ignore[attr-defined]
    second.counts["c"] = 1  # type: ignore[attr-defined]
    setup["items"].append("z")  # type: ignore[attr-defined]
    assert make({"name": "ANN", "items": ["a"]}) == first
    assert make(setup).items == ["a", "z"]  # type: ignore[attr-defined]


def test_a_state_made_again_still_validates_assignments() -> None:
    make, setup = maker(Plain), {"name": "ann"}
    make(setup)
    again = make(setup)
    with pytest.raises(ValidationError, match="too long"):
        again.name = "far too long"  # type: ignore[attr-defined]
    with pytest.raises(ValidationError):
        again.unknown = 1  # type: ignore[attr-defined]


def test_setups_that_come_and_go_are_never_mistaken_for_one_another() -> None:
    make = maker(Plain)
    for number in itertools.islice(itertools.cycle((1, True, 0, False)), 400):
        assert type(make({"number": number}).number) is type(number)  # type: ignore[attr-defined]


def test_a_setup_that_does_not_fit_is_refused_every_time() -> None:
    make, setup = maker(Plain), {"nmae": "ann"}
    for _ in range(2):
        with pytest.raises(ValidationError):
            make(setup)


class Counted(State):
    number: int = Field(default_factory=itertools.count().__next__)


class Prepared(State):
    number: int = 0
    _seen: list[int] = PrivateAttr(default_factory=list)

    def model_post_init(self, context: Any) -> None:
        self._seen.append(self.number)


def test_code_that_makes_fields_runs_for_every_state() -> None:
    make, setup = maker(Counted), dict[str, Any]()
    assert [make(setup).number for _ in range(3)] == [0, 1, 2]  # type: ignore[attr-defined]
    prepare = maker(Prepared)
    assert [prepare(setup)._seen for _ in range(2)] == [[0], [0]]  # type: ignore[attr-defined]
