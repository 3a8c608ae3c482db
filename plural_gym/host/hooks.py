"""Hooks: runs the author's reward, check and hindsight functions, and turns what they do into records.

Whatever such a function raises, returns or does to its argument, the action is answered and the world is as
it was. In this process for GymEnv; in a worker that can be killed for Jobs.
"""

import math
import warnings
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from types import CoroutineType
from typing import Any

from plural_gym.app import settle
from plural_gym.episode import Credit, Episode, HindsightTrial
from plural_gym.errors import Fault, GradingFault, suggest
from plural_gym.host.host import Outcome
from plural_gym.party import Split
from plural_gym.step import Step, TaskView, World
from plural_gym.verifier import Verifier, VerifierOutput, total_reward

Reward = tuple[float | None, Fault | None]
"""(value, None): a reward; (None, None): no signal; (None, fault): the function failed."""

NO_SIGNAL: Reward = (None, None)

_INTERRUPTIONS = (KeyboardInterrupt, GeneratorExit)
"""What is never an author's failure in this process: somebody wants it to stop."""


class RewardWarning(UserWarning):
    """A reward function failed in a live environment, where its part of the reward is 0."""


@dataclass(frozen=True, slots=True)
class HookSet:
    """The author code of one Verifier."""

    name: str
    version: str = "0.1.0"
    check: Callable[..., Any] | None = None
    reward: Callable[..., Any] | None = None
    hindsight: Callable[..., Any] | None = None

    @classmethod
    def of(cls, verifier: "Verifier | Callable[..., Any]") -> "HookSet":
        """From a Verifier, or from a plain function of a Step."""
        if isinstance(verifier, Verifier):
            found = verifier.functions()
            return cls(
                verifier.name,
                verifier.version,
                found.get("check"),
                found.get("reward"),
                found.get("hindsight"),
            )
        return cls(getattr(verifier, "__name__", type(verifier).__name__), reward=verifier)


class LocalHooks:
    """Hooks called in this process, without a time limit."""

    def __init__(self, sets: Iterable[HookSet], *, warns: bool = False, seats: Sequence[str] = ()) -> None:
        """Take the hooks.

        Args:
            sets: one a Verifier.
            warns: whether the first failure of each reward function is also a Python warning, for people
                whose training loop looks at no record.
            seats: of a party, whose reward functions may return a number for each seat.
        """
        self._warns = warns
        self._seats = tuple(seats)
        self._warned: set[str] = set()
        self.sets = tuple(sets)
        self.rewarding = tuple(hooks.name for hooks in self.sets if hooks.reward is not None)
        """The Verifiers that reward, in the order of their rewards."""
        self._rewards = tuple((hooks.name, hooks.reward) for hooks in self.sets if hooks.reward is not None)
        self._by_name = {hooks.name: hooks for hooks in self.sets}
        self.single_reward = self._rewards[0][1] if len(self._rewards) == 1 else None
        """The reward function, where there is just one."""

    def reward(
        self,
        task: TaskView,
        outcome: Outcome,
        turn: int,
        world: World,
        event_id: str | None = None,
        seat: str | None = None,
    ) -> list[Reward]:
        """Each rewarding Verifier's part for one action, in the order of `rewarding`."""
        rewards: list[Reward] = []
        for name, function in self._rewards:
            step = Step(
                task,
                outcome.app,
                outcome.action,
                outcome.arguments,
                turn,
                outcome.observation,
                outcome.error,
                outcome.before,
                outcome.after,
                world,
                seat,
                event_id,
            )
            try:
                value = function(step)
            except _INTERRUPTIONS:
                raise
            except BaseException as error:
                rewards.append(self._failed(name, function, error))
            else:
                rewards.append(self._settled(name, function, value))
        return rewards

    def settled(self, value: Any) -> list[Reward]:
        """What the single reward function's answer comes to."""
        return [self._settled(*self._rewards[0], value)]

    def failed(self, error: BaseException) -> list[Reward]:
        """What the single reward function's exception comes to."""
        return [self._failed(*self._rewards[0], error)]

    def _settled(self, name: str, function: Any, value: Any) -> Reward:
        try:
            if type(value) is CoroutineType:
                value = settle(value)
            return checked_reward(value, self._seats), None
        except _INTERRUPTIONS:
            raise
        except BaseException as error:
            return self._failed(name, function, error)

    def _failed(self, name: str, function: Any, error: BaseException) -> Reward:
        fault = Fault.of(error, f"verifier {name} reward", author=function)
        if self._warns and name not in self._warned:
            self._warned.add(name)
            warnings.warn(
                f"Verifier {name}'s reward failed and earns nothing: {fault.type}: {fault.message} (at "
                f"{fault.at}); said once, info['reward_status'] and env.unwrapped.faults tell every time.",
                RewardWarning,
                stacklevel=2,
            )
        return None, fault

    def check(self, name: str, episode: Episode, own_rewards: Sequence[float]) -> VerifierOutput | Fault:
        """The output of one Verifier's check, or the fault of its code.

        Args:
            own_rewards: the Verifier's step rewards, for `total_reward`.
        """
        function = self._by_name[name].check
        assert function is not None
        if function is total_reward:
            return sum_of_rewards(own_rewards)
        try:
            output = settle(function(episode))
            if not isinstance(output, VerifierOutput):
                raise GradingFault(f"check returned {_shown(output)}, which is no VerifierOutput")
            return output
        except _INTERRUPTIONS:
            raise
        except BaseException as error:
            return Fault.of(error, f"verifier {name} check", author=function)

    def hindsight(self, name: str, trial: HindsightTrial) -> list[Credit] | Fault:
        """The credit one Verifier gives in hindsight, or the fault of its code; never part of it."""
        function = self._by_name[name].hindsight
        assert function is not None
        try:
            given = settle(function(trial))
            if isinstance(given, AsyncIterable):
                given = settle(_collected(given))
            return [_checked(credit, trial) for credit in (() if given is None else given)]
        except _INTERRUPTIONS:
            raise
        except BaseException as error:
            return Fault.of(error, f"verifier {name} hindsight", author=function)


async def _collected(given: AsyncIterable[Any]) -> list[Any]:
    return [credit async for credit in given]


def _checked(credit: Any, trial: HindsightTrial) -> Credit:
    """A credit as the Trial gives it, whoever built this one. Raises GradingFault where it would not."""
    if not isinstance(credit, Credit):
        raise GradingFault(f"hindsight yielded {_shown(credit)}; yield trial.credit(event_id, value)")
    given = trial.credit(credit.event_id, credit.value)
    if credit.target != given.target:
        raise GradingFault(
            f"hindsight credits {credit.event_id!r} as {credit.target!r}; it is a {given.target}."
        )
    return given


def sum_of_rewards(values: Sequence[float]) -> VerifierOutput | Fault:
    """What `total_reward` scores."""
    try:
        total = math.fsum(values)
    except OverflowError:
        return Fault(
            "verifier total_reward", "OverflowError", "the rewards' sum is not finite", "total_reward"
        )
    return VerifierOutput(score=total, evidence=(f"{len(values)} rewards sum to {total:g}",))


def checked_reward(value: Any, seats: Sequence[str]) -> float | None:
    """What a reward function returned, as a number; a mapping from seat to number as a Split.

    Raises:
        GradingFault: anything else, a mapping without a party, or a seat that does not exist.
    """
    if not seats or value is None or value.__class__ is float or not isinstance(value, Mapping):
        return finite_number(value)
    for seat in value:
        if seat not in seats:
            raise GradingFault(f"reward names the seat {_shown(seat)}; {suggest(str(seat), seats)}")
    numbers = {seat: finite_number(value[seat]) for seat in seats if seat in value}
    shares = {seat: number for seat, number in numbers.items() if number is not None}
    return Split(shares) if shares else None


def finite_number(value: Any) -> float | None:
    """A reward as a float; None stays None.

    Raises:
        GradingFault: anything else than a finite number; `True` is none.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        raise GradingFault(f"reward returned {_shown(value)}, which is not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise GradingFault(f"reward returned {_shown(value)}, which is not a finite number")
    return number


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 80 else text[:77] + "..."
