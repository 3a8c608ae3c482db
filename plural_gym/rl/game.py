"""PartyGame: a party's live episode as its training faces need it; `PartyEnv` and its parallel form drive it.

Chooses the Task, takes actions in every form, and keeps for each seat what it sees, what it earns and whether
it still plays. Knows nothing of PettingZoo. Apps and hooks run in this process, without time limits.
"""

import copy
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from gymnasium.utils import seeding

from plural_gym.environment import Environment
from plural_gym.errors import ActionRejected, AppFault, Fault, UsageError, suggest
from plural_gym.grading import AttemptGrading, Grade, Grades, grade
from plural_gym.host.hooks import HookSet, LocalHooks
from plural_gym.host.host import AppHost, AskedCall, Outcome
from plural_gym.host.party import PartySession
from plural_gym.host.resources import NO_RESOURCES, stage
from plural_gym.party import Split
from plural_gym.rl.codec import UnknownAction, codec_of, observation_space
from plural_gym.rl.env import FAULT, NO_STATUS, VALUE, as_text, cut
from plural_gym.rl.plans import Grader, Plan, Plans, choose
from plural_gym.task import Task, check_setup
from plural_gym.verifier import Verifier, VerifierOutput

_OPTIONS = ("task", "setup", "verifiers")


class PartyGame:
    """One episode at a time, seen from every seat.

    Args:
        environment: a world with a party.
        tasks: what `reset` draws from by seed; none: an unnamed Task without instructions.
        task: name of the one Task to play, out of `tasks`.
        split: draw only from this split of `tasks`.
        verifiers: graders in place of the Task's own; Verifiers or plain functions of a Step.
        score_as_reward: add each seat's score to its last reward.
        on_fault: "raise" AppFault when an App's code fails, or "truncate" the episode.
        max_chars: longest observation text; longer ones are cut, with a mark.
    """

    def __init__(
        self,
        environment: Environment,
        *,
        tasks: Sequence[Task] | None = None,
        task: str | None = None,
        split: str | None = None,
        verifiers: Sequence[Grader] | None = None,
        score_as_reward: bool = False,
        on_fault: Literal["raise", "truncate"] = "raise",
        max_chars: int = 4096,
    ) -> None:
        if environment.party is None:
            raise UsageError(
                f"Environment {environment.name!r} has no party; name its seats, or use environment.gym()."
            )
        if on_fault not in ("raise", "truncate"):
            raise UsageError(f"on_fault is 'raise' or 'truncate', not {on_fault!r}.")
        self.environment = environment
        self.party = environment.party
        self.seats = list(environment.party.names)
        self.plans = Plans(environment, choose(environment, tasks, task, split), verifiers)
        self.codec = codec_of(environment)
        self.action_spaces = {seat: copy.deepcopy(self.codec.space) for seat in self.seats}
        self.observation_spaces = {seat: observation_space(max_chars) for seat in self.seats}
        self.session: PartySession | None = None
        self._score_as_reward = score_as_reward
        self._raise = on_fault == "raise"
        self._max_chars = max_chars
        self._finishes = "finish" not in environment.actions.table and "finish" in self.codec.names
        self._names: tuple[AskedCall, ...] = tuple((name, None) for name in self.codec.names)
        self._nothing = np.zeros(len(self._names), dtype=np.int8)
        self._anything = np.ones(len(self._names), dtype=np.int8)
        self._judges: dict[tuple[str, int], tuple[Any, Callable[[], list[bool]]]] = {}
        self._host: AppHost | None = None
        self._sessions: dict[Any, PartySession] = {}
        self._generator: np.random.Generator | None = None
        self._staged: Path | None = None

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Start an episode.

        Args:
            seed: repeats everything from here on.
            options: {"task": name or Task, "setup": {app: {field: value}}, "verifiers": [...]}, all optional.
        """
        if seed is not None or self._generator is None:
            self._generator, _ = seeding.np_random(seed)
        draw = self._generator.bit_generator.random_raw() >> 1
        plan, setup = self._chosen(options or {}, draw)
        self.session = session = self._session_for(plan)
        self._instructions = plan.view.instructions
        self.closed = dict.fromkeys(self.seats, "")
        """By seat, why it plays no more: "", "terminated" or "truncated"."""
        self.rewards: dict[str, dict[str, float]] = {seat: {} for seat in self.seats}
        self._said = dict.fromkeys(self.seats, ("", ""))
        session.open(plan.view, setup, draw, self._resources())
        self._settle(None)

    def _chosen(self, options: Mapping[str, Any], draw: int) -> tuple[Plan, Mapping[str, Any]]:
        if not isinstance(options, Mapping):
            raise UsageError(f"options is a mapping such as {{'task': name}}, got {options!r}.")
        for key in options:
            said = suggest(str(key), _OPTIONS)
            # PettingZoo's own tests pass options that no environment knows: only a slip is an error.
            if key not in _OPTIONS and said.startswith("did you mean"):
                raise UsageError(f"reset has no option {key!r}; {said}")
        plans = self.plans
        plan = plans.draw(draw % plans.count)
        if options.get("task") is not None:
            plan = plans.of(plans.chosen(options["task"]))
        if options.get("verifiers") is not None:
            plan = plans.of(plan.task, options["verifiers"])
        setup = options.get("setup")
        if setup is not None:
            check_setup(self.environment, setup, "options['setup']")
        return plan, plan.setup if setup is None else setup

    def _session_for(self, plan: Plan) -> PartySession:
        session = self._sessions.get(plan.key)
        if session is None:
            for grader in plan.graders:
                if not (isinstance(grader, Verifier) or callable(grader)):
                    raise UsageError(f"verifiers are Verifiers or functions of a Step, got {grader!r}.")
            if self._host is None:
                declared, actions = self.environment.declarations, self.environment.actions
                self._host = AppHost(declared, actions, self.party.names)
            hooks = LocalHooks(map(HookSet.of, plan.graders), warns=True, seats=self.party.names)
            session = PartySession(self._host, hooks, plan.limits, self.party)
            session.graders = plan.graders
            self._sessions[plan.key] = session
        return session

    @property
    def live(self) -> PartySession:
        """The Session of the episode. Raises UsageError before the first reset."""
        if self.session is None:
            raise UsageError("there is no episode yet; call reset() first.")
        return self.session

    @property
    def movers(self) -> tuple[str, ...]:
        """The seats that may act now; () once the episode is over."""
        return self.live.movers

    @property
    def over(self) -> bool:
        """Whether the episode has ended for everybody."""
        return self.live.stop_reason is not None

    def act(self, seat: str, action: Any) -> dict[str, float]:
        """Take one action from a seat whose turn it is; returns what each seat earns with it.

        Raises:
            AppFault: an App's code failed and `on_fault` is "raise".
        """
        session = self.live
        try:
            name, arguments = self.codec.parse(action)
        except UnknownAction as error:  # the host answers it
            name, arguments = error.name, dict(error.arguments)
        except ActionRejected as error:
            return self._settle(session.reject("", str(error), seat=seat))
        if self._finishes and name == "finish":
            return self._finish(session, seat, arguments)
        return self._settle(session.act(name, arguments, seat))

    def leave(self, seat: str) -> dict[str, float]:
        """A seat's Agent plays no more; returns what each seat earns with that."""
        self.live.leave(seat)
        self.closed[seat] = self.closed[seat] or "truncated"
        return self._settle(None)

    def _finish(self, session: PartySession, seat: str, arguments: Mapping[str, Any]) -> dict[str, float]:
        unknown = [key for key in arguments if key != "answer"]
        if unknown:
            said = f"finish: {unknown[0]} is no argument (it takes: answer)."
            return self._settle(session.reject("finish", said, app=False, seat=seat))
        session.finish(arguments.get("answer"), seat)
        self._said[seat] = "finish", ""
        self.closed[seat] = self.closed[seat] or "terminated"
        return self._settle(None)

    def _settle(self, outcome: Outcome | None) -> dict[str, float]:
        """What an action came to, for each seat."""
        session = self.live
        names = session.hooks.rewarding
        earned = dict.fromkeys(self.seats, 0.0)
        zeros, status = dict.fromkeys(names, 0.0), dict.fromkeys(names, NO_STATUS)
        self._status = {seat: status.copy() for seat in self.seats}
        self.rewards = {seat: zeros.copy() for seat in self.seats}
        if outcome is not None and outcome.seat is not None:
            self._said[outcome.seat] = outcome.action, outcome.error or ""
            for name, (value, fault) in zip(names, outcome.rewards, strict=False):
                if fault is not None:
                    self._status[outcome.seat][name] = FAULT
                elif value is not None:
                    parts = value.shares if value.__class__ is Split else {outcome.seat: value}
                    for seat, part in parts.items():
                        earned[seat] += part
                        self.rewards[seat][name] = part
                        self._status[seat][name] = VALUE
        for seat in session.out:
            self.closed[seat] = self.closed[seat] or "terminated"
        if session.stop_reason is not None:
            self._end(session, earned)
        return earned

    def _end(self, session: PartySession, earned: dict[str, float]) -> None:
        how = "terminated" if session.terminated else "truncated"
        for seat in self.seats:
            self.closed[seat] = self.closed[seat] or how
        if session.fault is not None:
            if self._raise:
                raise AppFault(f"{session.fault}; the episode ends here.", session.fault)
        elif self._score_as_reward:
            for seat in self.seats:
                earned[seat] += self.score(seat) or 0.0

    def observe(self, seat: str) -> dict[str, Any]:
        """What a seat sees now, in `observation_spaces[seat]`: never anything of another seat's view."""
        session = self.live
        parts = [self._instructions] if session.turns[seat] == 0 else []
        if session.fault is None:
            view = session.view(seat)
            told = session.told.get(seat, session.opening)
            parts += [as_text(part) for part in (told, view) if part is not None]
            if len(parts) > 1 and parts[-1] == parts[-2]:
                parts.pop()
        text = "\n\n".join(part for part in parts if part)
        text = text if len(text) <= self._max_chars else cut(text, self._max_chars)
        return {"text": text, "turn": np.array([session.turn], dtype=np.int32)}

    def info(self, seat: str) -> dict[str, Any]:
        """The same keys in every step.

        The rewards of the last action and their status, what the seat did last and why it was rejected, and
        which actions it may take now: none where it is not its turn.
        """
        action, error = self._said[seat]
        session = self.live
        if session.fault is not None:
            error = str(session.fault)
        return {
            "rewards": dict(self.rewards[seat]),
            "reward_status": dict(self._status[seat]),
            "action": action,
            "error": error,
            "action_mask": self.mask(seat),
        }

    def mask(self, seat: str) -> Any:
        """Which actions the seat may take now: int8 over `codec.names`; all 0 where it is not its turn."""
        if seat not in self.movers or self._host is None:
            return self._nothing.copy()
        if not self._host.forbids:
            return self._anything.copy()
        return np.array(self.judged(seat, self._names)(), dtype=np.int8)

    def judged(self, seat: str, calls: tuple[AskedCall, ...]) -> Callable[[], list[bool]]:
        """A function that says of the calls, each time, which the seat may make now; checked once.

        `finish`, where it is offered, may always be made.
        """
        known = self._judges.get((seat, id(calls)))
        if known is None or known[0] is not calls:
            assert self._host is not None
            asked = self.environment.actions.table
            judge = self._host.judge([call for call in calls if call[0] in asked], seat)
            own = [index for index, call in enumerate(calls) if call[0] not in asked]

            def every() -> list[bool]:
                found = judge()
                for index in own:
                    found.insert(index, True)
                return found

            known = self._judges[seat, id(calls)] = calls, every if own else judge
        return known[1]

    def is_legal(self, seat: str, calls: tuple[AskedCall, ...]) -> list[bool]:
        """For each call whether the seat may make it now; none out of its turn."""
        return self.judged(seat, calls)() if seat in self.movers else [False] * len(calls)

    def encode(self, name: str, /, **arguments: Any) -> Any:
        """The element of an action space for a call."""
        return self.codec.encode(name, arguments)

    def decode(self, element: Any) -> dict[str, Any]:
        """The call that an element of an action space stands for."""
        name, arguments = self.codec.decode(element)
        return {"action": name, "arguments": arguments}

    def outputs(self, seat: str) -> dict[str, Grade]:
        """What every Verifier that scores says of a seat's part in the episode so far, by name."""
        return self._grades(seat).given

    def score(self, seat: str) -> float | None:
        """A seat's score so far; None where a Verifier cannot say. Raises MachineError as `GymEnv.score`."""
        return self._grades(seat).known_score()

    def _grades(self, seat: str) -> Grades:
        session = self.live
        hooks = session.hooks
        assert isinstance(hooks, LocalHooks)

        def run(verifier: Verifier, episode: Any) -> VerifierOutput | Fault:
            return hooks.check(verifier.name, episode, session.own_rewards(verifier.name, seat))

        episode = session.seat_episode(seat)
        graders = [grader for grader in session.graders if isinstance(grader, Verifier)]
        return grade(graders, lambda verifier: AttemptGrading(episode, None, run, verifier))

    def _resources(self) -> Path:
        if not self.environment.resources:
            return NO_RESOURCES
        if self._staged is None:
            self._staged = Path(tempfile.mkdtemp(prefix="plural-"))
            weakref.finalize(self, shutil.rmtree, self._staged, ignore_errors=True)
            stage(self.environment, self._staged)
        return self._staged

    def close(self) -> None:
        """Let go of the Apps and the staged Resources. Safe to call twice."""
        if self._host is not None:
            self._host.close()
            self._host = None
        self.session = None
        self._sessions.clear()
        self._judges.clear()
        if self._staged is not None:
            shutil.rmtree(self._staged, ignore_errors=True)
            self._staged = None
