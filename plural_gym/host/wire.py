"""How outcomes, states, faults and episodes travel between a Job and its workers: plain JSON."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plural_gym import refs
from plural_gym.app import AppDeclaration
from plural_gym.episode import Credit, Episode, HindsightTrial, Usage, recorded_apps
from plural_gym.errors import Fault
from plural_gym.host.hooks import HookSet
from plural_gym.host.host import Outcome
from plural_gym.state import Frozen, frozen_json
from plural_gym.step import TaskView, World
from plural_gym.verifier import total_reward

HOOKS = ("check", "reward", "hindsight")


def pack_apps(declarations: Mapping[str, AppDeclaration]) -> dict[str, Any]:
    """Apps as another process on this machine can build them."""
    return {
        name: {
            "kind": app.kind,
            "folder": None if app.folder is None else str(app.folder),
            "options": {
                key: {"code": refs.pack(value)} if isinstance(value, type) else {"value": value}
                for key, value in app.options.items()
            },
        }
        for name, app in declarations.items()
    }


def unpack_apps(packed: Mapping[str, Any]) -> dict[str, AppDeclaration]:
    """The counterpart of `pack_apps`."""
    return {
        name: AppDeclaration(
            app["kind"],
            {
                key: refs.unpack(option["code"]) if "code" in option else option["value"]
                for key, option in app["options"].items()
            },
            None if app["folder"] is None else Path(app["folder"]),
        )
        for name, app in packed.items()
    }


def pack_hooks(hooks: HookSet) -> dict[str, Any]:
    """One Verifier's code; `total_reward` stays with the controller."""
    packed: dict[str, Any] = {"name": hooks.name, "version": hooks.version}
    for hook in HOOKS:
        function = getattr(hooks, hook)
        if function is not None and function is not total_reward:
            packed[hook] = refs.pack(function)
    return packed


def unpack_hooks(packed: Mapping[str, Any]) -> HookSet:
    """The counterpart of `pack_hooks`."""
    code = {hook: refs.unpack(packed[hook]) for hook in HOOKS if hook in packed}
    return HookSet(packed["name"], packed["version"], **code)


def task_json(task: TaskView) -> dict[str, Any]:
    """A Task's view."""
    return task.to_json()


def task_view(data: Mapping[str, Any]) -> TaskView:
    """The counterpart of `task_json`."""
    return TaskView(**data)


def text(frozen: Frozen | None) -> str | None:
    """A State as a string of JSON, which the carrier need not parse."""
    return None if frozen is None else frozen_json(frozen).decode()


def frozen(text: str | None) -> Frozen | None:
    """The counterpart of `text`."""
    return None if text is None else text.encode()


def fault_json(fault: Fault | None) -> dict[str, str] | None:
    """A fault."""
    if fault is None:
        return None
    return {
        "where": fault.where,
        "type": fault.type,
        "message": fault.message,
        "at": fault.at,
        "trace": fault.trace,
    }


def fault_of(data: Mapping[str, str] | None) -> Fault | None:
    """The counterpart of `fault_json`."""
    return None if data is None else Fault(**data)


def outcome_json(outcome: Outcome, before: bool = True) -> dict[str, Any]:
    """An outcome; `before` is left out where the receiver holds it already."""
    return {
        "app": outcome.app,
        "action": outcome.action,
        "arguments": outcome.arguments,
        "observation": outcome.observation,
        "error": outcome.error,
        "fault": fault_json(outcome.fault),
        "before": text(outcome.before) if before else None,
        "after": text(outcome.after),
        "terminated": outcome.terminated,
        "truncated": outcome.truncated,
    }


def outcome_of(data: Mapping[str, Any]) -> Outcome:
    """The counterpart of `outcome_json`."""
    return Outcome(
        data["app"],
        data["action"],
        data["arguments"],
        data["observation"],
        data["error"],
        fault_of(data["fault"]),
        frozen(data["before"]),
        frozen(data["after"]),
        data["terminated"],
        data["truncated"],
    )


def states_json(states: Mapping[str, tuple[Any, Frozen | None, Frozen | None]]) -> dict[str, Any]:
    """Control, first and last State of every App."""
    return {name: [control, text(first), text(last)] for name, (control, first, last) in states.items()}


def states_of(data: Mapping[str, Any]) -> dict[str, tuple[Any, Frozen | None, Frozen | None]]:
    """The counterpart of `states_json`."""
    return {name: (control, frozen(first), frozen(last)) for name, (control, first, last) in data.items()}


def episode_of(data: Mapping[str, Any], task: TaskView, world: World | None) -> Episode:
    """An Episode from its JSON: what a check in a worker, or in replay, is given."""
    return Episode(
        task=task.fresh(),
        apps=recorded_apps(states_of(data["states"]), world),
        trajectory=tuple(data["trajectory"]),
        observation=data["observation"],
        answer=data["answer"],
        stop_reason=data["stop_reason"],
        artifacts=tuple(data["artifacts"]),
        usage=Usage(**data["usage"]),
        seat=data["seat"],
    )


def trial_of(data: Mapping[str, Any], task: TaskView) -> HindsightTrial:
    """A HindsightTrial from its JSON."""
    return HindsightTrial(
        score=data["score"],
        apps=recorded_apps(states_of(data["states"])),
        task=task.fresh(),
        trajectory=data["trajectory"],
        calls=data["calls"],
        seat=data["seat"],
    )


def credit_json(credit: Credit) -> dict[str, Any]:
    """One credit."""
    return {"event_id": credit.event_id, "value": credit.value, "target": credit.target}
