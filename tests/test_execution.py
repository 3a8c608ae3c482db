"""One attempt from the first action to the sealed record: limits, answers, scores and who is to blame."""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plural_gym import grading, playing
from plural_gym.agent import Agent
from plural_gym.environment import Environment, Limits
from plural_gym.errors import EpisodeOver, MachineError
from plural_gym.execution import run_trial
from plural_gym.job import Job
from plural_gym.task import Task
from plural_gym.trial import Trial
from plural_gym.verifier import RubricCriterion, VerifierOutput, rubric_score
from plural_gym.verifiers.deterministic import DeterministicVerifier


def full(episode: Any) -> VerifierOutput:
    return VerifierOutput(score=float(episode.state["n"] == 3))


def scoring(name: str, score: float, weight: float = 1.0, **hooks: Any) -> DeterministicVerifier:
    return DeterministicVerifier(
        name=name, weight=weight, check=lambda episode: VerifierOutput(score=score), **hooks
    )


@pytest.fixture
def task(counter: Any) -> Callable[..., Task]:
    """`task(limits=Limits(turns=2))`: a Task of counting to 3, with other fields where they are given."""

    def task(name: str = "secret-word", limits: Limits | None = None, **fields: Any) -> Task:
        world = fields.pop("world", {})
        environment = Environment(
            name="counter", apps={"counter": counter.Counter}, limits=limits or Limits(), **world
        )
        verifiers = fields.pop("verifiers", [DeterministicVerifier(name="full", check=full)])
        return Task(name=name, instructions="Count.", environment=environment, verifiers=verifiers, **fields)

    return task


def add(task: Any, seat: Any) -> None:
    while True:
        seat.act("add")


def test_an_episode_ends_as_its_result_says(task: Any, run: Callable[..., Any]) -> None:
    def returning(task: Any, seat: Any) -> str:
        seat.act("add")
        return "one"

    def finishing(task: Any, seat: Any) -> str:
        seat.act("finish", answer={"n": 0})
        return "too late"

    def trial(play: Any, **fields: Any) -> dict[str, Any]:
        (one,) = run(task(**fields), play).trials
        return one.result

    ended = trial(add)
    assert (ended["stop_reason"], ended["terminated"], ended["truncated"]) == (
        "environment_terminated",
        True,
        False,
    )
    assert (ended["score"], ended["n_steps"], ended["answer"]) == (1.0, 3, None)
    cut = trial(add, limits=Limits(turns=2))
    assert (cut["stop_reason"], cut["terminated"], cut["truncated"]) == ("max_turns", False, True)
    assert (cut["status"], cut["score"], cut["n_steps"]) == ("succeeded", 0.0, 2)
    lowered = trial(add, limits=Limits(turns=5), **{})
    assert lowered["n_steps"] == 3
    returned = trial(returning)
    assert (returned["stop_reason"], returned["answer"]) == ("agent_response", "one")
    finished = trial(finishing)
    assert (finished["stop_reason"], finished["answer"], finished["n_steps"]) == (
        "agent_finished",
        {"n": 0},
        0,
    )


def test_a_task_lowers_limits_and_never_raises_them(counter: Any, run: Callable[..., Any]) -> None:
    environment = Environment(name="e", apps={"counter": counter.Counter}, limits=Limits(turns=2))
    verifiers = [DeterministicVerifier(name="full", check=full)]
    tasks = [
        Task(
            name=str(turns),
            instructions="",
            environment=environment,
            verifiers=verifiers,
            limits=Limits(turns=turns),
        )
        for turns in (1, 3)
    ]
    assert {trial.task: trial.result["n_steps"] for trial in run(tasks, add).trials} == {"1": 1, "3": 2}


def test_a_harness_past_the_time_limit_is_left_behind_and_its_world_graded(
    task: Any, run: Callable[..., Any]
) -> None:
    let_go = threading.Event()
    later: list[BaseException] = []

    def stuck(task: Any, seat: Any) -> str:
        for _ in range(2):
            seat.act("add")
        let_go.wait(30)
        try:
            seat.act("add")
        except EpisodeOver as error:
            later.append(error)
        let_go.clear()
        return "too late"

    began = time.monotonic()
    (trial,) = run(task(limits=Limits(seconds=0.5)), stuck).trials
    result = trial.result
    assert time.monotonic() - began < 10
    assert (result["status"], result["stop_reason"], result["truncated"]) == (
        "succeeded",
        "max_seconds",
        True,
    )
    assert (result["score"], result["n_steps"], result["answer"], result["failure"]) == (0.0, 2, None, "none")
    let_go.set()
    deadline = time.monotonic() + 5
    while not later and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [str(error) for error in later] == ["the episode is over (max_seconds)."]
    assert trial.result == result


def test_an_action_past_the_time_limit_ends_the_episode(task: Any, run: Callable[..., Any]) -> None:
    def slow(task: Any, seat: Any) -> None:
        while True:
            seat.act("roll")
            time.sleep(0.1)

    result = run(task(limits=Limits(seconds=0.35)), slow).trials[0].result
    assert result["stop_reason"] == "max_seconds" and 2 <= result["n_steps"] <= 5


def test_a_harness_that_ignores_the_end_cannot_hold_the_job(
    task: Any, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playing, "ANSWER_S", 0.3)
    over = threading.Event()

    def deaf(task: Any, seat: Any) -> None:
        while not over.is_set():
            try:
                seat.act("add")
            except EpisodeOver:
                time.sleep(0.01)

    (trial,) = run(task(), deaf).trials
    over.set()
    assert (trial.score, trial.result["stop_reason"], trial.result["n_steps"]) == (
        1.0,
        "environment_terminated",
        3,
    )


def test_an_answer_after_the_end_counts(task: Any, run: Callable[..., Any]) -> None:
    def summing_up(task: Any, seat: Any) -> dict[str, Any]:
        while not seat.finished:
            seat.act("add")
        return {"counted": seat.observation}

    (trial,) = run(task(), summing_up).trials
    assert trial.result["answer"] == {"counted": 3}


class Strange:
    def __str__(self) -> str:
        return "strange \ud800"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, None),
        ("", ""),
        ({"a": [1, None]}, {"a": [1, None]}),
        ((1, 2), [1, 2]),
        (Strange(), "strange \\ud800"),
        ("\ud800", "\\ud800"),
        (float("nan"), "NaN"),
    ],
)
def test_an_answer_is_kept_as_json_or_as_text(
    given: Any, kept: Any, task: Any, run: Callable[..., Any]
) -> None:
    def seen(episode: Any) -> VerifierOutput:
        return VerifierOutput(score=1.0, evidence=repr(episode.answer))

    checked = task(verifiers=[DeterministicVerifier(name="seen", check=seen)])

    def finishing(task: Any, seat: Any) -> None:
        seat.act("finish", answer=given)

    agents = [
        Agent(name="returns", harness=lambda task, seat: given),
        Agent(name="finishes", harness=finishing),
    ]
    for trial in run(checked, None, agents=agents).trials:
        assert trial.score == 1.0 and trial.result["answer"] == kept
        assert trial.result["scores"][0]["evidence"] == [repr(kept)]


def test_a_harness_that_raises_is_the_agents_failure(task: Any, code: Any, run: Callable[..., Any]) -> None:
    harness = code("def play(task, seat):\n    seat.act('add')\n    raise LookupError('lost')\n", "play.py")
    result = run(task(), harness.play)
    (trial,) = result.trials
    assert (trial.status, trial.result["failure"], trial.score) == ("failed", "agent", None)
    assert trial.result["stop_reason"] == "error" and trial.result["n_steps"] == 1
    (fault,) = result.faults()
    assert (fault["where"], fault["type"], fault["at"]) == ("harness play", "LookupError", "play.py:3")
    # A benchmark counts the Agent's own failure as 0.
    assert result.leaderboard.rows[0].score == 0.0


def test_harnesses_and_checks_may_be_async(task: Any, run: Callable[..., Any]) -> None:
    async def play(task: Any, seat: Any) -> str:
        for _ in range(3):
            seat.act("add")
        return "done"

    async def check(episode: Any) -> VerifierOutput:
        return full(episode)

    async def reward(step: Any) -> float:
        return 0.5

    verifiers = [DeterministicVerifier(name="v", check=check, reward=reward)]
    (trial,) = run(task(verifiers=verifiers), play).trials
    assert (trial.score, trial.result["answer"], trial.result["return"]) == (1.0, "done", 1.5)


def test_finish_is_offered_unless_the_environment_says_never(task: Any, run: Callable[..., Any]) -> None:
    def names(task: Any, seat: Any) -> list[str]:
        return [tool["function"]["name"] for tool in seat.actions]

    offered = {}
    for finish in ("auto", "always", "never"):
        (trial,) = run(task(world={"finish": finish}), names).trials
        offered[finish] = trial.result["answer"]
    assert offered["auto"] == offered["always"] == ["add", "look", "roll", "finish"]
    assert offered["never"] == ["add", "look", "roll"]


def test_scores_are_weighted_and_never_clamped(task: Any, run: Callable[..., Any]) -> None:
    criteria = [
        RubricCriterion(name="policy", min_score=0, max_score=2, weight=1),
        RubricCriterion(name="clarity", min_score=0, max_score=2, weight=3),
    ]
    rubric = rubric_score(criteria, {"policy": 1, "clarity": 2})
    assert rubric == 0.875
    single = rubric_score([RubricCriterion(name="help", min_score=0, max_score=2)], {"help": 1})
    assert single == 0.5
    verifiers = [scoring("completion", 1.0), scoring("rubric", rubric, weight=2), scoring("help", single)]
    rewarding = DeterministicVerifier(name="rewarding", reward=lambda step: 100.0, weight=50)
    trials = {
        trial.task: trial
        for trial in run(
            [
                task("mixed", verifiers=[*verifiers, rewarding]),
                task("debt", verifiers=[scoring("debt", -40.0)]),
                task("points", verifiers=[scoring("points", 1200.5), scoring("none", 0.0)]),
            ],
            lambda task, seat: seat.act("add") and None,
        ).trials
    }
    # (1 x 1 + 2 x 0.875 + 1 x 0.5) / 4: what only rewards has no share.
    assert trials["mixed"].score == 0.8125
    assert [row["value"] for row in trials["mixed"].rewards] == [100.0]
    assert trials["debt"].score == -40.0 and trials["points"].score == 600.25


def test_a_harness_reaches_no_score_reward_state_or_name(task: Any, run: Callable[..., Any]) -> None:
    found: list[str] = []

    def looking(task: Any, seat: Any) -> None:
        seat.act("add")

        def walk(value: Any, path: str, depth: int) -> None:
            found.append(f"{path} = {value!r}")
            if depth and not isinstance(value, str | int | float | bool | None):
                for name in dir(value):
                    if not name.startswith("_"):
                        walk(getattr(value, name), f"{path}.{name}", depth - 1)

        walk(task, "task", 3)
        walk(seat, "seat", 3)
        found.append(threading.current_thread().name)

    secret = task(
        "crane",
        setup={"counter": {"goal": 77_777}},
        info={"hint": "info-of-the-task"},
        expected="the-answer-key",
        metadata={"note": "metadata-of-the-task"},
        verifiers=[DeterministicVerifier(name="judge-of-it", check=full, reward=lambda step: 0.123456)],
    )
    (trial,) = run(secret, looking).trials
    assert trial.status == "succeeded"
    text = "\n".join(found)
    assert "Count." in text and "seat.actions" in text
    for hidden in ("crane", "77777", "info-of", "answer-key", "metadata-of", "judge-of-it", "0.123456"):
        assert hidden not in text, hidden
    public = {name for name in dir(type(secret.view)) if not name.startswith("_")}
    assert {line.partition(" ")[0] for line in found if line.startswith("task.")} == {"task.instructions"} | {
        line.partition(" ")[0] for line in found if line.startswith("task.instructions.")
    }
    assert "info" in public and "crane" not in trial.id and "crane" not in str(trial.folder.path)


def test_what_a_harness_changes_in_what_it_sees_changes_no_record(code: Any, run: Callable[..., Any]) -> None:
    app = code(
        """
        from plural import App, action

        class Desk(App):
            def reset(self, task):
                return {"files": ["a"]}

            @action
            def check(self, files: list[str]) -> dict:
                return {"passed": [False]}
        """,
        "app.py",
    )

    def honest(episode: Any) -> VerifierOutput:
        (step,) = episode.trajectory
        seen = step["observation"] == episode.observation == {"passed": [False]}
        return VerifierOutput(score=float(seen and step["arguments"] == {"files": ["a"]}))

    def forging(task: Any, seat: Any) -> int:
        seat.observation["files"].append("b")
        files = ["a"]
        seen = seat.act("check", files=files)
        seen["passed"][0] = True
        seat.observation["passed"][0] = True
        files.append("b")
        seat.agent.settings["stop"].append("mine")
        for tool in seat.actions:
            tool["function"]["parameters"]["properties"].clear()
            tool["function"]["description"] = "mine"
        return len(seat.agent.settings["stop"])

    task = Task(
        name="t",
        instructions="",
        environment=Environment(name="e", apps={"desk": app.Desk}),
        verifiers=[DeterministicVerifier(name="honest", check=honest)],
    )
    agent = Agent(name="forger", harness=forging, settings={"stop": []})
    first, second = run(task, None, agents=[agent], attempts=2, concurrency=1).trials
    assert first.score == second.score == 1.0
    assert first.result["answer"] == second.result["answer"] == 1
    assert first.folder.opening()["observation"] == {"files": ["a"]}
    (tool,) = task.environment.actions.tools()
    assert list(tool["function"]["parameters"]["properties"]) == ["files"]


def test_a_trials_folder_holds_the_whole_record_and_its_result_comes_last(
    task: Any, run: Callable[..., Any]
) -> None:
    verifiers = [DeterministicVerifier(name="full", check=full, reward=lambda step: 0.5)]
    (trial,) = run(task(verifiers=verifiers), add, seed=5).trials
    files = {
        path.relative_to(trial.folder.path).as_posix(): path
        for path in trial.folder.path.rglob("*")
        if path.is_file()
    }
    assert set(files) >= {
        "result.json",
        "receipt.json",
        "steps.jsonl",
        "rewards.jsonl",
        "trajectory.json",
        "artifacts/manifest.json",
    }
    written = {name: path.stat().st_mtime_ns for name, path in files.items()}
    # A clock of file times may tick in milliseconds, so files made at once may bear one time.
    assert written["result.json"] == max(written.values())
    result = trial.result
    assert set(result["files"]) == {"steps.jsonl", "rewards.jsonl"} and trial.finished
    lines = [json.loads(line) for line in files["steps.jsonl"].read_text().splitlines()]
    assert [(line["kind"], line["turn"], line["seq"]) for line in lines] == [
        ("reset", 0, 0),
        ("step", 1, 1),
        ("step", 2, 2),
        ("step", 3, 3),
    ]
    assert [step["states_before"]["counter"]["n"] for step in trial.steps] == [0, 1, 2]
    assert [step["states"]["counter"]["n"] for step in trial.steps] == [1, 2, 3]
    assert [row["event_id"] for row in trial.rewards] == [step["event_id"] for step in trial.steps]
    assert all(row["code_sha256"] == verifiers[0].content_hash for row in trial.rewards)
    receipt = trial.receipt
    assert receipt.seed == result["seed"] and receipt.trial_id == trial.id == result["trial_id"]
    assert receipt.task.content_hash == task(verifiers=verifiers).content_hash
    assert receipt.runtime["kind"] == "local" and receipt.packages["numpy"]
    assert trial.folder.trajectory()["steps"]


def test_a_finished_trial_is_not_run_again(task: Any, run: Callable[..., Any], tmp_path: Path) -> None:
    result = run(task(), add)
    (trial,) = result.trials
    before = {path: path.read_bytes() for path in trial.folder.path.rglob("*") if path.is_file()}
    job = Job(
        tasks=[task()],
        agents=[Agent(name="player", harness=add)],
        directory=tmp_path / "jobs",
        job_id=result.id,
    )
    (plan,) = job.plans()
    assert run_trial(plan, trial.folder, None) == trial.result  # type: ignore[arg-type]
    assert {path: path.read_bytes() for path in trial.folder.path.rglob("*") if path.is_file()} == before


def test_a_runtime_that_cannot_is_no_failure_of_the_agent(task: Any, tmp_path: Path) -> None:
    from plural_gym.runtimes.local import LocalRuntime

    job = Job(tasks=[task()], agents=[Agent(name="player", harness=add)], directory=tmp_path)
    runtime = LocalRuntime({})
    runtime.close()
    (plan,) = job.plans()
    result = run_trial(plan, job.folder.trial(plan.id), runtime)
    assert (result["status"], result["failure"], result["score"]) == ("failed", "infrastructure", None)
    assert "the local Runtime is closed" in result["faults"][0]["message"]
    trial = Trial(job.folder.trial(plan.id))
    assert trial.finished and trial.steps == []


def test_a_trial_that_runs_elsewhere_is_refused(task: Any, tmp_path: Path) -> None:
    from plural_gym.runtimes.local import LocalRuntime

    job = Job(tasks=[task()], agents=[Agent(name="player", harness=add)], directory=tmp_path)
    (plan,) = job.plans()
    folder = job.folder.trial(plan.id)
    folder.create()
    with folder.lock(), pytest.raises(MachineError, match="another process is at work here"):
        run_trial(plan, folder, LocalRuntime({}))
    assert Trial(folder).status == "interrupted" and "interrupted" in repr(Trial(folder))


def test_a_file_that_changes_while_a_job_runs_is_never_run_under_the_old_hash(
    task: Any, counter: Any, run: Callable[..., Any]
) -> None:
    one = task()

    def editing(task: Any, seat: Any) -> None:
        counter.path.write_text(counter.path.read_text().replace("+= by", "+= 2 * by"))
        seat.act("add")

    first, second = run(one, editing, attempts=2, concurrency=1).trials
    assert first.status == "succeeded" and first.steps[0]["observation"] == 1
    assert second.result["failure"] == "environment"
    assert "app.py has changed since it was loaded" in second.result["faults"][0]["message"]


def test_environments_without_apps_have_no_state(run: Callable[..., Any]) -> None:
    def empty(episode: Any) -> VerifierOutput:
        return VerifierOutput(
            score=float(episode.state == {} and not episode.apps and not episode.trajectory)
        )

    task = Task(
        name="t",
        instructions="?",
        environment=Environment(name="nowhere"),
        verifiers=[DeterministicVerifier(name="empty", check=empty)],
    )
    (trial,) = run(task, lambda task, seat: "yes").trials
    assert (trial.score, trial.result["n_steps"], trial.result["answer"]) == (1.0, 0, "yes")


def test_an_error_of_this_package_fails_its_own_trial_alone(
    task: Any, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from plural_gym.host.recorder import TrialRecorder

    stepped = TrialRecorder.stepped

    def broken(self: TrialRecorder, turn: int, outcome: Any, *rest: Any) -> None:
        if outcome.arguments == {"by": 2}:
            raise AssertionError("our own bug")
        stepped(self, turn, outcome, *rest)

    monkeypatch.setattr(TrialRecorder, "stepped", broken)
    heard: list[BaseException] = []

    def play(task: Any, seat: Any) -> None:
        try:
            seat.act("add", by=int(task.instructions))
        except EpisodeOver as error:
            heard.append(error)
            raise

    tasks = [task(name=f"t{by}").model_copy(update={"instructions": str(by)}) for by in (1, 2, 3)]
    result = run(tasks, play, concurrency=1)
    one, two, three = result.trials
    assert (one.status, three.status) == ("succeeded", "succeeded")
    assert (two.status, two.result["failure"], two.score) == ("failed", "infrastructure", None)
    (fault,) = two.result["faults"]
    assert (fault["type"], fault["message"]) == ("AssertionError", "our own bug")
    assert "AssertionError: our own bug" in (two.folder.logs_path / "faults.log").read_text()
    assert [str(error) for error in heard] == ["the action failed, and the episode ends."]
    assert two.finished and two.folder.trajectory()["steps"]


def test_an_error_after_the_play_fails_its_own_trial_alone(
    task: Any, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(pairs: Any) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(grading, "combine", broken)
    (trial,) = run(task(), add).trials
    assert (trial.status, trial.result["failure"]) == ("failed", "infrastructure")
    assert trial.result["n_steps"] == 3 and trial.result["faults"][0]["message"] == "'lost'"


def test_a_full_disk_stops_the_job(
    task: Any, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from plural_gym.host.recorder import TrialRecorder

    def full_disk(self: TrialRecorder, *given: Any) -> None:
        raise MachineError("steps.jsonl: disk full.")

    monkeypatch.setattr(TrialRecorder, "stepped", full_disk)
    with pytest.raises(MachineError, match="disk full"):
        run(task(), add)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("\ud83d", {}, "no action"),
        ("x" * 300_000_000, {}, "no action"),
        ("add", {"by": 10**5000}, "add: its arguments are no JSON values"),
        (
            "add",
            {"by": "x" * 280_000_000},
            "add: its arguments have 280000009 bytes of JSON; the limit is 8388608",
        ),
        ("add", {"by": "\ud83d"}, "by"),
        ("add", {"\ud83d": 1}, "is no argument of add"),
    ],
    ids=["surrogate-name", "long-name", "huge-number", "long-text", "surrogate-text", "surrogate-key"],
)
def test_whatever_an_agent_sends_is_a_rejected_step(
    task: Any, run: Callable[..., Any], name: str, arguments: dict[str, Any], said: str
) -> None:
    from plural_gym.errors import ActionRejected

    def play(task: Any, seat: Any) -> None:
        with pytest.raises(ActionRejected) as caught:
            seat.act(name, **arguments)
        assert said in str(caught.value) and len(str(caught.value)) < 2000
        add(task, seat)

    (trial,) = run(task(), play).trials
    assert (trial.status, trial.score) == ("succeeded", 1.0)
    assert trial.folder.steps_path.stat().st_size < 10_000


def test_an_observation_that_is_too_large_is_the_apps_fault(code: Any, run: Callable[..., Any]) -> None:
    app = code(
        """
        from plural import App, action

        class Dump(App):
            @action
            def dump(self, size: int) -> dict:
                return {"text": "x" * size} if size else "\\ud83d"

            @action
            def thing(self) -> object:
                return object()
        """,
        "app.py",
    )
    verifier = DeterministicVerifier(name="v", check=lambda episode: VerifierOutput(score=1.0))
    environment = Environment(name="e", apps={"app": app.Dump})

    def one(name: str, play: Any) -> Any:
        task = Task(name=name, instructions="", environment=environment, verifiers=[verifier])
        (trial,) = run(task, play).trials
        return trial

    large = one("large", lambda task, seat: seat.act("dump", size=17 * 1024 * 1024))
    assert (large.status, large.result["failure"]) == ("failed", "environment")
    (fault,) = large.result["faults"]
    assert "action 'dump' returned" in fault["message"] and "the limit is 16777216" in fault["message"]
    assert fault["at"].startswith("app.py:")
    strange = one("strange", lambda task, seat: seat.act("thing"))
    assert strange.result["faults"][0]["at"].startswith("app.py:")
    assert strange.result["faults"][0]["at"].endswith(" in thing")
    seen: list[Any] = []
    assert one("half", lambda task, seat: seen.append(seat.act("dump", size=0))).status == "succeeded"
    assert seen == ["\\ud83d"]


def test_a_trajectory_never_tells_why_an_app_failed(code: Any, run: Callable[..., Any]) -> None:
    app = code(
        """
        from plural import App, State, action

        class Hidden(State):
            secret: str = "swordfish"

        class Telling(App):
            state: Hidden

            @action
            def look(self) -> str:
                raise KeyError(self.state.secret)
        """,
        "app.py",
    )
    task = Task(
        name="t",
        instructions="",
        environment=Environment(name="e", apps={"app": app.Telling}),
        verifiers=[DeterministicVerifier(name="v", check=lambda episode: VerifierOutput(score=1.0))],
    )
    (trial,) = run(task, lambda task, seat: seat.act("look")).trials
    assert "swordfish" in trial.result["faults"][0]["message"]
    text = json.dumps(trial.folder.trajectory())
    assert "swordfish" not in text and "the action failed" in text


def test_weights_and_scores_near_the_largest_float_are_a_graders_failure_at_worst(
    task: Any, run: Callable[..., Any]
) -> None:
    heavy = [scoring("a", 1.0, 1e308), scoring("b", 0.0, 1e308)]
    (trial,) = run(task(verifiers=heavy), add).trials
    assert (trial.status, trial.score) == ("succeeded", 0.5)
    bad = [scoring("a", 1.7976931348623157e308, 1e308), scoring("b", 1.7976931348623157e308, 1.7e308)]
    (trial,) = run(task(name="other", verifiers=bad), add).trials
    assert trial.status == "succeeded" or trial.result["failure"] == "grader"


def test_a_machine_error_that_a_harness_raises_itself_is_the_agents(
    task: Any, run: Callable[..., Any]
) -> None:
    def raising(task: Any, seat: Any) -> None:
        raise MachineError("no luck")

    def asking(task: Any, seat: Any) -> None:
        seat.agent.complete([])

    (trial,) = run(task(), raising).trials
    assert trial.result["failure"] == "agent"
    agents = [Agent(name="player", harness=asking, model="nobody/serves-it")]
    (trial,) = run(task(name="other"), None, agents=agents).trials
    assert trial.result["failure"] == "infrastructure"
