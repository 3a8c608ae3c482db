import errno
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plural_gym.errors import MachineError, RecordError
from plural_gym.records.atomic import clean, read_json, write_json


def test_a_value_comes_back_and_nothing_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    for value in ({"a": [1, "é", None], "said": "\ud800"}, [1.5], {"last": True}):
        write_json(path, value)
        assert read_json(path) == value
    assert os.listdir(tmp_path) == ["result.json"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_files_are_readable_by_people(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"name": "é", "n": float("nan")}, mode=0o644)
    assert (tmp_path / "x.json").read_text() == '{\n  "name": "é",\n  "n": "NaN"\n}\n'
    assert stat.S_IMODE((tmp_path / "x.json").stat().st_mode) & 0o077


def test_what_is_not_json_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_json(path, {"old": 1})
    with pytest.raises(RecordError, match="must be JSON"):
        write_json(path, {"bad": object()})
    assert read_json(path) == {"old": 1}


def test_a_disk_that_refuses_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "result.json"
    write_json(path, {"old": 1})

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MachineError, match=r"result\.json: disk full\. Free space"):
        write_json(path, {"new": 1})
    monkeypatch.undo()
    assert read_json(path) == {"old": 1} and os.listdir(tmp_path) == ["result.json"]


def test_absent_and_damaged_files_are_said_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"there is no such record\. Check the id"):
        read_json(tmp_path / "none.json")
    (tmp_path / "half.json").write_text('{"a":')
    with pytest.raises(RecordError, match=r"half\.json: damaged .* run the Trial again"):
        read_json(tmp_path / "half.json")
    with pytest.raises(MachineError, match="cannot read"):
        read_json(tmp_path)
    with pytest.raises(MachineError, match="cannot write"):
        write_json(tmp_path / "none" / "x.json", {})


def test_what_is_written_only_once_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "review.json"
    write_json(path, {"first": 1}, new=True)
    with pytest.raises(RecordError, match=r"review\.json: written already, and written only once"):
        write_json(path, {"second": 2}, new=True)

    def no_links(*given: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(RecordError, match="written only once"):
        write_json(path, {"second": 2}, new=True)
    write_json(tmp_path / "other.json", {"first": 1}, new=True)
    assert read_json(path) == read_json(tmp_path / "other.json") == {"first": 1}
    assert sorted(os.listdir(tmp_path)) == ["other.json", "review.json"]


def test_of_many_that_write_at_once_one_gets_the_name(tmp_path: Path) -> None:
    script = """
import sys
from plural_gym.errors import RecordError
from plural_gym.records.atomic import write_json
for line in sys.stdin:
    try:
        write_json(line.strip(), {"by": sys.argv[1]}, new=True)
        print("got", flush=True)
    except RecordError:
        print("lost", flush=True)
"""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for n in range(3)
    ]
    for turn in range(100):
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write(f"{tmp_path}/{turn}.json\n")
            writer.stdin.flush()
        said = [writer.stdout.readline().strip() for writer in writers if writer.stdout is not None]
        assert sorted(said) == ["got", "lost", "lost"]
        assert read_json(tmp_path / f"{turn}.json") == {"by": str(said.index("got"))}
    for writer in writers:
        writer.communicate(timeout=60)
    assert len(os.listdir(tmp_path)) == 100


def test_killed_writers_leave_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_json(path, {"n": -1, "pad": []})
    script = """
import sys
from plural_gym.records.atomic import write_json
print("go", flush=True)
for n in range(10**9):
    write_json(sys.argv[1], {"n": n, "pad": [n] * 20_000})
"""
    for turn in range(4):
        with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(0.03 * (turn + 1))
            writer.send_signal(signal.SIGKILL)
        value = read_json(path)
        assert set(value["pad"]) <= {value["n"]}
    leftovers = clean(tmp_path)
    assert all(leftover.suffix == ".tmp" for leftover in leftovers)
    assert os.listdir(tmp_path) == ["result.json"] and clean(tmp_path) == []
