import errno
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from plural_gym.errors import MachineError, RecordError
from plural_gym.records import journal
from plural_gym.records.journal import Journal, prefix, read, verify_prefix

RECORD = {"event_id": "01-abc", "turn": 1, "observation": "..G.Y", "state": {"game": {"append": ["crane"]}}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "steps.jsonl"


def write(path: Path, *records: dict[str, Any]) -> None:
    with Journal.open(path) as open_journal:
        for record in records:
            open_journal.append(record)


def test_records_come_back_as_they_were_appended(path: Path) -> None:
    records = [RECORD, {"text": 'é\n"\x00\u2028', "deep": [[{}]], "big": 10**30, "f": 0.1, "n": None}, {}]
    write(path, *records)
    write(path, {"more": True})
    assert list(read(path)) == [*records, {"more": True}]
    assert path.read_bytes().count(b"\n") == 4
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_record_is_on_disk_before_append_returns(path: Path) -> None:
    with Journal.open(path) as open_journal:
        open_journal.append(RECORD)
        assert list(read(path)) == [RECORD]
        open_journal.append_bytes(b'{"raw": 1}\n')
        open_journal.append_bytes(b'{"raw": 2}')
        assert list(read(path)) == [RECORD, {"raw": 1}, {"raw": 2}]


def test_numbers_that_json_lacks_are_written_as_words(path: Path) -> None:
    write(path, {"a": [float("nan"), float("inf")], "b": {"c": float("-inf")}})
    assert path.read_bytes() == b'{"a":["NaN","Infinity"],"b":{"c":"-Infinity"}}\n'


def test_what_an_agent_can_say_is_never_refused(path: Path) -> None:
    deep: dict[str, Any] = {"nan": float("nan")}
    for _ in range(150):
        deep = {"d": [deep]}
    write(path, {"said": "half a pair \ud800", "n": float("nan")}, {"deep": deep})
    said, nested = read(path)
    assert said == {"said": "half a pair \ud800", "n": "NaN"}
    assert json.dumps(nested).count("d") == 151


def test_what_is_not_json_is_refused_and_leaves_no_trace(path: Path) -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    with Journal.open(path) as open_journal:
        for bad in ({"a": object()}, loop):
            with pytest.raises(RecordError, match="A record must be JSON"):
                open_journal.append(bad)
        for line in (b"", b"\n", b'{"a":\n1}'):
            with pytest.raises(RecordError, match="one line of JSON"):
                open_journal.append_bytes(line)
        open_journal.append(RECORD)
    assert list(read(path)) == [RECORD]


@pytest.mark.parametrize(
    "tail",
    [b'{"turn": 2, "obs', b"\x00" * 50, b"\x00" * 50 + b"\n", b'{"turn": 2}', b"7\n", b"\n", b'{"a":NaN}\n'],
)
def test_a_torn_last_line_is_cut_off_and_kept(path: Path, tail: bytes) -> None:
    write(path, RECORD, RECORD)
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    assert list(read(path)) == [RECORD, RECORD]
    write(path, {"after": 1})
    assert list(read(path)) == [RECORD, RECORD, {"after": 1}]
    torn = path.with_name("steps.jsonl.torn")
    assert torn.read_bytes().rstrip(b"\n") == tail.rstrip(b"\n")
    assert stat.S_IMODE(torn.stat().st_mode) == 0o600


def test_a_bad_line_before_good_ones_is_damage(path: Path) -> None:
    path.write_bytes(b'{"a":1}\n{"b":\n{"c":1}\n')
    for use in (lambda: Journal.open(path), lambda: list(read(path))):
        with pytest.raises(RecordError, match=r"steps\.jsonl:2: not a JSON record"):
            use()
    assert path.read_bytes() == b'{"a":1}\n{"b":\n{"c":1}\n'


def test_a_journal_has_one_writer(path: Path) -> None:
    with Journal.open(path), pytest.raises(MachineError, match="another process is at work here"):
        Journal.open(path)
    write(path, RECORD)


def test_a_closed_journal_takes_nothing(path: Path) -> None:
    open_journal = Journal.open(path)
    open_journal.close()
    open_journal.close()
    open_journal.sync()
    with pytest.raises(RecordError, match="this journal is closed"):
        open_journal.append(RECORD)


def test_missing_files_and_folders_are_said(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="there is no such journal"):
        list(read(tmp_path / "none.jsonl"))
    with pytest.raises(MachineError, match="cannot write"):
        Journal.open(tmp_path / "none" / "steps.jsonl")
    with pytest.raises(MachineError, match="cannot read"):
        prefix(tmp_path / "none.jsonl")
    with pytest.raises(MachineError, match="cannot read"):
        list(read(tmp_path / "a-file" / "x" if (tmp_path / "a-file").write_text("") else tmp_path))


def test_threads_share_a_journal_without_mixing_lines(path: Path) -> None:
    with Journal.open(path) as shared:

        def work(name: int) -> None:
            for number in range(300):
                shared.append({"thread": name, "number": number, "pad": "x" * number})

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    records = list(read(path))
    for name in range(4):
        assert [r["number"] for r in records if r["thread"] == name] == list(range(300))


def test_lines_of_any_size_are_read(path: Path) -> None:
    large = {"text": "x" * 6_000_000}
    write(path, large, RECORD, large)
    assert list(read(path)) == [large, RECORD, large]
    pinned = prefix(path)
    assert pinned["records"] == 3 and pinned["bytes"] == path.stat().st_size
    assert verify_prefix(path, pinned)


def test_syncs_come_with_time_or_with_records(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(journal, "_sync", synced.append)
    open_journal = Journal.open(path)
    for _ in range(255):
        open_journal.append(RECORD)
    assert not synced
    open_journal.append(RECORD)
    assert len(synced) == 1
    monkeypatch.setattr(journal, "SYNC_EVERY_S", 0.01)
    time.sleep(0.02)
    open_journal.append(RECORD)
    assert len(synced) == 2
    open_journal.close()
    assert len(synced) == 2


def test_a_pinned_prefix_allows_a_longer_file_and_nothing_else(path: Path) -> None:
    write(path, RECORD, {"n": 2})
    pinned = prefix(path)
    assert pinned["records"] == 2
    with path.open("ab") as file:
        file.write(b'{"torn": ')
    assert prefix(path) == pinned and verify_prefix(path, pinned)
    write(path, {"late": 1})
    assert verify_prefix(path, pinned)
    assert prefix(path)["records"] == 3
    content = path.read_bytes()
    path.write_bytes(content.replace(b"crane", b"crate"))
    assert not verify_prefix(path, pinned)
    path.write_bytes(content[: pinned["bytes"] - 1])
    assert not verify_prefix(path, pinned)
    path.write_bytes(content)
    assert not verify_prefix(path, {**pinned, "records": 3})
    assert not verify_prefix(path, {})
    path.unlink()
    assert not verify_prefix(path, pinned)


def test_an_empty_journal_has_a_prefix(path: Path) -> None:
    write(path)
    assert prefix(path)["bytes"] == 0 and list(read(path)) == []
    assert verify_prefix(path, prefix(path))


def test_a_full_disk_leaves_whole_records_and_says_so(path: Path) -> None:
    script = """
import resource, sys
from plural_gym.errors import MachineError
from plural_gym.records.journal import Journal
journal = Journal.open(sys.argv[1])
journal.append({"n": 1, "pad": "x" * 300})
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
try:
    journal.append({"n": 2, "pad": "x" * 2000})
except MachineError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.append({"n": 3})
journal.close()
"""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    assert "disk full" in done.stdout and "Free space" in done.stdout
    assert [record["n"] for record in read(path)] == [1, 3]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO])
def test_half_a_record_is_cut_off_when_the_disk_refuses(
    path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    real = os.write
    with Journal.open(path) as open_journal:
        open_journal.append(RECORD)

        def refuse(handle: int, line: bytes) -> int:
            real(handle, line[:10])
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "write", refuse)
        with pytest.raises(MachineError, match=r"disk full.*Free space"):
            open_journal.append({"n": 2, "pad": "xxxxxxxxxxxx"})
        monkeypatch.setattr(os, "write", lambda handle, line: real(handle, line[:7]))
        open_journal.append({"n": 3, "pad": "in parts, as the system sometimes takes them"})
        monkeypatch.undo()
    assert [record.get("n") for record in read(path)] == [None, 3]


def test_an_interrupted_write_leaves_whole_records(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    with Journal.open(path) as open_journal:

        def interrupted(handle: int, line: bytes) -> int:
            real(handle, line[:10])
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            open_journal.append(RECORD)
        monkeypatch.undo()
        open_journal.append(RECORD)
    assert list(read(path)) == [RECORD]


def test_killed_writers_lose_nothing_they_had_written(path: Path) -> None:
    script = """
import sys
from plural_gym.records.journal import Journal
journal = Journal.open(sys.argv[1])
number = int(sys.argv[2])
while True:
    journal.append({"number": number, "pad": "x" * (number % 50_000)})
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
    number += 1
"""
    following = 0
    for turn in range(5):
        command = [sys.executable, "-c", script, str(path), str(following)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            told = [int(writer.stdout.readline()) for _ in range(200 * (turn + 1))]
            writer.send_signal(signal.SIGKILL)
            told += [int(line) for line in writer.stdout.read().splitlines() if line]
        with Journal.open(path):
            pass
        numbers = [record["number"] for record in read(path)]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) > told[-1]
        following = len(numbers)


def test_a_reader_follows_a_living_writer(path: Path) -> None:
    seen: list[int] = []
    done = threading.Event()

    def follow() -> None:
        while not done.is_set():
            seen.append(sum(1 for _ in read(path)))

    with Journal.open(path) as open_journal:
        reader = threading.Thread(target=follow)
        reader.start()
        for number in range(500):
            open_journal.append({"number": number, "pad": "x" * 2000})
        done.set()
        reader.join()
    assert seen == sorted(seen)
