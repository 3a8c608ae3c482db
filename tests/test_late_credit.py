"""Rows that are added to a Trial's ledger after its end."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from plural_gym.episode import Credit
from plural_gym.errors import Fault
from plural_gym.late_credit import of_seat, row_of, rows_of
from plural_gym.receipt import Pin
from plural_gym.records import journal
from plural_gym.replay import Replayed
from plural_gym.verifiers.human import HumanVerifier

STEP = {"event_id": "t-s1", "turn": 1, "app": "desk", "action": "send", "seat": None}


def verifier() -> Any:
    return HumanVerifier(name="late", instructions="i", criteria=[{"name": "c"}])


def given(credits: Any) -> Replayed:
    return Replayed("t", None, (), 1.0, credits, {"t-s1": STEP})


def test_every_credit_has_an_id_of_its_own() -> None:
    credits = (Credit("t-s1", 0.5, "step"), Credit("t-s1", 0.25, "step"), Credit("x-7", 1.0, "model_call"))
    rows = list(rows_of(verifier(), given(credits), "review"))
    assert [row["reward_id"] for row in rows] == [
        "t-s1-hindsight-late-review",
        "t-s1-hindsight-late-review-2",
        "x-7-hindsight-late-review",
    ]
    assert [(row["target"], row["exchange_id"], row["turn"]) for row in rows] == [
        ("step", None, 1),
        ("step", None, 1),
        ("model_call", "x-7", None),
    ]
    seats = [row for seat in ("north", "south") for row in of_seat(rows, seat)]
    assert len({row["reward_id"] for row in seats}) == 6
    assert {row["seat"] for row in seats} == {"north", "south"} and list(of_seat(rows, None)) == rows


def test_a_fault_is_a_row_without_a_value_and_a_pin_may_stand_for_its_verifier() -> None:
    fault = Fault("verifier late hindsight", "KeyError", "'n'", "verify.py:3")
    [row] = rows_of(verifier(), given(fault), "apply_1")
    assert (row["status"], row["value"], row["error_at"]) == ("error", None, "verify.py:3")
    of_pin = row_of(Pin.of(verifier()), "t", "apply_1", "hindsight", None, None, fault)
    assert {**of_pin, "ts": 0} == {**row, "ts": 0}


def test_a_run_that_is_killed_while_it_is_added_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "rewards.jsonl"
    path.write_text('{"run": "live"}\n')
    script = """
import sys
from pathlib import Path
from plural_gym.late_credit import extend

for run in range(1_000_000):
    extend(Path(sys.argv[1]), [{"run": run, "text": "x" * 2000} for _ in range(500)])
"""
    size, runs = path.stat().st_size, []
    for wait_s in (0.0, 0.003, 0.011, 0.02):
        process = subprocess.Popen([sys.executable, "-c", script, str(path)])
        deadline = time.monotonic() + 30
        while path.stat().st_size == size and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(wait_s)
        process.kill()
        process.wait()
        rows = list(journal.read(path))
        assert rows[0] == {"run": "live"} and len(rows) > 1
        assert (len(rows) - 1) % 500 == 0
        size, runs = path.stat().st_size, [*runs, len(rows)]
    assert runs == sorted(runs) and not (tmp_path / "rewards.jsonl.torn").exists()
