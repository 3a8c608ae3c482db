"""What every Harness keeps: `check_harness`.

It plays a tiny world, or a Task of yours, in a real Trial; then at seats in this process that reject, that
end, and that are played two at a time.
"""

import json
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from plural_gym.agent import Agent
from plural_gym.app import App, action
from plural_gym.environment import Environment, Limits
from plural_gym.episode import Episode
from plural_gym.errors import ActionRejected, EpisodeOver
from plural_gym.execution import run_trial
from plural_gym.harness import AgentView, TaskBrief, drive
from plural_gym.host.hooks import LocalHooks
from plural_gym.host.host import AppHost
from plural_gym.host.resources import NO_RESOURCES, stage
from plural_gym.host.session import Session
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.runtimes.local import LocalRuntime
from plural_gym.seat import SeatDoor
from plural_gym.state import State
from plural_gym.task import Task
from plural_gym.testing.conformance import ConformanceError, Rule, described, shown
from plural_gym.trial import TrialPlan
from plural_gym.verifier import VerifierOutput
from plural_gym.verifiers.deterministic import DeterministicVerifier

PLAYS = Rule(
    "a Trial of the Harness takes an action or gives an answer, and succeeds",
    "Mend what play() raises; act through seat.act(name, **arguments), return the answer. A Harness of one "
    "world needs a Task of that world: check_harness(..., task=...).",
)
SURVIVES_REJECTION = Rule(
    "play() goes on, or gives up, when an action is rejected",
    "Catch ActionRejected around seat.act(); its message says what would be accepted.",
)
STOPS_WHEN_OVER = Rule(
    "play() returns, or lets EpisodeOver pass, once the episode is over",
    "Look at seat.finished in every loop, and let EpisodeOver out of it.",
)
REPEATS = Rule(
    "a second Trial goes like the first",
    "Keep what play() knows in local variables. With randomness of its own: check_harness(repeats=False).",
)
KEEPS_TRIALS_APART = Rule(
    "two Trials played at once go as each goes alone",
    "Keep the seat and all that play() knows in local variables, nothing on the Harness, class or module.",
)

TURNS = 50
"""After so many actions a seat that rejects ends the episode."""
_CALLS_AFTER_END = 50
_PAUSE_S = 0.002


class Lamp(State):
    """The tiny world's truth."""

    pressed: int = 0


class Button(App):
    """A lamp that three presses of its green button light."""

    state: Lamp

    @action(read_only=True)
    def look(self) -> str:
        """Say how often the button was pressed."""
        return f"pressed {self.state.pressed} times"

    @action
    def press(self, colour: Literal["red", "green"] = "green") -> str:
        """Press a button. Only the green one works."""
        if colour == "red":
            raise ValueError("the red button is out of order; press the green one")
        self.state.pressed += 1
        return "the lamp is lit" if self.terminated() else "click"

    def terminated(self) -> bool:
        """The lamp is lit."""
        return self.state.pressed >= 3


def lit(episode: Episode) -> VerifierOutput:
    """Whether the lamp was lit."""
    return VerifierOutput(score=float(episode.state["pressed"] >= 3))


def tiny_task() -> Task:
    """A Task of the tiny world; what `check_harness` plays where none is given."""
    return Task(
        name="lamp",
        instructions="Press the green button until the lamp is lit: press(colour='green').",
        environment=Environment(name="lamp", apps={"button": Button}, limits=Limits(turns=20)),
        verifiers=(DeterministicVerifier(name="lit", check=lit),),
    )


def check_harness(
    player: Any, *, task: Task | None = None, repeats: bool = True, timeout_s: float = 60.0
) -> None:
    """Hold a Harness to the rules of this file.

    Args:
        player: a function, class, object or kind, as `Agent(harness=...)` takes it; or an Agent.
        task: what it plays; None: the tiny world.
        repeats: whether it plays alike on a like Trial, as one does without randomness of its own.
        timeout_s: how long one attempt may take here.

    Raises:
        ConformanceError: the first rule that is broken.
    """
    agent = player if isinstance(player, Agent) else Agent(name="conformance", harness=player)
    task = task or tiny_task()
    _trial(agent, task)
    with ExitStack() as open_worlds:

        def seat(seed: int, trouble: "Trouble" = None) -> "_Attempt":
            return _Attempt(agent, task, seed, trouble, timeout_s, open_worlds)

        seat(0, "rejects").play(SURVIVES_REJECTION)
        seat(0, "rejects every second").play(SURVIVES_REJECTION)
        seat(0, "is over").play(STOPS_WHEN_OVER)
        seat(0, "ends").play(STOPS_WHEN_OVER)
        alone = [seat(seed).play(PLAYS) for seed in (0, 1)]
        again = seat(0).play(PLAYS)
        if repeats:
            _alike(REPEATS, alone[0], again, "the second Trial")
        both = _at_once([seat(0), seat(1)])
        if repeats:
            for seed in (0, 1):
                _alike(KEEPS_TRIALS_APART, alone[seed], both[seed], f"beside another, Trial {seed}")


def _trial(agent: Agent, task: Task) -> None:
    runtime = LocalRuntime({})
    with tempfile.TemporaryDirectory(prefix="plural-") as folder:
        try:
            plan = TrialPlan("trl_conformance", "job_conformance", "conformance", 1, task, agent, seed=0)
            result = run_trial(plan, TrialFolder(Path(folder) / plan.id), runtime)
        finally:
            runtime.close()
    fault = result["faults"][0] if result["faults"] else None
    said = f"status {result['status']!r}, failure {result['failure']!r}"
    if fault is not None:
        said += f"; {fault['where']}: {fault['type']}: {fault['message'].rstrip('.')} (at {fault['at']})"
    PLAYS.require(result["failure"] == "none", said)
    PLAYS.require(
        result["n_steps"] > 0 or result["answer"] is not None, "it took no action and gave no answer"
    )


Trouble = Literal["rejects", "rejects every second", "is over", "ends"] | None
"""What a seat does beside letting its Harness play."""


class _Enough(BaseException):
    """Ends a Harness that goes on and on; no `except Exception` holds it."""


class _Attempt:
    """One attempt at a seat in this process that makes trouble and notes each action."""

    def __init__(
        self,
        agent: Agent,
        task: Task,
        seed: int,
        trouble: Trouble,
        timeout_s: float,
        open_worlds: ExitStack,
    ) -> None:
        environment = task.environment
        resources = NO_RESOURCES
        if environment.resources:
            resources = Path(open_worlds.enter_context(tempfile.TemporaryDirectory(prefix="plural-")))
            stage(environment, resources)
        host = AppHost(environment.declarations, environment.actions)
        open_worlds.callback(host.close)
        session = Session(host, LocalHooks(()), task.effective_limits)
        session.open(task.view, task.setup, seed, resources)
        offered = environment.finish != "never" and "finish" not in environment.actions.table
        door = SeatDoor(session, agent, environment.actions.tools(), offered)
        self._harness = agent.driver()
        self._brief = TaskBrief(task.instructions)
        self._timeout_s = timeout_s
        self._trouble = trouble
        self.seat = _TroubledSeat(door, trouble)

    def play(self, rule: Rule) -> list[Any]:
        """Play to the end; returns every action with what came of it, and the answer."""
        return self.finish(rule, self.start())

    def start(self) -> "tuple[threading.Thread, list[Any], list[BaseException]]":
        """Begin to play in a thread of its own."""
        answers: list[Any] = []
        raised: list[BaseException] = []

        def work() -> None:
            try:
                answers.append(drive(self._harness, self._brief, self.seat))
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=work, name="plural-conformance", daemon=True)
        thread.start()
        return thread, answers, raised

    def finish(
        self, rule: Rule, started: "tuple[threading.Thread, list[Any], list[BaseException]]"
    ) -> list[Any]:
        """Wait for the end."""
        thread, answers, raised = started
        thread.join(self._timeout_s)
        when = f"at a seat that {self._trouble}" if self._trouble else "at a seat in this process"
        if thread.is_alive():
            self.seat.leave()
            raise ConformanceError(
                STOPS_WHEN_OVER if self._trouble else rule,
                f"{when}, play() took longer than {self._timeout_s:g} s",
            )
        if raised and isinstance(raised[0], _Enough):
            raise ConformanceError(
                STOPS_WHEN_OVER, f"{when}, it called act() {_CALLS_AFTER_END} times after the end"
            )
        if raised and not isinstance(raised[0], EpisodeOver):
            raise ConformanceError(rule, f"{when}, play() raised {described(raised[0])}") from raised[0]
        return [*self.seat.course, ("answer", answers[0] if answers else None)]


class _TroubledSeat:
    """A seat whose episode goes wrong in one way."""

    def __init__(self, door: SeatDoor, trouble: Trouble) -> None:
        self._door = door
        self._trouble = trouble
        self._calls = self._late = 0
        self._said: Any = None
        self._left = False
        self.course: list[Any] = []

    @property
    def agent(self) -> AgentView:
        return self._door.agent

    @property
    def actions(self) -> list[dict[str, Any]]:
        return self._door.actions

    @property
    def observation(self) -> Any:
        return self._door.observation if self._said is None else self._said

    @property
    def finished(self) -> bool:
        ended = {"is over": True, "ends": self._calls >= 1}.get(self._trouble or "", self._calls >= TURNS)
        return self._left or ended or self._door.finished

    def leave(self) -> None:
        """Let nobody play here any more."""
        self._left = True

    def view(self) -> Any:
        return self.observation

    def act(self, name: str, /, **arguments: Any) -> Any:
        time.sleep(0.0 if self._trouble else _PAUSE_S)
        if self.finished:
            self._late += 1
            if self._left or self._late > _CALLS_AFTER_END:
                raise _Enough
            raise EpisodeOver("the episode is over.")
        self._calls += 1
        try:
            seen = self._answer(name, arguments)
        except ActionRejected as error:
            self.course.append((name, arguments, "rejected", str(error)))
            raise
        self.course.append((name, arguments, seen))
        return seen

    def _answer(self, name: str, arguments: dict[str, Any]) -> Any:
        every = {"rejects": 1, "rejects every second": 2}.get(self._trouble or "")
        if every is not None and (self._calls - 1) % every == 0:
            self._said = {"error": f"{name}: not now; try again or try another action."}
            raise ActionRejected(self._said["error"])
        self._said = None
        return self._door.act(name, **arguments)


def _at_once(attempts: Sequence[_Attempt]) -> list[list[Any]]:
    started = [attempt.start() for attempt in attempts]
    return [
        attempt.finish(KEEPS_TRIALS_APART, begun) for attempt, begun in zip(attempts, started, strict=True)
    ]


def _alike(rule: Rule, first: list[Any], second: list[Any], who: str) -> None:
    for index in range(max(len(first), len(second))):
        one = first[index] if index < len(first) else "nothing"
        other = second[index] if index < len(second) else "nothing"
        rule.require(_plain(one) == _plain(other), f"{who} had {shown(other)} in place of {shown(one)}")


def _plain(value: Any) -> str:
    return json.dumps(value, default=repr, sort_keys=True)
