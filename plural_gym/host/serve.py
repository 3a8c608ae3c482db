"""What a worker process runs: the App host, or the hooks, behind a channel.

`apps`: one AppHost, answering the controller's requests. `hooks`: LocalHooks; while a function runs, its
`query` and `snapshot` of Apps travel back up the same channel as questions.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plural_gym.errors import ActionRejected, AppFault, Fault, PluralError, QueryRefused, UnknownName
from plural_gym.host import wire
from plural_gym.host.hooks import LocalHooks
from plural_gym.host.host import AppHost
from plural_gym.runtime import Channel, ChannelLost, Role
from plural_gym.state import Frozen
from plural_gym.step import TaskView
from plural_gym.verifier import VerifierOutput

QUESTION_ERRORS: dict[str, type[PluralError]] = {
    kind.__name__: kind for kind in (QueryRefused, UnknownName, ActionRejected, AppFault)
}


def serve(role: Role, channel: Channel) -> None:
    """Answer requests of one role until the channel closes."""
    worker = AppsWorker() if role == "apps" else HooksWorker(channel)
    while True:
        try:
            request = channel.receive()
        except ChannelLost:
            return
        for answer in worker.answers(request):
            channel.send(answer)


class AppsWorker:
    """One world's Apps."""

    def __init__(self) -> None:
        self._host = AppHost({})

    def answers(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The answers to one request; any error of ours or an author's becomes a fault."""
        try:
            handler = getattr(self, "_" + request["op"])
            return [handler(request)]
        except PluralError as error:
            fault = error.fault if isinstance(error, AppFault) else None
            fault = fault or Fault.of(error, "apps")
            return [{"raised": type(error).__name__, "message": str(error), "fault": wire.fault_json(fault)}]
        except Exception as error:
            fault = Fault.of(error, "apps")
            return [{"raised": "AppFault", "message": str(fault), "fault": wire.fault_json(fault)}]

    def _open(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._host.close()
        self._host = AppHost(wire.unpack_apps(request["apps"]))
        opening = self._host.open(
            wire.task_view(request["task"]), request["setup"], request["seed"], Path(request["resources"])
        )
        return {"opening": opening, "controls": self._host.controls(), **self._snapshots(request)}

    def _act(self, request: Mapping[str, Any]) -> dict[str, Any]:
        outcome = self._host.act(request["name"], request["arguments"], request["watch"], request["seat"])
        return wire.outcome_json(outcome)

    def _snapshots(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"states": {name: wire.text(state) for name, state in self._host.snapshots().items()}}

    def _query(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"value": self._host.query(request["app"], request["action"], request["arguments"])}


class AskingWorld:
    """The Apps as a hook sees them from its worker: it asks the controller."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._names: tuple[str, ...] = ()
        self.states: dict[str, Frozen | None] = {}
        """States known already, so that nobody need be asked."""

    def name_apps(self, names: tuple[str, ...]) -> None:
        """Set which Apps there are."""
        self._names = names

    def app_names(self) -> tuple[str, ...]:
        return self._names

    def snapshot(self, app: str) -> Frozen | None:
        if app not in self.states:
            self.states[app] = wire.frozen(self._ask({"ask": "snapshot", "app": app}))
        return self.states[app]

    def query(self, app: str, action: str, arguments: Mapping[str, Any]) -> Any:
        return self._ask({"ask": "query", "app": app, "action": action, "arguments": dict(arguments)})

    def _ask(self, question: dict[str, Any]) -> Any:
        self._channel.send(question)
        answer = self._channel.receive()
        if "raised" in answer:
            raise QUESTION_ERRORS.get(answer["raised"], AppFault)(answer["message"])
        return answer["value"]


class HooksWorker:
    """The code of a Task's Verifiers."""

    def __init__(self, channel: Channel) -> None:
        self._world = AskingWorld(channel)
        self._hooks: dict[str, LocalHooks] = {}
        self._faults: dict[str, Fault] = {}
        self._task = TaskView("", "")

    def answers(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The answers to one request."""
        answer: dict[str, Any] = getattr(self, "_" + request["op"])(request)
        return [answer]

    def _load(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._task = wire.task_view(request["task"])
        self._world.name_apps(tuple(request["apps"]))
        for packed in request["hooks"]:
            try:
                self._hooks[packed["name"]] = LocalHooks((wire.unpack_hooks(packed),))
            except (Exception, SystemExit) as error:
                self._faults[packed["name"]] = Fault.of(error, f"verifier {packed['name']}")
        return {"loaded": True}

    def _reward(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name = request["verifier"]
        if name in self._faults:
            return {"value": None, "fault": wire.fault_json(self._faults[name])}
        outcome = wire.outcome_of(request["outcome"])
        self._world.states = {} if outcome.app is None else {outcome.app: outcome.after}
        [(value, fault)] = self._hooks[name].reward(
            self._task, outcome, request["turn"], self._world, request["event_id"], request["seat"]
        )
        return {"value": value, "fault": wire.fault_json(fault)}

    def _check(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name = request["verifier"]
        if name in self._faults:
            return {"fault": wire.fault_json(self._faults[name])}
        self._world.states = {}
        episode = wire.episode_of(request["episode"], self._task, self._world)
        output = self._hooks[name].check(name, episode, ())
        if isinstance(output, VerifierOutput):
            return {"output": {name: getattr(output, name) for name in VerifierOutput.model_fields}}
        return {"fault": wire.fault_json(output)}

    def _hindsight(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name = request["verifier"]
        if name in self._faults:
            return {"fault": wire.fault_json(self._faults[name])}
        credits = self._hooks[name].hindsight(name, wire.trial_of(request["trial"], self._task))
        if isinstance(credits, Fault):
            return {"fault": wire.fault_json(credits)}
        return {"credits": [wire.credit_json(credit) for credit in credits]}
