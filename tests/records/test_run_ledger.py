"""The writer of a training run: threads, forks, reading while it writes."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from plural_gym.errors import MachineError
from plural_gym.records import ledger, ledger_manifest, run_ledger
from plural_gym.records.run_ledger import RunEpisode, RunLedger
from plural_gym.records.run_tables import episode_table, reward_table

OUTCOME = {"stop_reason": "max_turns", "terminated": False, "truncated": True, "scores": ()}


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[RunLedger]:
    made = run_ledger.join(tmp_path, "run", 64, 60.0)
    yield made
    if made.users:
        run_ledger.leave(made)


def steps(writer: RunLedger, episode: RunEpisode, number: int) -> None:
    pays = writer.verifier("pays", "1.0", "sha256:0")
    for _ in range(number):
        episode.steps += 1
        writer.add(episode, pays, episode.steps, "app", "act", 0.5, None)
        episode.returned += 0.5


def test_threads_lose_no_row(writer: RunLedger) -> None:
    def play() -> None:
        for seed in range(20):
            episode = writer.begin("policy", "task", "1.0", seed)
            steps(writer, episode, 10)
            writer.end(episode, OUTCOME)

    threads = [threading.Thread(target=play) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.flush()
    rewards = ledger.read(writer.folder, "rewards")
    assert rewards.num_rows == 800 == len(set(rewards["reward_id"].to_pylist()))
    assert ledger.read(writer.folder, "episodes")["return"].to_pylist() == [5.0] * 80


def test_who_reads_meanwhile_sees_whole_parts_once(writer: RunLedger) -> None:
    done = threading.Event()
    seen: list[int] = []

    def read() -> None:
        while not done.is_set():
            ids = ledger.read(writer.folder, "rewards")["reward_id"].to_pylist()
            assert len(ids) == len(set(ids))
            seen.append(len(ids))

    episode = writer.begin("policy", None, None, 0)
    reader = threading.Thread(target=read)
    reader.start()
    steps(writer, episode, 64 * 40)
    done.set()
    reader.join()
    assert seen == sorted(seen) and len(seen) > 1


def test_an_episode_told_in_the_midst_of_a_flush_is_kept(
    writer: RunLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the garbage collector comes upon an environment that nobody holds."""
    first, second = writer.begin("policy", "a", "1", 0), writer.begin("policy", "b", "1", 1)
    steps(writer, first, 3)
    write = RunLedger._write

    def collecting(*arguments: object) -> None:
        monkeypatch.undo()
        writer.end(second, OUTCOME)
        writer.flush()
        write(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(RunLedger, "_write", collecting)
    writer.flush()
    writer.end(first, OUTCOME)
    writer.flush()
    assert ledger.read(writer.folder, "episodes")["task"].to_pylist() == ["b", "a"]
    assert ledger.read(writer.folder, "rewards").num_rows == 3


def test_a_fork_while_another_thread_writes_ends_well(writer: RunLedger) -> None:
    episode = writer.begin("policy", None, None, 0)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            steps(writer, episode, 64)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(5):
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    mine = writer.begin("child", None, None, 0)
                    steps(writer, mine, 1)
                    writer.flush()
                    status = 0
                finally:
                    os._exit(status)
            assert os.waitpid(pid, 0)[1] == 0
    finally:
        stop.set()
        thread.join()
    writer.flush()
    folders = list(writer.folder.parent.iterdir())
    assert len(folders) == 6
    rows = [ledger.read(folder, "rewards") for folder in folders]
    agents = [set(table["agent"].to_pylist()) for table in rows]
    assert agents.count({"child"}) == 5 and agents.count({"policy"}) == 1


def test_sealing_such_a_folder_changes_nothing(writer: RunLedger) -> None:
    steps(writer, writer.begin("policy", None, None, 0), 64)
    before = ledger.read(writer.folder, "rewards")
    assert ledger.seal(writer.folder)["refused"] == {}
    steps(writer, writer.begin("policy", None, None, 0), 64)
    assert ledger.read(writer.folder, "rewards").slice(0, 64).equals(before)
    assert ledger.read(writer.folder, "rewards").num_rows == 128


def test_a_disk_that_refuses_is_told_and_tried_again(writer: RunLedger) -> None:
    episode = writer.begin("policy", None, None, 0)
    (writer.folder / "ledger/rewards").rmdir()
    (writer.folder / "ledger/rewards").write_text("")
    with pytest.raises(MachineError, match="ledger"):
        steps(writer, episode, 64)
    (writer.folder / "ledger/rewards").unlink()
    (writer.folder / "ledger/rewards").mkdir()
    writer.flush()
    assert ledger.read(writer.folder, "rewards").num_rows == 64, "nothing is lost by it"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_manifest_that_cannot_be_written_counts_no_row_twice(
    writer: RunLedger, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    steps(writer, writer.begin("policy", None, None, 0), 10)

    def refuse(*arguments: object) -> None:
        monkeypatch.undo()
        if moment == "after":
            ledger_manifest.write_json(*arguments)  # type: ignore[arg-type]
        raise MachineError("disk full")

    monkeypatch.setattr(ledger_manifest, "write_json", refuse)
    with pytest.raises(MachineError, match="disk full"):
        writer.flush()
    steps(writer, writer.begin("policy", None, None, 1), 5)
    writer.flush()
    assert ledger.read(writer.folder, "rewards").num_rows == 15
    assert [part.name for part in (writer.folder / "ledger/rewards").iterdir()] == ["part-0.parquet"]


def test_a_column_that_no_table_has_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="table 'episodes' has no column price"):
        episode_table([{"number": 1, "price": 3}])


def test_rewards_of_several_verifiers_keep_their_own() -> None:
    rows = [
        (1, 1, 5.0, 1, 1, "app", "act", 0.5, None),
        (1, 0, 5.0, 1, 1, "app", "act", None, None),
        (2, 0, 6.0, 1, 1, None, "fly", None, ("KeyError", "'x'", "verify.py:3")),
    ]
    table = reward_table(
        rows,
        {1: {"trial_id": "t1", "task": None}, 2: {"trial_id": "t2", "task": "b"}},
        [("a", None, None), ("b", "2", "sha256:1")],
    )
    told = table.to_pylist()
    assert [row["reward_id"] for row in told] == [
        "t1-s1-step-b-live",
        "t1-s1-step-a-live",
        "t2-s1-step-a-live",
    ]
    assert [(row["verifier_version"], row["status"], row["error_at"]) for row in told] == [
        ("2", "ok", None),
        (None, "none", None),
        (None, "error", "verify.py:3"),
    ]
    assert [row["task"] for row in told] == [None, None, "b"]
    assert [row["ts"].timestamp() for row in told] == [5.0, 5.0, 6.0]
