"""What a worker process runs: the App host, or the hooks, behind a channel.

`apps`: one AppHost, answering the controller's requests. `hooks`: LocalHooks; while a function runs, its
`query` and `snapshot` of Apps travel back up the same channel as questions.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

from plural_gym.app import AppDeclaration
from plural_gym.errors import (
    ActionRejected,
    AppFault,
    Fault,
    MachineError,
    PluralError,
    QueryRefused,
    UnknownName,
    begins_at,
)
from plural_gym.host import wire
from plural_gym.host.hooks import LocalHooks
from plural_gym.host.host import AppHost
from plural_gym.party import Split
from plural_gym.records.strict_json import legible
from plural_gym.runtime import Channel, ChannelLost, Role
from plural_gym.state import Frozen
from plural_gym.step import TaskView
from plural_gym.verifier import VerifierOutput

MAX_OBSERVATION_BYTES = 16 * 1024 * 1024
"""Of JSON; what an action returns beyond it is a fault of the App."""
QUESTION_ERRORS: dict[str, type[PluralError]] = {
    kind.__name__: kind for kind in (QueryRefused, UnknownName, ActionRejected, AppFault)
}


def serve(role: Role, channel: Channel) -> None:
    """Answer requests of one role until the channel closes.

    An answer repeats its request's `id` and names the process, so that what author code, or a process that
    it forked, writes into the channel is not taken for one.
    """
    process = os.getpid()
    worker = AppsWorker() if role == "apps" else HooksWorker(channel)
    while True:
        try:
            request = channel.receive()
        except ChannelLost:
            return
        answer = worker.answer(request)
        if os.getpid() != process:
            os._exit(0)  # a fork that author code made and let return: the worker itself answers
        named = {"id": request["id"], "pid": process} if "id" in request else {}
        try:
            channel.send({**answer, **named})
        except ChannelLost:
            return
        except (MachineError, ValueError) as error:
            channel.send({**worker.failed(request, error), **named})


class AppsWorker:
    """One world's Apps."""

    def __init__(self) -> None:
        self._host = AppHost({})
        self._declarations: Mapping[str, AppDeclaration] = {}

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request; any error of ours or an author's becomes a fault."""
        try:
            handler = getattr(self, "_" + request["op"])
            answer: dict[str, Any] = handler(request)
            return answer
        except PluralError as error:
            fault = error.fault if isinstance(error, AppFault) else None
            fault = fault or Fault.of(error, "apps")
            return {"raised": type(error).__name__, "message": str(error), "fault": wire.fault_json(fault)}
        except BaseException as error:
            return self.failed(request, error)

    def failed(self, request: Mapping[str, Any], error: BaseException) -> dict[str, Any]:
        """The answer where a request could not be answered."""
        fault = Fault.of(error, "apps", author=self._author(request.get("name")))
        return {"raised": "AppFault", "message": str(fault), "fault": wire.fault_json(fault)}

    def _open(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._host.close()
        self._declarations = wire.unpack_apps(request["apps"])
        self._host = AppHost(self._declarations, seats=tuple(request.get("seats", ())))
        opening = self._host.open(
            wire.task_view(request["task"]), request["setup"], request["seed"], Path(request["resources"])
        )
        controls = self._host.controls()
        return {"opening": opening, "controls": controls, **self._snapshots(request), **self._table()}

    def _table(self) -> dict[str, Any]:
        """Who may act and who is out; nothing for a single Agent."""
        if not self._host.seats:
            return {}
        return {"table": {"turn": self._host.table.turn, "out": self._host.table.out}}

    def _view(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"value": self._host.view(request["seat"])}

    def _forfeit(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"value": self._host.forfeit(request["seat"]), **self._table()}

    def _act(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name = request["name"]
        outcome = self._host.act(name, request["arguments"], request["watch"], request["seat"])
        fault = outcome.fault
        if fault is not None and fault.type == PydanticSerializationError.__name__:
            # Raised where State or observation are written down; the action is what gave them.
            author = begins_at(self._author(name)) or fault.at
            outcome.fault = replace(fault, at=f"{author} in {outcome.action}")
        elif fault is None:
            outcome.fault = self._too_large(outcome.app, outcome.action, outcome.observation)
            if outcome.fault is not None:
                outcome.observation = None
        return wire.outcome_json(outcome) | self._table()

    def _author(self, name: Any) -> Any:
        """The author's function behind an action; None where it cannot be told."""
        app, spec = self._host.actions.table.get(str(name), (None, None))
        if app is None or spec is None:
            return None
        return getattr(self._declarations[app].options.get("class"), spec.name, None)

    def _too_large(self, app: str | None, action: str, observation: Any) -> Fault | None:
        """The fault of an action whose observation no model and no record could take."""
        size = len(to_json(legible(observation), inf_nan_mode="strings"))
        if size <= MAX_OBSERVATION_BYTES:
            return None
        said = f"action {action!r} returned {size} bytes of JSON; the limit is {MAX_OBSERVATION_BYTES}"
        at = begins_at(self._author(f"{app}.{action}")) or action
        return Fault(f"app {app}", AppFault.__name__, said, at)

    def _snapshots(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"states": {name: wire.text(state) for name, state in self._host.snapshots().items()}}

    def _query(self, request: Mapping[str, Any]) -> dict[str, Any]:
        app, action = request["app"], request["action"]
        value = self._host.query(app, action, request["arguments"])
        fault = self._too_large(app, action, value)
        if fault is not None:
            raise AppFault(str(fault), fault)
        return {"value": value}


class AskingWorld:
    """The Apps as a hook sees them from its worker: it asks the controller."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._process = os.getpid()
        self._names: tuple[str, ...] = ()
        self.states: dict[str, Frozen | None] = {}
        """States known already, so that nobody need be asked."""
        self.request_id: Any = None
        """The request that is being answered."""
        self.number = 0

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
        if os.getpid() != self._process:
            raise QueryRefused("only the process that runs a function may query Apps, not one it has forked.")
        self.number += 1
        self._channel.send({**question, "id": self.request_id, "number": self.number, "pid": self._process})
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

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request; what an author's function raises becomes a fault."""
        handler = getattr(self, "_" + request["op"])
        self._world.request_id = request.get("id")
        try:
            answer: dict[str, Any] = handler(request)
            return answer
        except BaseException as error:
            return self.failed(request, error)

    def failed(self, request: Mapping[str, Any], error: BaseException) -> dict[str, Any]:
        """The answer where a request could not be answered."""
        name, op = request.get("verifier", ""), request["op"]
        hooks = self._hooks.get(name)
        author = None if hooks is None else getattr(hooks.sets[0], op, None)
        fault = Fault.of(error, f"verifier {name} {op}", author=author)
        return {"value": None, "fault": wire.fault_json(fault)}

    def _load(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._task = wire.task_view(request["task"])
        self._world.name_apps(tuple(request["apps"]))
        for packed in request["hooks"]:
            try:
                hooks = LocalHooks((wire.unpack_hooks(packed),), seats=request.get("seats", ()))
                self._hooks[packed["name"]] = hooks
            except BaseException as error:
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
        shown = value.shares if isinstance(value, Split) else value
        return {"value": shown, "fault": wire.fault_json(fault)}

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
