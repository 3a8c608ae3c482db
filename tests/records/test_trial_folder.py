import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plural_gym.errors import MachineError, RecordError
from plural_gym.records.delta import delta
from plural_gym.records.journal import Journal
from plural_gym.records.trial_folder import TrialFolder


@pytest.fixture
def folder(tmp_path: Path) -> TrialFolder:
    made = TrialFolder(tmp_path / "jobs" / "job" / "trials" / "trial-1")
    made.create()
    return made


def write(path: Path, *records: dict[str, Any]) -> None:
    with Journal.open(path) as journal:
        for record in records:
            journal.append(record)


def play(folder: TrialFolder, states: list[dict[str, Any]]) -> None:
    before: dict[str, Any] = {}
    with Journal.open(folder.steps_path) as journal:
        for turn, state in enumerate(states):
            changes = {app: delta(before.get(app), value) for app, value in state.items()}
            changes = {app: change for app, change in changes.items() if change is not None}
            journal.append({"kind": "step" if turn else "reset", "turn": turn, "state": changes})
            before = json.loads(json.dumps(state))


def test_a_trial_is_finished_when_its_result_is_written(folder: TrialFolder) -> None:
    write(folder.steps_path, {"kind": "reset"})
    write(folder.rewards_path, {"value": 1.0})
    assert not folder.finished()
    sealed = folder.seal({"trial_id": "trial-1", "score": 0.5})
    assert folder.finished() and folder.result() == sealed
    assert sealed["revision"] == 1 and set(sealed["files"]) == {"steps.jsonl", "rewards.jsonl"}
    with pytest.raises(RecordError, match="sealed already"):
        folder.seal({})


def test_late_credit_leaves_a_trial_finished_and_an_edit_does_not(folder: TrialFolder) -> None:
    write(folder.rewards_path, {"value": 1.0})
    folder.seal({})
    write(folder.rewards_path, {"value": 2.0})
    write(folder.exchanges_path, {"first": "after the end"})
    assert folder.finished()
    content = folder.rewards_path.read_bytes()
    folder.rewards_path.write_bytes(content.replace(b"1.0", b"9.0"))
    assert not folder.finished()
    folder.rewards_path.unlink()
    assert not folder.finished()


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"files": 3}', '{"files": {"steps.jsonl": 1}}', '{"fil']
)
def test_a_damaged_result_is_not_finished(folder: TrialFolder, content: str) -> None:
    folder.result_path.write_text(content)
    assert not folder.finished()


def test_a_pin_never_leads_out_of_the_folder(folder: TrialFolder) -> None:
    folder.result_path.write_text('{"files": {"../x": {"records": 0, "bytes": 0, "sha256": ""}}}')
    assert not folder.finished()


def test_an_update_keeps_the_pins_and_raises_the_revision(folder: TrialFolder) -> None:
    write(folder.steps_path, {"kind": "reset"})
    pins = folder.seal({"score": None, "status": "awaiting_review"})["files"]
    write(folder.rewards_path, {"value": 1.0})
    assert folder.update({"score": 1.0})["revision"] == 2
    assert folder.update({"revision": 7})["revision"] == 7
    assert folder.result() == {"revision": 7, "score": 1.0, "status": "awaiting_review", "files": pins}
    assert folder.finished()
    with pytest.raises(RecordError, match="Leave out 'files'"):
        folder.update({"files": {}})


def test_a_missing_result_is_said(folder: TrialFolder) -> None:
    for use in (folder.result, folder.receipt, folder.trajectory, lambda: folder.update({})):
        with pytest.raises(RecordError, match="there is no such record"):
            use()
    folder.result_path.write_text("[]")
    with pytest.raises(RecordError, match="holds list, not an object"):
        folder.result()


def test_a_receipt_is_written_once(folder: TrialFolder) -> None:
    folder.write_receipt({"seed": 1})
    folder.write_trajectory({"steps": []})
    for again in (folder.write_receipt, folder.write_trajectory):
        with pytest.raises(RecordError, match="written only once"):
            again({"seed": 2})
    assert folder.receipt() == {"seed": 1} and folder.trajectory() == {"steps": []}


def test_interrupted_executions_are_kept_one_by_one(folder: TrialFolder) -> None:
    assert folder.set_aside() is None
    for number in (1, 2):
        with folder.lock():
            write(folder.steps_path, {"execution": number})
            (folder.logs_path / "host.log").write_text("x")
            (folder.path / ".result.json.1-ab.tmp").write_text("{")
            place = folder.set_aside()
            assert place is not None and place.name == f"interrupted-{number}"
            folder.create()
        assert sorted(path.name for path in place.iterdir()) == ["logs", "steps.jsonl"]
        assert not folder.steps_path.exists() and list(folder.steps()) == []
    assert folder.set_aside() is None


def test_a_finished_trial_is_never_displaced(folder: TrialFolder) -> None:
    folder.seal({})
    with pytest.raises(RecordError, match="its files stay"):
        folder.set_aside()


def test_a_killed_execution_frees_the_trial(folder: TrialFolder) -> None:
    script = """
import sys, time
from plural_gym.records.journal import Journal
from plural_gym.records.trial_folder import TrialFolder
folder = TrialFolder(sys.argv[1])
with folder.lock():
    journal = Journal.open(folder.steps_path)
    journal.append({"kind": "reset"})
    print("running", flush=True)
    time.sleep(60)
"""
    command = [sys.executable, "-c", script, str(folder.path)]
    for _ in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as execution:
            assert execution.stdout is not None
            execution.stdout.readline()
            assert folder.running()
            with pytest.raises(MachineError, match="another process"), folder.lock():
                pass
            execution.send_signal(signal.SIGKILL)
        assert not folder.running() and not folder.finished()
        with folder.lock():
            assert folder.set_aside() is not None
    assert len(list(folder.path.glob("interrupted-*/steps.jsonl"))) == 2


def test_states_are_put_together_from_their_changes(folder: TrialFolder) -> None:
    states: list[dict[str, Any]] = [
        {"game": {"guesses": [], "n": 1}, "shop": {"cart": ["a" * 100]}},
        {"game": {"guesses": ["crane"], "n": 1}, "shop": {"cart": ["a" * 100]}},
        {"game": {"n": True, "guesses": ["crane"]}, "shop": {"cart": ["a" * 100, {"b": 2}]}},
        {"game": {"n": True, "guesses": ["crane"]}, "shop": {"cart": ["a" * 100, {"b": 2}]}, "late": {}},
    ]
    play(folder, states)
    opening = folder.opening()
    assert opening is not None and opening["kind"] == "reset"
    assert opening["states_before"] == {} and json.dumps(opening["states"]) == json.dumps(states[0])
    steps = list(folder.steps())
    assert [step["turn"] for step in steps] == [1, 2, 3]
    for step, before, after in zip(steps, states, states[1:], strict=False):
        assert json.dumps(step["states_before"]) == json.dumps(before)
        assert json.dumps(step["states"]) == json.dumps(after)
    assert [record["turn"] for record in folder.timeline()] == [0, 1, 2, 3]


def test_only_unchanged_states_are_shared_and_mutation_spoils_no_later_record(folder: TrialFolder) -> None:
    states = [{"a": {"log": list(range(n)), "deep": {"x": [1]}}, "b": {"y": [2]}} for n in range(40, 44)]
    play(folder, states)
    seen = []
    for step in folder.steps():
        assert json.dumps(step["states"]["a"]) == json.dumps(states[step["turn"]]["a"])
        assert step["states"]["b"] is step["states_before"]["b"]
        assert step["states"]["a"]["deep"] is not step["states_before"]["a"]["deep"]
        step["states"]["a"]["log"].clear()
        step["states"]["a"]["deep"]["x"].append("spoiled")
        step["states"]["extra"] = 1
        seen.append(step)
    assert len(seen) == 3


def test_a_step_that_does_not_follow_from_the_one_before_is_named(folder: TrialFolder) -> None:
    write(
        folder.steps_path, {"kind": "reset", "state": {"a": {"value": {}}}}, {"state": {"a": {"append": [1]}}}
    )
    with pytest.raises(RecordError, match=r"steps\.jsonl:2: A recorded change of State does not fit"):
        list(folder.steps())


def test_a_megabyte_of_state_over_many_steps_stays_small_on_disk(folder: TrialFolder) -> None:
    rows = [{"id": n, "text": "x" * 80} for n in range(10_000)]
    before: dict[str, Any] = {"rows": rows, "turn": 0}
    with Journal.open(folder.steps_path) as journal:
        journal.append({"kind": "reset", "state": {"app": delta(None, before)}})
        for turn in range(1, 10):
            after = json.loads(json.dumps(before))
            after["turn"] = turn
            after["rows"][turn * 7]["text"] = "changed"
            journal.append({"kind": "step", "state": {"app": delta(before, after)}})
            before = after
    assert folder.steps_path.stat().st_size < 1_200_000
    assert [step["states"]["app"]["turn"] for step in folder.steps()] == list(range(1, 10))


def reward(run: str, value: float, **fields: Any) -> dict[str, Any]:
    row = {"seat": None, "verifier": "v", "verifier_version": "1", "kind": "step"}
    return {**row, "run_id": run, "value": value, **fields}


def test_only_the_newest_run_of_a_verifier_counts(folder: TrialFolder) -> None:
    write(
        folder.rewards_path,
        reward("live", 1),
        reward("live", 2),
        reward("live", 3, kind="hindsight"),
        reward("live", 4, seat="north"),
        reward("apply-1", 5),
        reward("live", 6),
        reward("apply-2", 7, verifier_version="2"),
    )
    assert [row["value"] for row in folder.current_rewards()] == [3, 4, 5, 7]
    assert [row["value"] for row in folder.rewards("live")] == [1, 2, 3, 4, 6]
    assert len(list(folder.rewards())) == 7


def test_a_trial_without_journals_has_no_records(folder: TrialFolder) -> None:
    assert list(folder.rewards()) == list(folder.exchanges()) == folder.current_rewards() == []
    assert folder.opening() is None and folder.artifacts() == []
    assert folder.id == "trial-1" and "trial-1" in repr(folder)


def test_artifacts_are_pinned_with_their_hashes(folder: TrialFolder, tmp_path: Path) -> None:
    (folder.artifacts_path / "sub").mkdir()
    (folder.artifacts_path / "sub" / "report.txt").write_text("hello")
    (folder.artifacts_path / "data").write_bytes(b"\x00")
    (folder.artifacts_path / "link").symlink_to("/etc/hostname")
    rows = folder.pin_artifacts()
    assert rows == folder.pin_artifacts() == folder.artifacts()
    assert [(row["path"], row["size"], row["media_type"]) for row in rows] == [
        ("data", 1, "application/octet-stream"),
        ("sub/report.txt", 5, "text/plain"),
    ]
    assert rows[1]["sha256"].startswith("2cf24dba5fb0a30e")


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="cannot create"):
        TrialFolder(tmp_path / "file" / "trial").create()


def test_records_need_no_pyarrow(tmp_path: Path) -> None:
    script = """
import sys
import plural_gym.records.job_folder, plural_gym.records.ledger_manifest
assert "pyarrow" not in sys.modules
ours = {name.split(".")[1] for name in sys.modules if name.startswith("plural_gym.")}
assert ours == {"announce", "errors", "records"}, ours
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_finished_trial_is_set_aside_only_where_that_is_meant(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path / "trl_1")
    folder.create()
    folder.seal({"status": "failed"})
    with pytest.raises(RecordError, match="the Trial is finished"):
        folder.set_aside()
    place = folder.set_aside(finished=True)
    assert place is not None and (place / "result.json").exists() and not folder.finished()


def waiting(folder: TrialFolder, *verifiers: str) -> None:
    rows = [{"verifier": name, "score": None, "review": None} for name in verifiers]
    fields = {"status": "awaiting_review", "score": None, "awaits": list(verifiers), "seats": [None]}
    folder.seal({**fields, "scores": rows, "hindsight_due": ["code"]})


def review(verifier: str, last: bool = True) -> dict[str, Any]:
    given = {"score": 0.5, "scores": {"tone": 1.0}, "feedback": None, "reviewer": "ada", "submitted": 1.0}
    score = 0.5 if last else None
    return {"verifier": {"name": verifier}, **given, "last": last, "trial_score": score, "seat_scores": {}}


def test_a_review_is_read_before_the_summary_holds_it_and_kept_when_it_does(folder: TrialFolder) -> None:
    waiting(folder, "a", "b")
    written = folder.result_path.read_bytes()
    folder.write_review("a", review("a", last=False))
    assert folder.result()["awaits"] == ["b"] and not folder.settled()
    assert folder.result_path.read_bytes() == written and folder.finished()
    assert folder.update({})["awaits"] == ["b"] and folder.settled()
    folder.write_review("b", review("b"))
    assert (folder.result()["status"], folder.result()["score"]) == ("succeeded", 0.5)
    assert json.loads(folder.result_path.read_bytes())["status"] == "awaiting_review"
    folder.update({"x": 1})
    assert folder.result() == json.loads(folder.result_path.read_bytes())
    assert not folder.settled(), "the late credit is still to come"
    folder.update({"hindsight_due": []})
    assert folder.settled() and folder.result()["revision"] == 6


def test_a_review_is_written_once_and_under_any_name(folder: TrialFolder) -> None:
    for name in ("plain", "two words", "../up", "a/b", ".", "é%2F"):
        folder.write_review(name, {"by": name})
        assert folder.review_path(name).parent == folder.reviews_path
        with pytest.raises(RecordError, match="written only once"):
            folder.write_review(name, {})
    assert {one["by"] for one in folder.reviews()} == {"plain", "two words", "../up", "a/b", ".", "é%2F"}
    assert folder.review_path("two words").name == "two words.json"


def test_what_a_killed_writer_left_is_no_review(folder: TrialFolder) -> None:
    (folder.reviews_path / ".a.json.7-1f.tmp").write_text("{")
    (folder.reviews_path / ".b.json").write_text("{")
    assert folder.reviews() == []
    folder.reviews_path.rename(folder.path / "gone")
    assert folder.reviews() == []
    folder.write_review("a", {})
    assert folder.reviews() == [{}]
