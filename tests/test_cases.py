"""Cases: attempts and what a Verifier must give for them."""

from collections.abc import Callable
from typing import Any

import pytest

from plural_gym.cases import CaseResult, missing_kinds, run_cases
from plural_gym.shipped import project as shipped

CODE = """
from plural import Episode, HindsightTrial, Step, VerifierOutput

def full(episode: Episode) -> VerifierOutput:
    n = episode.apps["counter"].final["n"]
    return VerifierOutput(score=float(n >= 5), scores={"n": n, "said": float(episode.answer == "done")})

def growth(step: Step) -> float | None:
    if step.error:
        return -1.0
    return step.current_state["n"] - step.previous_state["n"] or None

def best(trial: HindsightTrial):
    if trial.score:
        yield trial.credit(trial.steps("add")[-1]["event_id"], 0.5)
        yield trial.credit(trial.steps("add")[-1]["event_id"], 0.25)
"""


@pytest.fixture
def case(workshop: Any) -> Callable[..., CaseResult]:
    """`case(text)`: what comes of one case file of the Verifier `full`."""
    workshop.write("verifiers/full/verify.py", CODE)
    workshop.write(
        "verifiers/full/verifier.yaml",
        """
        name: full
        version: 0.1.0
        kind: deterministic
        check: verify.py:full
        reward: verify.py:growth
        hindsight: verify.py:best
        """,
    )

    def case(text: str, verifier: str = "full") -> CaseResult:
        workshop.write(f"verifiers/{verifier}/cases/correct.yaml", text)
        project = workshop.project
        found = project.verifiers[verifier]
        [result] = run_cases(found, found.folder, project)
        return result

    return case


def told(result: CaseResult) -> list[str]:
    assert not result.passed
    return [str(one) for one in (*result.differences, *result.problems)]


PLAYED = """
name: to the goal
play:
  task: count/b
  actions:
    - {action: add, arguments: {by: 3}}
    - {action: add, arguments: {by: 0}}
    - {action: look}
    - {action: add, arguments: {by: 2}}
  answer: done
expect:
  score: 1
  scores: {n: 5, said: 1.0}
  rewards: [3, -1.0, null, 2]
  credit: [null, null, null, 0.75]
"""


@pytest.mark.parametrize("name", ["solved", "progress", "correct-resolution"])
def test_every_case_of_the_shipped_verifiers_passes(name: str) -> None:
    found = shipped()
    verifier = found.verifiers[name]
    assert verifier.folder is not None
    results = run_cases(verifier, verifier.folder, found)
    assert len(results) >= 4
    assert [(result.file, *map(str, result.differences)) for result in results if not result.passed] == []
    assert missing_kinds(verifier.folder) == []


def test_an_attempt_is_played_through_the_world_of_a_task(case: Any) -> None:
    result = case(PLAYED)
    assert result.passed, told(result)
    assert result.file == "verifiers/full/cases/correct.yaml"
    assert result.name == "to the goal"


def test_each_thing_that_came_out_otherwise_is_told(case: Any) -> None:
    changed = PLAYED.replace("score: 1\n", "score: 0.5\n").replace("n: 5,", "n: 4, lost: 1,")
    changed = changed.replace("[3, -1.0, null, 2]", "[3, null, 0, 2]").replace("0.75]", "0.7]")
    assert told(case(changed)) == [
        "score: expected 0.5, got 1",
        "scores.n: expected 4, got 5",
        "scores.lost: expected 1, got none",
        "rewards[1]: expected none, got -1",
        "rewards[2]: expected 0, got none",
        "credit[3]: expected 0.7, got 0.75",
    ]


def test_rewards_of_another_length_are_shown_in_full(case: Any) -> None:
    assert told(case(PLAYED.replace("[3, -1.0, null, 2]", "[3]"))) == [
        "rewards: expected [3] (1 long), got [3, -1, none, 2] (4 long)"
    ]


def test_an_attempt_may_be_written_out(case: Any) -> None:
    result = case(
        """
        name: written out
        episode:
          apps:
            counter: {initial: {n: 0}, final: {n: 6}}
          answer: done
          steps:
            - {action: add, arguments: {by: 6}, observation: 6, previous_state: {n: 0}, current_state: {n: 6}}
            - {action: add, error: by is above 0, previous_state: {n: 6}, current_state: {n: 6}}
        expect: {score: 1, scores: {n: 6}, rewards: [6, -1], credit: [null, 0.75]}
        """
    )
    assert result.passed, told(result)


def test_a_step_that_is_written_out_without_state_is_not_rewarded(case: Any) -> None:
    text = "name: x\nepisode: {apps: {counter: {final: {n: 5}}}, steps: [{action: add}]}\n"
    assert case(text + "expect: {score: 1, rewards: [null], credit: [0.75]}\n").passed


def test_the_final_state_of_one_app_may_be_written_alone(case: Any, workshop: Any) -> None:
    code = """
    from plural import VerifierOutput

    def check(episode):
        assert episode.task.info == {"id": 7} and episode.stop_reason == "max_turns"
        return VerifierOutput(score=float(episode.state["n"] == episode.expected))
    """
    workshop.write("verifiers/plain/verify.py", code)
    workshop.write("verifiers/plain/verifier.yaml", "name: plain\nversion: 0.1.0\ncheck: verify.py:check\n")
    text = "name: x\nepisode: {state: {n: 3}, expected: 3, info: {id: 7}, stop_reason: max_turns}\n"
    assert case(text + "expect: {score: 1.0}\n", "plain").passed


def test_hindsight_without_a_check_is_told_the_score(case: Any, workshop: Any) -> None:
    workshop.write("verifiers/late/verify.py", CODE)
    workshop.write("verifiers/late/verifier.yaml", "name: late\nversion: 0.1.0\nhindsight: verify.py:best\n")
    text = PLAYED.partition("expect:")[0]
    assert case(text + "expect: {credit: [null, null, null, null]}\n", "late").passed
    scored = text.replace("answer: done", "score: 1.0")
    assert case(scored + "expect: {credit: [null, null, null, 0.75]}\n", "late").passed


def test_total_reward_sums_the_rewards_of_the_case(case: Any, workshop: Any) -> None:
    workshop.write("verifiers/points/verify.py", CODE)
    manifest = "name: points\nversion: 0.1.0\ncheck: total_reward\nreward: verify.py:growth\n"
    workshop.write("verifiers/points/verifier.yaml", manifest)
    assert case(PLAYED.partition("expect:")[0] + "expect: {score: 4.0}\n", "points").passed


def test_finish_ends_the_attempt_with_its_answer(case: Any) -> None:
    text = PLAYED.partition("  answer:")[0].replace("by: 2", "by: 1")
    text += "    - {action: finish, arguments: {answer: done}}\nexpect: {scores: {said: 1, n: 4}}\n"
    assert case(text).passed


def test_a_fault_that_nobody_expects_fails_the_case(case: Any) -> None:
    text = "name: x\nepisode: {apps: {counter: {final: {}}}}\nexpect: {score: 0}\n"
    [said] = told(case(text))
    assert said.startswith("verifier full check: expected no fault, got KeyError: 'n' (at verify.py:")


@pytest.mark.parametrize("fault", ["true", "KeyError", "\"KeyError: 'n'\""])
def test_a_fault_may_be_what_is_expected(case: Any, fault: str) -> None:
    assert case(
        f"name: x\nepisode: {{apps: {{counter: {{final: {{}}}}}}}}\nexpect: {{fault: {fault}}}\n"
    ).passed


def test_an_expected_fault_that_does_not_come_fails_the_case(case: Any) -> None:
    good = "name: x\nepisode: {apps: {counter: {final: {n: 0}}}}\n"
    assert told(case(good + "expect: {fault: true}\n")) == ["fault: expected a fault, got none"]
    bad = "name: x\nepisode: {apps: {counter: {final: {}}}}\n"
    assert told(case(bad + "expect: {fault: IndexError}\n")) == [
        "fault: expected a fault with 'IndexError', got KeyError: 'n'"
    ]


@pytest.mark.parametrize("attempt", ["episode: {FILES}", "play: {task: count/a, FILES}"])
def test_files_that_the_agent_produced_may_be_written_out(case: Any, workshop: Any, attempt: str) -> None:
    code = """
    from plural import VerifierOutput

    def check(episode):
        return VerifierOutput(score=1.0, scores={row["path"]: row["size"] for row in episode.artifacts})
    """
    workshop.write("verifiers/plain/verify.py", code)
    workshop.write("verifiers/plain/verifier.yaml", "name: plain\nversion: 0.1.0\ncheck: verify.py:check\n")
    text = f"name: x\n{attempt}\n".replace("FILES", 'files: {a.txt: "four", sub/b.md: "ü"}')
    result = case(text + "expect: {scores: {a.txt: 4, sub/b.md: 2}}\n", "plain")
    assert result.passed, told(result)


def test_what_a_check_changes_in_its_record_hindsight_does_not_see(case: Any, workshop: Any) -> None:
    code = """
    from plural import VerifierOutput

    def check(episode):
        episode.trajectory[0].clear()
        episode.task.info.clear()
        episode.apps["app"].final.clear()
        return VerifierOutput(score=1.0)

    def late(trial):
        if trial.task.info == {"k": 1} and trial.apps["app"].final == {"n": 1}:
            yield trial.credit(trial.steps("add")[0]["event_id"], 0.5)
    """
    workshop.write("verifiers/plain/verify.py", code)
    manifest = "name: plain\nversion: 0.1.0\ncheck: verify.py:check\nhindsight: verify.py:late\n"
    workshop.write("verifiers/plain/verifier.yaml", manifest)
    text = "name: x\nepisode: {state: {n: 1}, info: {k: 1}, steps: [{action: add}]}\n"
    result = case(text + "expect: {score: 1.0, credit: [0.5]}\n", "plain")
    assert result.passed, told(result)


def test_a_seat_of_a_party_is_judged_by_what_was_its_own(case: Any, workshop: Any) -> None:
    code = """
    from plural import VerifierOutput

    def check(episode):
        own = [record for record in episode.trajectory if record["seat"] == episode.seat]
        return VerifierOutput(score=len(own) / len(episode.trajectory))

    def reward(step):
        return {"north": 1.0, "south": -1.0} if step.turn == 3 else 0.25

    def late(trial):
        for record in trial.steps():
            if record["seat"] == trial.seat:
                yield trial.credit(record["event_id"], 0.5)
    """
    workshop.write("verifiers/plain/verify.py", code)
    hooks = "check: verify.py:check\nreward: verify.py:reward\nhindsight: verify.py:late\n"
    workshop.write("verifiers/plain/verifier.yaml", f"name: plain\nversion: 0.1.0\n{hooks}")
    steps = "".join(
        f"    - {{action: bid, seat: {seat}, previous_state: {{}}, current_state: {{}}}}\n"
        for seat in ("north", "south", "north")
    )
    for seat, expect in (
        ("north", "{score: 0.6666666667, rewards: [0.25, null, 1.0], credit: [0.5, null, 0.5]}"),
        ("south", "{score: 0.3333333333, rewards: [null, 0.25, -1.0], credit: [null, 0.5, null]}"),
    ):
        text = (
            f"name: x\nepisode:\n  seats: [north, south]\n  seat: {seat}\n  steps:\n{steps}expect: {expect}\n"
        )
        result = case(text, "plain")
        assert result.passed, told(result)


def test_a_number_may_be_bounded(case: Any) -> None:
    bounded = PLAYED.replace("score: 1\n", "score: {min: 0.5, max: 1}\n").replace("{n: 5,", "{n: {max: 5},")
    assert case(bounded).passed
    assert told(case(bounded.replace("min: 0.5, max: 1", "min: 1.5").replace("{max: 5}", "{max: 4}"))) == [
        "score: expected at least 1.5, got 1",
        "scores.n: expected at most 4, got 5",
    ]
    for wrong, message in (
        ("{}", "bounds name none; write {min: 0.5}, {max: 0.5}, or both (in 'expect.score')."),
        ("{min: 2, max: 1}", "'max' 1 is below 'min' 2; no number lies between them (in 'expect.score')."),
        ("{least: 1}", "unknown key 'least' in 'expect.score'"),
    ):
        assert message in told(case(PLAYED.replace("score: 1\n", f"score: {wrong}\n")))[0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "name: x\nepisode: {files: {../a: x}}\nexpect: {score: 1}\n",
            "2: key '../a' in 'episode.files' must be a path without '..'",
        ),
        (
            "name: x\nepisode: {seats: [a, b]}\nexpect: {score: 1}\n",
            "2: 'seat' is missing; name the one that is judged: a, b (in 'episode').",
        ),
        (
            "name: x\nepisode: {seats: [a, b], seat: c}\nexpect: {score: 1}\n",
            "2: seat 'c' is not in 'seats'; there are: a, b (in 'episode').",
        ),
        ("name: x\nexpect: {score: 1}\n", "1: a case holds one attempt: either 'episode' or 'play'."),
        ("name: x\nplay: {task: count/a}\nexpect: {}\n", "3: 'expect' names nothing"),
        (
            "name: x\nplay: {task: count/z}\nexpect: {score: 1}\n",
            "2: there is no Task 'count/z'; did you mean",
        ),
        ("name: x\nplay: {task: count/a, actoins: []}\nexpect: {score: 1}\n", "2: unknown key 'actoins'"),
        (PLAYED.replace("score: 1\n", "score: one\n"), "11: 'expect.score' must be a number, not 'one'."),
        (
            PLAYED.replace("by: 3", "by: 5"),
            "6: the episode is over before this action (environment_terminated); remove it.",
        ),
        (
            "name: x\nepisode: {state: {n: 1}, apps: {counter: {}}}\nexpect: {score: 1}\n",
            "2: 'state' is short for one App's final State; give it or 'apps' (in 'episode').",
        ),
        (
            "name: x\nepisode:\n  apps: {a: {}, b: {}}\n  steps: [{action: add}]\nexpect: {score: 1}\n",
            "4: a step has no 'app'; with several Apps say which: a, b (in 'episode').",
        ),
        (
            "name: x\nepisode:\n  apps: {a: {}}\n  steps: [{action: add, app: c}]\nexpect: {score: 1}\n",
            "4: a step's app 'c' is not in 'apps'; there are: a (in 'episode').",
        ),
        ("name: [x\n", ": is not valid YAML"),
    ],
)
def test_a_case_file_that_is_wrong_is_told_with_its_line(case: Any, text: str, problem: str) -> None:
    [said] = told(case(text))
    assert said.startswith("verifiers/full/cases/correct.yaml:")
    assert problem in said


def test_an_app_that_fails_in_a_case_is_told_with_the_line_of_the_action(case: Any, workshop: Any) -> None:
    workshop.edit("environments/counter/app.py", 'return {"n": self.state.n}', 'raise OSError("disk")')
    [said] = told(case(PLAYED))
    assert said.startswith(
        "verifiers/full/cases/correct.yaml:7: the action failed: app counter: OSError: disk"
    )


def test_a_world_that_cannot_be_opened_is_told_with_the_line_of_the_attempt(case: Any, workshop: Any) -> None:
    broken = "    def reset(self, task):\n        raise OSError('disk')\n\n    def terminated(self)"
    workshop.edit("environments/counter/app.py", "    def terminated(self)", broken)
    [said] = told(case(PLAYED))
    assert said.startswith("verifiers/full/cases/correct.yaml:2: app counter: OSError: disk (at app.py:")


def test_a_kind_of_outcome_without_a_case_is_missing(case: Any, workshop: Any) -> None:
    case(PLAYED)
    assert missing_kinds(workshop.root / "verifiers/full") == ["incorrect", "incomplete"]


def test_an_attempt_of_several_seats_is_written_out(case: Any, workshop: Any) -> None:
    workshop.edit(
        "environments/counter/environment.yaml", "limits:", "party: {seats: [north, south]}\nlimits:"
    )
    [said] = told(case(PLAYED))
    assert ":3: Task 'count/b' is played by several seats; write the attempt out, as 'episode'." in said
