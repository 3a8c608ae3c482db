"""`check_verifier`: the shipped Verifiers keep every rule; for each rule a Verifier that breaks it."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal

import pytest

from plural_gym.app import App, action
from plural_gym.environment import Environment
from plural_gym.errors import GradingFault, UsageError
from plural_gym.project import Project
from plural_gym.state import State
from plural_gym.task import Task
from plural_gym.testing import verifiers
from plural_gym.testing.conformance import ConformanceError
from plural_gym.testing.verifiers import Played, check_verifier, play_at_random
from plural_gym.verifier import Hook, VerifierOutput, total_reward
from plural_gym.verifiers.deterministic import DeterministicVerifier


class Ticket(State):
    filed: str | None = None
    tags: list[str] = []


class Desk(App):
    state: Ticket

    @action(read_only=True)
    def read(self) -> dict[str, Any]:
        return {"filed": self.state.filed}

    @action
    def file(self, under: Literal["billing", "bug"]) -> str:
        if self.state.filed is not None:
            raise ValueError("it is filed already")
        self.state.filed = under
        self.state.tags.append(under)
        return f"filed under {under}"


def filed(episode: Any) -> VerifierOutput:
    answer = episode.apps["desk"].query("read")
    return VerifierOutput(
        score=float(answer["filed"] == episode.expected), scores={"turns": episode.usage.turns}
    )


def progress(step: Any) -> float | None:
    if step.error is not None:
        return None
    step.current_state["tags"].sort()  # changes nothing but its own copy
    assert step.apps["desk"].state == step.current_state and "filed" in step.apps["desk"].query("read")
    return 1.0 if step.current_state["filed"] != step.previous_state["filed"] else 0.0


def afterwards(trial: Any) -> Iterator[Any]:
    for record in trial.steps("file"):
        yield trial.credit(record["event_id"], -1.0 if record["error"] else 1.0)


def verifier(**hooks: Any) -> DeterministicVerifier:
    return DeterministicVerifier(name="grader", **hooks)


TASK = Task(
    name="ticket",
    instructions="",
    environment=Environment(name="desk", apps={"desk": Desk}, finish="never"),
    verifiers=(verifier(check=filed),),
    expected="billing",
    info={"hints": ["b", "a"]},
)
TURN = itertools.count()


def scores_one(episode: Any) -> VerifierOutput:
    return VerifierOutput(score=1)


def changes(episode: Any) -> VerifierOutput:
    episode.trajectory[0]["action"] = "nothing"
    return scores_one(episode)


def sorts(episode: Any) -> VerifierOutput:
    episode.task.info["hints"].sort()
    return scores_one(episode)


def faults(record: Any) -> Any:
    raise GradingFault("no key")


def pops(trial: Any) -> Any:
    for record in trial.trajectory:
        record.pop("observation")
        yield trial.credit(record["event_id"], 0.0)


class Odd(DeterministicVerifier):
    kind: ClassVar[str] = "odd"


class KnowsNoSuchHook(Odd):
    def functions(self) -> Any:
        return {"grade": self.check}


class HasNoTime(Odd):
    def timeouts_s(self) -> dict[Hook, float]:
        return {"check": 0.0}


class NeverScores(Odd):
    @property
    def scores(self) -> bool:
        return False


class NewEachTime(Odd):
    def identity(self) -> dict[str, Any]:
        return {"turn": next(TURN)}


class Unwritable(Odd):
    def identity(self) -> dict[str, Any]:
        return {"check": self.check}


def odd(kind: type[Odd]) -> Odd:
    return kind(name="odd", check=scores_one)


def returning(value: Any) -> Callable[[Any], Any]:
    return lambda record: value


BROKEN: list[tuple[str, Any, str]] = [
    ("DECLARES_ITS_HOOKS", odd(KnowsNoSuchHook), "'grade': <function scores_one"),
    ("DECLARES_ITS_HOOKS", odd(HasNoTime), r"timeouts_s\(\)\['check'\] is 0.0"),
    ("DECLARES_ITS_HOOKS", odd(NeverScores), "it has a check, and scores is False"),
    ("IDENTITY_IS_STABLE", odd(NewEachTime), "then"),
    ("IDENTITY_IS_STABLE", odd(Unwritable), "raised TypeError"),
    (
        "HOOKS_ANSWER",
        verifier(check=returning(0.5)),
        "GradingFault: check returned 0.5, which is no Verifier",
    ),
    ("HOOKS_ANSWER", verifier(check=faults), r"GradingFault: no key \(at test_verifiers.py:\d+\)"),
    (
        "HOOKS_ANSWER",
        verifier(reward=returning(float("nan"))),
        "reward returned nan, which is not a finite number",
    ),
    ("HOOKS_ANSWER", returning(True), "Step.turn=1, .*reward returned True, which is not a number"),
    ("HOOKS_ANSWER", verifier(hindsight=returning([1.0])), "hindsight yielded 1.0"),
    (
        "HOOKS_ARE_PURE",
        verifier(reward=lambda step: next(TURN)),
        r"reward of Step\(turn=.* gave \d+.0, then \d+.0",
    ),
    ("HOOKS_ARE_PURE", verifier(check=lambda episode: VerifierOutput(score=next(TURN))), "check of Episode"),
    (
        "HOOKS_ARE_PURE",
        verifier(hindsight=lambda trial: [trial.credit(trial.steps()[0]["event_id"], next(TURN))]),
        "hindsight of Episode",
    ),
    (
        "HOOKS_LEAVE_RECORDS",
        verifier(check=changes),
        "Episode of Task 'ticket' with .* check made trajectory",
    ),
    ("HOOKS_LEAVE_RECORDS", verifier(check=sorts), "check made task"),
    ("HOOKS_LEAVE_RECORDS", verifier(hindsight=pops), "hindsight made trajectory"),
]


@pytest.fixture(scope="module")
def played() -> Iterator[Played]:
    with play_at_random(
        TASK, episodes=2, actions=5, calls=[("file", {"under": "billing"}), ("read", {})]
    ) as made:
        yield made


@pytest.mark.parametrize(("rule", "grader", "seen"), BROKEN)
def test_what_breaks_a_rule_is_caught(rule: str, grader: Any, seen: str, played: Played) -> None:
    with pytest.raises(ConformanceError, match=seen) as raised:
        check_verifier(grader, *played)
    assert raised.value.rule is getattr(verifiers, rule)


def test_every_rule_is_broken_once(rules_of: Any) -> None:
    assert rules_of(verifiers) == {rule for rule, _, _ in BROKEN}


async def later(step: Any) -> float:
    return 1.0


@pytest.mark.parametrize(
    "grader",
    [
        verifier(check=filed, reward=progress, hindsight=afterwards),
        verifier(check=total_reward, reward=progress),
        verifier(reward=later),
        progress,
    ],
)
def test_a_verifier_that_keeps_the_rules(grader: Any, played: Played) -> None:
    check_verifier(grader, *played)


def test_random_play_repeats_by_seed_and_ends_with_the_calls_given(played: Played) -> None:
    with play_at_random(TASK, episodes=2, actions=5) as again:
        same = [episode.trajectory for episode in again.episodes]
    assert same == [episode.trajectory for episode in played.episodes[:2]]
    assert [len(episode.trajectory) for episode in played.episodes] == [5, 5, 2] and len(played.steps) == 12
    assert played.episodes[2].state["filed"] == "billing"


def test_a_hook_with_nothing_to_be_asked_about_is_an_error(played: Played) -> None:
    with pytest.raises(UsageError, match="'grader' has a reward; give steps, such as play_at_random"):
        check_verifier(verifier(check=filed, reward=progress), played.episodes)
    with pytest.raises(UsageError, match="'grader' has a check; give episodes"):
        check_verifier(verifier(check=filed), [])


@pytest.mark.parametrize("name", ["support-desk", "wordle"])
def test_the_shipped_verifiers(name: str, project: Project) -> None:
    task = project.tasks_of(name)[0]
    with play_at_random(task, episodes=2) as made:
        for grader in task.verifiers:
            check_verifier(grader, *made)
