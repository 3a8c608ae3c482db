import json
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from plural_gym.errors import MachineError, RecordError, UnknownName
from plural_gym.records import ledger
from plural_gym.records.delta import delta
from plural_gym.records.job_folder import JobFolder
from plural_gym.records.journal import Journal
from plural_gym.records.ledger import TABLES, read, seal
from plural_gym.records.trial_folder import TrialFolder

STARTED = "2026-03-01T10:00:00Z"


@pytest.fixture
def job(tmp_path: Path) -> JobFolder:
    made = JobFolder(tmp_path / "job-1")
    made.create({})
    return made


def reward(trial_id: str, turn: int, /, **fields: Any) -> dict[str, Any]:
    row = {
        **{
            "reward_id": f"{trial_id}-{turn}-live",
            "ts": STARTED,
            "verifier": "progress",
            "verifier_version": "1",
        },
        **{"kind": "step", "target": "step", "event_id": f"{trial_id}-e{turn}", "seat": None, "turn": turn},
        **{
            "app": "game",
            "action": "guess",
            "value": 0.25,
            "status": "ok",
            "source": "live",
            "run_id": "live",
        },
        "code_sha256": "c0de",
    }
    return row | fields


def append(path: Path, *rows: dict[str, Any]) -> None:
    with Journal.open(path) as journal:
        for row in rows:
            journal.append(row)


def finish(job: JobFolder, trial_id: str, steps: int = 3, **result: Any) -> TrialFolder:
    folder = job.trial(trial_id)
    folder.create()
    before: Any = None
    with Journal.open(folder.steps_path) as journal:
        for turn in range(steps + 1):
            state = {"turn": turn, "guesses": ["crane"] * turn}
            step = {
                **{
                    "event_id": f"{trial_id}-e{turn}",
                    "seq": turn,
                    "kind": "step" if turn else "reset",
                    "ts": STARTED,
                },
                **{"turn": turn, "seat": None, "duration_ms": 0.5, "app": "game", "action": "guess"},
                **{"arguments": {"word": "crane"}, "observation": {"marks": "..G"}, "error": None},
                **{"state": {"game": delta(before, state)}, "terminated": turn == steps, "truncated": False},
            }
            journal.append(step)
            before = state
    append(folder.rewards_path, *(reward(trial_id, turn) for turn in range(1, steps + 1)))
    summary = {
        **{
            "trial_id": trial_id,
            "job_id": job.id,
            "group_id": f"{job.id}/a/crane",
            "attempt": 0,
            "task": "crane",
        },
        **{"task_version": "1", "benchmark": None, "agent": "a", "seats": [None], "status": "succeeded"},
        **{"failure": None, "score": 1.0, "return": 0.75, "n_steps": steps, "stop_reason": "agent_finished"},
        **{"scores": [{"verifier": "solved", "version": "1", "score": 1, "weight": 1.0}], "terminated": True},
        **{
            "truncated": False,
            "seed": 7,
            "answer": "crane",
            "started": STARTED,
            "ended": "2026-03-01T11:00:00+01:00",
        },
        **{"usage": {"prompt_tokens": 10, "completion_tokens": 5, "cost_usd": 0.01}, "faults": []},
    }
    folder.seal(summary | result)
    return folder


def parts(job: JobFolder) -> dict[str, bytes]:
    root = job.ledger_path
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def ids(job: JobFolder, table: str = "rewards", column: str = "reward_id", **options: Any) -> list[str]:
    return sorted(read(job, table, **options)[column].to_pylist())


def test_finished_trials_become_rows_of_each_table(job: JobFolder) -> None:
    finish(job, "t1")
    manifest = seal(job)
    assert manifest["refused"] == {}
    episode = read(job, "episodes").to_pylist()[0]
    assert episode["score"] == 1.0 and episode["return"] == 0.75 and episode["revision"] == 1
    assert episode["scores"] == [{"verifier": "solved", "version": "1", "score": 1.0, "weight": 1.0}]
    assert episode["started"] == episode["ended"] == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert episode["prompt_tokens"] == 10 and episode["cost_usd"] == 0.01
    assert episode["answer"] == "crane" and episode["faults"] == "[]" and episode["n_exchanges"] is None
    rewards = read(job, "rewards").to_pylist()
    assert [row["value"] for row in rewards] == [0.25] * 3
    assert {row["group_id"] for row in rewards} == {"job-1/a/crane"} and rewards[0]["error_type"] is None
    steps = read(job, "steps").to_pylist()
    assert [row["kind"] for row in steps] == ["reset", "step", "step", "step"]
    assert [row["reward"] for row in steps] == [None, 0.25, 0.25, 0.25]
    assert json.loads(steps[1]["observation"]) == {"marks": "..G"}
    assert json.loads(steps[2]["state_before"]) == json.loads(steps[1]["state_after"])
    assert json.loads(steps[3]["state_after"]) == {"game": {"turn": 3, "guesses": ["crane"] * 3}}
    assert steps[0]["state_before"] == "{}"


def test_files_are_parquet_that_any_reader_takes(job: JobFolder) -> None:
    for number in range(3):
        finish(job, f"t{number}", group_id=f"g{number % 2}")
    manifest = seal(job)
    for name, table in TABLES.items():
        path = job.ledger_path / name / "part-0.parquet"
        found = pq.read_table(path)
        assert found.schema.equals(table.schema)
        assert found.schema.metadata[b"plural.schema"].decode() == f"{name}/1"
        assert found.schema.names[:9] == [key for key, _ in ledger._KEYS]
        column = pq.ParquetFile(path).metadata.row_group(0).column(0)
        assert column.compression == "ZSTD" and "RLE_DICTIONARY" in column.encodings
        line = manifest["tables"][name]["parts"][0]
        assert line["rows"] == found.num_rows and line["first"] is not None
        assert line["trials"] == ["t0", "t2", "t1"]
        assert found["group_id"].to_pylist() == sorted(found["group_id"].to_pylist())
    assert pq.read_table(job.ledger_path / "rewards").num_rows == 9


def test_sealing_again_writes_nothing(job: JobFolder) -> None:
    for number in range(5):
        finish(job, f"t{number}")
    first = seal(job, batch=2)
    files = parts(job)
    assert sorted(files) == sorted(
        [".lock", "manifest.json", *(f"{table}/part-{n}.parquet" for table in TABLES for n in range(3))]
    )
    stamp = (job.ledger_path / "manifest.json").stat().st_mtime_ns
    assert seal(job.path) == first
    assert parts(job) == files
    assert (job.ledger_path / "manifest.json").stat().st_mtime_ns == stamp


def test_trials_that_finish_later_come_in_new_parts(job: JobFolder) -> None:
    finish(job, "t1")
    running = job.trial("t2")
    running.create()
    append(running.steps_path, {"kind": "reset"})
    job.trial("t3").create()
    assert list(seal(job)["trials"]) == ["t1"]
    running.set_aside()
    finish(job, "t2")
    seal(job)
    assert ids(job, "episodes", "trial_id") == ["t1", "t2"]
    assert (job.ledger_path / "steps" / "part-1.parquet").exists()


def test_late_credit_gives_rows_for_what_is_new_only(job: JobFolder) -> None:
    folder = finish(job, "t1")
    finish(job, "t2")
    seal(job)
    fix = {"source": "apply", "run_id": "apply-1"}
    late = [reward("t1", turn, reward_id=f"late-{turn}", **fix) for turn in (1, 2)]
    append(folder.rewards_path, *late, late[0])
    seal(job)
    assert pq.read_table(job.ledger_path / "rewards" / "part-1.parquet").num_rows == 2
    assert not (job.ledger_path / "steps" / "part-1.parquet").exists()
    append(folder.rewards_path, late[1])
    files = parts(job)
    seal(job)
    changed = {name for name, content in parts(job).items() if files.get(name) != content}
    assert changed == {"manifest.json"}
    assert len(ids(job, current=False)) == 8
    assert ids(job) == ["late-1", "late-2", "t2-1-live", "t2-2-live", "t2-3-live"]
    assert {row["reward_id"] for row in folder.current_rewards()} == {"late-1", "late-2"}


def test_a_repeated_apply_that_keeps_its_ids_stays_whole(job: JobFolder) -> None:
    folder = finish(job, "t1", steps=0)
    append(folder.rewards_path, reward("t1", 1, reward_id="same", run_id="apply-1"))
    seal(job)
    append(
        folder.rewards_path, *(reward("t1", 1, reward_id=name, run_id="apply-2") for name in ("same", "new"))
    )
    seal(job)
    assert ids(job) == ["new", "same"] == sorted(row["reward_id"] for row in folder.current_rewards())
    assert ids(job, current=False) == ["new", "same", "same"]


def test_a_newer_revision_adds_a_row_and_is_the_one_that_is_read(job: JobFolder) -> None:
    folder = finish(job, "t1", status="awaiting_review", score=None)
    seal(job)
    folder.update({"status": "succeeded", "score": 0.5})
    seal(job)
    seal(job)
    assert read(job, "episodes")["score"].to_pylist() == [0.5]
    everything = read(job, "episodes", current=False).to_pylist()
    assert [(row["revision"], row["score"]) for row in everything] == [(1, None), (2, 0.5)]
    assert read(job, "steps").num_rows == 4


def test_every_seat_has_rows_of_its_own(job: JobFolder) -> None:
    seats = [{"seat": "north", "agent": "a", "score": 1.0}, {"seat": "south", "agent": "b", "score": -1.0}]
    scores = [
        {"verifier": "v", "score": 1.0, "seat": "north"},
        {"verifier": "v", "score": -1.0, "seat": "south"},
    ]
    folder = finish(job, "t1", seats=seats, scores=scores)
    credit = [
        reward("t1", 1, reward_id="x", run_id="r", seat="north", value=1.0),
        reward("t1", 1, reward_id="y", run_id="r", seat="south", value=-1.0),
    ]
    append(folder.rewards_path, *credit)
    seal(job)
    rows = read(job, "episodes").to_pylist()
    assert [(row["seat"], row["agent"], row["score"]) for row in rows] == [
        ("north", "a", 1.0),
        ("south", "b", -1.0),
    ]
    assert [row["group_id"] for row in rows] == ["job-1/a/crane/north", "job-1/a/crane/south"]
    assert [[score["score"] for score in row["scores"]] for row in rows] == [[1.0], [-1.0]]
    found = {row["reward_id"]: row["agent"] for row in read(job, "rewards").to_pylist()}
    assert found["x"] == "a" and found["y"] == "b"


def test_plain_seat_names_and_missing_keys_are_fine(job: JobFolder) -> None:
    folder = job.trial("bare")
    folder.create()
    folder.seal({"seats": ["north", "south"]})
    assert seal(job)["refused"] == {}
    rows = read(job, "episodes").to_pylist()
    assert [row["seat"] for row in rows] == ["north", "south"]
    assert rows[0]["trial_id"] == "bare" and rows[0]["job_id"] == "job-1" and rows[0]["score"] is None
    assert read(job, "steps").num_rows == 0


def test_large_states_are_replaced_by_their_hash(job: JobFolder) -> None:
    folder = job.trial("t1")
    folder.create()
    state = {"text": "é" * 70_000}
    append(
        folder.steps_path,
        {"kind": "reset", "state": {"app": {"value": state}}},
        {"kind": "step", "state": {}},
        {"kind": "step", "state": {"app": {"value": {"text": "\ud800"}}}, "error": "half \ud800"},
    )
    folder.seal({"seed": 1 << 80, "answer": {"a": 1}, "failure": {"kind": "agent"}})
    assert seal(job)["refused"] == {}
    steps = read(job, "steps").to_pylist()
    assert set(json.loads(steps[0]["state_after"])) == {"sha256"}
    assert steps[1]["state_after"] == steps[1]["state_before"] == steps[0]["state_after"]
    assert json.loads(steps[2]["state_after"]) == {"app": {"text": "\ud800"}}
    assert steps[2]["error"] == "half \\ud800"
    episode = read(job, "episodes").to_pylist()[0]
    assert (
        episode["seed"] is None
        and episode["answer"] == '{"a":1}'
        and episode["failure"] == '{"kind":"agent"}'
    )


def test_row_groups_are_closed_in_time(job: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "ROW_GROUP_ROWS", 3)
    for number in range(3):
        finish(job, f"t{number}")
    seal(job)
    meta = pq.ParquetFile(job.ledger_path / "steps" / "part-0.parquet").metadata
    assert [meta.row_group(n).num_rows for n in range(meta.num_row_groups)] == [3, 3, 3, 3]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"value": "high"}, "'value' is 'high', which does not fit double"),
        ({"turn": True}, "'turn' is True, which does not fit int32"),
        ({"turn": 1 << 40}, "does not fit int32"),
        ({"ts": "yesterday"}, "does not fit timestamp"),
        ({"ts": ["x"]}, "does not fit timestamp"),
        ({"verifier": {}}, "does not fit string"),
    ],
)
def test_a_damaged_trial_is_named_and_holds_up_no_other(
    job: JobFolder, fields: dict[str, Any], reason: str
) -> None:
    for number in range(3):
        finish(job, f"t{number}")
    append(job.trial("t1").rewards_path, reward("t1", 9, **fields))
    manifest = seal(job)
    assert list(manifest["refused"]) == ["t1"] and reason in manifest["refused"]["t1"]
    assert ids(job, "episodes", "trial_id") == ["t0", "t2"]
    assert len(ids(job, "steps", "trial_id")) == 8


def test_other_damage_is_named_too(job: JobFolder) -> None:
    for name, result in {"usage": {"usage": [1]}, "flag": {"terminated": 1}, "ok": {}}.items():
        finish(job, name, **result)
    finish(job, "half").result_path.write_text("{")
    edited = finish(job, "edited")
    edited.steps_path.write_bytes(edited.steps_path.read_bytes().replace(b"crane", b"crate"))
    manifest = seal(job)
    assert sorted(manifest["refused"]) == ["flag", "half", "usage"]
    assert list(manifest["trials"]) == ["ok"]


def test_times_and_words_are_taken_in_the_forms_that_records_have(job: JobFolder) -> None:
    finish(job, "t1", started=0.5, ended="2026-03-01T10:00:00", task_version=3, score="NaN")
    assert seal(job)["refused"] == {}
    row = read(job, "episodes").to_pylist()[0]
    assert row["started"] == datetime(1970, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)
    assert row["ended"] == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert row["task_version"] == "3" and row["score"] != row["score"]


def test_a_ledger_whose_parts_are_gone_or_changed_is_made_again(job: JobFolder) -> None:
    for number in range(3):
        finish(job, f"t{number}")
    seal(job, batch=1)
    before = {table: read(job, table).to_pylist() for table in TABLES}
    (job.ledger_path / "rewards" / "part-1.parquet").unlink()
    (job.ledger_path / "steps" / "part-9.parquet").write_bytes(b"stray")
    seal(job)
    assert {table: read(job, table).to_pylist() for table in TABLES} == before
    assert not (job.ledger_path / "steps" / "part-9.parquet").exists()
    for damage in ("{", "[]", '{"schema": "ledger/0"}', '{"schema": "ledger/1", "tables": {}}'):
        (job.ledger_path / "manifest.json").write_text(damage)
        seal(job)
        assert {table: read(job, table).to_pylist() for table in TABLES} == before


def test_a_kill_between_the_manifest_and_the_renames_is_finished_by_the_next_seal(
    job: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish(job, "t1")
    real = Path.replace

    def killed(self: Path, target: Path) -> Path:
        if "rewards" in str(target):
            raise KeyboardInterrupt
        return real(self, target)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        seal(job)
    monkeypatch.undo()
    assert not (job.ledger_path / "rewards" / "part-0.parquet").exists()
    assert len(ids(job)) == 3
    files = {name.replace(".part-0.parquet.tmp", "part-0.parquet"): data for name, data in parts(job).items()}
    seal(job)
    assert parts(job) == files


def test_a_full_disk_leaves_no_part(job: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    finish(job, "t1")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ledger.os, "fchmod", full)
    with pytest.raises(MachineError, match="disk full"):
        seal(job)
    monkeypatch.undo()
    assert read(job, "rewards").num_rows == 0
    seal(job)
    assert read(job, "rewards").num_rows == 3


def test_seals_killed_at_any_moment_lose_and_double_nothing(job: JobFolder) -> None:
    for number in range(60):
        finish(job, f"t{number:02}", steps=2)
    script = """
import sys
from plural_gym.records.ledger import seal
print("go", flush=True)
seal(sys.argv[1], batch=2)
"""
    for turn in range(6):
        command = [sys.executable, "-c", script, str(job.path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as sealer:
            assert sealer.stdout is not None
            sealer.stdout.readline()
            time.sleep(0.005 + 0.02 * turn)
            sealer.send_signal(signal.SIGKILL)
        if (job.ledger_path / "rewards").exists():
            visible = [pq.read_table(path) for path in (job.ledger_path / "rewards").glob("*.parquet")]
            assert (
                max(Counter(i for t in visible for i in t["reward_id"].to_pylist()).values(), default=1) == 1
            )
            assert len(set(ids(job))) == len(ids(job))
    seal(job)
    assert len(ids(job, current=False)) == len(set(ids(job, current=False))) == 120
    assert len(ids(job, "episodes", "trial_id")) == 60 and read(job, "steps").num_rows == 180
    assert not list(job.ledger_path.rglob("*.tmp"))


def test_what_is_not_there_is_said(job: JobFolder, tmp_path: Path) -> None:
    assert read(job, "rewards").num_rows == 0 and read(job, "rewards").schema.equals(TABLES["rewards"].schema)
    with pytest.raises(UnknownName, match=r"no table 'reward'; did you mean 'rewards'\?"):
        read(job, "reward")
    with pytest.raises(RecordError, match="there is no such Job"):
        seal(tmp_path / "none")
    finish(job, "t1")
    seal(job)
    (job.ledger_path / "rewards" / "part-0.parquet").write_bytes(b"x")
    with pytest.raises(RecordError, match="seal the Job again"):
        read(job, "rewards")
