"""Late credit: the rows that a Verifier's run on a stored Trial adds to the Trial's rewards.jsonl.

`relabel.py` comes here. Rows are only ever added; readers take the newest run of each Verifier and version.
"""

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from plural_gym.errors import Fault
from plural_gym.party import Split
from plural_gym.receipt import Pin
from plural_gym.records.atomic import write_bytes
from plural_gym.records.job_folder import JobFolder
from plural_gym.records.journal import Journal
from plural_gym.records.strict_json import encode
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.replay import Replayed, seats_of
from plural_gym.verifier import Verifier


def add_run(verifier: Verifier, given: Replayed, run_id: str, job: JobFolder) -> None:
    """Add one run's rows to the Trial's rewards.jsonl; for the holder of its lock."""
    folder = job.trial(given.trial_id)
    rows = list(rows_of(verifier, given, run_id))
    party = seats_of(folder.result())
    replaced = {
        (row["kind"], row["seat"])
        for row in folder.current_rewards()
        if (row["verifier"], row["verifier_version"]) == (verifier.name, verifier.version)
        and not (party and row["kind"] == "hindsight")  # which replay leaves as it was
    }
    # Where an earlier run gave something and this one gives nothing, a line has to say that it is nothing.
    for kind, seat in sorted(replaced - {(row["kind"], row["seat"]) for row in rows}, key=str):
        rows += of_seat([row_of(verifier, given.trial_id, run_id, kind, None, None, None)], seat)
    extend(folder.rewards_path, rows)
    folder.update(_returns(folder, party))


def _returns(folder: TrialFolder, party: Sequence[str]) -> dict[str, Any]:
    """What `result.json` says of the newest runs' step rewards, for the Trial or for each seat."""
    live = [row for row in folder.current_rewards() if row["kind"] == "step" and row["value"] is not None]

    def summed(rows: Sequence[Mapping[str, Any]]) -> float | None:
        return math.fsum(row["value"] for row in rows) if rows else None

    if not party:
        return {"return": summed(live)}
    seats = folder.result()["seats"]
    return {
        "seats": [
            seat | {"return": summed([row for row in live if row["seat"] == seat["seat"]])} for seat in seats
        ]
    }


def extend(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows to a journal, all of them or none, whenever this process is killed.

    A part of a run would take the place of the whole run before it. So the journal grows beside its place.
    """
    with Journal.open(path):
        whole = path.read_bytes() + b"".join(encode(row) + b"\n" for row in rows)
        write_bytes(path, whole)


def rows_of(verifier: Verifier, given: Replayed, run_id: str) -> Iterator[dict[str, Any]]:
    """The rows of one run: of each replayed step, then of what hindsight credits."""
    for reward in given.rewards:
        row = row_of(verifier, given.trial_id, run_id, "step", reward.record, reward.value, reward.fault)
        if isinstance(reward.value, Split):
            for seat, part in reward.value.shares.items():
                yield from of_seat([row | {"value": part}], seat)
        else:
            yield row
    if isinstance(given.credits, Fault):
        yield row_of(verifier, given.trial_id, run_id, "hindsight", None, None, given.credits)
        return
    times: dict[str, int] = {}
    for credit in given.credits:
        record = given.records.get(credit.event_id) or {"event_id": credit.event_id}
        row = row_of(verifier, given.trial_id, run_id, "hindsight", record, credit.value, None)
        exchange = credit.event_id if credit.target == "model_call" else row["exchange_id"]
        row |= {"target": credit.target, "exchange_id": exchange}
        # A reward counts once by its id; one step may be credited several times.
        times[credit.event_id] = count = times.get(credit.event_id, 0) + 1
        yield row if count == 1 else row | {"reward_id": f"{row['reward_id']}-{count}"}


def of_seat(rows: Iterable[dict[str, Any]], seat: str | None) -> Iterator[dict[str, Any]]:
    """Rows of late credit as they stand in a party, where each seat has its own."""
    for row in rows:
        yield row if seat is None else row | {"seat": seat, "reward_id": f"{row['reward_id']}-{seat}"}


def row_of(
    verifier: Verifier | Pin,
    trial_id: str,
    run_id: str,
    kind: str,
    record: Mapping[str, Any] | None,
    value: float | None,
    fault: Fault | None,
) -> dict[str, Any]:
    """A line of rewards.jsonl, with the fields that the live recorder writes."""
    record = record or {}
    event_id = record.get("event_id")
    return {
        "reward_id": f"{event_id or trial_id}-{kind}-{verifier.name}-{run_id}",
        "ts": time.time(),
        "verifier": verifier.name,
        "verifier_version": verifier.version,
        "kind": kind,
        "target": "step",
        "event_id": event_id,
        "exchange_id": record.get("exchange_id"),
        "seat": record.get("seat"),
        "turn": record.get("turn"),
        "app": record.get("app"),
        "action": record.get("action"),
        "value": value,
        "status": "error" if fault is not None else "none" if value is None else "ok",
        "error_type": None if fault is None else fault.type,
        "error_message": None if fault is None else fault.message,
        "error_at": None if fault is None else fault.at,
        "source": "apply",
        "run_id": run_id,
        "code_sha256": verifier.content_hash,
    }
