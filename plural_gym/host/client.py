"""The controller's side of a worker: Apps and hooks in processes that can be killed.

Same shape as AppHost and LocalHooks, so a Session does not know the difference. A process that is lost or too
slow becomes a fault with a reason; it never takes the Trial's other half with it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic_core import PydanticSerializationError

from plural_gym.app import ActionSpec, AppDeclaration
from plural_gym.environment import Actions
from plural_gym.episode import Credit, Episode, HindsightTrial
from plural_gym.errors import (
    AppFault,
    DefinitionError,
    Fault,
    MachineError,
    PluralError,
    UnknownName,
    begins_at,
    suggest,
)
from plural_gym.host import wire
from plural_gym.host.hooks import HookSet, Reward, sum_of_rewards
from plural_gym.host.host import Outcome
from plural_gym.host.serve import QUESTION_ERRORS
from plural_gym.runtime import ChannelLost, Process
from plural_gym.state import Frozen
from plural_gym.step import TaskView, World
from plural_gym.verifier import Hook, VerifierOutput, total_reward

OPEN_TIMEOUT_S = 120.0
"""For loading an App's code and starting an episode."""
LOAD_TIMEOUT_S = 60.0
"""For loading Verifiers' code."""
LOSSES = 2
"""After so many lost processes in one Trial a reward function is switched off for the rest of it."""


class RemoteHost:
    """One Trial's Apps, in a process of their own."""

    def __init__(
        self, process: Process, declarations: Mapping[str, AppDeclaration], actions: Actions
    ) -> None:
        self._process = process
        self._declarations = declarations
        self._actions = actions
        self._controls: dict[str, Any] = {}
        self._states: dict[str, Frozen | None] = {}
        self._gone: str | None = None

    def open(self, task: TaskView, setup: Mapping[str, Mapping[str, Any]], seed: int, resources: Path) -> Any:
        """Start the episode. Raises AppFault where an App cannot be set up, or takes too long."""
        request = {
            "op": "open",
            "apps": wire.pack_apps(self._declarations),
            "task": wire.task_json(task),
            "setup": setup,
            "seed": seed,
            "resources": str(resources),
        }
        answer = self._ask(request, OPEN_TIMEOUT_S, "starting the Apps")
        self._controls = answer["controls"]
        self._keep(answer["states"])
        return answer["opening"]

    def act(
        self, name: str, arguments: Mapping[str, Any], watch: bool = True, seat: str | None = None
    ) -> Outcome:
        """Perform one action; a lost or slow process comes back as a fault."""
        app, spec = self._actions.table.get(name, (None, None))
        action = name if spec is None else spec.name
        state = self._states.get(app) if app is not None else None
        try:
            request = {"op": "act", "name": name, "arguments": arguments, "watch": watch, "seat": seat}
            answer = self._ask(request, _timeout(spec), f"action {name!r}")
        except PydanticSerializationError as error:
            said = f"{action}: its arguments are no JSON values: {error}."
            shown = {key: ascii(value) for key, value in arguments.items()}
            return Outcome(app, action, shown, None, said, None, state, state, False, False)
        except AppFault as error:
            fault = error.fault or Fault.of(error, f"app {app}")
            return Outcome(app, action, dict(arguments), None, None, fault, state, state, False, False)
        outcome = wire.outcome_of(answer)
        if outcome.app is not None and outcome.after is not None:
            self._states[outcome.app] = outcome.after
        return outcome

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
                self._keep(self._ask({"op": "snapshots"}, OPEN_TIMEOUT_S, "reading State")["states"])
        return {name: self._states.get(name) for name in self._declarations}

    def query(self, app: str, action: str, arguments: Mapping[str, Any]) -> Any:
        """What a read-only action answers. Raises as AppHost.query does."""
        if app not in self._declarations:
            raise UnknownName(f"the Environment has no App {app!r}; {suggest(app, self._declarations)}")
        spec = next((spec for spec in self._actions.by_app[app] if spec.name == action), None)
        request = {"op": "query", "app": app, "action": action, "arguments": arguments}
        return self._ask(request, _timeout(spec), f"query {action!r}")["value"]

    def _keep(self, states: Mapping[str, str | None]) -> None:
        self._states.update({name: wire.frozen(state) for name, state in states.items()})

    def _ask(self, request: Mapping[str, Any], timeout_s: float, doing: str) -> Any:
        if self._gone is not None:
            raise AppFault(f"the Apps are gone: {self._gone}", _lost("apps", self._gone))
        try:
            self._process.channel.send(request)
            answer = self._process.channel.receive(timeout_s)
        except TimeoutError:
            self._process.kill()
            self._gone = f"{doing} took longer than {timeout_s:g} s and was ended"
            raise AppFault(f"{self._gone}.", _lost("apps", self._gone)) from None
        except ChannelLost:
            self._gone = f"the Apps' process ended during {doing}: {self._process.kill()}"
            raise AppFault(f"{self._gone}.", _lost("apps", self._gone)) from None
        if "raised" in answer:
            kind = QUESTION_ERRORS.get(answer["raised"], AppFault)
            if kind is AppFault:
                raise AppFault(answer["message"], wire.fault_of(answer["fault"]))
            raise kind(answer["message"])
        return answer

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
    ) -> None:
        self._start = start
        self._sets = {hooks.name: hooks for hooks in sets}
        self._timeouts_s = timeouts_s
        self._task = task
        self._apps = list(apps)
        self._process: Process | None = None
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
        answer = self._ask(name, "reward", request, world)
        if isinstance(answer, Fault):
            return None, answer
        return answer["value"], wire.fault_of(answer["fault"])

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
        answer = self._ask(name, "check", {"op": "check", "episode": data}, world)
        if isinstance(answer, Fault):
            return answer
        if "output" in answer:
            try:
                return VerifierOutput(**answer["output"])
            except DefinitionError as error:
                at = self._place(name, "check")
                return Fault(f"verifier {name} check", "GradingFault", str(error), at)
        fault = wire.fault_of(answer["fault"])
        assert fault is not None
        return fault

    def hindsight(self, name: str, trial: HindsightTrial, world: World) -> list[Credit] | Fault:
        """The credit one Verifier gives in hindsight, or the fault of its code."""
        data = {
            "score": trial.score,
            "states": _states(trial),
            "trajectory": list(trial.trajectory),
            "calls": list(trial.calls),
            "seat": trial.seat,
        }
        answer = self._ask(name, "hindsight", {"op": "hindsight", "trial": data}, world)
        if isinstance(answer, Fault):
            return answer
        if "credits" in answer:
            return [Credit(**credit) for credit in answer["credits"]]
        fault = wire.fault_of(answer["fault"])
        assert fault is not None
        return fault

    def _ask(self, name: str, hook: Hook, request: Mapping[str, Any], world: World) -> Any:
        """One hook's answer, or a Fault where its process was lost or too slow."""
        where = f"verifier {name} {hook}"
        at = self._place(name, hook)
        timeout_s = self._timeouts_s.get(name, {}).get(hook, 60.0)
        try:
            process = self._running()
            deadline = time.monotonic() + timeout_s
            process.channel.send({**request, "verifier": name})
            while True:
                answer = process.channel.receive(max(deadline - time.monotonic(), 0.0))
                if "ask" not in answer:
                    return answer
                process.channel.send(_answered(answer, world))
        except TimeoutError:
            self._lose(name)
            return Fault(where, "TimeoutError", f"took longer than {timeout_s:g} s and was ended", at)
        except MachineError:
            ended = self._lose(name)
            return Fault(where, "MachineError", f"its process ended: {ended}", at)

    def _place(self, name: str, hook: Hook) -> str:
        """`verify.py:14`, where a hook's function begins: all that is known of one that was lost."""
        return begins_at(getattr(self._sets[name], hook)) or name

    def _running(self) -> Process:
        if self._process is None:
            self._process = self._start()
            packed = [wire.pack_hooks(hooks) for hooks in self._sets.values()]
            load = {"op": "load", "task": wire.task_json(self._task), "apps": self._apps, "hooks": packed}
            self._process.channel.send(load)
            self._process.channel.receive(LOAD_TIMEOUT_S)
        return self._process

    def _lose(self, name: str) -> str:
        self._losses[name] = self._losses.get(name, 0) + 1
        process, self._process = self._process, None
        return process.kill() if process is not None else "it could not be started"

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process = None


def _answered(question: Mapping[str, Any], world: World) -> dict[str, Any]:
    try:
        if question["ask"] == "snapshot":
            return {"value": wire.text(world.snapshot(question["app"]))}
        return {"value": world.query(question["app"], question["action"], question["arguments"])}
    except PluralError as error:
        return {"raised": type(error).__name__, "message": str(error.args[0] if error.args else error)}


def _states(record: Episode | HindsightTrial) -> dict[str, Any]:
    return wire.states_json({name: app.frozen() for name, app in record.apps.items()})


def _timeout(spec: ActionSpec | None) -> float:
    return OPEN_TIMEOUT_S if spec is None else spec.timeout_s


def _lost(where: str, why: str) -> Fault:
    return Fault(where, MachineError.__name__, why, "the App's process")
