"""Replay and relabel: a Verifier run again on stored Trials, and its rewards added to their ledgers."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from plural_gym.errors import Fault, RecordError, UsageError
from plural_gym.job import JobResult
from plural_gym.project import Project
from plural_gym.records import ledger
from plural_gym.records.job_folder import JobStore
from plural_gym.relabel import apply_verifier, try_verifier
from plural_gym.replay import replay
from plural_gym.runtimes.local import LocalRuntime
from plural_gym.shipped import project as shipped
from plural_gym.verifier import Verifier

DIGEST = """
import json
import zlib
from plural import Episode, HindsightTrial, Step, VerifierOutput

def digest(*parts) -> float:
    return float(zlib.crc32(json.dumps(parts, sort_keys=True).encode()))

def reward(step: Step) -> float | None:
    if step.turn == 2:
        return None
    if step.arguments.get("by") == 4:
        raise KeyError("done")
    apps = {name: [app.state, app.snapshot()] for name, app in step.apps.items()}
    task = [step.task.name, step.task.info, step.task.metadata, step.task.expected, step.task.instructions]
    return digest(step.app, step.action, step.arguments, step.turn, step.event_id, step.seat, step.error,
                  step.observation, step.previous_state, step.current_state, apps, task)

def check(episode: Episode) -> VerifierOutput:
    apps = {name: [app.initial, app.final, app.control] for name, app in episode.apps.items()}
    usage = [episode.usage.turns, episode.usage.seconds, episode.usage.cost_usd]
    score = digest(episode.state, apps, episode.trajectory, episode.observation, episode.answer, usage,
                   episode.expected, episode.stop_reason, episode.artifacts, episode.seat)
    return VerifierOutput(score=score, scores={"turns": float(episode.usage.turns)}, evidence=["seen"])

def hindsight(trial: HindsightTrial):
    apps = {name: [app.initial, app.final] for name, app in trial.apps.items()}
    for step in trial.steps():
        yield trial.credit(step["event_id"], digest(trial.score, apps, step, trial.model_calls()))
"""


@pytest.fixture(scope="module")
def runtime() -> Iterator[LocalRuntime]:
    runtime = LocalRuntime({})
    yield runtime
    runtime.close()


@pytest.fixture
def world(workshop: Any) -> Any:
    """A project: two counters, a Verifier that digests whatever hooks can see, and an Agent of many deeds."""
    workshop.write("environments/pair/app.py", (workshop.root / "environments/counter/app.py").read_text())
    workshop.write(
        "environments/pair/environment.yaml",
        """
        name: pair
        version: 0.1.0
        apps:
          left: {kind: python, class: "app.py:Counter"}
          right: {kind: python, class: "app.py:Counter"}
        limits: {turns: 20}
        """,
    )
    workshop.write(
        "tasks/both/task.yaml",
        """
        name: both
        version: 0.1.0
        instructions: Count both.
        environment: pair
        verifiers: [digest, steady]
        setup: {left: {goal: 500}, right: {goal: 700}}
        info: {id: T-7}
        expected: {n: 9}
        """,
    )
    workshop.write("verifiers/digest/verify.py", DIGEST)
    workshop.write(
        "verifiers/digest/verifier.yaml",
        """
        name: digest
        version: 0.1.0
        kind: deterministic
        check: verify.py:check
        reward: verify.py:reward
        hindsight: verify.py:hindsight
        weight: 3
        """,
    )
    write_verifier(
        workshop,
        "steady",
        "from plural import VerifierOutput\n\ndef check(episode):\n    return VerifierOutput(score=0.5)\n",
        "check: verify.py:check",
    )
    workshop.write(
        "harnesses/counting/play.py",
        """
        from plural import ActionRejected

        def play(task, seat):
            seat.act("left.add", by=2)
            seat.act("right.add", by=3)
            tries = (("right.add", {"by": 4}), ("left.add", {"by": -1}), ("fly", {}), ("add", {}))
            for action, given in tries:
                try:
                    seat.act(action, **given)
                except ActionRejected:
                    pass
            seat.act("left.look")
            return {"n": 9}
        """,
    )
    return workshop


def write_verifier(workshop: Any, name: str, code: str, hooks: str) -> None:
    workshop.write(f"verifiers/{name}/verify.py", code)
    workshop.write(
        f"verifiers/{name}/verifier.yaml",
        f"name: {name}\nversion: 0.1.0\nkind: deterministic\n{hooks}\n",
    )


def play(workshop: Any, *tasks: str, project: Project | None = None) -> JobResult:
    from plural_gym.job import Job

    project = project or workshop.project
    chosen = [project.tasks.get(name) for name in tasks]
    return Job(tasks=chosen, agents=[project.agents["ada"]], directory=workshop.root / ".plural/jobs").run()


@pytest.fixture(scope="module")
def template() -> dict[str, Path]:
    """Where the world lies in which the Task `both` was played, once that was done."""
    return {}


@pytest.fixture
def played(world: Any, template: dict[str, Path]) -> JobResult:
    """The Task `both`, played in `world`: once, and copied for every test."""
    if not template:
        result = play(world, "both")
        template["root"] = world.root.parent / "template"
        shutil.copytree(world.root, template["root"])
        return result
    shutil.copytree(template["root"], world.root, dirs_exist_ok=True)
    [folder] = JobStore(world.root / ".plural/jobs").jobs()
    return JobResult(folder)


def values(rows: list[dict[str, Any]], verifier: str, kind: str = "step") -> list[float | None]:
    return [row["value"] for row in rows if row["verifier"] == verifier and row["kind"] == kind]


def test_an_unchanged_verifier_gives_again_what_it_gave_live(
    world: Any, played: JobResult, runtime: LocalRuntime
) -> None:
    result = played
    [trial] = result.trials
    [one] = try_verifier(world.project.verifiers["digest"], result.folder, runtime=runtime).trials
    live = [row for row in trial.rewards if row["verifier"] == "digest"]
    steps = [row for row in live if row["kind"] == "step"]
    assert [(row["event_id"], row["value"]) for row in steps] == [
        (reward.event_id, reward.value) for reward in one.rewards
    ]
    assert [row["status"] for row in steps].count("error") == 1
    for row, reward in zip(steps, one.rewards, strict=True):
        assert row["error_at"] == (reward.fault.at if reward.fault else None)
    stored = trial.result["scores"][0]
    assert one.score == stored["score"]
    assert one.to_json()["scores"] == stored["scores"]
    credits = [row for row in live if row["kind"] == "hindsight"]
    assert isinstance(one.credits, tuple)
    assert [(row["event_id"], row["value"]) for row in credits] == [
        (credit.event_id, credit.value) for credit in one.credits
    ]
    assert len(credits) == len(trial.steps) == 7
    assert one.trial_score == trial.score
    assert one.notes == ()


@pytest.mark.parametrize(
    ("task", "agent", "verifiers"),
    [
        ("wordle/crane", "solver", ("solved", "progress")),
        ("support-desk/ticket-1", "keyword", ("correct-resolution",)),
    ],
)
def test_the_shipped_verifiers_replay_to_their_live_ledger(
    task: str, agent: str, verifiers: tuple[str, ...], tmp_path: Path, runtime: LocalRuntime
) -> None:
    from plural_gym.job import Job

    found = shipped()
    result = Job(tasks=[found.tasks.get(task)], agents=[found.agents[agent]], directory=tmp_path).run()
    [trial] = result.trials
    for name in verifiers:
        [one] = try_verifier(found.verifiers[name], result.folder, runtime=runtime).trials
        assert [reward.value for reward in one.rewards] == values(trial.rewards, name)
        assert isinstance(one.credits, tuple)
        assert [credit.value for credit in one.credits] == values(trial.rewards, name, "hindsight")
        if found.verifiers[name].scores:
            assert one.score == trial.score == 1.0


def test_trying_saves_nothing(world: Any, played: JobResult, runtime: LocalRuntime) -> None:
    result = played
    before = {path: path.read_bytes() for path in result.folder.path.rglob("*") if path.is_file()}
    try_verifier(world.project.verifiers["digest"], result.folder, runtime=runtime)
    assert {path: path.read_bytes() for path in result.folder.path.rglob("*") if path.is_file()} == before


def test_a_changed_verifier_is_judged_with_the_stored_scores_of_the_others(
    world: Any, played: JobResult, runtime: LocalRuntime
) -> None:
    result = played
    write_verifier(
        world,
        "steady",
        """
        from plural import VerifierOutput

        def check(episode):
            return VerifierOutput(score=0.75)

        def credit(trial):
            yield trial.credit(trial.steps("add")[0]["event_id"], trial.score)
        """,
        "check: verify.py:check\nhindsight: verify.py:credit",
    )
    [one] = try_verifier(world.project.verifiers["steady"], result.folder, runtime=runtime).trials
    digest = result.trials[0].result["scores"][0]
    assert one.score == 0.75
    assert one.trial_score == (3 * digest["score"] + 0.75) / 4
    assert isinstance(one.credits, tuple)
    assert one.credits[0].value == one.trial_score


def test_query_is_refused_in_replay(world: Any, runtime: LocalRuntime) -> None:
    code = """
    def reward(step):
        return float(step.apps["left"].query("look")["n"])
    """
    write_verifier(world, "asks", code, "reward: verify.py:reward")
    world.edit("tasks/both/task.yaml", "[digest, steady]", "[asks, steady]")
    result = play(world, "both")
    assert values(result.trials[0].rewards, "asks")[0] == 2.0
    [one] = try_verifier(world.project.verifiers["asks"], result.folder, runtime=runtime).trials
    assert {fault.type for fault in one.faults} == {"QueryRefused"}
    assert "read its state instead" in one.faults[0].message


def test_a_function_that_loops_or_exits_costs_only_itself(
    world: Any, played: JobResult, runtime: LocalRuntime
) -> None:
    result = played
    code = """
    import os
    from plural import VerifierOutput

    def check(episode):
        os._exit(7)

    def reward(step):
        while step.turn == 1:
            pass
        return 1.0

    def credit(trial):
        yield trial.credit(trial.steps()[0]["event_id"], 2.0)
    """
    hooks = (
        "check: verify.py:check\nreward: verify.py:reward\nhindsight: verify.py:credit\nreward_timeout_s: 0.3"
    )
    write_verifier(world, "wild", code, hooks)
    [one] = try_verifier(world.project.verifiers["wild"], result.folder, runtime=runtime).trials
    assert one.rewards[0].fault is not None and one.rewards[0].fault.type == "TimeoutError"
    assert [reward.value for reward in one.rewards[1:]] == [1.0] * 4
    assert isinstance(one.output, Fault) and "exited with status 7" in one.output.message
    assert isinstance(one.credits, tuple) and one.credits[0].value == 2.0
    assert one.trial_score is None


def test_applying_adds_a_run_that_takes_the_place_of_the_one_before(
    world: Any, played: JobResult, runtime: LocalRuntime
) -> None:
    result = played
    [trial] = result.trials
    summary = trial.result
    live = trial.folder.rewards_path.read_bytes()
    world.edit("verifiers/digest/verify.py", 'raise KeyError("done")', "return 4.0")
    world.edit("verifiers/digest/verify.py", "return digest(step.app,", "return 1.0\n    digest(step.app,")
    verifier = world.project.verifiers["digest"]
    runs = [apply_verifier(verifier, result.folder, runtime=runtime) for _ in range(2)]
    assert runs[0].run_id != runs[1].run_id
    assert values(trial.rewards, "digest") == [1.0, None, 4.0, 1.0, 1.0]
    rows = [row for row in trial.rewards if row["verifier"] == "digest"]
    assert {row["run_id"] for row in rows} == {runs[1].run_id}
    assert {row["source"] for row in rows} == {"apply"}
    assert {row["code_sha256"] for row in rows} == {verifier.content_hash}
    first = next(trial.folder.rewards())
    assert all(list(row) == list(first) for row in rows), "one field list, whoever wrote the row"
    assert trial.folder.rewards_path.read_bytes().startswith(live)
    changed = {key for key, value in trial.result.items() if value != summary[key]}
    assert changed == {"return", "revision"}, "the return follows the newest run, the score stays"
    given = [row["value"] for row in trial.rewards if row["kind"] == "step" and row["value"] is not None]
    assert trial.result["return"] == sum(given)
    assert trial.finished
    sealed = ledger.read(result.folder, "rewards").to_pylist()
    assert sorted(row["reward_id"] for row in sealed) == sorted(row["reward_id"] for row in trial.rewards)
    everything = ledger.read(result.folder, "rewards", current=False)
    assert everything.num_rows == len(list(trial.folder.rewards()))


def test_a_fault_is_applied_as_a_fault(world: Any, played: JobResult, runtime: LocalRuntime) -> None:
    result = played
    apply_verifier(world.project.verifiers["digest"], result.folder, runtime=runtime)
    [row] = [row for row in result.trials[0].rewards if row["status"] == "error"]
    assert (row["value"], row["error_type"], row["source"]) == (None, "KeyError", "apply")
    assert row["error_at"].startswith("verify.py:")


def test_credit_that_is_given_no_more_counts_no_more(
    world: Any, played: JobResult, runtime: LocalRuntime
) -> None:
    result = played
    world.edit("verifiers/digest/verify.py", "for step in trial.steps():", "for step in ():")
    apply_verifier(world.project.verifiers["digest"], result.folder, runtime=runtime)
    [row] = [row for row in result.trials[0].rewards if row["kind"] == "hindsight"]
    assert (row["value"], row["status"], row["event_id"]) == (None, "none", None)


def test_two_credits_for_one_step_both_count(world: Any, played: JobResult, runtime: LocalRuntime) -> None:
    result = played
    code = """
    def credit(trial):
        yield trial.credit(trial.steps()[0]["event_id"], 1.0)
        yield trial.credit(trial.steps()[0]["event_id"], 2.0)
    """
    write_verifier(world, "twice", code, "hindsight: verify.py:credit")
    apply_verifier(world.project.verifiers["twice"], result.folder, runtime=runtime)
    rows = ledger.read(result.folder, "rewards").to_pylist()
    assert sorted(values(rows, "twice", "hindsight")) == [1.0, 2.0]


def test_the_task_is_the_one_the_job_was_run_with(
    world: Any, played: JobResult, runtime: LocalRuntime
) -> None:
    result = played
    [before] = try_verifier(world.project.verifiers["digest"], result.folder, runtime=runtime).trials
    world.edit("tasks/both/task.yaml", "expected: {n: 9}", "expected: {n: 10}")
    project = world.project
    [after] = try_verifier(
        project.verifiers["digest"], result.folder, tasks=project.tasks, runtime=runtime
    ).trials
    assert after.score == before.score
    shutil.rmtree(result.folder.inputs_path)
    [lost] = try_verifier(
        project.verifiers["digest"], result.folder, tasks=project.tasks, runtime=runtime
    ).trials
    assert lost.score != before.score
    assert "'both' is the current one; the Job's own copy cannot be loaded" in lost.notes[0]
    alone = try_verifier(project.verifiers["digest"], result.folder, runtime=runtime)
    assert alone.trials == ()
    assert "Task 'both' cannot be loaded" in alone.skipped[lost.trial_id]


def test_an_attempt_that_was_never_graded_has_rewards_only(world: Any, runtime: LocalRuntime) -> None:
    world.edit("harnesses/counting/play.py", 'return {"n": 9}', "raise RuntimeError('lost')")
    result = play(world, "both")
    [one] = try_verifier(world.project.verifiers["digest"], result.folder, runtime=runtime).trials
    assert result.trials[0].result["failure"] == "agent"
    assert one.output is None and one.credits == () and one.trial_score is None
    assert [reward.value for reward in one.rewards] == values(result.trials[0].rewards, "digest")
    assert "never graded (failure: agent)" in one.notes[0]


def test_the_action_an_app_failed_at_is_not_rewarded(world: Any, runtime: LocalRuntime) -> None:
    world.edit("environments/pair/app.py", 'return {"n": self.state.n}', 'raise OSError("disk")')
    result = play(world, "both")
    [trial] = result.trials
    [one] = try_verifier(world.project.verifiers["digest"], result.folder, runtime=runtime).trials
    assert trial.result["failure"] == "environment"
    assert len(one.rewards) == len(values(trial.rewards, "digest")) == len(trial.steps) - 3
    assert [reward.value for reward in one.rewards] == values(trial.rewards, "digest")


def test_trials_of_other_tasks_and_unfinished_ones_are_left_alone(world: Any, runtime: LocalRuntime) -> None:
    world.write("harnesses/counting/play.py", "def play(task, seat):\n    return 1\n")
    result = play(world, "both", "count/a")
    folders = {trial.task: trial.folder for trial in result.trials}
    project = world.project
    listed = try_verifier(project.verifiers["digest"], result.folder, runtime=runtime)
    assert [one.trial_id for one in listed.trials] == [folders["both"].id]
    assert listed.skipped == {folders["count/a"].id: "the Task does not list Verifier 'digest'"}
    write_verifier(world, "new", "def reward(step):\n    return 1.0\n", "reward: verify.py:reward")
    new = try_verifier(world.project.verifiers["new"], result.folder, runtime=runtime)
    assert [one.trial_id for one in new.trials] == [folders["both"].id, folders["count/a"].id]
    named = try_verifier(
        project.verifiers["digest"], result.folder, trial_ids=[folders["count/a"].id], runtime=runtime
    )
    assert len(named.trials) == 1
    folders["both"].result_path.unlink()
    cut = try_verifier(project.verifiers["digest"], result.folder, runtime=runtime)
    assert cut.skipped[folders["both"].id] == "not finished"


def test_a_trial_that_somebody_works_at_is_left_alone(
    world: Any, played: JobResult, runtime: LocalRuntime
) -> None:
    result = played
    [trial] = result.trials
    with trial.folder.lock():
        applied = apply_verifier(world.project.verifiers["digest"], result.folder, runtime=runtime)
    assert applied.trials == ()
    assert "another process is at work here" in applied.skipped[trial.id]


def test_apps_without_recorded_state_are_named(world: Any, played: JobResult, runtime: LocalRuntime) -> None:
    result = played
    [trial] = result.trials
    lines = [json.loads(line) for line in trial.folder.steps_path.read_text().splitlines()]
    for line in lines:
        line["state"] = {name: change for name, change in line["state"].items() if name == "left"}
    trial.folder.steps_path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    code = """
    def reward(step):
        return float(step.current_state is None and step.apps["right"].state is None)
    """
    write_verifier(world, "blind", code, "reward: verify.py:reward")
    verifier, view = world.project.verifiers["blind"], world.project.tasks.get("both").view
    one = replay(verifier, trial.folder, view, runtime)
    assert [reward.value for reward in one.rewards][:3] == [0.0, 1.0, 1.0]
    assert one.notes == ("App 'right' has no recorded State (control none); here it reads as None.",)


def test_a_verifier_without_functions_cannot_be_replayed(workshop: Any, runtime: LocalRuntime) -> None:
    class Judge(Verifier):
        kind: ClassVar[str] = "judge"

        @property
        def scores(self) -> bool:
            return True

    workshop.write("harnesses/counting/play.py", "def play(task, seat):\n    return 1\n")
    result = play(workshop, "count/a")
    with pytest.raises(UsageError, match="'fair' of kind 'judge' has no code to run again"):
        try_verifier(Judge(name="fair"), result.folder, runtime=runtime)


def test_an_unfinished_trial_cannot_be_replayed(workshop: Any, runtime: LocalRuntime, tmp_path: Path) -> None:
    from plural_gym.records.trial_folder import TrialFolder

    task = workshop.project.tasks.get("count/a")
    with pytest.raises(RecordError, match=r"result\.json"):
        replay(workshop.project.verifiers["full"], TrialFolder(tmp_path / "none"), task.view, runtime)


def test_a_verifier_that_cannot_be_imported_is_a_fault_of_each_hook(
    world: Any, played: JobResult, code: Callable[..., Any], runtime: LocalRuntime
) -> None:
    result = played
    verifier = world.project.verifiers["digest"]
    world.write("verifiers/digest/verify.py", "raise RuntimeError('half written')\n")
    [one] = try_verifier(verifier, result.folder, runtime=runtime).trials
    assert one.output is not None and one.score is None
    assert len(one.faults) == len(one.rewards) + 2
