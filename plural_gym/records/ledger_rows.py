"""The rows that a finished Trial gives to each table of the ledger, as plain dicts.

`ledger` holds the schemas, turns values into their columns and writes the files. Keys that a record lacks are
null. Fields whose shape differs from Task to Task are JSON strings.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from plural_gym.records.journal import prefix
from plural_gym.records.strict_json import text
from plural_gym.records.trial_folder import TrialFolder

Row = dict[str, Any]

MAX_STATE_CHARS = 65_536
"""Longer State columns hold `{"sha256": ...}` of the JSON instead; the Trial's folder has the State."""
_RESULT_KEYS = ("job_id", "trial_id", "group_id", "attempt", "benchmark", "task", "task_version", "agent")
_RESULT_FIELDS = (
    *(
        "status",
        "failure",
        "score",
        "scores",
        "return",
        "n_steps",
        "n_exchanges",
        "stop_reason",
        "terminated",
    ),
    *("truncated", "trainable", "drop_reason", "policy_version_min", "policy_version_max", "seed", "started"),
    *("ended", "capture_level", "revision"),
)
_STEP_FIELDS = (
    *("event_id", "seq", "kind", "turn", "ts", "duration_ms", "app", "action", "error", "terminated"),
    *("truncated", "exchange_id", "tool_call_id"),
)


@dataclass(frozen=True, slots=True)
class Mark:
    """How much of a Trial the ledger has already."""

    revision: int = -1
    """The newest revision of `result.json` among the episodes; -1 for none."""
    rewards: int = 0
    """Lines of `rewards.jsonl` that were looked at."""
    rewards_bytes: int = 0
    """Bytes of those lines."""


class SealedTrial:
    """A finished Trial as the ledger sees it at one moment: later lines wait for the next seal."""

    def __init__(self, folder: TrialFolder, job_id: str, known: Mark | None) -> None:
        self.folder = folder
        self.known = known
        self.result = folder.result()
        self.result.setdefault("trial_id", folder.id)
        self.result.setdefault("job_id", job_id)
        pin = prefix(folder.rewards_path) if folder.rewards_path.exists() else {"records": 0, "bytes": 0}
        self.mark = Mark(self.result.get("revision") or 0, pin["records"], pin["bytes"])
        self._seats = dict(self._named_seats())

    def seats(self) -> Mapping[str | None, Row]:
        """Each seat with what differs there from the rest of the result; {None: {}} for a single seat."""
        return self._seats

    def key(self, seat: str | None) -> Row:
        """The key columns of a row at `seat`. A named seat is a group of its own."""
        own = self._seats.get(seat, {})
        key = {name: own.get(name, self.result.get(name)) for name in _RESULT_KEYS}
        if seat is not None and "group_id" not in own and key["group_id"] is not None:
            key["group_id"] = f"{key['group_id']}/{seat}"
        return {**key, "seat": seat}

    def rewards(self) -> Iterator[Row]:
        return islice(self.folder.rewards(), self.mark.rewards)

    def _named_seats(self) -> Iterator[tuple[str | None, Row]]:
        for seat in self.result.get("seats") or [None]:
            if isinstance(seat, Mapping):
                yield seat.get("seat"), dict(seat)
            else:
                yield seat, {}


def episode_rows(trial: SealedTrial) -> Iterator[Row]:
    """One row a seat, for a revision that the ledger lacks."""
    if trial.known is not None and trial.mark.revision <= trial.known.revision:
        return
    for seat, own in trial.seats().items():
        result = {**trial.result, **own}
        usage = result.get("usage") or {}
        row = {name: result.get(name) for name in _RESULT_FIELDS}
        row["scores"] = [
            score for score in result.get("scores") or [] if score.get("seat", seat) in (seat, None)
        ]
        row["failure"] = _words(result.get("failure"))
        row["answer"] = _words(result.get("answer"))
        row["seed"] = _in_64_bits(result.get("seed"))
        row["faults"] = _json(result.get("faults"))
        row |= {name: usage.get(name) for name in ("prompt_tokens", "completion_tokens", "cost_usd")}
        yield trial.key(seat) | row


def reward_rows(trial: SealedTrial) -> Iterator[Row]:
    """The rewards that the ledger lacks. A row that a run wrote twice (same id and run) counts once."""
    known = trial.known.rewards if trial.known else 0
    seen: set[tuple[Any, Any]] = set()
    for number, row in enumerate(trial.rewards()):
        name = (row.get("reward_id"), row.get("run_id"))
        if name[0] is not None and name in seen:
            continue
        seen.add(name)
        if number >= known:
            yield row | trial.key(row.get("seat"))


def step_rows(trial: SealedTrial) -> Iterator[Row]:
    """Every line of `steps.jsonl`, resets too, when a Trial is sealed first; they never grow afterwards."""
    if trial.known is not None:
        return
    earned = _live_rewards(trial)
    state = _state({})
    for record in trial.folder.timeline():
        seat = record.get("seat")
        row = {name: record.get(name) for name in _STEP_FIELDS}
        row["arguments"] = _json(record.get("arguments"))
        row["observation"] = _json(record.get("observation"))
        row["state_before"] = state
        row["state_after"] = state = _state(record["states"]) if record.get("state") else state
        row["reward"] = earned.get((record.get("event_id"), seat))
        yield trial.key(seat) | row


def _live_rewards(trial: SealedTrial) -> dict[tuple[Any, Any], float]:
    """(event, seat) → what its seat earned there while the episode ran, over all Verifiers."""
    earned: dict[tuple[Any, Any], float] = defaultdict(float)
    seen: set[Any] = set()
    for row in trial.rewards():
        name = row.get("reward_id")
        if row.get("source") != "live" or row.get("kind") != "step" or row.get("value") is None:
            continue
        if name is None or name not in seen:
            seen.add(name)
            earned[row.get("event_id"), row.get("seat")] += row["value"]
    return earned


def _state(states: Mapping[str, Any]) -> str:
    content = text(states)
    if len(content) <= MAX_STATE_CHARS:
        return content
    return text({"sha256": hashlib.sha256(content.encode()).hexdigest()})


def _in_64_bits(seed: Any) -> Any:
    """A wider seed is legal, and stays in the Trial's folder only."""
    return None if isinstance(seed, int) and not -(1 << 63) <= seed < 1 << 63 else seed


def _json(value: Any) -> str | None:
    return None if value is None else text(value)


def _words(value: Any) -> str | None:
    """Text as it is; anything else as JSON."""
    return value if value is None or isinstance(value, str) else text(value)
