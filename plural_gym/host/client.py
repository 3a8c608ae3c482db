"""The controller's side of a worker: Apps and hooks in processes that can be killed.

Same shape as AppHost and LocalHooks, so a Session does not know the difference. A process that is lost or too
slow becomes a fault with a reason; it never takes the Trial's other half with it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic_core import from_json, to_json

from plural_gym.app import ActionSpec, AppDeclaration
from plural_gym.environment import Actions
from plural_gym.episode import Credit, Episode, HindsightTrial
from plural_gym.errors import (
    ActionRejected,
    AppFault,
    DefinitionError,
    Fault,
    GradingFault,
    MachineError,
    PluralError,
    UnknownName,
    begins_at,
    suggest,
)
from plural_gym.host import wire
from plural_gym.host.hooks import HookSet, Reward, checked_reward, sum_of_rewards
from plural_gym.host.host import Outcome
from plural_gym.host.serve import QUESTION_ERRORS
from plural_gym.party import Table, named_seats
from plural_gym.records.strict_json import legible
from plural_gym.runtime import FROM_OUTSIDE, ChannelLost, Process
from plural_gym.state import Frozen
from plural_gym.step import TaskView, World
from plural_gym.verifier import Hook, VerifierOutput, total_reward

OPEN_TIMEOUT_S = 120.0
"""For loading an App's code and starting an episode."""
LOAD_TIMEOUT_S = 60.0
"""For loading Verifiers' code."""
LOSSES = 2
"""After so many lost processes in one Trial a reward function is switched off for the rest of it."""
MAX_ARGUMENTS_BYTES = 8 * 1024 * 1024
"""Of JSON, for one action; more is rejected."""
GARBLED = (KeyError, TypeError, ValueError, AttributeError, IndexError, GradingFault)
"""What reading an answer raises that author code has written or torn."""
_MAX_NAME = 200
_NEVER_STARTED = "it could not be started"
_Read = TypeVar("_Read")


class RemoteHost:
    """One Trial's Apps, in a process of their own."""

    def __init__(
        self,
        process: Process,
        declarations: Mapping[str, AppDeclaration],
        actions: Actions,
        seats: Sequence[str] = (),
    ) -> None:
        self._process = process
        self._line = _Line(process)
        self.lost_outside = False
        """Whether the machine or somebody else ended the process, rather than the Apps' code."""
        self._declarations = declarations
        self._actions = actions
        self._controls: dict[str, Any] = {}
        self._states: dict[str, Frozen | None] = {}
        self._gone: str | None = None
        self._seats = tuple(seats)
        self.table = Table(())
        """Who may act and who is out, kept where there are seats."""

    def open(self, task: TaskView, setup: Mapping[str, Mapping[str, Any]], seed: int, resources: Path) -> Any:
        """Start the episode. Raises AppFault where an App cannot be set up, or takes too long."""
        request = {
            "op": "open",
            "apps": wire.pack_apps(self._declarations),
            "task": wire.task_json(task),
            "setup": setup,
            "seed": seed,
            "resources": str(resources),
            "seats": self._seats,
        }

        def read(answer: Any) -> tuple[Any, dict[str, Any], dict[str, Any]]:
            self._sat(answer)
            return answer["opening"], dict(answer["controls"]), dict(answer["states"])

        opening, controls, states = self._ask(request, OPEN_TIMEOUT_S, "starting the Apps", read)
        self._controls = controls
        self._keep(states)
        return opening

    def act(
        self, name: str, arguments: Mapping[str, Any], watch: bool = True, seat: str | None = None
    ) -> Outcome:
        """Perform one action; a lost or slow process comes back as a fault."""
        name = _readable(name)
        app, spec = self._actions.table.get(name, (None, None))
        action = name if spec is None else spec.name
        state = self._states.get(app) if app is not None else None
        try:
            arguments = _as_sent(arguments)
        except ActionRejected as error:
            shown = {_readable(key): _shown(value) for key, value in arguments.items()}
            return Outcome(app, action, shown, None, f"{action}: {error}", None, state, state, False, False)

        def read(answer: Any) -> Outcome:
            self._sat(answer)
            return wire.outcome_of(answer)

        try:
            request = {"op": "act", "name": name, "arguments": arguments, "watch": watch, "seat": seat}
            outcome = self._ask(request, _timeout(spec), f"action {action!r}", read)
        except AppFault as error:
            fault = error.fault or Fault.of(error, f"app {app}")
            return Outcome(app, action, dict(arguments), None, None, fault, state, state, False, False)
        if outcome.app is not None and outcome.after is not None:
            self._states[outcome.app] = outcome.after
        return outcome

    def _sat(self, answer: Mapping[str, Any]) -> None:
        """Keep what an answer says of the seats."""
        if self._seats:
            table = answer["table"]
            turn, out = (named_seats(tuple(table[key]), self._seats) for key in ("turn", "out"))
            self.table = Table(turn, out)

    def view(self, seat: str) -> Any:
        """What a seat sees now; None for nothing. Raises AppFault as AppHost.view does."""
        request = {"op": "view", "seat": seat}
        return self._ask(request, OPEN_TIMEOUT_S, "a seat's view", lambda answer: answer["value"])

    def forfeit(self, seat: str) -> bool:
        """Take a seat out whose Agent has left. Raises AppFault as AppHost.forfeit does."""

        def read(answer: Any) -> bool:
            self._sat(answer)
            return bool(answer["value"])

        return self._ask({"op": "forfeit", "seat": seat}, OPEN_TIMEOUT_S, "a forfeit", read)

    def app_names(self) -> tuple[str, ...]:
        """The Apps, in declared order."""
        return tuple(self._declarations)

    def controls(self) -> Mapping[str, Any]:
        """How far the host controls each App's State."""
        return self._controls or dict.fromkeys(self._declarations, "none")

    def snapshot(self, app: str) -> Frozen | None:
        """One App's State; the last one known where the process is gone."""
        return self.snapshots()[app]

    def snapshots(self) -> dict[str, Frozen | None]:
        """Every App's State; the last ones known where the process is gone."""
        if self._gone is None:
            with suppress(AppFault):
                states = self._ask(
                    {"op": "snapshots"},
                    OPEN_TIMEOUT_S,
                    "reading State",
                    lambda answer: dict(answer["states"]),
                )
                self._keep(states)
        return {name: self._states.get(name) for name in self._declarations}

    def query(self, app: str, action: str, arguments: Mapping[str, Any]) -> Any:
        """What a read-only action answers. Raises as AppHost.query does."""
        if app not in self._declarations:
            raise UnknownName(f"the Environment has no App {app!r}; {suggest(app, self._declarations)}")
        spec = next((spec for spec in self._actions.by_app[app] if spec.name == action), None)
        request = {"op": "query", "app": app, "action": action, "arguments": arguments}
        return self._ask(request, _timeout(spec), f"query {action!r}", lambda answer: answer["value"])

    def _keep(self, states: Mapping[str, str | None]) -> None:
        self._states.update({name: wire.frozen(state) for name, state in states.items()})

    def _ask(
        self, request: Mapping[str, Any], timeout_s: float, doing: str, read: Callable[[Any], _Read]
    ) -> _Read:
        """What `read` makes of the answer. Raises AppFault, or what the Apps raised."""
        if self._gone is not None:
            raise AppFault(f"the Apps are gone: {self._gone}", _lost("apps", self._gone))
        try:
            answer = self._line.ask(request, time.monotonic() + timeout_s)
            raised = _raised(answer) if "raised" in answer else None
            if raised is None:
                return read(answer)
        except TimeoutError:
            self._process.kill()
            self._gone = f"{doing} took longer than {timeout_s:g} s and was ended"
        except ChannelLost:
            ended = self._process.kill()
            self.lost_outside = ended in FROM_OUTSIDE
            self._gone = f"the Apps' process ended during {doing}: {ended}"
        except MachineError as error:
            raise AppFault(f"{doing}: {error}", _lost("apps", str(error))) from None
        except GARBLED as error:
            self._process.kill()
            self._gone = f"the Apps' process gave no sound answer to {doing} ({type(error).__name__})"
        else:
            raise raised
        raise AppFault(f"{self._gone}.", _lost("apps", self._gone)) from None

    def close(self) -> None:
        """End the process."""
        if self._gone is None:
            self._gone = "the Trial is over"
            self._process.kill()


class RemoteHooks:
    """A Task's Verifiers' code, in a process of its own, started anew after a loss."""

    def __init__(
        self,
        start: Callable[[], Process],
        sets: Sequence[HookSet],
        timeouts_s: Mapping[str, Mapping[Hook, float]],
        task: TaskView,
        apps: Sequence[str],
        seats: Sequence[str] = (),
    ) -> None:
        self._seats = tuple(seats)
        self._start = start
        self._sets = {hooks.name: hooks for hooks in sets}
        self._timeouts_s = timeouts_s
        self._task = task
        self._apps = list(apps)
        self._line: _Line | None = None
        self.lost_outside: set[tuple[str, Hook]] = set()
        """Verifier and hook, where the machine or somebody else ended the process, or it never started."""
        self._losses: dict[str, int] = {}
        self.rewarding = tuple(hooks.name for hooks in sets if hooks.reward is not None)

    def reward(
        self,
        task: TaskView,
        outcome: Outcome,
        turn: int,
        world: World,
        event_id: str | None = None,
        seat: str | None = None,
    ) -> list[Reward]:
        """Each rewarding Verifier's part, in the order of `rewarding`."""
        if not self.rewarding:
            return []
        request = {"op": "reward", "outcome": wire.outcome_json(outcome), "turn": turn}
        request |= {"event_id": event_id, "seat": seat}
        return [self._reward(name, request, world) for name in self.rewarding]

    def _reward(self, name: str, request: Mapping[str, Any], world: World) -> Reward:
        if self._losses.get(name, 0) >= LOSSES:
            said = f"switched off after its process was lost {LOSSES} times"
            return None, Fault(f"verifier {name} reward", "MachineError", said, self._place(name, "reward"))
        given = self._ask(
            name,
            "reward",
            request,
            world,
            lambda answer: (checked_reward(answer["value"], self._seats), wire.fault_of(answer["fault"])),
        )
        return (None, given) if isinstance(given, Fault) else given

    def check(
        self, name: str, episode: Episode, own_rewards: Sequence[float], world: World
    ) -> VerifierOutput | Fault:
        """The output of one Verifier's check, or the fault of its code."""
        if self._sets[name].check is total_reward:
            return sum_of_rewards(own_rewards)
        data = {
            "states": _states(episode),
            "trajectory": episode.trajectory,
            "observation": episode.observation,
            "answer": episode.answer,
            "stop_reason": episode.stop_reason,
            "artifacts": episode.artifacts,
            "usage": {field: getattr(episode.usage, field) for field in episode.usage.__slots__},
            "seat": episode.seat,
        }
        at = self._place(name, "check")

        def read(answer: Any) -> VerifierOutput | Fault:
            if "output" not in answer:
                return _sound_fault(answer)
            try:
                return VerifierOutput(**answer["output"])
            except DefinitionError as error:
                return Fault(f"verifier {name} check", "GradingFault", str(error), at)

        return self._ask(name, "check", {"op": "check", "episode": data}, world, read)

    def hindsight(self, name: str, trial: HindsightTrial, world: World) -> list[Credit] | Fault:
        """The credit one Verifier gives in hindsight, or the fault of its code."""
        data = {
            "score": trial.score,
            "states": _states(trial),
            "trajectory": list(trial.trajectory),
            "calls": list(trial.calls),
            "seat": trial.seat,
        }

        def read(answer: Any) -> list[Credit] | Fault:
            if "credits" not in answer:
                return _sound_fault(answer)
            return [trial.credit(credit["event_id"], credit["value"]) for credit in answer["credits"]]

        return self._ask(name, "hindsight", {"op": "hindsight", "trial": data}, world, read)

    def _ask(
        self,
        name: str,
        hook: Hook,
        request: Mapping[str, Any],
        world: World,
        read: Callable[[Any], _Read],
    ) -> _Read | Fault:
        """What `read` makes of one hook's answer, or a Fault where its process was lost or too slow."""
        where = f"verifier {name} {hook}"
        at = self._place(name, hook)
        timeout_s = self._timeouts_s.get(name, {}).get(hook, 60.0)
        try:
            line = self._running()
            deadline = time.monotonic() + timeout_s
            return read(
                line.ask({**request, "verifier": name}, deadline, lambda asked: _answered(asked, world))
            )
        except TimeoutError:
            self._lose(name)
            return Fault(where, "TimeoutError", f"took longer than {timeout_s:g} s and was ended", at)
        except MachineError:
            ended = self._lose(name)
            if ended in FROM_OUTSIDE or ended == _NEVER_STARTED:
                self.lost_outside.add((name, hook))
            return Fault(where, "MachineError", f"its process ended: {ended}", at)
        except DefinitionError as error:
            self._lose(name)
            return Fault.of(error, where)
        except GARBLED as error:
            self._lose(name)
            said = f"its process gave no sound answer ({type(error).__name__})"
            return Fault(where, "MachineError", said, at)

    def _place(self, name: str, hook: Hook) -> str:
        """`verify.py:14`, where a hook's function begins: all that is known of one that was lost."""
        return begins_at(getattr(self._sets[name], hook)) or name

    def _running(self) -> "_Line":
        if self._line is None:
            # Packed first: code that cannot be sent is no loss of a process.
            packed = [wire.pack_hooks(hooks) for hooks in self._sets.values()]
            self._line = _Line(self._start())
            load = {"op": "load", "task": wire.task_json(self._task), "apps": self._apps, "hooks": packed}
            load |= {"seats": self._seats}
            if "loaded" not in self._line.ask(load, time.monotonic() + LOAD_TIMEOUT_S):
                raise MachineError("the Verifiers' code could not be loaded.")
        return self._line

    def _lose(self, name: str) -> str:
        self._losses[name] = self._losses.get(name, 0) + 1
        line, self._line = self._line, None
        return line.process.kill() if line is not None else _NEVER_STARTED

    def close(self) -> None:
        """End the process."""
        if self._line is not None:
            self._line.process.kill()
            self._line = None


class _Line:
    """Requests to one worker and its answers.

    An answer repeats its request's id and names the worker. What does neither was written by author code, or
    by a process that it forked, and is dropped.
    """

    def __init__(self, process: Process) -> None:
        self.process = process
        self._requests = 0
        self._worker: Any = None

    def ask(
        self,
        request: Mapping[str, Any],
        deadline: float,
        answered: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """The answer to a request.

        Args:
            deadline: on the monotonic clock.
            answered: what answers questions that the worker has meanwhile.

        Raises:
            TimeoutError: none came in time.
            ChannelLost: the worker is gone.
            MachineError: the request is too long; nothing was sent.
        """
        self._requests += 1
        channel = self.process.channel
        channel.send({**request, "id": self._requests})
        while True:
            answer = channel.receive(max(deadline - time.monotonic(), 0.0))
            if not isinstance(answer, dict) or answer.get("id") != self._requests:
                continue
            if self._worker is None:
                self._worker = answer.get("pid")
            if answer.get("pid") != self._worker:
                continue
            if "ask" not in answer:
                return answer
            if answered is not None:
                channel.send(answered(answer))


def _answered(question: Mapping[str, Any], world: World) -> dict[str, Any]:
    try:
        if question["ask"] == "snapshot":
            return {"value": wire.text(world.snapshot(question["app"]))}
        return {"value": world.query(question["app"], question["action"], question["arguments"])}
    except PluralError as error:
        return {"raised": type(error).__name__, "message": str(error.args[0] if error.args else error)}
    except GARBLED as error:
        return {"raised": AppFault.__name__, "message": f"the question is not sound: {error}"}


def _raised(answer: Mapping[str, Any]) -> PluralError:
    """What the Apps raised."""
    kind = QUESTION_ERRORS.get(answer["raised"], AppFault)
    if kind is AppFault:
        return AppFault(answer["message"], wire.fault_of(answer["fault"]))
    return kind(answer["message"])


def _sound_fault(answer: Mapping[str, Any]) -> Fault:
    fault = wire.fault_of(answer["fault"])
    if fault is None:
        raise ValueError("neither an outcome nor a fault")
    return fault


def _as_sent(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as the JSON values that a worker reads. Raises ActionRejected where it could not."""
    try:
        try:
            sent = to_json(arguments, inf_nan_mode="strings")
        except ValueError:
            sent = to_json(legible(arguments), inf_nan_mode="strings")
        if len(sent) <= MAX_ARGUMENTS_BYTES:
            # As deep as they lie in the deepest of messages and records.
            read: dict[str, Any] = from_json(b"[" * 8 + sent + b"]" * 8)[0][0][0][0][0][0][0][0]
            return read
    except (ValueError, TypeError, RecursionError) as error:
        said = str(error).encode("ascii", "backslashreplace").decode()[:200]
        raise ActionRejected(f"its arguments are no JSON values: {said}.") from None
    raise ActionRejected(f"its arguments have {len(sent)} bytes of JSON; the limit is {MAX_ARGUMENTS_BYTES}.")


def _readable(name: str) -> str:
    """An action's name as records can hold it, whatever an Agent sent."""
    name = name if len(name) <= _MAX_NAME else name[:_MAX_NAME] + "…"
    return str(legible(name))


def _shown(value: Any) -> str:
    try:
        return ascii(value[:_MAX_NAME] if isinstance(value, str) else value)[:_MAX_NAME]
    except (ValueError, RecursionError):
        return f"<{type(value).__name__}>"
    except Exception:
        return "<what cannot be shown>"


def _states(record: Episode | HindsightTrial) -> dict[str, Any]:
    return wire.states_json({name: app.frozen() for name, app in record.apps.items()})


def _timeout(spec: ActionSpec | None) -> float:
    return OPEN_TIMEOUT_S if spec is None else spec.timeout_s


def _lost(where: str, why: str) -> Fault:
    return Fault(where, MachineError.__name__, why, "the App's process")
