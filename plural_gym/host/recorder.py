"""TrialRecorder: writes a Session's record, line by line, into a Trial's folder.

Lines of `steps.jsonl` and `rewards.jsonl` of one seed are equal byte for byte, times and ids apart.

An ordinary step changes a handful of a line's twenty fields. So its lines are cut from templates, made once
for each action, and only what the step came to is serialised. A State of up to `SMALL_STATE` bytes is written
whole where it changed, which costs less than finding out what changed in it; a larger one as its difference.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import time
from typing import Any

from pydantic_core import to_json

from plural_gym.episode import Credit
from plural_gym.errors import Fault
from plural_gym.host.host import Outcome
from plural_gym.party import Split
from plural_gym.records.delta import delta
from plural_gym.records.journal import Journal
from plural_gym.records.strict_json import decode, encode
from plural_gym.state import Frozen, frozen_json, thaw

Reward = tuple[float | None, Fault | None]

SMALL_STATE = 512
"""Bytes of JSON. A State that grows larger is written as differences for the rest of its episode."""
_HOLE = "<hole 5b21c4>"
"""Stands in a template's record where a line differs from the next."""


class TrialRecorder:
    """The two journals of one Trial."""

    def __init__(
        self,
        steps: Path,
        rewards: Path,
        trial_id: str,
        versions: Mapping[str, str],
        code: Mapping[str, str] | None = None,
        seat: str | None = None,
    ) -> None:
        """Open both journals.

        Args:
            steps: path of `steps.jsonl`.
            rewards: path of `rewards.jsonl`.
            trial_id: leads every event's id.
            versions: Verifier -> version.
            code: Verifier -> content hash of its code.
            seat: whose record it is, in a party.
        """
        self._steps = Journal.open(steps)
        self._rewards = Journal.open(rewards)
        self._trial_id = trial_id
        self._versions = versions
        self._code = code or {}
        self._seat = seat
        self._seq = 0
        self._last: dict[str, Frozen | None] = {}
        self._large: set[str] = set()
        self._credits: dict[str, int] = {}
        self._step_lines: dict[tuple[str | None, str | None], bytes] = {}
        self._reward_lines: dict[tuple[str, str, str], bytes] = {}
        self.faults: list[Fault] = []
        """Every reward function's failure, in order."""

    def event_id(self, turn: int) -> str:
        """The id of a step, unique among all Trials."""
        return f"{self._trial_id}-s{turn}"

    def opened(self, observation: Any, states: Mapping[str, Frozen | None]) -> None:
        """The first line: the opening observation and every App's State."""
        self._last.clear()
        self._large.clear()
        self._write("reset", 0, None, None, None, observation, None, self._changes(states), 0.0, False, False)

    def stepped(
        self,
        turn: int,
        outcome: Outcome,
        states: Mapping[str, Frozen | None],
        rewarding: tuple[str, ...],
        seconds: float,
    ) -> None:
        """One action and the rewards it earned."""
        app, action = outcome.app, outcome.action
        error = outcome.error if outcome.fault is None else str(outcome.fault)
        self._step(
            "step",
            turn,
            app,
            action,
            outcome.arguments,
            outcome.observation,
            error,
            self._changes(states),
            seconds,
            outcome.terminated,
            outcome.truncated,
            outcome.seat,
        )
        self._earned(turn, app, action, rewarding, outcome.rewards, outcome.seat)

    def acted(
        self,
        turn: int,
        app: str,
        action: str,
        arguments: Mapping[str, Any],
        observation: Any,
        error: str | None,
        frozen: Frozen | None,
        rewarding: tuple[str, ...],
        rewards: float | Sequence[Reward],
        seconds: float,
        terminated: bool,
        truncated: bool,
    ) -> None:
        """As `stepped`, for the world's only App and an action that it has; at a third of the cost.

        Args:
            frozen: the App's State after the action.
            rewards: a number where the only rewarding Verifier gave one.
        """
        state = None
        if frozen.__class__ is tuple and app not in self._large and frozen != self._last.get(app):
            state = self._whole(app, frozen)
        if state is None:
            state = self._changes({app: frozen})
        now = self._write(
            "step",
            turn,
            app,
            action,
            arguments,
            observation,
            error,
            state,
            seconds,
            terminated,
            truncated,
        )
        if isinstance(rewards, float):
            key = rewarding[0], app, action
            line = self._reward_lines.get(key) or self._reward_line(key)
            number = b"%d" % turn
            self._rewards.append_line(line % (number, now, number, number, to_json(rewards)))
        else:
            self._earned(turn, app, action, rewarding, rewards)

    def credited(
        self,
        verifier: str,
        credit: Credit,
        record: Mapping[str, Any] | None,
        source: str,
        run_id: str,
        seat: str | None = None,
    ) -> None:
        """Credit given after the episode.

        Args:
            record: the credited step or model call.
            source: `hindsight`, `apply` or `review`.
            run_id: which run of the Verifier gave it.
            seat: whose credit it is, in a party.
        """
        record = record or {}
        exchange = credit.event_id if credit.target == "model_call" else record.get("exchange_id")
        self._reward(
            verifier,
            "hindsight",
            credit.target,
            credit.event_id,
            exchange,
            record.get("turn"),
            record.get("app"),
            record.get("action"),
            credit.value,
            None,
            source,
            run_id,
            seat,
        )

    def failed(
        self, verifier: str, kind: str, fault: Fault, source: str, run_id: str, seat: str | None = None
    ) -> None:
        """A hindsight function that failed: the row says so, and is never a value."""
        self.faults.append(fault)
        self._reward(verifier, kind, "step", None, None, None, None, None, None, fault, source, run_id, seat)

    def _write(
        self,
        kind: str,
        turn: int,
        app: str | None,
        action: str | None,
        arguments: Mapping[str, Any] | None,
        observation: Any,
        error: str | None,
        state: bytes,
        seconds: float,
        terminated: bool,
        truncated: bool,
    ) -> bytes:
        """A line of `steps.jsonl` as `_step` writes it, from a template; its time, as JSON."""
        number, now = b"%d" % turn, to_json(time())
        try:
            line = (self._step_lines.get((app, action)) or self._step_line(kind, app, action)) % (
                number,
                b"%d" % self._seq,
                number,
                now,
                to_json(int(seconds * 1e6 + 0.5) / 1e3),
                b"null" if arguments is None else to_json(arguments, inf_nan_mode="strings"),
                b"null" if observation is None else to_json(observation, inf_nan_mode="strings"),
                b"null" if error is None else to_json(error),
                state,
                b"true" if terminated else b"false",
                b"true" if truncated else b"false",
            )
        except ValueError:  # text that only the slower encoder can write
            given = arguments, observation, error, state, seconds, terminated, truncated
            self._step(kind, turn, app, action, *given)
        else:
            self._seq += 1
            self._steps.append_line(line)
        return now

    def _whole(self, app: str, frozen: Frozen) -> bytes | None:
        """The field `state` with the whole State of the only App; None where that is not what to write."""
        try:
            state = to_json({app: {"value": frozen[1]}})
        except ValueError:
            return None
        if len(state) > SMALL_STATE:
            return None
        self._last[app] = frozen
        return state

    def _changes(self, states: Mapping[str, Frozen | None]) -> bytes:
        """The States that are not what they were, as the JSON of the field `state`."""
        parts = []
        for name, frozen in states.items():
            before = self._last.get(name)
            if frozen is None or frozen == before:
                continue
            self._last[name] = frozen
            parts.append(b"%b:%b" % (encode(name), self._change(name, before, frozen)))
        return b"{%b}" % b",".join(parts)

    def _change(self, name: str, before: Frozen | None, frozen: Frozen) -> bytes:
        """What became of one App's State, as `records.delta` says it."""
        if name not in self._large:
            try:
                value = frozen_json(frozen)
            except ValueError:  # text that only the slower encoder can write
                value = encode(thaw(frozen))
            if len(value) > SMALL_STATE:
                self._large.add(name)
            if len(value) <= SMALL_STATE or before is None:
                return b'{"value":%b}' % value
        return encode({"value": thaw(frozen)} if before is None else delta(thaw(before), thaw(frozen)))

    def _step(
        self,
        kind: str,
        turn: int,
        app: str | None,
        action: str | None,
        arguments: Mapping[str, Any] | None,
        observation: Any,
        error: str | None,
        state: bytes,
        seconds: float,
        terminated: bool = False,
        truncated: bool = False,
        seat: str | None = None,
    ) -> None:
        seq = self._seq
        self._seq = seq + 1
        self._steps.append(
            {
                "event_id": self.event_id(turn),
                "seq": seq,
                "kind": kind,
                "turn": turn,
                "seat": seat or self._seat,
                "ts": time(),
                "duration_ms": round(seconds * 1000, 3),
                "app": app,
                "action": action,
                "arguments": arguments,
                "observation": observation,
                "error": error,
                "state": decode(state),
                "terminated": terminated,
                "truncated": truncated,
                "exchange_id": None,
                "tool_call_id": None,
            }
        )

    def _step_line(self, kind: str, app: str | None, action: str | None) -> bytes:
        """The template of an action's lines in `steps.jsonl`; `_step` has the same fields."""
        made = self._step_lines[app, action] = _template(
            {
                "event_id": f"{self._trial_id}-s{_HOLE}",
                "seq": _HOLE,
                "kind": kind,
                "turn": _HOLE,
                "seat": self._seat,
                "ts": _HOLE,
                "duration_ms": _HOLE,
                "app": app,
                "action": action,
                "arguments": _HOLE,
                "observation": _HOLE,
                "error": _HOLE,
                "state": _HOLE,
                "terminated": _HOLE,
                "truncated": _HOLE,
                "exchange_id": None,
                "tool_call_id": None,
            }
        )
        return made

    def _earned(
        self,
        turn: int,
        app: str | None,
        action: str | None,
        rewarding: tuple[str, ...],
        rewards: Sequence[Reward],
        seat: str | None = None,
    ) -> None:
        """The rows of one step, one for each Verifier that rewards; one a seat where it is shared out."""
        event_id = self.event_id(turn)
        for name, (value, fault) in zip(rewarding, rewards, strict=False):
            if fault is not None:
                self.faults.append(fault)
            given = name, "step", "step", event_id, None, turn, app, action
            if isinstance(value, Split):
                for earner, part in value.shares.items():
                    self._reward(*given, part, fault, "live", "live", earner)
            else:
                self._reward(*given, value, fault, "live", "live", seat)

    def _reward(
        self,
        verifier: str,
        kind: str,
        target: str,
        event_id: str | None,
        exchange_id: str | None,
        turn: int | None,
        app: str | None,
        action: str | None,
        value: float | None,
        fault: Fault | None,
        source: str,
        run_id: str,
        seat: str | None = None,
    ) -> None:
        reward_id = f"{event_id or self._trial_id}-{kind}-{verifier}-{run_id}"
        if seat is not None:
            reward_id = f"{reward_id}-{seat}"
        if kind != "step":
            # One run may credit one step twice.
            count = self._credits[reward_id] = self._credits.get(reward_id, 0) + 1
            reward_id = reward_id if count == 1 else f"{reward_id}-{count}"
        self._rewards.append(
            {
                "reward_id": reward_id,
                "ts": time(),
                "verifier": verifier,
                "verifier_version": self._versions.get(verifier),
                "kind": kind,
                "target": target,
                "event_id": event_id,
                "exchange_id": exchange_id,
                "seat": seat or self._seat,
                "turn": turn,
                "app": app,
                "action": action,
                "value": value,
                "status": "error" if fault is not None else "none" if value is None else "ok",
                "error_type": None if fault is None else fault.type,
                "error_message": None if fault is None else fault.message,
                "error_at": None if fault is None else fault.at,
                "source": source,
                "run_id": run_id,
                "code_sha256": self._code.get(verifier),
            }
        )

    def _reward_line(self, key: tuple[str, str, str]) -> bytes:
        """The template of the rows of a Verifier's plain rewards; `_reward` has the same fields."""
        verifier, app, action = key
        event_id = f"{self._trial_id}-s{_HOLE}"
        made = self._reward_lines[key] = _template(
            {
                "reward_id": f"{event_id}-step-{verifier}-live",
                "ts": _HOLE,
                "verifier": verifier,
                "verifier_version": self._versions.get(verifier),
                "kind": "step",
                "target": "step",
                "event_id": event_id,
                "exchange_id": None,
                "seat": self._seat,
                "turn": _HOLE,
                "app": app,
                "action": action,
                "value": _HOLE,
                "status": "ok",
                "error_type": None,
                "error_message": None,
                "error_at": None,
                "source": "live",
                "run_id": "live",
                "code_sha256": self._code.get(verifier),
            }
        )
        return made

    def close(self) -> None:
        """Flush both journals to the disk and close them."""
        self._steps.close()
        self._rewards.close()


def _template(record: Mapping[str, Any]) -> bytes:
    """The line of a record with a `%b` for each `_HOLE`: for any JSON, or for a part of a text."""
    hole = _HOLE.encode()
    line = encode(record).replace(b"%", b"%%")
    return line.replace(b'"%b"' % hole, b"%b").replace(hole, b"%b") + b"\n"
