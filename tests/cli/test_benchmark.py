"""`plural benchmark leaderboard`: all Jobs of a Benchmark as it is now."""

from typing import Any


def rows(board: Any) -> dict[str, Any]:
    return {row["agent"]: row for row in board["rows"]}


def test_attempts_of_several_jobs_are_pooled(garden: Any, plural: Any) -> None:
    new = garden.run("slow", seed=3)
    garden.run("slow", benchmark=False)
    board = plural("benchmark", "leaderboard", "beds", "--json").json
    assert sorted(board["jobs"]) == sorted([new, "job_both"])
    found = rows(board)
    assert (found["slow"]["trials"], found["quick"]["trials"]) == (6, 4)
    assert found["quick"]["rank"] == 1 and found["quick"]["score"] == 1.0
    assert found["slow"]["spread"] == 0.0 and found["slow"]["coverage"] == 1.0
    assert board["other_versions"] == []


def test_the_leaderboard_is_shown_as_text(garden: Any, plural: Any) -> None:
    said = plural("benchmark", "leaderboard", "beds")
    assert said.out.startswith("beds 1.0.0 (2 Tasks)\n")
    assert "1   quick  1.000" in said.out and "slow" in said.out
    assert "From 1 Job.\n" in said.err


def test_jobs_of_another_content_are_named_and_left_out(garden: Any, plural: Any) -> None:
    garden.edit("tasks/beds/rows.jsonl", '"wanted": 6', '"wanted": 4')
    said = plural("benchmark", "leaderboard", "beds")
    assert said.out == ""
    assert (
        "No Job has finished a Trial of beds as it is now; start one: plural run --benchmark beds" in said.err
    )
    assert "! 1 Job of another content of beds left out: job_both" in said.err
    new = garden.run("slow")
    board = plural("benchmark", "leaderboard", "beds", "--json").json
    assert (board["jobs"], board["other_versions"]) == ([new], ["job_both"])
    assert rows(board)["slow"]["trials"] == 2


def test_an_agent_that_was_changed_stands_apart(garden: Any, plural: Any) -> None:
    before = garden.project.agents["slow"].content_hash
    garden.edit("harnesses/hands/play.py", "count=1", "count=2")
    garden.run("slow")
    after = garden.project.agents["slow"].content_hash
    found = rows(plural("benchmark", "leaderboard", "beds", "--json").json)
    names = {f"slow@{content.removeprefix('sha256:')[:7]}" for content in (before, after)}
    assert names | {"quick"} == set(found)
    assert sorted(found[name]["trials"] for name in names) == [2, 4]


def test_a_benchmark_of_that_name_may_not_be_there(garden: Any, plural: Any) -> None:
    said = plural("benchmark", "leaderboard", "bed", code=2)
    assert "there is no Benchmark 'bed'; did you mean 'beds'?" in said.err
