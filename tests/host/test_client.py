"""Author code in worker processes: what it does there costs its own part and nothing else."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plural_gym.environment import Environment, Limits
from plural_gym.records.job_folder import JobFolder
from plural_gym.task import Task
from plural_gym.verifier import VerifierOutput, total_reward
from plural_gym.verifiers.deterministic import DeterministicVerifier

REWARDS = """
import ctypes, os, sys, time

def fine(step):
    return 0.5

def raising(step):
    return step.current_state["missing"]

def unspeakable(step):
    class Unspeakable(Exception):
        def __str__(self):
            raise RuntimeError
    raise Unspeakable()

def nan(step):
    return float("nan")

def infinite(step):
    return float("-inf")

def true(step):
    return True

def huge(step):
    return 10 ** 5000

def text(step):
    return "1.0"

def deep(step):
    return deep(step)

def leaving(step):
    sys.exit(3)

def silent(step):
    return None

def looping(step):
    while True:
        pass  # looping

def asking(step):
    while True:
        step.apps["counter"].query("look")

def exiting(step):
    os._exit(7)

def crashing(step):
    ctypes.string_at(0)

def interrupting(step):
    raise KeyboardInterrupt

def garbling(step):
    os.write(max(int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")
                 and os.readlink(f"/proc/self/fd/{name}").startswith("socket")), b"\\0\\0\\0\\2{{")
    return 1.0

def meddling(step):
    step.current_state["n"] = step.arguments["by"] = step.task.info["n"] = 99
    step.previous_state.clear()
    step.apps["counter"].state["n"] = 99
    step.turn = 99
    return 0.25

def watching(step):
    seen = (step.current_state, step.previous_state, step.arguments, step.task.info, step.turn)
    n = step.turn
    expected = ({"n": n, "goal": 3}, {"n": n - 1, "goal": 3}, {"by": 1}, {"n": 0}, n)
    return 1.0 if seen == expected and step.apps["counter"].state["n"] == n else -1.0

async def slowly(step):
    return 0.125
"""
LOST = {"looping", "asking", "exiting", "crashing", "garbling"}
FAILED = {
    "raising",
    "unspeakable",
    "nan",
    "infinite",
    "true",
    "huge",
    "text",
    "deep",
    "leaving",
    "interrupting",
}
GIVEN = {"fine": 0.5, "meddling": 0.25, "watching": 1.0, "slowly": 0.125}


def three_times(task: Any, seat: Any) -> None:
    assert [seat.act("add", by=1) for _ in range(3)] == [1, 2, 3]


@pytest.fixture
def environment(counter: Any) -> Environment:
    return Environment(name="counter", apps={"counter": counter.Counter}, limits=Limits(turns=20))


def full(episode: Any) -> VerifierOutput:
    return VerifierOutput(score=float(episode.state["n"] == 3))


def test_whatever_a_reward_does_costs_its_own_reward_alone(
    code: Any, environment: Environment, run: Callable[..., Any]
) -> None:
    rewards = code(REWARDS)
    names = ["meddling", *sorted(FAILED), *sorted(LOST), "silent", "watching", "slowly", "fine"]
    verifiers = [
        DeterministicVerifier(name=name, reward=getattr(rewards, name), reward_timeout_s=0.3)
        for name in names
    ]
    verifiers.append(DeterministicVerifier(name="full", check=full))
    task = Task(name="t", instructions="", environment=environment, verifiers=verifiers, info={"n": 0})
    result = run(task, three_times)
    (trial,) = result.trials
    assert (trial.status, trial.score, trial.result["n_steps"]) == ("succeeded", 1.0, 3)
    rows = {name: [row for row in trial.rewards if row["verifier"] == name] for name in names}
    for name, value in GIVEN.items():
        assert [(row["value"], row["status"]) for row in rows[name]] == [(value, "ok")] * 3
    assert [(row["value"], row["status"]) for row in rows["silent"]] == [(None, "none")] * 3
    for name in FAILED | LOST:
        assert [(row["value"], row["status"]) for row in rows[name]] == [(None, "error")] * 3, name
        assert all(row["error_type"] and row["error_at"].startswith("verify.py:") for row in rows[name]), name
    assert rows["raising"][0]["error_at"] == rewards.at('"missing"')
    assert rows["leaving"][0]["error_at"] == rewards.at("sys.exit(3)")
    assert rows["looping"][0]["error_at"] == rewards.at("def looping")
    for name in LOST:
        assert [row["error_message"].startswith("switched off after") for row in rows[name]] == [0, 0, 1]
    assert rows["looping"][0]["error_message"] == "took longer than 0.3 s and was ended"
    assert rows["exiting"][0]["error_message"] == "its process ended: it exited with status 7"
    assert "SIGSEGV" in rows["crashing"][0]["error_message"]

    faults = {fault["where"]: fault for fault in trial.result["faults"]}
    assert faults["verifier raising reward"]["count"] == 3
    assert {fault["where"] for fault in result.faults()} == {
        f"verifier {name} reward" for name in FAILED | LOST
    }
    assert result.folder.result()["faults"] == result.faults()
    assert trial.result["return"] == pytest.approx(3 * sum(GIVEN.values()))


def test_a_fault_on_each_of_many_steps_is_one_line_with_counts(
    code: Any, environment: Environment, run: Callable[..., Any]
) -> None:
    rewards = code("def progress(step):\n    return step.current_state['done']\n")
    verifiers = [DeterministicVerifier(name="progress", check=full, reward=rewards.progress)]
    task = Task(name="t", instructions="", environment=environment, verifiers=verifiers)
    (fault,) = run(task, three_times, attempts=2).faults()
    assert fault == {
        "where": "verifier progress reward",
        "type": "KeyError",
        "message": "'done'",
        "at": "verify.py:2",
        "count": 6,
        "trials": 2,
    }


CHECKS = """
import os, time
from plural import VerifierOutput

def number(episode):
    return 1.0

def nothing(episode):
    pass

def nan(episode):
    return VerifierOutput(score=float("nan"))

def smuggled(episode):
    return VerifierOutput.model_construct(score=float("inf"))

def raising(episode):
    raise RuntimeError("unlucky")  # here

def looping(episode):
    while True:
        pass

def exiting(episode):
    os._exit(0)

def surrogate(episode):
    return VerifierOutput(score=1.0, evidence="\\ud800")

def flooding(episode):
    for _ in range(20_000):
        print("x" * 100)
    return VerifierOutput(score=1.0)

def measuring(episode):
    return VerifierOutput(score=1.0, scores={"loss": float("inf")})

async def slowly(episode):
    return VerifierOutput(score=1.0)

def reading(episode):
    return VerifierOutput(score=float(episode.apps["counter"].query("look") == {"n": 3}))
"""


def test_a_check_that_fails_leaves_the_score_unknown_and_the_others_recorded(
    code: Any, environment: Environment, run: Callable[..., Any]
) -> None:
    checks = code(CHECKS)
    bad = ["number", "nothing", "nan", "smuggled", "raising", "looping", "exiting", "measuring"]
    good = ["flooding", "slowly", "reading", "surrogate"]

    def task(name: str) -> Task:
        verifiers = [
            DeterministicVerifier(name=name, check=getattr(checks, name), timeout_s=0.5),
            DeterministicVerifier(name="full", check=full),
        ]
        return Task(name=name, instructions="", environment=environment, verifiers=verifiers)

    result = run([task(name) for name in bad + good], three_times)
    by_task = {trial.task: trial.result for trial in result.trials}
    for name in bad:
        one = by_task[name]
        assert (one["status"], one["failure"], one["score"]) == ("failed", "grader", None), name
        first, second = one["scores"]
        assert first["score"] is None and first["fault"]["where"] == f"verifier {name} check"
        assert first["fault"]["at"].startswith("verify.py:")
        assert second["score"] == 1.0 and second["fault"] is None
    assert by_task["raising"]["scores"][0]["fault"]["at"] == checks.at("# here")
    assert "returned 1.0, which is no VerifierOutput" in by_task["number"]["scores"][0]["fault"]["message"]
    assert by_task["looping"]["scores"][0]["fault"]["message"] == "took longer than 0.5 s and was ended"
    assert by_task["looping"]["faults"][0]["where"] == "verifier looping check"
    for name in good:
        assert (by_task[name]["status"], by_task[name]["score"]) == ("succeeded", 1.0), name
    log = JobFolder(result.folder.path).trial(by_task["flooding"]["trial_id"]).logs_path / "verifiers.log"
    assert log.stat().st_size > 2_000_000
    # A fault of a grader says nothing about the Agent: its score is unknown, never 0.
    (line,) = result.leaderboard.rows
    assert line.score == 1.0
    assert result.summary()["failures"] == {"grader": len(bad)}


APPS = """
import ctypes, os, time
from plural import App, State, action

class Count(State):
    n: int = 0
    secret: str = "hidden"
    even: int = 0

class Trouble(App):
    state: Count

    @action
    def add(self) -> int:
        self.state.n += 1
        return self.state.n

    @action(timeout_s=0.5)
    def loop(self) -> None:
        while True:
            pass

    @action
    def leave(self) -> None:
        raise SystemExit(3)

    @action
    def exit(self) -> None:
        os._exit(9)

    @action
    def crash(self) -> None:
        ctypes.string_at(0)

    @action
    def fail(self) -> None:
        raise KeyError(self.state.secret)

    @action
    def misset(self) -> None:
        self.state.even = self.state.secret  # pydantic says what it got

    @action
    def unprintable(self) -> object:
        return object()

    @action(read_only=True)
    def sneak(self) -> int:
        self.state.n += 1
        return self.state.n

    @action
    def interrupt(self) -> None:
        raise KeyboardInterrupt

class BadReset(Trouble):
    def reset(self, task):
        raise RuntimeError("no world today")  # here

class BadEnd(Trouble):
    def terminated(self):
        if self.state.n:
            raise RuntimeError("no end")
        return False

class ExitingReset(Trouble):
    def reset(self, task):
        os._exit(4)
"""


def test_an_app_that_fails_fails_its_own_trial_and_is_not_the_agents_fault(
    code: Any, run: Callable[..., Any]
) -> None:
    apps = code(APPS, "app.py")
    verifier = DeterministicVerifier(name="v", check=lambda episode: VerifierOutput(score=1.0))
    heard: dict[str, list[BaseException]] = {}

    def task(name: str, app: str = "Trouble") -> Task:
        environment = Environment(name=app.lower(), apps={"app": getattr(apps, app)})
        return Task(name=name, instructions=name, environment=environment, verifiers=[verifier])

    def play(task: Any, seat: Any) -> None:
        name = task.instructions
        seat.act("add")
        try:
            seat.act(f"app__{name}")
        except Exception as error:
            heard.setdefault(name, []).append(error)
            raise

    names = ["loop", "leave", "exit", "crash", "fail", "misset", "unprintable", "sneak", "interrupt"]
    worlds = {"reset": "BadReset", "end": "BadEnd", "exiting-reset": "ExitingReset"}
    tasks = [task(name) for name in names] + [task(name, app) for name, app in worlds.items()]
    result = run([*tasks, task("add")], play, concurrency=4)
    by_task = {trial.task: trial for trial in result.trials}
    for name in [*names, *worlds]:
        one = by_task[name].result
        assert (one["status"], one["failure"], one["score"]) == ("failed", "environment", None), name
        assert one["stop_reason"] == "error" and one["faults"], name
    assert by_task["add"].score == 1.0 and result.summary()["by_status"] == {"failed": 12, "succeeded": 1}

    fault = {name: trial.result["faults"][0] for name, trial in by_task.items() if name != "add"}
    assert "took longer than 0.5 s" in fault["loop"]["message"]
    assert "status 9" in fault["exit"]["message"] and "SIGSEGV" in fault["crash"]["message"]
    assert fault["fail"]["at"] == apps.at("raise KeyError") and fault["fail"]["message"] == "'hidden'"
    assert fault["misset"]["type"] == "ValidationError" and fault["misset"]["at"] == apps.at(
        "says what it got"
    )
    assert fault["sneak"]["message"] == "read-only action 'sneak' changed State"
    assert fault["reset"]["at"] == apps.at("# here")
    assert by_task["reset"].result["n_steps"] == 0 and by_task["end"].result["n_steps"] == 1

    # What the Harness hears is that the action failed, and nothing of why.
    for name in names:
        (error,) = heard[name]
        assert str(error) == "the action failed, and the episode ends."
        assert type(error).__name__ == "EpisodeOver"
        assert error.__cause__ is None and error.__context__ is None
    (line,) = result.leaderboard.rows
    assert line.score == 1.0

    steps = by_task["exit"].steps
    assert [step["action"] for step in steps] == ["add", "exit"]
    assert steps[1]["states"] == {"app": {"n": 1, "secret": "hidden", "even": 0}}


def test_what_an_app_starts_ends_with_it(code: Any, run: Callable[..., Any], tmp_path: Path) -> None:
    app = code(
        f"""
        import subprocess
        from pathlib import Path
        from plural import App, action

        class Spawning(App):
            @action
            def spawn(self) -> None:
                child = subprocess.Popen(["sleep", "600"])
                Path({str(tmp_path)!r}, "pid").write_text(str(child.pid))
        """,
        "app.py",
    )
    task = Task(
        name="t",
        instructions="",
        environment=Environment(name="e", apps={"app": app.Spawning}),
        verifiers=[DeterministicVerifier(name="v", check=lambda episode: VerifierOutput(score=1.0))],
    )
    run(task, lambda task, seat: seat.act("spawn"))
    assert not alive(int((tmp_path / "pid").read_text()))


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be collected does not."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_total_reward_sums_the_verifiers_own_step_rewards(
    code: Any, environment: Environment, run: Callable[..., Any]
) -> None:
    hooks = code(
        """
        def half(step):
            return 0.5 if step.turn != 2 else 1 / 0

        def ten(step):
            return 10.0

        def late(trial):
            yield trial.credit(trial.steps()[0]["event_id"], 100)
        """
    )
    verifiers = [
        DeterministicVerifier(name="half", check=total_reward, reward=hooks.half, hindsight=hooks.late),
        DeterministicVerifier(name="ten", reward=hooks.ten),
    ]
    task = Task(name="t", instructions="", environment=environment, verifiers=verifiers)
    (trial,) = run(task, three_times).trials
    assert trial.score == 1.0
    assert [row["value"] for row in trial.rewards if row["kind"] == "hindsight"] == [100.0]


def test_rewards_and_scores_near_the_largest_float_end_no_job(
    code: Any, environment: Environment, run: Callable[..., Any]
) -> None:
    hooks = code(
        """
        from plural import VerifierOutput

        def vast(step):
            return 1e308

        def high(episode):
            return VerifierOutput(score=1.5e308)
        """
    )

    def task(name: str, *verifiers: DeterministicVerifier) -> Task:
        return Task(name=name, instructions="", environment=environment, verifiers=verifiers)

    summed = DeterministicVerifier(name="vast", check=total_reward, reward=hooks.vast)
    high = [DeterministicVerifier(name=name, check=hooks.high) for name in ("a", "b")]
    trials = {
        trial.task: trial for trial in run([task("summed", summed), task("high", *high)], three_times).trials
    }
    assert (trials["summed"].result["failure"], trials["summed"].score) == ("grader", None)
    assert trials["summed"].result["return"] is None and trials["high"].score == 1.5e308


def test_hindsight_runs_after_the_checks_and_a_fault_in_it_credits_nothing(
    code: Any, environment: Environment, run: Callable[..., Any]
) -> None:
    hooks = code(
        """
        def scored(trial):
            yield trial.credit(trial.steps("add")[-1]["event_id"], trial.score)

        def unknown(trial):
            yield trial.credit(trial.steps("add")[0]["event_id"], 1.0)
            yield trial.credit("step-of-nobody", 1.0)  # here

        def plain(trial):
            return [1.0]
        """
    )
    verifiers = [
        DeterministicVerifier(name="full", check=full, hindsight=hooks.scored),
        DeterministicVerifier(name="unknown", hindsight=hooks.unknown),
        DeterministicVerifier(name="plain", hindsight=hooks.plain),
    ]
    task = Task(name="t", instructions="", environment=environment, verifiers=verifiers)
    (trial,) = run(task, three_times).trials
    assert (trial.status, trial.score) == ("succeeded", 1.0)
    rows = {row["verifier"]: row for row in trial.rewards}
    assert (rows["full"]["value"], rows["full"]["turn"], rows["full"]["kind"]) == (1.0, 3, "hindsight")
    assert (rows["unknown"]["value"], rows["unknown"]["status"]) == (None, "error")
    assert rows["unknown"]["error_at"] == hooks.at("# here")
    assert "yield trial.credit(event_id, value)" in rows["plain"]["error_message"]
    assert {row["verifier"] for row in trial.rewards if row["value"] is not None} == {"full"}


def test_verifier_code_that_cannot_be_loaded_is_that_verifiers_fault(
    code: Any, environment: Environment, run: Callable[..., Any]
) -> None:
    hooks = code(
        f"import os\nif os.getpid() != {os.getpid()}:\n    raise OSError('not here')\n"
        "def half(step):\n    return 0.5\n"
    )
    fine = code("def fine(step):\n    return 1.0\n")
    verifiers = [
        DeterministicVerifier(name="half", reward=hooks.half),
        DeterministicVerifier(name="fine", check=full, reward=fine.fine),
    ]
    task = Task(name="t", instructions="", environment=environment, verifiers=verifiers)
    (trial,) = run(task, three_times).trials
    assert trial.score == 1.0
    statuses = {(row["verifier"], row["status"]) for row in trial.rewards}
    assert statuses == {("half", "error"), ("fine", "ok")}


def test_an_unknown_action_is_a_rejected_step(counter: Any, code: Any, run: Callable[..., Any]) -> None:
    rewards = code("def told(step):\n    return -1.0 if step.error else 1.0\n")
    verifier = DeterministicVerifier(name="told", check=total_reward, reward=rewards.told)
    one = Environment(name="one", apps={"a": counter.Counter})
    two = Environment(name="two", apps={"a": counter.Counter, "b": counter.Counter})

    def play(task: Any, seat: Any) -> list[str]:
        heard = []
        for name in ("ad", "add", 5, None):
            try:
                seat.act(name)
            except Exception as error:
                heard.append(f"{type(error).__name__}: {error}")
        return heard

    tasks = [
        Task(name=world.name, instructions="", environment=world, verifiers=[verifier])
        for world in (one, two)
    ]
    trials = {trial.task: trial for trial in run(tasks, play).trials}
    told = [(row["app"], row["value"]) for row in trials["one"].rewards]
    assert told == [("a", -1.0), ("a", 1.0), ("a", -1.0), ("a", -1.0)]
    assert trials["two"].rewards == [] and trials["two"].score == 0.0
    assert [step["app"] for step in trials["one"].steps] == ["a"] * 4
    assert [step["app"] for step in trials["two"].steps] == [None] * 4
    assert trials["one"].result["answer"] == [
        "ActionRejected: App 'a' has no action 'ad'; did you mean 'add'?",
        "ActionRejected: an action is named by a string, got 5.",
        "ActionRejected: an action is named by a string, got None.",
    ]
    ambiguous = "ActionRejected: several Apps have an action 'add'; say a.add or b.add."
    assert trials["two"].result["answer"][1] == ambiguous
    assert all(trial.result["failure"] == "none" for trial in trials.values())


def test_arguments_that_are_no_json_are_rejected_and_the_episode_goes_on(
    counter: Any, run: Callable[..., Any]
) -> None:
    verifier = DeterministicVerifier(name="full", check=full)
    environment = Environment(name="e", apps={"counter": counter.Counter})
    task = Task(name="t", instructions="", environment=environment, verifiers=[verifier])

    def play(task: Any, seat: Any) -> int:
        rejected = 0
        for bad in ("\ud800", object(), {1j}, "three", float("nan"), -1):
            try:
                seat.act("add", by=bad)
            except Exception as error:
                assert type(error).__name__ == "ActionRejected", error
                rejected += 1
        three_times(task, seat)
        return rejected

    (trial,) = run(task, play).trials
    assert (trial.status, trial.score, trial.result["answer"]) == ("succeeded", 1.0, 6)


def test_a_fork_that_returns_and_garbage_in_the_channel_cost_no_other_step(
    code: Any, run: Callable[..., Any]
) -> None:
    app = code(
        """
        import json, os, struct
        from plural import App, State, action

        def channel():
            sockets = [int(name) for name in os.listdir("/proc/self/fd")
                       if os.path.exists(f"/proc/self/fd/{name}") and
                       os.readlink(f"/proc/self/fd/{name}").startswith("socket")]
            return max(sockets)

        class Count(State):
            n: int = 0

        class Forking(App):
            state: Count

            @action
            def fork(self) -> int:
                os.fork()
                self.state.n += 1
                return self.state.n

            @action
            def forge(self, message: str) -> int:
                data = message.encode()
                os.write(channel(), struct.pack("!I", len(data)) + data)
                self.state.n += 1
                return self.state.n

            @action
            def soil(self) -> int:
                os.write(channel(), b"\\0\\0\\0\\2{{")
                return 1
        """,
        "app.py",
    )
    verifier = DeterministicVerifier(name="v", check=lambda episode: VerifierOutput(score=1.0))
    environment = Environment(name="e", apps={"app": app.Forking})

    def task(name: str) -> Task:
        return Task(name=name, instructions=name, environment=environment, verifiers=[verifier])

    def play(task: Any, seat: Any) -> None:
        if task.instructions == "fork":
            assert [seat.act("fork") for _ in range(5)] == [1, 2, 3, 4, 5]
        elif task.instructions == "forge":
            said = ["{}", "[]", '{"id": 99}', '{"id": 5, "pid": 1, "observation": 9}']
            assert [seat.act("forge", message=one) for one in said] == [1, 2, 3, 4]
        else:
            seat.act("soil")

    result = run([task(name) for name in ("fork", "forge", "soil")], play)
    fork, forge, soil = result.trials
    assert (fork.status, forge.status) == ("succeeded", "succeeded")
    assert (soil.status, soil.result["failure"]) == ("failed", "environment")


def test_an_answer_of_another_shape_is_a_fault_of_its_trial(
    environment: Environment, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from plural_gym.host import client

    ask = client._Line.ask

    def torn(self: Any, request: Any, *rest: Any) -> dict[str, Any]:
        answer = ask(self, request, *rest)
        return {"id": answer["id"]} if request["op"] in torn_ops else answer

    monkeypatch.setattr(client._Line, "ask", torn)
    verifier = DeterministicVerifier(name="full", check=full, reward=lambda step: 1.0)
    for op, failure in (("act", "environment"), ("check", "grader"), ("open", "environment")):
        torn_ops = {op}
        task = Task(name=op, instructions="", environment=environment, verifiers=[verifier])
        (trial,) = run(task, lambda task, seat: seat.act("add", by=1)).trials
        assert (trial.status, trial.result["failure"]) == ("failed", failure), op
    torn_ops = {"reward"}
    task = Task(name="reward", instructions="", environment=environment, verifiers=[verifier])
    (trial,) = run(task, three_times).trials
    assert trial.status == "succeeded" and trial.rewards[0]["status"] == "error"


def test_a_worker_that_somebody_kills_is_the_machines_failure_and_played_again(
    code: Any, run: Callable[..., Any], tmp_path: Path
) -> None:
    mark = tmp_path / "killed"
    app = code(
        f"""
        import os, signal
        from pathlib import Path
        from plural import App, action

        class Fragile(App):
            @action
            def step(self) -> int:
                mark = Path({str(mark)!r})
                if not mark.exists():
                    mark.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
                return 1
        """,
        "app.py",
    )
    task = Task(
        name="t",
        instructions="",
        environment=Environment(name="e", apps={"app": app.Fragile}),
        verifiers=[DeterministicVerifier(name="v", check=lambda episode: VerifierOutput(score=1.0))],
    )

    def play(task: Any, seat: Any) -> None:
        seat.act("step")

    first = run(task, play, job_id="again")
    (trial,) = first.trials
    assert (trial.status, trial.result["failure"]) == ("failed", "infrastructure")
    assert "SIGKILL" in trial.result["faults"][0]["message"]
    second = run(task, play, job_id="again")
    (trial,) = second.trials
    assert (trial.status, trial.score, trial.result["revision"]) == ("succeeded", 1.0, 2)
    assert (trial.folder.path / "interrupted-1" / "result.json").exists()
    from plural_gym.records import ledger

    assert ledger.read(second.folder, "episodes")["status"].to_pylist() == ["succeeded"]
    assert ledger.read(second.folder, "steps", current=False)["turn"].to_pylist() == [0, 1]
    before = trial.folder.result_path.read_bytes()
    run(task, play, job_id="again")
    assert trial.folder.result_path.read_bytes() == before


def test_hindsight_credits_are_checked_whoever_builds_them(
    code: Any, environment: Environment, run: Callable[..., Any]
) -> None:
    hooks = code(
        """
        import asyncio
        import numpy as np
        from plural_gym.episode import Credit

        def forged(trial):
            yield Credit("nothing", 1.0, "step")

        def infinite(trial):
            yield Credit(trial.steps()[0]["event_id"], float("inf"), "step")

        def mistaken(trial):
            yield Credit(trial.steps()[0]["event_id"], 1.0, "model_call")

        def cancelled(trial):
            raise asyncio.CancelledError  # here

        def narrow(trial):
            yield trial.credit(trial.steps()[0]["event_id"], np.float32(1))

        async def slowly(trial):
            for step in trial.steps():
                await asyncio.sleep(0)
                yield trial.credit(step["event_id"], 0.5)
        """
    )
    bad, good = ["forged", "infinite", "mistaken", "cancelled"], {"narrow": [1.0], "slowly": [0.5] * 3}
    verifiers = [DeterministicVerifier(name=name, hindsight=getattr(hooks, name)) for name in [*bad, *good]]
    verifiers.append(DeterministicVerifier(name="full", check=full))
    task = Task(name="t", instructions="", environment=environment, verifiers=verifiers)
    (trial,) = run(task, three_times).trials
    rows = {name: [row for row in trial.rewards if row["verifier"] == name] for name in [*bad, *good]}
    for name in bad:
        assert [(row["value"], row["status"]) for row in rows[name]] == [(None, "error")], name
        assert rows[name][0]["error_at"].startswith("verify.py:"), name
    assert rows["cancelled"][0]["error_at"] == hooks.at("# here")
    for name, values in good.items():
        assert [row["value"] for row in rows[name]] == values, name


def test_what_is_no_exception_costs_its_own_reward_check_or_action(
    code: Any, environment: Environment, run: Callable[..., Any]
) -> None:
    hooks = code(
        """
        import asyncio
        from plural import VerifierOutput

        class Odd(BaseException):
            pass

        def odd(step):
            raise Odd  # odd

        async def cancelled(step):
            raise asyncio.CancelledError  # cancelled

        async def leaving(step):
            raise SystemExit(1)  # leaving

        async def fine(step):
            return 1.0
        """
    )
    names = ["odd", "cancelled", "leaving", "fine"]
    verifiers = [DeterministicVerifier(name=name, reward=getattr(hooks, name)) for name in names]
    verifiers.append(DeterministicVerifier(name="full", check=full))
    task = Task(name="t", instructions="", environment=environment, verifiers=verifiers)
    (trial,) = run(task, three_times).trials
    for name in names[:-1]:
        rows = [row for row in trial.rewards if row["verifier"] == name]
        assert [row["error_at"] for row in rows] == [hooks.at(f"# {name}")] * 3
    assert [row["value"] for row in trial.rewards if row["verifier"] == "fine"] == [1.0] * 3


TROUBLE = """
import os, resource, sys, threading, time
from pathlib import Path
import numpy as np

def flooding(step):
    for _ in range(50):
        print("x" * 100_000)
        sys.stderr.write("y" * 100_000)
    return 0.5

def scalar(step):
    return np.float32(0.25)

def whole(step):
    return np.int64(2)

def truth(step):
    return np.bool_(True)

def greedy(step):
    return len(bytearray(1 << 60))

def vast(step):
    return sum([1] * (1 << 62))

def yielding(step):
    yield 1.0

def spawning(step):
    def endless():
        while True:
            time.sleep(0.01)
    threading.Thread(target=endless).start()
    threading.Thread(target=lambda: 1 / 0).start()
    return 1.0

def closing(step):
    os.closerange(3, 200)
    return 1.0

def meddling(step):
    sys.stdout.close()
    os.environ.clear()
    sys.path.clear()
    os.chdir("/")
    return 1.0

def held_back(step):
    import resource
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    first = Path("/proc/self/oom_score_adj").read_text().strip() if Path("/proc/self").exists() else "1000"
    return float(limit <= 1 << 30 and first == "1000")
"""


def test_whatever_else_a_reward_does_the_trial_goes_on(
    code: Any, environment: Environment, run: Callable[..., Any]
) -> None:
    hooks = code(TROUBLE)
    given = {
        "flooding": 0.5,
        "scalar": 0.25,
        "whole": 2.0,
        "spawning": 1.0,
        "meddling": 1.0,
        "held_back": 1.0,
    }
    faults = {
        "truth": "GradingFault",
        "greedy": "MemoryError",
        "vast": "MemoryError",
        "yielding": "GradingFault",
        "closing": "MachineError",
    }
    names = [*given, *faults]
    verifiers = [DeterministicVerifier(name=name, reward=getattr(hooks, name)) for name in names]
    verifiers.append(DeterministicVerifier(name="full", check=full))
    task = Task(name="t", instructions="", environment=environment, verifiers=verifiers)
    (trial,) = run(task, three_times).trials
    assert (trial.status, trial.score, trial.result["n_steps"]) == ("succeeded", 1.0, 3)
    rows = {name: [row for row in trial.rewards if row["verifier"] == name] for name in names}
    for name, value in given.items():
        assert [row["value"] for row in rows[name]] == [value] * 3, name
    for name, kind in faults.items():
        assert {(row["value"], row["status"], row["error_type"]) for row in rows[name]} == {
            (None, "error", kind)
        }, name
        assert rows[name][0]["error_at"].startswith("verify.py:"), name


def test_check_and_hindsight_have_a_time_limit_of_their_own(
    code: Any, environment: Environment, run: Callable[..., Any]
) -> None:
    hooks = code(
        """
        import time
        from plural import VerifierOutput

        def check(episode):
            time.sleep(0.3)
            return VerifierOutput(score=1.0)

        def late(trial):
            while True:
                yield trial.credit(trial.steps()[0]["event_id"], 1.0)

        def slow(step):
            time.sleep(0.3)
            return 1.0
        """
    )
    verifiers = [
        DeterministicVerifier(name="patient", check=hooks.check, timeout_s=20, reward_timeout_s=0.1),
        DeterministicVerifier(name="late", hindsight=hooks.late, timeout_s=0.3),
        DeterministicVerifier(name="slow", reward=hooks.slow, reward_timeout_s=20, timeout_s=0.1),
        DeterministicVerifier(name="hasty", reward=hooks.slow, reward_timeout_s=0.1, timeout_s=20),
    ]
    task = Task(name="t", instructions="", environment=environment, verifiers=verifiers)
    (trial,) = run(task, lambda task, seat: seat.act("add", by=1)).trials
    assert (trial.status, trial.score) == ("succeeded", 1.0)
    rows = {row["verifier"]: row for row in trial.rewards}
    assert rows["slow"]["value"] == 1.0
    assert rows["hasty"]["error_message"] == "took longer than 0.1 s and was ended"
    assert (rows["late"]["value"], rows["late"]["kind"]) == (None, "hindsight")
    assert rows["late"]["error_message"] == "took longer than 0.3 s and was ended"
    assert rows["late"]["error_at"] == hooks.at("def late")
