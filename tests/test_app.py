"""App: what its class tells an Agent, and how wrong input is explained."""

import re
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError
from typing_extensions import TypedDict

from plural_gym.app import App, AppDeclaration, LiveApp, action, explain_rejection, read_actions, settle
from plural_gym.errors import ActionRejected, DefinitionError


class Place(TypedDict):
    row: int
    seat: str


class Desk(App):
    @action
    def file(
        self,
        category: Literal["bug", "billing"],
        urgency: Annotated[int, Field(ge=1, le=3)] = 1,
        place: Place | None = None,
    ) -> str:
        """File the ticket.

        More about it.

        Args:
            category: what it is about,
                in one word.
            urgency (int): 3 is the highest.

        Returns:
            a sentence.
        """
        return category

    @action(read_only=True, timeout_s=2.5)
    def look(self) -> dict[str, str]:
        return {}

    def own(self) -> None:
        """No action."""


class Later(Desk):
    @action
    def close(self) -> None:
        """Close it."""

    look = None  # type: ignore[assignment]


def test_an_action_is_told_by_name_docstring_and_hints() -> None:
    file, look = read_actions(Desk)
    assert (file.name, file.description, file.read_only) == (
        "file",
        "File the ticket.\n\nMore about it.",
        False,
    )
    assert (look.name, look.description, look.read_only, look.timeout_s) == ("look", "", True, 2.5)
    schema = file.parameters
    assert schema["additionalProperties"] is False and schema["required"] == ["category"]
    assert schema["properties"]["category"] == {
        "description": "what it is about, in one word.",
        "enum": ["bug", "billing"],
        "type": "string",
    }
    urgency = {
        "description": "3 is the highest.",
        "default": 1,
        "minimum": 1,
        "maximum": 3,
        "type": "integer",
    }
    assert schema["properties"]["urgency"] == urgency
    assert "title" not in str(schema["properties"])
    assert file.tool("desk__file")["function"]["name"] == "desk__file"


def test_subclasses_add_actions_and_take_them_away() -> None:
    assert [spec.name for spec in read_actions(Later)] == ["file", "close"]


def test_arguments_are_checked_by_the_hints() -> None:
    file, _ = read_actions(Desk)
    assert file.validate({"category": "bug"}) == {"category": "bug"}
    assert file.validate({"category": "bug", "urgency": 2, "place": {"row": 1, "seat": "b"}})
    for wrong, said in (
        ({}, "file: category is missing."),
        ({"category": "bugs"}, "file: category: Input should be 'bug' or 'billing', got 'bugs'."),
        ({"category": "bug", "urgency": 9}, "file: urgency: Input should be less than or equal to 3, got 9."),
        (
            {"category": "bug", "urgent": 1},
            "file: urgent is no argument of file (it takes: category, urgency, place).",
        ),
        ({"category": "bug", "urgency": "x" * 300}, "xxx..."),
    ):
        with pytest.raises(ValidationError) as raised:
            file.validate(wrong)
        message = str(explain_rejection(file, raised.value))
        assert said in message and len(message) < 250


def app_with(method: Any) -> type:
    return type("Made", (App,), {method.__name__: action(method)})


class Machine:
    """A type that JSON does not know."""


def unhinted(self: Any, word) -> None:  # type: ignore[no-untyped-def]
    pass


def unknown(self: Any, word: "Missing") -> None:  # type: ignore[name-defined]  # noqa: F821
    pass


def machine(self: Any, word: Machine) -> None:
    pass


def starred(self: Any, *words: str) -> None:
    pass


def positional(self: Any, word: str, /) -> None:
    pass


def defaulted(self: Any, word: Any = Machine()) -> None:  # noqa: B008
    pass


class Colour(Enum):
    RED = "red"


class Strictly(BaseModel):
    model_config = ConfigDict(strict=True)
    day: date
    tags: set[str]


class Clerk(App):
    @action
    def note(self, given: Any, number: int = 0, colour: Colour = Colour.RED) -> str:
        """Note anything."""
        return str(given)

    @action
    def file(self, sheet: Strictly, day: Annotated[date, Strict()]) -> str:
        """File a sheet."""
        return str(sheet)


def test_arguments_are_read_by_the_rules_of_json() -> None:
    note, file = read_actions(Clerk)
    today = date(2024, 2, 29)
    sheet = {"day": "2024-02-29", "tags": ["a", "b"]}
    read = file.validate({"sheet": sheet, "day": "2024-02-29"})
    assert read == {"sheet": Strictly(day=today, tags={"a", "b"}), "day": today}
    assert file.validate({"sheet": read["sheet"], "day": today}) == read
    assert note.validate({"given": np.array([1, 2]), "number": np.int64(3), "colour": Colour.RED}) == {
        "given": [1, 2],
        "number": 3,
        "colour": Colour.RED,
    }
    with pytest.raises(ValidationError, match="valid integer"):
        note.validate({"given": 1, "number": Colour.RED})


def test_what_an_action_gets_is_its_own() -> None:
    (note, _), sent = read_actions(Clerk), [1]
    note.validate({"given": sent})["given"].append(2)
    assert sent == [1]


def test_what_is_no_json_value_is_rejected() -> None:
    note, _ = read_actions(Clerk)
    endless: list[Any] = []
    endless.append(endless)
    for value, kind in (
        (object(), "object"),
        (endless, "list"),
        ("\ud83d", "str"),
        ({"a": "\ud83d"}, "dict"),
    ):
        said = f"note: given is, or holds, what has no JSON form: a {kind}."
        with pytest.raises(ActionRejected, match=re.escape(said)):
            note.validate({"number": 1, "given": value, "colour": "blue"})


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (unhinted, "Made.unhinted: argument 'word' needs a type hint."),
        (
            unknown,
            "Made.unknown: name 'Missing' is not defined; the type hints of an action must be importable.",
        ),
        (machine, "Made.machine: its arguments have no JSON Schema"),
        (starred, r"Made.starred: arguments are passed by name; \*, \*\* and / cannot be offered."),
        (positional, "cannot be offered"),
        (defaulted, "Made.defaulted: the default of 'word' is not a JSON value."),
    ],
)
def test_an_action_that_cannot_be_offered_is_refused(method: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        read_actions(app_with(method))


def test_the_decorator_marks_methods_only() -> None:
    with pytest.raises(DefinitionError, match="@action marks methods"):
        action(7)  # type: ignore[call-overload]


def test_a_tool_is_its_receivers_own() -> None:
    file, _ = read_actions(Desk)
    file.tool()["function"]["parameters"]["properties"].clear()
    assert file.tool()["function"]["parameters"]["properties"]


def test_the_contract_of_a_kind_asks_for_its_methods() -> None:
    declaration = AppDeclaration("none", {})
    for call in (
        lambda: LiveApp.describe(declaration),
        lambda: LiveApp.check_setup(declaration, {}),
        lambda: LiveApp(declaration),
    ):
        with pytest.raises(NotImplementedError):
            call()


def test_a_function_may_be_async_or_not() -> None:
    async def later() -> int:
        return 3

    class Point(BaseModel):
        x: int = 1

    assert settle(later()) == 3 and settle(4) == 4 and settle(None) is None
    assert settle(Point()) == Point()


def test_an_app_draws_from_its_episodes_seed() -> None:
    one, two = App(), App()
    two._entropy = 1
    assert one.rng is one.rng
    assert App().rng.random() == App().rng.random() != two.rng.random()
    assert (one.reset(None), one.terminated(), one.truncated()) == (None, False, False)  # type: ignore[arg-type]
