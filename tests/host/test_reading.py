"""What can be told of a reward function's code: never less than what it reads."""

import functools
from typing import Any

import pytest

from plural_gym.environment import Environment, Limits
from plural_gym.host.direct import DirectSession
from plural_gym.host.hooks import HookSet, LocalHooks
from plural_gym.host.host import AppHost
from plural_gym.host.reading import attributes_read
from plural_gym.host.resources import NO_RESOURCES
from plural_gym.step import Step, TaskView

from .test_direct import Library

seen: list[Any] = []


def plain(step: Step) -> float:
    if step.error is not None:
        return 0.0
    return float(len(step.current_state["books"]))


def method(step: Step) -> float:
    return float(step.observation.startswith("x"))


async def later(step: Step) -> int:
    return step.turn


def grown(step: Step) -> int:
    return len(step.current_state["books"]) - len(step.previous_state["books"])


def helped(step: Step) -> int:
    return grown(step)


def kept(step: Step) -> None:
    seen.append(step)


def renamed(step: Step) -> None:
    other = step
    seen.append(other.current_state)


def inside(step: Step) -> int:
    return sum(len(step.current_state["books"]) for _ in range(2))


def lambda_inside(step: Step) -> Any:
    return (lambda: step.current_state)()


def by_name(step: Step) -> Any:
    return getattr(step, "previous_state")  # noqa: B009


def hidden(step: Step) -> Any:
    return locals()["step"]


def assigned(step: Step) -> int:
    step = seen[0]
    return step.turn


def with_rest(step: Step, *rest: Any) -> int:
    return step.turn


def written_to(step: Step) -> None:
    step.error = None


class Called:
    def __call__(self, step: Step) -> int:
        return step.turn


@pytest.mark.parametrize(
    ("function", "read"),
    [
        (plain, {"error", "current_state"}),
        (method, {"observation"}),
        (later, {"turn"}),
        (grown, {"current_state", "previous_state"}),
        (lambda step: step.action, {"action"}),
        (lambda step: 1.0, set()),
    ],
)
def test_attributes_are_read_off_the_code(function: Any, read: set[str]) -> None:
    assert attributes_read(function) == read


@pytest.mark.parametrize(
    "function",
    [
        *(helped, kept, renamed, inside, lambda_inside, by_name, hidden, assigned, with_rest, written_to),
        *(Called(), functools.partial(plain), print),
    ],
)
def test_what_cannot_be_seen_through_may_read_anything(function: Any) -> None:
    assert attributes_read(function) is None


def session_of(reward: Any) -> DirectSession:
    environment = Environment(name="library", apps={"library": Library}, limits=Limits(turns=9))
    session = DirectSession(
        AppHost(environment.declarations), LocalHooks((HookSet.of(reward),)), environment.limits
    )
    session.open(TaskView("t", ""), {}, 0, NO_RESOURCES)
    return session


@pytest.mark.parametrize("reward", [plain, grown, helped, inside])
def test_rewards_are_the_same_whether_or_not_code_is_seen_through(reward: Any) -> None:
    opaque = session_of(functools.partial(reward))
    clear = session_of(reward)
    for title in ("a", "", "b", "c"):
        assert [opaque.act("add", {"title": title}).rewards] == [clear.act("add", {"title": title}).rewards]


def test_a_state_that_no_code_names_is_not_taken_and_says_so() -> None:
    def spy(step: Step) -> float:
        return 1.0 if step.turn else 0.0

    caught: list[Step] = []
    session = session_of(spy)

    class Watching:
        """A debugger's view of the Step that the function is given."""

        def __call__(self, step: Step) -> float:
            caught.append(step)
            return spy(step)

    courses = session.courses("return session.last")
    reward = courses["add"].__closure__
    assert reward is not None
    (cell,) = [cell for cell in reward if cell.cell_contents is spy]
    cell.cell_contents = Watching()
    courses["add"]({"title": "a"})
    with pytest.raises(AttributeError, match="previous_state was not taken: the reward function's code"):
        _ = caught[0].previous_state
    with pytest.raises(AttributeError, match="current_state was not taken: the reward function's code"):
        _ = caught[0].current_state
    assert repr(caught[0]).startswith("Step(turn=1, action='add'")
