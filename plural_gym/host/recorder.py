"""TrialRecorder: writes a Session's record, line by line, into a Trial's folder.

Lines of `steps.jsonl` and `rewards.jsonl` of one seed are equal byte for byte, times and ids apart.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plural_gym.episode import Credit
from plural_gym.errors import Fault
from plural_gym.host.host import Outcome
from plural_gym.records.delta import delta
from plural_gym.records.journal import Journal
from plural_gym.state import Frozen, thaw


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
        self._credits: dict[str, int] = {}
        self.faults: list[Fault] = []
        """Every reward function's failure, in order."""

    def event_id(self, turn: int) -> str:
        """The id of a step, unique among all Trials."""
        return f"{self._trial_id}-s{turn}"

    def opened(self, observation: Any, states: Mapping[str, Frozen | None]) -> None:
        """The first line: the opening observation and every App's State."""
        self._last = dict(states)
        self._step(
            "reset",
            0,
            None,
            None,
            None,
            observation,
            None,
            {name: {"value": thaw(frozen)} for name, frozen in states.items() if frozen is not None},
            0.0,
        )

    def stepped(
        self,
        turn: int,
        outcome: Outcome,
        states: Mapping[str, Frozen | None],
        rewarding: tuple[str, ...],
        seconds: float,
    ) -> None:
        """One action and the rewards it earned."""
        changes = {}
        for name, frozen in states.items():
            last = self._last.get(name)
            if frozen is not None and frozen != last:
                changes[name] = _change(last, frozen)
                self._last[name] = frozen
        error = outcome.error if outcome.fault is None else str(outcome.fault)
        self._step(
            "step",
            turn,
            outcome.app,
            outcome.action,
            outcome.arguments,
            outcome.observation,
            error,
            changes,
            seconds,
            outcome.terminated,
            outcome.truncated,
        )
        for name, (value, fault) in zip(rewarding, outcome.rewards, strict=False):
            if fault is not None:
                self.faults.append(fault)
            self._reward(
                name,
                "step",
                "step",
                self.event_id(turn),
                None,
                turn,
                outcome.app,
                outcome.action,
                value,
                fault,
                "live",
                "live",
            )

    def credited(
        self, verifier: str, credit: Credit, record: Mapping[str, Any] | None, source: str, run_id: str
    ) -> None:
        """Credit given after the episode.

        Args:
            record: the credited step or model call.
            source: `hindsight`, `apply` or `review`.
            run_id: which run of the Verifier gave it.
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
        )

    def failed(self, verifier: str, kind: str, fault: Fault, source: str, run_id: str) -> None:
        """A hindsight function that failed: the row says so, and is never a value."""
        self.faults.append(fault)
        self._reward(verifier, kind, "step", None, None, None, None, None, None, fault, source, run_id)

    def _step(
        self,
        kind: str,
        turn: int,
        app: str | None,
        action: str | None,
        arguments: Mapping[str, Any] | None,
        observation: Any,
        error: str | None,
        state: Mapping[str, Any],
        seconds: float,
        terminated: bool = False,
        truncated: bool = False,
    ) -> None:
        seq = self._seq
        self._seq = seq + 1
        self._steps.append(
            {
                "event_id": f"{self._trial_id}-s{turn}",
                "seq": seq,
                "kind": kind,
                "turn": turn,
                "seat": self._seat,
                "ts": time.time(),
                "duration_ms": round(seconds * 1000, 3),
                "app": app,
                "action": action,
                "arguments": arguments,
                "observation": observation,
                "error": error,
                "state": state,
                "terminated": terminated,
                "truncated": truncated,
                "exchange_id": None,
                "tool_call_id": None,
            }
        )

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
    ) -> None:
        reward_id = f"{event_id or self._trial_id}-{kind}-{verifier}-{run_id}"
        if kind != "step":
            # One run may credit one step twice.
            count = self._credits[reward_id] = self._credits.get(reward_id, 0) + 1
            reward_id = reward_id if count == 1 else f"{reward_id}-{count}"
        self._rewards.append(
            {
                "reward_id": reward_id,
                "ts": time.time(),
                "verifier": verifier,
                "verifier_version": self._versions.get(verifier),
                "kind": kind,
                "target": target,
                "event_id": event_id,
                "exchange_id": exchange_id,
                "seat": self._seat,
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

    def close(self) -> None:
        """Flush both journals to the disk and close them."""
        self._steps.close()
        self._rewards.close()


def _change(last: Frozen | None, frozen: Frozen) -> Any:
    value = thaw(frozen)
    if last is None:
        return {"value": value}
    return delta(thaw(last), value)
