"""Checks that are programs: what they are given, what cannot reach them, and how they end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from plural_gym.command import Command, Ran
from plural_gym.episode import Episode, Usage, recorded_apps
from plural_gym.errors import GradingFault, MachineError
from plural_gym.host.commands import run_command
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.state import freeze_value
from plural_gym.step import TaskView

Running = Callable[..., Ran]


def put(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
    return folder


@pytest.fixture
def trial(tmp_path: Path) -> TrialFolder:
    folder = TrialFolder(tmp_path / "trial")
    folder.create()
    return folder


@pytest.fixture
def running(tmp_path: Path, trial: TrialFolder) -> Running:
    """`running(command, files, left)`: a run beside `files`, about an attempt that left the files `left`."""

    def running(
        command: list[str],
        files: Mapping[str, str] | None = None,
        left: Mapping[str, str] | None = None,
        timeout_s: float = 20,
        log: Path | None = None,
    ) -> Ran:
        put(trial.artifacts_path, left or {})
        rows = tuple(trial.pin_artifacts())
        folder = put(tmp_path / "own", files or {"empty": ""})
        return run_command(
            Command(command, folder=folder, timeout_s=timeout_s), attempt(rows), trial.artifacts_path, log
        )

    return running


def attempt(artifacts: tuple[dict[str, Any], ...] = ()) -> Episode:
    states = {"desk": ("full", freeze_value({"n": 1}), freeze_value({"n": 2}))}
    record = {"event_id": "step-1", "turn": 1, "seat": None, "app": "desk", "action": "add"}
    return Episode(
        task=TaskView("t", "Count.", {"k": 1}, {"m": 2}, "two"),
        apps=recorded_apps(states),  # type: ignore[arg-type]
        trajectory=({**record, "arguments": {"by": 1}, "observation": float("inf"), "error": None},),
        observation="\ud800",
        answer={"said": "two"},
        stop_reason="agent_response",
        artifacts=artifacts,
        usage=Usage(turns=1, seconds=0.5),
    )


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be collected does not."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


# --- what it is given ---


def test_the_evidence_is_the_whole_episode_and_its_files(running: Running) -> None:
    ran = running(["sh", "-c", 'cat "$PLURAL_EPISODE"'], left={"out/report.md": "done"})
    given = json.loads(ran.stdout)
    assert given["task"] == {
        "name": "t",
        "instructions": "Count.",
        "info": {"k": 1},
        "metadata": {"m": 2},
        "expected": "two",
    }
    assert given["apps"] == {"desk": {"control": "full", "initial": {"n": 1}, "final": {"n": 2}}}
    assert (given["expected"], given["state"], given["answer"]) == ("two", {"n": 2}, {"said": "two"})
    assert given["trajectory"][0]["observation"] == "Infinity" and given["observation"] == "\ud800"
    assert (given["stop_reason"], given["seat"], given["usage"]["turns"]) == ("agent_response", None, 1)
    assert given["usage"]["cost_usd"] is None
    [row] = given["artifacts"]
    assert (row["path"], row["size"], row["media_type"]) == ("out/report.md", 4, "text/markdown")
    shown = running(["sh", "-c", 'cd "$PLURAL_ARTIFACTS" && find . -type f && cat out/report.md'])
    assert shown.stdout == b"./out/report.md\ndone"


def test_it_runs_in_a_copy_that_is_removed(running: Running, tmp_path: Path) -> None:
    script = """
        import os, stat
        print(os.getcwd(), oct(stat.S_IMODE(os.stat(".").st_mode)), sorted(os.listdir()))
        os.remove("data/words.txt")
        open("new", "w").close()
        print(oct(stat.S_IMODE(os.stat("new").st_mode)))
        os.makedirs("closed/inner")
        os.chmod("closed", 0)
    """
    files = {"grade.py": script, "data/words.txt": "crane", "cases/correct.yaml": "", "verifier.yaml": ""}
    ran = running(["python", "grade.py"], files)
    place, mode, *listed = ran.stdout.decode().split(None, 2)
    assert (mode, listed[0].splitlines()[0]) == ("0o700", "['data', 'grade.py']")
    assert ran.stdout.endswith(b"\n0o600\n")
    assert not Path(place).parent.exists() and Path(place).is_absolute()
    assert (tmp_path / "own/data/words.txt").read_text() == "crane"
    assert not (tmp_path / "own/new").exists()


def test_a_file_of_its_folder_may_be_the_program_and_be_imported(running: Running, tmp_path: Path) -> None:
    put(tmp_path / "own", {"grade.sh": "#!/bin/sh\nexit 1\n"}).joinpath("grade.sh").chmod(0o755)
    assert running(["./grade.sh"]).status == 1
    files = {"sub/grade.py": "import words\nprint(words.SECRET)\n", "words.py": "SECRET = 'crane'\n"}
    assert running(["python", "sub/grade.py"], files).stdout == b"crane\n"


def test_without_a_folder_it_runs_in_an_empty_one() -> None:
    ran = run_command(Command(["ls", "-A"], timeout_s=20), attempt(), None)
    assert (ran.status, ran.stdout) == (0, b"")


def test_its_environment_holds_nothing_of_this_one(
    running: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(tmp_path, {"pth/sitecustomize.py": "raise SystemExit(9)", "start.sh": "exit 9"})
    planted = {
        "PYTHONPATH": tmp_path / "pth",
        "PYTHONSTARTUP": tmp_path / "start.py",
        "PYTHONHOME": "/nowhere",
        "PYTEST_ADDOPTS": "-p nothing",
        "PYTEST_PLUGINS": "nothing",
        "LD_PRELOAD": "/nowhere.so",
        "LD_LIBRARY_PATH": tmp_path,
        "BASH_ENV": tmp_path / "start.sh",
        "ENV": tmp_path / "start.sh",
        "COVERAGE_PROCESS_START": tmp_path / ".coveragerc",
        "OPENAI_API_KEY": "sk-secret",
        "PATH": os.environ["PATH"] + os.pathsep + "relative:",
    }
    for name, value in planted.items():
        monkeypatch.setenv(name, str(value))
    ran = running(["python", "-c", "import os, json; print(json.dumps(dict(os.environ)))"])
    found = json.loads(ran.stdout)
    assert set(found) - {"LC_CTYPE"} == {
        "HOME",
        "LANG",
        "PATH",
        "PLURAL_ARTIFACTS",
        "PLURAL_EPISODE",
        "PYTEST_ADDOPTS",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONHASHSEED",
        "PYTHONNOUSERSITE",
        "PYTHONPATH",
        "PYTHONSAFEPATH",
        "PYTHONUTF8",
        "TMPDIR",
        "TZ",
    }
    assert not {str(value) for value in planted.values()} & set(found.values())
    assert all(os.path.isabs(part) for part in found["PATH"].split(os.pathsep))
    assert os.path.dirname(sys.executable) == found["PATH"].split(os.pathsep)[0]


def test_its_standard_input_is_empty(running: Running) -> None:
    assert running(["cat"]).stdout == b""


def test_the_first_python_is_the_one_of_this_package(running: Running) -> None:
    for name in ("python", "python3"):
        ran = running([name, "-c", "import sys, plural; print(sys.executable, plural.VerifierOutput)"])
        assert ran.stdout.decode().split()[0] == sys.executable


# --- what an Agent planted ---

PLANTED = {
    "conftest.py": """
        import pytest
        MARK

        @pytest.hookimpl(tryfirst=True, hookwrapper=True)
        def pytest_runtest_makereport(item, call):
            (yield).get_result().outcome = "passed"
    """,
    "sitecustomize.py": "MARK\nimport os\nos._exit(0)\n",
    "usercustomize.py": "MARK\nimport os\nos._exit(0)\n",
    "evil.pth": "import os; MARK\n",
    "json.py": "MARK\ndef loads(text):\n    return {'size': 3}\nload = dumps = loads\n",
    "random.py": "MARK\n",
    "pytest.ini": "[pytest]\naddopts = -p conftest\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-p conftest'\n",
    "setup.cfg": "[tool:pytest]\naddopts = -p conftest\n",
    "tox.ini": "[pytest]\naddopts = -p conftest\n",
    ".coveragerc": "[run]\nplugins = conftest\n",
    "tests/test_size.py": "MARK\ndef test_size():\n    pass\n",
    "tests/conftest.py": "MARK\nimport os\nos._exit(0)\n",
}
"""What an Agent may leave so that a careless grader runs it. MARK leaves a trace of having run."""

SUITE = {
    "tests/test_size.py": """
        import os, sys
        sys.path.append(os.environ["PLURAL_ARTIFACTS"])

        def test_size():
            import solution
            assert solution.size() == 3

        def test_modules_are_those_of_the_library():
            import json, random
            assert json.loads("[1]") == [1] and random.randint(1, 1) == 1
    """
}
SCRIPT = {
    "grade.py": """
        import json, os, subprocess, sys
        place = os.environ["PLURAL_ARTIFACTS"]
        os.chdir(place)
        asked = "import json, solution; print(json.dumps({'size': solution.size()}))"
        ran = subprocess.run([sys.executable, "-c", "import sys; sys.path.append('.'); " + asked],
                             capture_output=True, text=True)
        main = os.path.join(place, "main.py")
        again = subprocess.run([sys.executable, main], capture_output=True, text=True)
        assert again.stdout == "[1]\\n", again.stderr
        print(json.dumps({"score": float(json.loads(ran.stdout)["size"] == 3), "evidence": [ran.stderr]}))
    """
}


@pytest.mark.parametrize(("size", "score"), [(3, 1.0), (4, 0.0)])
@pytest.mark.parametrize(
    ("command", "files"),
    [
        (["pytest", "-q", "tests"], SUITE),
        (["pytest", "-q"], SUITE),
        (["python", "-m", "pytest", "-q", "tests"], SUITE),
        (
            ["pytest", "-q", "tests"],
            {**SUITE, "pyproject.toml": "[tool.pytest.ini_options]\nxfail_strict = true"},
        ),
        (["python", "grade.py"], SCRIPT),
    ],
)
def test_nothing_that_an_agent_planted_has_an_effect(
    running: Running,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: list[str],
    files: dict[str, str],
    size: int,
    score: float,
) -> None:
    mark = tmp_path / "ran"
    left = {
        name: text.replace("MARK", f"open({str(mark)!r}, 'a').write({name!r})")
        for name, text in PLANTED.items()
    }
    left |= {
        "solution.py": f"def size():\n    return {size}\n",
        "main.py": "import json; print(json.loads('[1]'))",
    }
    # Above the place itself, too: pytest would look for its options there.
    monkeypatch.setattr("tempfile.tempdir", str(put(tmp_path / "above", left)))
    ran = running(command, files, left)
    assert ran.output().score == score, ran
    assert not mark.exists(), mark.read_text()


def test_even_tests_of_the_agent_run_without_its_conftest_and_options(
    running: Running, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    left = {name: text.replace("MARK", f"open({str(mark)!r}, 'a')") for name, text in PLANTED.items()}
    left["tests/test_size.py"] = "def test_size():\n    assert 0\n"
    ran = running(["sh", "-c", 'cd "$PLURAL_ARTIFACTS" && pytest -q tests'], SUITE, left)
    assert (ran.status, mark.exists()) == (1, False), ran


def test_fixtures_of_the_verifiers_own_conftest_work(running: Running) -> None:
    files = {
        "tests/conftest.py": "import pytest\n\n@pytest.fixture\ndef three():\n    return 3\n",
        "tests/test_size.py": "def test_size(three):\n    assert three == 3\n",
    }
    assert running(["pytest", "-q", "tests"], files, {"conftest.py": "raise SystemExit(0)"}).status == 0


def test_a_suite_that_cannot_be_collected_is_a_fault(running: Running) -> None:
    ran = running(["pytest", "-q", "tests"], {"tests/test_size.py": "import nothing_of_that_name\n"})
    with pytest.raises(GradingFault, match="it exited with status 2"):
        ran.output()


# --- artifacts ---


def test_an_artifact_is_held_to_its_hash(running: Running, trial: TrialFolder) -> None:
    running(["true"], left={"a.txt": "one"})
    rows = tuple(trial.artifacts())
    command = Command(["true"], timeout_s=20)
    (trial.artifacts_path / "a.txt").write_text("two")
    with pytest.raises(GradingFault, match=r"artifact 'a\.txt' is not what was recorded: its sha256 is"):
        run_command(command, attempt(rows), trial.artifacts_path)
    (trial.artifacts_path / "a.txt").unlink()
    with pytest.raises(GradingFault, match=r"artifact 'a\.txt' cannot be read: No such file"):
        run_command(command, attempt(rows), trial.artifacts_path)
    with pytest.raises(GradingFault, match=r"artifact 'a\.txt' has no file here"):
        run_command(command, attempt(rows), None)


def test_no_artifact_leads_out_of_its_folder(trial: TrialFolder, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (trial.artifacts_path / "link").symlink_to(tmp_path / "secret")
    (trial.artifacts_path / "folder").symlink_to(tmp_path)
    os.mkfifo(trial.artifacts_path / "pipe")
    said = {
        "../../secret": "has no file here",
        str(tmp_path / "secret"): "has no file here",
        "": "has no file here",
        "link": "cannot be read",
        "folder/secret": "leads through a link",
        "pipe": "is no file any more",
    }
    for path, message in said.items():
        with pytest.raises(GradingFault, match=message):
            rows = ({"path": path, "sha256": ""},)
            run_command(Command(["true"], timeout_s=20), attempt(rows), trial.artifacts_path)


def test_an_artifact_may_be_a_program(running: Running, trial: TrialFolder) -> None:
    put(trial.artifacts_path, {"run.sh": "#!/bin/sh\necho ran\n"}).joinpath("run.sh").chmod(0o4755)
    ran = running(["sh", "-c", '"$PLURAL_ARTIFACTS"/run.sh; stat -c %a "$PLURAL_ARTIFACTS"/run.sh'])
    assert ran.stdout == b"ran\n700\n"


# --- how it ends ---

SPAWNING = """
    import os, subprocess, sys, time
    spawned = [subprocess.Popen(["sleep", "600"]), subprocess.Popen(["sleep", "600"], start_new_session=True)]
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            print(os.getpid(), flush=True)
            time.sleep(600)
        os._exit(0)
    os.wait()
    print(*(one.pid for one in spawned), flush=True)
    time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize(("seconds", "status"), [("0", 0), ("600", None)])
def test_what_it_starts_ends_with_it(running: Running, seconds: str, status: int | None) -> None:
    ran = running(["python", "grade.py", seconds], {"grade.py": SPAWNING}, timeout_s=2)
    assert ran.status == status
    if status is None:
        assert ran.ended == "it took longer than 2 s and was ended"
    pids = [int(word) for word in ran.stdout.split()]
    assert len(pids) == 3 and not any(map(alive, pids))


def test_it_ends_with_the_process_that_grades_and_leaves_nothing(tmp_path: Path) -> None:
    grader = """
        import sys
        from plural_gym.command import Command
        from plural_gym.episode import Episode, recorded_apps
        from plural_gym.host.commands import run_command
        from plural_gym.step import TaskView

        told = "pwd > {0}; echo $$ >> {0}; sleep 600".format(sys.argv[1])
        sleeping = Command(["sh", "-c", told])
        run_command(sleeping, Episode(TaskView("t", ""), recorded_apps({}), ()), None)
    """
    put(tmp_path, {"grader.py": grader})
    pid = tmp_path / "pid"
    process = subprocess.Popen([sys.executable, str(tmp_path / "grader.py"), str(pid)])
    deadline = time.monotonic() + 20
    while not (pid.exists() and pid.read_text().count("\n") == 2) and time.monotonic() < deadline:
        time.sleep(0.02)
    folder, number = pid.read_text().split()
    place, child = Path(folder).parent, int(number)
    assert alive(child) and place.is_dir()
    process.send_signal(signal.SIGKILL)
    process.wait()
    while (alive(child) or place.exists()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(child) and not place.exists()


def test_a_flood_of_output_is_ended_and_little_of_it_kept(running: Running) -> None:
    ran = running(["yes", "x" * 1000])
    assert ran.ended == "it printed more than 67108864 bytes and was ended"
    assert ran.cut and len(ran.stdout) < 2_000_000 and b"bytes left out]\n" in ran.stdout
    assert ran.stdout.startswith(b"xxx") and ran.stdout.endswith(b"xxx\n")


def test_much_output_costs_nothing(running: Running) -> None:
    loud = "import sys; sys.stderr.write('x' * 3_000_000); print('y\\n' * 1_500_000); sys.exit(1)"
    ran = running(["python", "-c", loud])
    assert (ran.status, ran.cut) == (1, True) and ran.output().evidence[-1] == "y"


def test_a_signal_is_named(running: Running) -> None:
    ran = running(["sh", "-c", "kill -SEGV $$"])
    assert (ran.status, ran.ended) == (None, "it was killed by SIGSEGV")


def test_a_program_that_kills_what_watches_over_it_ends_too(running: Running) -> None:
    ran = running(["sh", "-c", "echo $$; kill -KILL $PPID; sleep 600"])
    assert (ran.status, ran.ended) == (None, "the process that watched over it was killed")
    deadline = time.monotonic() + 30
    while alive(int(ran.stdout)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(int(ran.stdout))


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["pytes", "-q"], "there is no program 'pytes' on the PATH; install it on this machine"),
        (["grade.sh"], "there is no program 'grade.sh' on the PATH; write './grade.sh' for the file of its"),
        (["./other.sh"], "there is no program './other.sh' in its folder"),
        (["./grade.sh"], "program './grade.sh' may not be run; make it executable (chmod +x ./grade.sh)"),
        (["./data.bin"], "program 'data.bin' cannot be run: Exec format error; let a script begin with"),
    ],
)
def test_what_cannot_be_run_is_a_fault_that_says_what_would_do(
    running: Running, tmp_path: Path, command: list[str], message: str
) -> None:
    files = {"grade.sh": "exit 0\n", "data.bin": "\x00\x01"}
    put(tmp_path / "own", files).joinpath("data.bin").chmod(0o755)
    with pytest.raises(GradingFault) as caught:
        running(command, files)
    assert message in str(caught.value)


def test_a_machine_without_room_is_no_fault_of_the_verifier(
    running: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(MachineError, match="make a folder in"):
        running(["true"])


def test_what_it_printed_is_logged(running: Running, tmp_path: Path) -> None:
    log = tmp_path / "verifiers.log"
    for word in ("one", "two"):
        running(["sh", "-c", f"echo {word}; echo problem >&2; exit 3"], log=log)
    said = log.read_text()
    assert (
        said.count("\nproblem\n") == 2 and "$ sh -c 'echo one" in said and "it exited with status 3" in said
    )
