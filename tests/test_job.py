"""One run: pinned, repeated byte for byte, resumed after a kill, and never run twice at once."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from plural_gym.agent import Agent
from plural_gym.environment import Environment
from plural_gym.errors import DefinitionError, MachineError, RecordError, UsageError
from plural_gym.job import Job, JobResult, Progress
from plural_gym.records.job_folder import JobFolder
from plural_gym.task import Task
from plural_gym.verifier import VerifierOutput
from plural_gym.verifiers.deterministic import DeterministicVerifier


def zero(episode: Any) -> VerifierOutput:
    return VerifierOutput(score=0.0)


def content(result: JobResult) -> dict[tuple[str, int], dict[str, Any]]:
    """Steps and rewards of every Trial, byte for byte, times and ids apart."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for trial in result.trials:
        for name in ("steps.jsonl", "rewards.jsonl"):
            lines = []
            for line in (trial.folder.path / name).read_text().splitlines():
                record = json.loads(line.replace(trial.id, "TRIAL"))
                for key in ("ts", "duration_ms"):
                    record.pop(key, None)
                lines.append(json.dumps(record))
            found[trial.task, trial.result["attempt"]] = {
                **found.get((trial.task, trial.result["attempt"]), {}),
                name: "\n".join(lines),
                "seed": trial.result["seed"],
                "score": trial.score,
            }
    return found


def in_ledger(result: JobResult) -> list[str]:
    """The Trials of the ledger's episodes, each as often as it stands there."""
    parts = sorted((result.folder.ledger_path / "episodes").glob("*.parquet"))
    return [name for part in parts for name in parquet.read_table(part)["trial_id"].to_pylist()]


def test_a_seed_repeats_a_job_byte_for_byte(workshop: Any) -> None:
    first = content(workshop.job(attempts=2, seed=7, concurrency=1).run())
    assert content(workshop.job(attempts=2, seed=7, concurrency=4).run()) == first
    other = content(workshop.job(attempts=2, seed=8).run())
    assert len(first) == 6 and '"action": "roll"' in first["count/a", 1]["steps.jsonl"]
    for key, one in first.items():
        assert other[key]["steps.jsonl"] != one["steps.jsonl"]
    seeds = [one["seed"] for one in first.values()]
    assert len(set(seeds)) == 6


def test_every_agent_meets_the_same_seeds(workshop: Any) -> None:
    project = workshop.project
    agents = [Agent(name=name, harness=lambda task, seat: seat.act("roll")) for name in ("one", "two")]
    job = Job(tasks=project.tasks, agents=agents, attempts=2)
    seeds: dict[str, list[int]] = {}
    for plan in job.plans():
        seeds.setdefault(plan.agent.name, []).append(plan.seed)
    assert seeds["one"] == seeds["two"] and len(set(seeds["one"])) == 6
    assert job.trial_count == 12 and len({plan.id for plan in job.plans()}) == 12


def test_names_with_slashes_never_share_a_trial() -> None:
    tasks = [
        Task(
            name=name,
            instructions="",
            environment=Environment(name="e"),
            verifiers=[DeterministicVerifier(name="v", check=zero)],
        )
        for name in ("c", "b/c")
    ]
    agents = [Agent(name=name, harness=lambda task, seat: None) for name in ("a", "a/b")]
    assert len({plan.id for plan in Job(tasks=tasks, agents=agents).plans()}) == 4


def test_progress_leaderboard_and_ledger_follow_the_trials(workshop: Any) -> None:
    told: list[Progress] = []
    result = workshop.job(attempts=2, progress=told.append).run()
    assert [one.done for one in told] == [1, 2, 3, 4, 5, 6] and told[-1].total == 6
    assert told[-1].mean_score == sum(trial.score for trial in result.trials) / 6
    assert result.folder.result() == result.summary()
    assert result.summary()["status"] == "succeeded" and result.summary()["finished"] == 6
    (line,) = result.leaderboard.rows
    assert line.agent == "ada" and line.trials == 6
    assert sorted(in_ledger(result)) == sorted(trial.id for trial in result.trials)


def test_a_rerun_uses_the_pinned_inputs_after_edits_and_deletion(workshop: Any) -> None:
    result = workshop.job(seed=3).run()
    workshop.edit("environments/counter/app.py", "+= drawn", "+= 2 * drawn")
    workshop.edit("verifiers/full/verify.py", "float(", "9 + float(")
    workshop.edit("harnesses/counting/play.py", "range(3)", "range(1)")
    edited = workshop.job(seed=3).run()
    again = Job.open(result.folder, fresh=True).run()
    shutil.rmtree(workshop.root)
    later = Job.open(result.folder, fresh=True).run()
    of_the_rerun = Job.open(later.folder, fresh=True).run()
    assert content(again) == content(later) == content(of_the_rerun) == content(result) != content(edited)
    assert later.id != result.id and later.folder.pins()["rerun_of"] == result.id
    for key in ("tasks", "agents"):
        assert later.folder.pins()[key] == result.folder.pins()[key]
    for before, after in zip(result.trials, later.trials, strict=True):
        old, new = before.receipt, after.receipt
        assert (old.task, old.environment, old.verifiers, old.agent) == (
            new.task,
            new.environment,
            new.verifiers,
            new.agent,
        )
        assert old.resources == new.resources and old.rerunnable


def test_a_project_edited_while_its_job_runs_is_played_as_it_was(workshop: Any) -> None:
    plain = content(workshop.job(seed=3).run())

    def edit(progress: Progress) -> None:
        if progress.done == 1:
            workshop.edit("environments/counter/app.py", "+= drawn", "+= 2 * drawn")
            workshop.edit("environments/counter/notes.md", "count", "do not count")
            workshop.edit("verifiers/full/verify.py", "float(", "9 + float(")

    result = workshop.job(seed=3, concurrency=1, progress=edit).run()
    assert content(result) == plain
    assert len({trial.receipt.resources["notes.md"] for trial in result.trials}) == 1


def test_a_job_built_in_python_can_be_repeated(counter: Any, code: Any, run: Callable[..., Any]) -> None:
    verify = code(
        "from plural import VerifierOutput\ndef half(episode):\n    return VerifierOutput(score=0.5)\n"
    )
    other = code("def reward(step):\n    return 0.25\n")
    play = code("def play(task, seat):\n    return seat.act('roll')\n", "app.py")
    task = Task(
        name="built-in-python",
        instructions="Roll.",
        environment=Environment(
            name="counter", apps={"counter": counter.Counter}, resources=[str(play.path)]
        ),
        verifiers=[DeterministicVerifier(name="half", check=verify.half, reward=other.reward, timeout_s=7)],
        info={"ticket": 1},
        setup={"counter": {"goal": 9}},
    )
    result = run(task, play.play, seed=4)
    assert result.folder.pins()["why_not"] == []
    for path in (counter.path, verify.path, other.path, play.path):
        path.unlink()
    again = Job.open(result.folder, fresh=True).run()
    assert content(again) == content(result)
    assert again.trials[0].receipt.task == result.trials[0].receipt.task
    assert Job.open(result.folder).run().trials[0].id == result.trials[0].id


def outside(task: Any, seat: Any) -> None:
    pass


class Inner:
    @staticmethod
    def check(episode: Any) -> VerifierOutput:
        return VerifierOutput(score=1.0)


def test_code_that_stands_in_no_file_runs_and_cannot_be_repeated(run: Callable[..., Any]) -> None:
    def closure(episode: Any) -> VerifierOutput:
        return VerifierOutput(score=1.0)

    checks = {
        "closure": (closure, "closure is defined inside a function"),
        "lambda": (lambda episode: VerifierOutput(score=1.0), "is defined inside a function"),
        "method": (Inner.check, "Inner.check is defined inside a class"),
    }
    exec(
        "from plural_gym import VerifierOutput\ndef typed(episode):\n    return VerifierOutput(score=1.0)",
        globals(),
    )
    checks["prompt"] = (globals()["typed"], "defined in a notebook or at a prompt")
    for name, (check, reason) in checks.items():
        task = Task(
            name=name,
            instructions="",
            environment=Environment(name="e"),
            verifiers=[DeterministicVerifier(name="v", check=check)],
        )
        result = run(task, outside)
        (trial,) = result.trials
        assert trial.score == 1.0
        assert not trial.receipt.rerunnable and reason in trial.receipt.why_not[0]
        for fresh in (True, False):
            with pytest.raises(UsageError, match=f"cannot be re(peated|sumed).*{reason}"):
                Job.open(result.folder, fresh=fresh)


def test_a_copy_that_cannot_stand_for_the_inputs_says_so(
    code: Any, run: Callable[..., Any], tmp_path: Path
) -> None:
    def task(name: str, check: Any, environment: str = "e") -> Task:
        return Task(
            name=name,
            instructions="",
            environment=Environment(name=environment),
            verifiers=[DeterministicVerifier(name="v", check=check)],
        )

    checks = code(
        "from plural import VerifierOutput\n"
        "def one(e):\n    return VerifierOutput(score=1.0)\n"
        "def two(e):\n    return VerifierOutput(score=2.0)\n"
    )
    sibling = code(
        "from plural import VerifierOutput\nfrom other import score\n"
        "def one(e):\n    return VerifierOutput(score=score)\n",
        "check.py",
    )
    (sibling.path.parent / "other.py").write_text("score = 1.0\n")
    refused = {
        "two different Verifiers are named 'v'; give one another name": [
            task("a", checks.one),
            task("b", checks.two),
        ],
        "No module named 'other'": [task("a", sibling.one)],
        "Task '../../up' cannot be kept: its name cannot name a folder": [task("../../up", checks.one)],
        "Environment 'a/b' cannot be kept": [task("a", checks.one, "a/b")],
        "'name' must be 1 to 64 lower-case letters": [task("A task", checks.one)],
    }
    for reason, tasks in refused.items():
        result = run(tasks, code("def play(task, seat):\n    pass\n", "play.py").play)
        pins = result.folder.pins()
        assert not pins["rerunnable"] and reason in pins["why_not"][0], pins["why_not"]
        assert all(trial.score for trial in result.trials)
        assert all(not trial.receipt.rerunnable for trial in result.trials)
    assert not (tmp_path / "up").exists() and not list(tmp_path.glob("jobs/*/up"))


def test_resources_are_fresh_for_each_trial(code: Any, run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text("be kind")
    app = code(
        """
        from plural import App, action

        class Reader(App):
            @action
            def read(self) -> str:
                path = self.resources / "policy.md"
                text = path.read_text()
                path.write_text("be rude")
                return text
        """,
        "app.py",
    )
    task = Task(
        name="t",
        instructions="",
        environment=Environment(name="e", apps={"app": app.Reader}, resources=[str(tmp_path / "policy.md")]),
        verifiers=[DeterministicVerifier(name="v", check=zero)],
    )
    trials = run(
        task, lambda task, seat: [seat.act("read"), seat.act("read")], attempts=2, concurrency=1
    ).trials
    assert [trial.result["answer"] for trial in trials] == [["be kind", "be rude"]] * 2
    assert (tmp_path / "policy.md").read_text() == "be kind"
    (digest,) = {trial.receipt.resources["policy.md"] for trial in trials}
    assert digest.startswith("sha256:")


@pytest.mark.parametrize(
    ("path", "old", "new", "changed"),
    [
        ("verifiers/full/verify.py", "or None", "or 0", {"verifier", "task"}),
        ("verifiers/full/verifier.yaml", "reward:", "weight: 2\nreward:", {"verifier", "task"}),
        ("environments/counter/app.py", "by <= 0", "by < 1", {"environment", "task"}),
        ("environments/counter/notes.md", "goal", "end", {"environment", "task"}),
        ("environments/counter/environment.yaml", "turns: 10", "turns: 11", {"environment", "task"}),
        ("harnesses/counting/play.py", "range(3)", "range(4)", {"agent"}),
        ("tasks/count/rows.jsonl", '"goal": 2000', '"goal": 2001', {"task"}),
        ("verifiers/full/verifier.yaml", "0.1.0", "0.2.0\ntitle: New\ndescription: Newer", set()),
        ("environments/counter/environment.yaml", "0.1.0", "0.2.0\ntitle: New\ndescription: Newer", set()),
        ("tasks/count/task.yaml", "0.1.0", "0.2.0\ntitle: New", set()),
        ("agents/ada/agent.yaml", "0.1.0", "0.2.0\ntitle: New", set()),
        ("harnesses/counting/harness.yaml", "0.1.0", "0.2.0\ntitle: New", set()),
    ],
)
def test_an_edit_changes_the_hash_of_what_it_means_and_no_other(
    path: str, old: str, new: str, changed: set[str], workshop: Any
) -> None:
    def hashes() -> dict[str, str]:
        project = workshop.project
        task = project.tasks["a"]
        return {
            "task": task.content_hash,
            "environment": task.environment.content_hash,
            "verifier": task.verifiers[0].content_hash,
            "agent": project.agents["ada"].content_hash,
        }

    before = hashes()
    workshop.edit(path, old, new)
    after = hashes()
    assert {word for word in before if before[word] != after[word]} == changed


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": None}, "a Job runs either tasks or a benchmark"),
        ({"tasks": []}, "at least one Task"),
        ({"agents": []}, "at least one Agent"),
        ({"agents": [Agent(name="a", harness=outside)] * 2}, "two Agents are named 'a'"),
        ({"attempts": 0}, "attempts is a whole number from 1, got 0"),
        ({"concurrency": True}, "concurrency is a whole number from 1, got True"),
        ({"mode": "play"}, "mode is 'eval' or 'train', not 'play'"),
    ],
)
def test_a_job_that_cannot_be_run_is_refused_when_it_is_made(changes: dict[str, Any], message: str) -> None:
    task = Task(
        name="t",
        instructions="",
        environment=Environment(name="e"),
        verifiers=[DeterministicVerifier(name="v", check=zero)],
    )
    arguments: dict[str, Any] = {"tasks": [task], "agents": [Agent(name="a", harness=outside)], **changes}
    with pytest.raises(DefinitionError, match=message):
        Job(**arguments)


def test_a_folder_of_other_inputs_is_refused(workshop: Any) -> None:
    result = workshop.job().run()
    with pytest.raises(RecordError, match="seed differs from what it was started with; start a new Job"):
        workshop.job(seed=1, job_id=result.id).run()
    workshop.edit("verifiers/full/verify.py", "float(", "2 * float(")
    with pytest.raises(RecordError, match="tasks differs"):
        workshop.job(job_id=result.id).run()
    assert Job.open(result.folder).run().id == result.id


# A Job in a process of its own, which the tests kill.

SLOW_PLAY = """
import time

def play(task, seat):
    for _ in range(3):
        seat.act("roll")
        time.sleep(0.02)
    return "done"
"""
SCRIPT = """
import sys
from pathlib import Path
from plural_gym.job import Job
from plural_gym.project import Project
from plural_gym.records.job_folder import JobFolder

project = Project.open(sys.argv[1])
folder = Path(sys.argv[2])

reused = 0

def tell(progress):
    global reused
    if progress.reused == reused:
        print(progress.trial["trial_id"], flush=True)
    reused = progress.reused

if (folder / "slow" / "job.json").exists():
    job = Job.open(JobFolder(folder / "slow"), concurrency=4, progress=tell)
else:
    job = Job(tasks=project.tasks, agents=[project.agents["ada"]], attempts=10, concurrency=4,
              directory=folder, job_id="slow", seed=5, progress=tell)
try:
    job.run()
except KeyboardInterrupt:
    sys.exit(130)
"""


class Running:
    """A Job that runs in a process of its own, and tells each Trial that it finishes."""

    def __init__(self, workshop: Any, directory: Path) -> None:
        self.folder = JobFolder(directory / "slow")
        self.process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(workshop.root), str(directory)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )

    def wait_for_trials(self, count: int) -> None:
        """Until `count` Trials have been told."""
        assert self.process.stdout is not None
        for _ in range(count):
            if not self.process.stdout.readline():
                break

    def descendants(self) -> list[int]:
        """The Job's nursery and workers."""
        return descendants_of(self.process.pid)

    def end(self) -> tuple[str, str]:
        """What it printed, once it has ended."""
        return self.process.communicate(timeout=60)


def descendants_of(pid: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found, added = {pid}, {pid}
    while added:
        added = {child for child, parent in parents.items() if parent in added} - found
        found |= added
    return sorted(found - {pid})


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pids: list[int], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(alive, pids))


@pytest.fixture
def start(workshop: Any, tmp_path: Path) -> Iterator[Callable[[], Running]]:
    workshop.write("harnesses/counting/play.py", SLOW_PLAY)
    started: list[Running] = []

    def start() -> Running:
        started.append(Running(workshop, tmp_path / "jobs"))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")


@needs_proc
def test_a_killed_job_goes_on_where_it_stopped(start: Callable[[], Running], workshop: Any) -> None:
    chance = random.Random(11)
    done: dict[str, bytes] = {}
    for _ in range(3):
        running = start()
        running.wait_for_trials(chance.randint(1, 5))
        time.sleep(chance.random() * 0.05)
        children = running.descendants()
        assert children
        running.process.send_signal(signal.SIGKILL)
        assert gone([running.process.pid, *children], within_s=2.0)
        now = {
            folder.id: folder.result_path.read_bytes()
            for folder in running.folder.trials()
            if folder.finished()
        }
        assert now and all(now[name] == content for name, content in done.items())
        done = now
    workshop.write("harnesses/counting/play.py", "raise SystemExit('the project is not needed any more')\n")
    result = Job.open(running.folder, concurrency=4).run()
    trials = result.trials
    assert len(trials) == len({trial.id for trial in trials}) == 30 == len(running.folder.trial_ids())
    assert all(trial.finished and trial.result["n_steps"] == 3 for trial in trials)
    assert result.summary()["finished"] == 30
    for trial in trials:
        if trial.id in done:
            assert trial.folder.result_path.read_bytes() == done[trial.id]
            assert not list(trial.folder.path.glob("*.tmp"))
        turns = [json.loads(line)["turn"] for line in trial.folder.steps_path.read_text().splitlines()]
        assert turns == [0, 1, 2, 3]
    kept = [path for trial in trials for path in trial.folder.path.glob("interrupted-*")]
    assert kept and all((path / "receipt.json").exists() or (path / "steps.jsonl").exists() for path in kept)
    assert sorted(in_ledger(result)) == sorted(trial.id for trial in trials)


@needs_proc
def test_ctrl_c_leaves_trials_in_flight_unsealed_and_the_job_resumable(start: Callable[[], Running]) -> None:
    running = start()
    running.wait_for_trials(3)
    children = running.descendants()
    running.process.send_signal(signal.SIGINT)
    _, stderr = running.end()
    assert running.process.returncode == 130 and "Traceback" not in stderr
    assert gone(children, within_s=2.0)
    results = [folder.result() for folder in running.folder.trials() if folder.finished()]
    assert 3 <= len(results) < 30 and all(result["status"] == "succeeded" for result in results)
    result = Job.open(running.folder, concurrency=4).run()
    assert result.summary()["by_status"] == {"succeeded": 30}


def test_ctrl_c_waits_for_no_harness(counter: Any, tmp_path: Path) -> None:
    asleep = threading.Event()

    def dozing(task: Any, seat: Any) -> None:
        if not asleep.is_set():
            asleep.set()
            time.sleep(20)

    def interrupt(progress: Progress) -> None:
        asleep.wait(10)
        raise KeyboardInterrupt

    tasks = [
        Task(
            name=name,
            instructions="",
            environment=Environment(name="e", apps={"counter": counter.Counter}),
            verifiers=[DeterministicVerifier(name="v", check=zero)],
        )
        for name in ("a", "b", "c")
    ]
    agents = [Agent(name="a", harness=dozing)]
    job = Job(tasks=tasks, agents=agents, concurrency=2, directory=tmp_path, progress=interrupt)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        job.run()
    assert time.monotonic() - began < 10
    statuses = [trial.status for trial in JobResult(job.folder).trials]
    assert statuses.count("succeeded") == 1 and set(statuses) <= {"succeeded", "interrupted"}


@needs_proc
def test_a_job_that_runs_is_not_run_a_second_time(start: Callable[[], Running]) -> None:
    running = start()
    running.wait_for_trials(1)
    with pytest.raises(MachineError, match="another process is at work here"):
        Job.open(running.folder).run()
    running.process.kill()


def test_code_of_the_script_that_runs_cannot_be_repeated(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from plural import *\n"
        "def check(episode):\n    return VerifierOutput(score=float(episode.answer == 'x'))\n"
        "class Room(App):\n    @action\n    def look(self) -> str:\n        return 'x'\n"
        "def play(task, seat):\n    return seat.act('look')\n"
        "task = Task(name='t', instructions='', environment=Environment(name='e', apps={'room': Room}),\n"
        "            verifiers=[DeterministicVerifier(name='v', check=check)])\n"
        "agents = [Agent(name='a', harness=play)]\n"
        f"result = Job(tasks=[task], agents=agents, directory={str(tmp_path / 'jobs')!r}).run()\n"
        "print(result.trials[0].score, result.id)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    score, job_id = done.stdout.split() if done.returncode == 0 else ("", done.stderr)
    assert score == "1.0", job_id
    folder = JobFolder(tmp_path / "jobs" / job_id)
    with pytest.raises(UsageError, match="Room is defined in the script that runs; move it to a module"):
        Job.open(folder, fresh=True)


@pytest.mark.parametrize("job_id", ["", "a/b", "..", "a" * 65, "ä", "a b", 7])
def test_a_job_id_is_a_plain_name(counter: Any, job_id: Any) -> None:
    with pytest.raises(DefinitionError, match="job_id is 1 to 64 letters"):
        Job(tasks=[_counting(counter)], agents=[Agent(name="a", harness=outside)], job_id=job_id)


def test_a_seed_is_a_whole_number_of_64_bits(counter: Any) -> None:
    import numpy as np

    agents = [Agent(name="a", harness=outside)]
    assert type(Job(tasks=[_counting(counter)], agents=agents, seed=np.int64(7)).seed) is int
    for seed in (2**63, -(2**63) - 1):
        with pytest.raises(DefinitionError, match="at most 64 bits"):
            Job(tasks=[_counting(counter)], agents=agents, seed=seed)


def _counting(counter: Any) -> Task:
    return Task(
        name="t",
        instructions="",
        environment=Environment(name="e", apps={"counter": counter.Counter}),
        verifiers=[DeterministicVerifier(name="zero", check=zero)],
    )
