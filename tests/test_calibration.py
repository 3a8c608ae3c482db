"""A judge against people, over Trials that both have scored."""

import importlib.util
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plural_gym import refs
from plural_gym.agent import Agent
from plural_gym.calibration import calibrate
from plural_gym.environment import Environment
from plural_gym.errors import Fault, UnknownName, UsageError
from plural_gym.grading import grade_rows
from plural_gym.inputs import Inputs
from plural_gym.job import Job
from plural_gym.records.job_folder import JobFolder
from plural_gym.reviewing import submit_review
from plural_gym.task import Task
from plural_gym.testing import StubModel, StubRequest
from plural_gym.verifier import RubricCriterion, VerifierOutput, rubric_score
from plural_gym.verifiers.agent import AgentVerifier
from plural_gym.verifiers.deterministic import DeterministicVerifier
from plural_gym.verifiers.human import HumanVerifier

JUDGE = [0, 1, 2, 2, 1, 0, 2, 1]
PEOPLE = [0, 1, 1, 2, 2, 0, 2, 0]
"""The worked example of `tests/test_agreement.py`."""
LOOKED_AT = """
from plural import App, action

class Counter(App):
    @action(read_only=True)
    def look(self) -> str:
        "Look."
        return "nothing"
"""


@pytest.fixture
def http() -> None:
    if importlib.util.find_spec("aiohttp") is None:
        missing = "needs the extra `models`: pip install 'plural-gym[models]'"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)


def criterion(name: str, high: float = 2, low: float = 0) -> RubricCriterion:
    return RubricCriterion(name=name, description="0: bad.", min_score=low, max_score=high)


def judge(base_url: str = "http://127.0.0.1:9/v1", **fields: Any) -> AgentVerifier:
    given = {"model": "judge-1", "instructions": "Judge.", "criteria": (criterion("quality"),), **fields}
    return AgentVerifier(name="judge", base_url=base_url, **given)


def person(*criteria: RubricCriterion) -> HumanVerifier:
    return HumanVerifier(name="person", instructions="Judge.", criteria=criteria or (criterion("quality"),))


def tasks(app: Any, *graders: Any) -> list[Task]:
    """A Task for each of PEOPLE's scores; in each the player looks once more than in the one before."""
    world = Environment(name="counter", apps={"counter": app})
    return [
        Task(
            name=f"case-{case}",
            instructions=str(case + 1),
            environment=world,
            info={"case": case},
            verifiers=graders,
        )
        for case in range(len(PEOPLE))
    ]


def play(task: Any, seat: Any) -> str:
    for _ in range(int(task.instructions)):
        seat.act("look")
    return "done"


# --- stored Trials, their scores written as a Job writes them ---


@pytest.fixture(scope="module")
def _played(tmp_path_factory: pytest.TempPathFactory) -> JobFolder:
    """A Job of the eight Tasks, played once."""
    root = tmp_path_factory.mktemp("calibration")
    (root / "app.py").write_text(LOOKED_AT)
    graded = DeterministicVerifier(name="exact", check=lambda episode: VerifierOutput(score=1.0))
    agents = [Agent(name="player", harness=play)]
    return (
        Job(tasks=tasks(refs.load("app.py:Counter", root), graded), agents=agents, directory=root / "jobs")
        .run()
        .folder
    )


@pytest.fixture
def stored(_played: JobFolder, tmp_path: Path) -> Callable[..., JobFolder]:
    """`stored(judge_says, person_says)`: its Trials with other scores; each a function of the case.

    None in place of scores: the judge failed, or nobody has reviewed.
    """

    def stored(
        said: Callable[[int], VerifierOutput | None],
        reviewed: Callable[[int], Any] = lambda case: {"quality": PEOPLE[case]},
        ours: AgentVerifier | None = None,
        theirs: HumanVerifier | None = None,
    ) -> JobFolder:
        ours, theirs = ours or judge(), theirs or person()
        shutil.copytree(_played.path, tmp_path / _played.id)
        job = JobFolder(tmp_path / _played.id)
        for folder in job.trials():
            case = int(folder.result()["task"].removeprefix("case-"))
            fault = Fault("verifier judge check", "GradingFault", "no verdict", "agent.py:1")
            judged, awaited = grade_rows([ours, theirs], {"judge": said(case) or fault, "person": None})
            scores = reviewed(case)
            if scores is not None:
                awaited |= {"scores": scores, "score": theirs.rubric.score(scores)}
                awaited |= {"review": {"reviewer": "ada"}}
            folder.update({"scores": [judged, awaited]})
        shutil.rmtree(job.inputs_path)
        Inputs(job.inputs_path)._verifier(ours)
        return job

    return stored


def verdict(judge: AgentVerifier, **scores: float) -> VerifierOutput:
    own = {name: value for name, value in scores.items() if not name.startswith("spread.")}
    return VerifierOutput(score=rubric_score(judge.criteria, own), scores=scores)


def as_judged(case: int) -> VerifierOutput:
    return verdict(judge(), quality=JUDGE[case])


def test_a_judge_is_compared_criterion_by_criterion(stored: Any) -> None:
    outcome = calibrate(stored(as_judged), "judge")
    assert (outcome.judge, outcome.person, outcome.asked_now) == ("judge", "person", False)
    score, quality = outcome.rows
    assert (quality.criterion, quality.scale, quality.n) == ("quality", (0.0, 2.0), 8)
    assert (quality.exact, quality.within_one, quality.bias) == (0.625, 1.0, 0.125)
    assert quality.kappa == pytest.approx(1 - 24 / 88) and quality.spread is None
    assert quality.kappa_interval is not None and quality.kappa_interval.low < quality.kappa
    assert (score.criterion, score.scale, score.within_one) == ("score", (0.0, 1.0), None)
    assert score.kappa == pytest.approx(quality.kappa) and score.bias == 0.0625
    assert any("only 8 pairs: every figure may be chance" in note for note in outcome.notes)
    assert [abs(pair.difference) for pair in outcome.farthest()] == [0.5, 0.5, 0.5]
    assert json.loads(json.dumps(outcome.to_json()))["rows"][1]["n"] == 8


def test_a_judge_that_likes_what_is_long_is_found_out(stored: Any) -> None:
    outcome = calibrate(
        stored(lambda case: verdict(judge(), quality=case / 8), lambda case: {"quality": 0}), "judge"
    )
    _, quality = outcome.rows
    assert quality.length_bias == pytest.approx(1.0)
    assert quality.length_interval is not None and quality.length_interval.low > 0.9
    assert len({pair.length for pair in outcome.pairs["quality"]}) == 8


def test_a_judge_that_differs_from_itself_is_found_out(stored: Any) -> None:
    def wavers(case: int) -> VerifierOutput:
        return verdict(judge(), quality=1, **{"spread.quality": case % 2, "spread.score": case % 2 / 2})

    score, quality = calibrate(stored(wavers), "judge").rows
    assert quality.spread == pytest.approx(0.5**0.5) and score.spread == pytest.approx(0.5**0.5 / 2)


def test_trials_without_both_scores_are_left_out_and_told(stored: Any) -> None:
    job = stored(
        lambda case: as_judged(case) if case else None,
        lambda case: {"quality": PEOPLE[case]} if case < 4 else None,
    )
    outcome = calibrate(job, "judge")
    assert outcome.rows[0].n == 3
    reasons = sorted(outcome.skipped.values())
    assert reasons == ["it has not been reviewed"] * 4 + ["the judge gave no score"]


def test_criteria_are_matched_by_name_and_brought_to_one_scale(stored: Any) -> None:
    ours = judge(criteria=(criterion("tone"), criterion("own")))
    job = stored(
        lambda case: verdict(ours, tone=JUDGE[case], own=0),
        lambda case: {"tone": 1 + 2 * PEOPLE[case], "theirs": 1},
        ours,
        person(criterion("tone", high=5, low=1), criterion("theirs")),
    )
    outcome = calibrate(job, "judge", against="person")
    assert [row.criterion for row in outcome.rows] == ["score", "tone"]
    tone = outcome.rows[1]
    assert (tone.scale, tone.within_one) == ((0.0, 1.0), None)
    assert tone.kappa == pytest.approx(1 - 24 / 88) and tone.bias == 0.0625
    assert any("tone: the judge scores from 0 to 2, people otherwise" in note for note in outcome.notes)
    assert any("only one of them scores it: own, theirs" in note for note in outcome.notes)


def test_two_single_criteria_of_other_names_are_the_same_question(stored: Any) -> None:
    job = stored(as_judged, lambda case: {"helpful": PEOPLE[case]}, theirs=person(criterion("helpful")))
    _, row = calibrate(job, "judge").rows
    assert (row.criterion, row.n, row.exact) == ("quality/helpful", 8, 0.625)


def test_where_the_jobs_own_judge_cannot_be_read_the_score_is_compared(stored: Any) -> None:
    job = stored(as_judged)
    shutil.rmtree(job.inputs_path)
    (row,) = calibrate(job, "judge").rows
    assert (row.criterion, row.n) == ("score", 8)


def test_what_is_missing_for_a_comparison_is_told(stored: Any) -> None:
    job = stored(as_judged, lambda case: None)
    with pytest.raises(
        UsageError, match="has both a score of 'judge' and a review for 'person': 8 because it has"
    ):
        calibrate(job, "judge")
    with pytest.raises(UnknownName, match="was judged by 'jugde'; did you mean 'judge'"):
        calibrate(job, "jugde")
    with pytest.raises(
        UnknownName, match=r"no Trial of Job .* has a Human Verifier 'persn'; did you mean 'person'"
    ):
        calibrate(job, "judge", against="persn")


def test_a_job_without_people_cannot_calibrate(_played: JobFolder) -> None:
    with pytest.raises(UsageError, match="has a Human Verifier to compare with"):
        calibrate(_played, "exact")


# --- from the first call to the comparison ---


def case_of(request: StubRequest) -> int:
    """Which Task a judge was asked about: it stands in the evidence."""
    found = re.search(r'\{"case":(\d+)\}', request.text)
    assert found
    return int(found[1])


def test_a_job_is_judged_reviewed_and_compared_and_the_judge_may_be_asked_again(
    run: Any, counter: Any, http: None
) -> None:
    def says(request: StubRequest) -> Any:
        return {"quality": {"reason": "so it seems", "score": JUDGE[case_of(request)]}}

    with StubModel(says) as stub:
        result = run(tasks(counter.Counter, judge(stub.base_url), person()), play)
    for case, trial in enumerate(result.trials):
        submit_review(trial, PEOPLE[case], reviewer="ada")
    assert calibrate(result.folder, "judge").rows[0].kappa == pytest.approx(1 - 24 / 88)
    with StubModel(lambda request: {"quality": {"reason": "x", "score": PEOPLE[case_of(request)]}}) as better:
        outcome = calibrate(result.folder, "judge", now=judge(better.base_url, model="judge-2"))
        assert len(better.requests) == 8
    assert outcome.asked_now and outcome.rows[1].kappa == pytest.approx(1.0) and not outcome.farthest()
    with StubModel(lambda request: "no idea") as worse:
        now = judge(worse.base_url, runtime={"max_answers": 1})
        with pytest.raises(
            UsageError, match="8 because verifier judge check: GradingFault: judge judge-1 gave no"
        ):
            calibrate(result.folder, "judge", now=now)
    assert calibrate(result.folder, "judge").rows[0].exact == 0.625, "what is stored stays"
