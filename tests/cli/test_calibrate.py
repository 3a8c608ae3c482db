"""`plural verifier calibrate`, and judges on the command line."""

import importlib.util
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from plural_gym.reviewing import submit_review
from plural_gym.testing import StubModel
from plural_gym.trial import Trial

JUDGE = """
    name: neat
    version: 0.1.0
    kind: agent
    model: judge-1
    base_url: {base_url}
    instructions: Judge how neat the bed is.
    criteria: [{{name: neatness, description: "0: not. 2: very.", max_score: 2}}]
"""
PERSON = """
    name: owner
    version: 0.1.0
    kind: human
    instructions: Look at the bed.
    criteria: [{name: neatness, description: "0: not. 2: very.", max_score: 2}]
"""


@pytest.fixture
def judged(garden: Any) -> Iterator[str]:
    """A Job of two Trials in the garden, judged 2 and reviewed 2 and 1; returns its id."""
    if importlib.util.find_spec("aiohttp") is None:
        missing = "needs the extra `models`: pip install 'plural-gym[models]'"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    with StubModel(lambda request: {"neatness": {"reason": "straight rows", "score": 2}}) as stub:
        garden.write("verifiers/neat/verifier.yaml", JUDGE.format(base_url=stub.base_url))
        garden.write("verifiers/owner/verifier.yaml", PERSON)
        garden.edit("tasks/beds/task.yaml", "[grown, growth]", "[neat, owner]")
        job = garden.run("slow", benchmark=False)
        for score, folder in zip((2, 1), garden.store.find(job).trials(), strict=True):
            submit_review(Trial(folder), score)
        yield job


def test_the_table_tells_how_far_they_agree(judged: str, plural: Callable[..., Any]) -> None:
    said = plural("verifier", "calibrate", "neat", "--job", judged)
    head, score, neatness, *_ = said.out.splitlines()
    assert head.split()[:4] == ["criterion", "scale", "pairs", "equal"]
    assert neatness.split()[:5] == ["neatness", "0..2", "2", "50%", "100%"] and "+0.50" in neatness
    assert score.split()[:3] == ["score", "0..1", "2"]
    assert "Farthest apart:" in said.out and "trl_" in said.out
    assert "! only 2 pairs: every figure may be chance" in said.err
    assert f"Judge neat (as stored) against owner, Job {judged}." in said.err


def test_json_holds_every_pair(judged: str, plural: Callable[..., Any]) -> None:
    told = plural("verifier", "calibrate", "neat", "--job", judged, "--against", "owner", "--json").json
    assert {pair["person"] for pair in told["pairs"]["neatness"]} == {1.0, 2.0}
    assert told["rows"][1]["bias"] == 0.5 and told["rows"][1]["bias_interval"] is None
    assert told["asked_now"] is False


def test_the_judge_is_asked_again_where_that_is_wanted(
    judged: str, garden: Any, plural: Callable[..., Any]
) -> None:
    with StubModel(lambda request: {"neatness": {"reason": "weeds", "score": 0}}) as stub:
        garden.write("verifiers/neat/verifier.yaml", JUDGE.format(base_url=stub.base_url))
        said = plural("verifier", "calibrate", "neat", "--job", judged, "--judge-now")
        assert len(stub.requests) == 2
    assert "-1.50" in said.out and "(asked now)" in said.err


def test_what_cannot_be_compared_ends_with_a_message(judged: str, plural: Callable[..., Any]) -> None:
    said = plural("verifier", "calibrate", "neat", "--job", judged, "--against", "ownr", code=2)
    assert "has a Human Verifier 'ownr'; did you mean 'owner'?" in said.err
    said = plural("verifier", "calibrate", "grown", "--job", judged, code=2)
    assert "no Trial of Job" in said.err and "was judged by 'grown'" in said.err


def test_a_missing_key_ends_with_4_before_anything_runs(
    judged: str, garden: Any, plural: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("PLURAL_API_URL", raising=False)
    garden.edit("verifiers/neat/verifier.yaml", "model: judge-1", "model: openai/gpt-5.6-luna")
    path = garden.root / "verifiers/neat/verifier.yaml"
    kept = [line for line in path.read_text().splitlines() if not line.startswith("base_url")]
    path.write_text("\n".join(kept) + "\n")
    jobs = len(garden.store.jobs())
    for command in (
        ("run", "--task", "beds", "--agent", "slow"),
        ("verifier", "try", "neat", "--job", judged),
        ("verifier", "calibrate", "neat", "--job", judged, "--judge-now"),
    ):
        said = plural(*command, code=4)
        assert "needs a key: set the variable OPENAI_API_KEY" in said.err, command
    assert len(garden.store.jobs()) == jobs


def test_a_judge_out_of_reach_ends_with_1_and_the_job_goes_on_later(
    judged: str, garden: Any, plural: Callable[..., Any]
) -> None:
    garden.edit("verifiers/neat/verifier.yaml", "instructions:", "runtime: {max_attempts: 1}\ninstructions:")
    text = (garden.root / "verifiers/neat/verifier.yaml").read_text()
    line = next(line for line in text.splitlines() if line.startswith("base_url"))
    garden.edit("verifiers/neat/verifier.yaml", line, "base_url: http://127.0.0.1:9/v1")
    said = plural("run", "--task", "small", "--agent", "slow", code=1)
    assert "Failed: 1 infrastructure" in said.err and "gave no answer: no connection" in said.err


def test_a_judge_is_shown_and_tried(judged: str, plural: Callable[..., Any]) -> None:
    shown = plural("verifier", "show", "neat").out
    assert "judge-1" in shown and "neatness" in shown and "Judge how neat" in shown and "check" not in shown
    tried = plural("verifier", "try", "neat", "--job", judged)
    assert "1.000" in tried.out and "nothing was saved" in tried.err
    trial = json.loads(plural("verifier", "try", "neat", "--job", judged, "--json").out)["trials"][0]
    assert trial["scores"] == {"neatness": 2.0} and trial["evidence"] == ["neatness 2 of 0..2: straight rows"]
