"""`check_app`: the shipped worlds keep every rule; for each rule an App or a kind that breaks it."""

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ConfigDict

from plural_gym import board
from plural_gym.app import ActionSpec, App, AppDeclaration, action
from plural_gym.apps.python import PythonApp
from plural_gym.project import Project
from plural_gym.state import State
from plural_gym.testing import apps
from plural_gym.testing.apps import check_app
from plural_gym.testing.conformance import ConformanceError


class Board(State):
    total: int = 0
    rolls: list[int] = []


class Dice(App):
    """An App that keeps every rule."""

    state: Board

    @action(read_only=True)
    def peek(self) -> int:
        return self.state.total

    @action
    def roll(self, sides: int = 6) -> int:
        if not 2 <= sides <= 100:
            raise ValueError("a die has 2 to 100 sides")
        number = int(self.rng.integers(1, sides + 1))
        self.state.rolls.append(number)
        self.state.total += number
        return number

    @action
    def call(self, word: str) -> str:
        return word

    def terminated(self) -> bool:
        return self.state.total > 500


class Loose(Board):
    model_config = ConfigDict(extra="allow")


class TakesAnySetup(Dice):
    state: Loose  # type: ignore[assignment]


class NeverOpens(Dice):
    def reset(self, task: Any) -> Any:
        raise KeyError("board")


class Fails(Dice):
    @action
    def call(self, word: str) -> str:
        return {"": "silence"}[word]


class AnswersNoJson(Dice):
    @action
    def call(self, word: str) -> Any:
        return object()


class OtherDice(Dice):
    @action
    def call(self, word: str) -> str:
        return f"{word} {random.random()}"


class SharedDice(Dice):
    """Seeds the module's generator: right alone, wrong beside another."""

    def reset(self, task: Any) -> Any:
        random.seed(self._entropy)

    @action
    def call(self, word: str) -> str:
        return f"{word} {random.random()}"


class OnTheClass(Dice):
    called: list[str] = []

    @action
    def call(self, word: str) -> str:
        self.called.append(word)
        return f"call {len(self.called)}"


class PeeksHard(Dice):
    @action(read_only=True)
    def peek(self) -> int:
        self.state.total += 1
        return self.state.total


class EndsByAsking(Dice):
    def terminated(self) -> bool:
        self.state.total += 1
        return False


class EndlessDice(Dice):
    asked = 0

    def terminated(self) -> bool:
        self.asked += 1
        return self.asked % 2 == 0


class WritesItsBoard(Dice):
    def board(self) -> Any:
        return "a text"


class CountsLooks(Dice):
    def board(self) -> Any:
        self.state.total += 1
        return board.Board([[self.state.total]])


class RollsOnTheBoard(Dice):
    def board(self) -> Any:
        return board.Board([[int(self.rng.integers(6))]], tiles=True)


class ForgetsNone(Dice):
    def is_legal(self, action: str, arguments: Any = None) -> bool:
        return len(arguments) < 9


class CountsQuestions(Dice):
    def is_legal(self, action: str, arguments: Any = None) -> bool:
        self.state.total += 1
        return True


class Wavers(Dice):
    asked = 0

    def is_legal(self, action: str, arguments: Any = None) -> bool:
        self.asked += 1
        return self.asked % 2 == 0


class Twice(PythonApp):
    @classmethod
    def describe(cls, declaration: AppDeclaration) -> tuple[ActionSpec, ...]:
        return PythonApp.describe(declaration) * 2


class NoSpecs(PythonApp):
    @classmethod
    def describe(cls, declaration: AppDeclaration) -> tuple[ActionSpec, ...]:
        return ({"name": "roll"},)  # type: ignore[return-value]


class Undescribed(PythonApp):
    @classmethod
    def describe(cls, declaration: AppDeclaration) -> tuple[ActionSpec, ...]:
        raise ConnectionError("no server")


class ListSchemas(PythonApp):
    @classmethod
    def describe(cls, declaration: AppDeclaration) -> tuple[ActionSpec, ...]:
        return tuple(replace(spec, parameters={"type": "array"}) for spec in PythonApp.describe(declaration))


class RefusesSetup(PythonApp):
    @classmethod
    def check_setup(cls, declaration: AppDeclaration, setup: Mapping[str, Any]) -> None:
        raise TypeError("no setup here")


class RefusesWrongly(PythonApp):
    @classmethod
    def check_setup(cls, declaration: AppDeclaration, setup: Mapping[str, Any]) -> None:
        if setup:
            raise KeyError(next(iter(setup)))


class Remembers(PythonApp):
    def open(self, task: Any, setup: Any, entropy: int, resources: Path) -> Any:
        before = getattr(self, "app", None)
        super().open(task, setup, entropy, resources)
        if before is not None:
            self.app.state = before.state  # type: ignore[attr-defined]


class LiveState(PythonApp):
    def snapshot(self) -> Any:
        return (dict, self.app.state.__dict__)  # type: ignore[attr-defined]


class NoValue(PythonApp):
    def snapshot(self) -> Any:
        return "a State"


class SaysNone(PythonApp):
    control = "none"


class SaysEndless(PythonApp):
    def __init__(self, declaration: AppDeclaration) -> None:
        super().__init__(declaration)
        self.ends = False


class TakesAnything(PythonApp):
    @classmethod
    def describe(cls, declaration: AppDeclaration) -> tuple[ActionSpec, ...]:
        return tuple(replace(spec, validate=dict) for spec in PythonApp.describe(declaration))

    def act(self, spec: ActionSpec, arguments: Mapping[str, Any], seat: str | None) -> Any:
        return "done" if spec.name == "peek" else super().act(spec, arguments, seat)


class SavesNoGenerator(PythonApp):
    def save(self) -> Any:
        return {key: value for key, value in super().save().items() if key != "_rng"}


class SavesNoCopy(PythonApp):
    def save(self) -> Any:
        return dict(self.app.__dict__)

    def restore(self, saved: Any) -> None:
        self.app.__dict__.update(saved)


class ClosesOnce(PythonApp):
    closed = False

    def close(self) -> None:
        if self.closed:
            raise OSError("closed already")
        self.closed = True


def of_kind(kind: type, app: type[App] = Dice) -> AppDeclaration:
    return AppDeclaration(f"{__name__}:{kind.__name__}", {"class": app})


BROKEN: list[tuple[str, Any, str]] = [
    ("DESCRIBES_ITSELF", of_kind(Twice), r"the names \['peek', 'roll', 'call', 'peek'"),
    ("DESCRIBES_ITSELF", of_kind(NoSpecs), "is no ActionSpec"),
    ("DESCRIBES_ITSELF", of_kind(Undescribed), "raised ConnectionError: no server"),
    ("SCHEMAS_ARE_OBJECTS", of_kind(ListSchemas), "action 'peek': its type is 'array'"),
    ("SETUP_IS_CHECKED", TakesAnySetup, "the unknown field 'no_such_name' was taken"),
    ("SETUP_IS_CHECKED", of_kind(RefusesSetup), "raised TypeError: no setup here"),
    ("SETUP_IS_CHECKED", of_kind(RefusesWrongly), "an unknown field raised KeyError"),
    ("OPENS", NeverOpens, "KeyError: 'board'"),
    ("ANSWERS", Fails, r"call\(word='.+'\) failed: app app: KeyError"),
    ("ANSWERS", AnswersNoJson, "PydanticSerializationError"),
    ("SAME_SEED_SAME_COURSE", OtherDice, "with seed 0, event"),
    ("SAME_SEED_SAME_COURSE", SharedDice, "with seed 0, event"),
    ("SAME_SEED_SAME_COURSE", OnTheClass, "with seed 0, event"),
    ("OPEN_FORGETS", of_kind(Remembers), "opened again with seed 0, event 0"),
    ("READ_ONLY_LEAVES_STATE", PeeksHard, r"peek\(\) made"),
    ("READING_LEAVES_STATE", EndsByAsking, "after reset"),
    ("READING_LEAVES_STATE", EndlessDice, r"after reset: \(False, False\) then \(True, False\)"),
    ("BOARD_CHANGES_NOTHING", WritesItsBoard, "raised TypeError: .*gave 'a text'; return a Board"),
    ("BOARD_CHANGES_NOTHING", CountsLooks, "after reset it made"),
    ("BOARD_CHANGES_NOTHING", RollsOnTheBoard, "with seed 0 and nobody looking, event"),
    ("LEGAL_CHANGES_NOTHING", ForgetsNone, r"is_legal\(\) after reset raised AppFault: .*TypeError"),
    ("LEGAL_CHANGES_NOTHING", CountsQuestions, "after reset: .*State"),
    ("LEGAL_CHANGES_NOTHING", Wavers, r"after reset: \[False, True"),
    ("STATE_IS_A_VALUE", of_kind(LiveState), "became"),
    ("STATE_IS_A_VALUE", of_kind(NoValue), "reading what snapshot"),
    ("CONTROL_IS_TRUE", of_kind(SaysNone), r"control is 'none' and snapshot\(\) is a value"),
    ("ENDS_ARE_TRUE", of_kind(SaysEndless), r"it is terminated after roll\("),
    ("WRONG_ARGUMENTS_CHANGE_NOTHING", of_kind(TakesAnything), "peek with .* was taken; it answered 'done'"),
    ("RESTORE_BRINGS_BACK", of_kind(SavesNoGenerator), "restored in the same App, event"),
    ("RESTORE_BRINGS_BACK", of_kind(SavesNoCopy), "came back as"),
    ("CLOSES_TWICE", of_kind(ClosesOnce), "the second close.* raised OSError"),
]


@pytest.mark.parametrize(("rule", "app", "seen"), BROKEN)
def test_what_breaks_a_rule_is_caught(rule: str, app: Any, seen: str) -> None:
    calls = [("roll", {"sides": 100})] * 20
    with pytest.raises(ConformanceError, match=seen) as raised:
        check_app(app, calls=calls)
    assert raised.value.rule is getattr(apps, rule)


def test_every_rule_is_broken_once(rules_of: Any) -> None:
    assert rules_of(apps) == {rule for rule, _, _ in BROKEN}


def test_an_app_that_keeps_the_rules() -> None:
    check_app(Dice, setup={"total": 480}, calls=[("roll", {"sides": 100}), ("nothing", {}), ("roll", {})])


def test_an_app_without_actions_and_one_that_cannot_be_saved() -> None:
    class Bare(App):
        pass

    class Held(Dice):
        def reset(self, task: Any) -> None:
            self.held = (part for part in "abc")

    check_app(Bare)
    check_app(Held)


def test_the_shipped_worlds(project: Project) -> None:
    solved = [("guess", {"word": "slate"}), ("guess", {"word": "xxxxx"}), ("guess", {"word": "crane"})]
    check_app(project.environments["wordle"].app("game"), setup={"secret": "crane"}, calls=solved)
    desk = project.environments["support-desk"].app("desk")
    way = ["draft_reply", "categorize", "draft_reply", "send_reply", "read_ticket", "resolve"]
    given: dict[str, dict[str, Any]] = {
        "categorize": {"category": "billing"},
        "draft_reply": {"text": "Sorry."},
    }
    check_app(desk, calls=[(name, given.get(name, {})) for name in way])
