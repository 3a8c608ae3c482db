"""Proof of a Task: that doing nothing does not solve it and that somebody does, shown by real Trials.

`plural task validate --run` comes here. It gives warnings, for people to judge: a Task may be meant that way.
"""

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from plural_gym.agent import Agent
from plural_gym.errors import GradingFault, PluralError
from plural_gym.harness import Seat, TaskBrief
from plural_gym.job import Job
from plural_gym.project import Project
from plural_gym.task import Task

IDLE = "does-nothing"
SOLVED = 1.0
"""The score from which a Task counts as solved, unless the caller says another."""


def prove_task(
    task: Task, project: Project, *, runs: int = 1, threshold: float = SOLVED, seed: int = 0
) -> list[str]:
    """What is suspicious about a Task, in sentences; empty where nothing is.

    Runs an Agent that does nothing and the Task's `oracle`, `runs` times each, in Trials of a Job whose
    record is thrown away.

    Args:
        threshold: the score from which the Task counts as solved.
    """
    warnings: list[str] = []
    agents = [Agent(name=IDLE, harness=_do_nothing)]
    if task.oracle is not None:
        try:
            agents.append(project.agents[task.oracle])
        except PluralError as error:
            warnings.append(f"its oracle cannot play: {error}")
    with tempfile.TemporaryDirectory(prefix="plural-proof-") as folder:
        results = list(
            Job(tasks=[task], agents=agents, attempts=runs, directory=folder, seed=seed).run().results()
        )
    warnings += _broken(results)
    warnings += _too_easy([row for row in results if row["agent"] == IDLE], threshold)
    if len(agents) > 1:
        warnings += _unsolved(agents[1].name, [row for row in results if row["agent"] != IDLE], threshold)
    return warnings


def _do_nothing(task: TaskBrief, seat: Seat) -> None:
    """The Agent that a Task must not reward."""


def _broken(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Author code that failed, each failure once; a Harness's own is told with its Agent."""
    told: dict[str, None] = {}
    for row in results:
        for fault in row["faults"]:
            if fault["where"].startswith("harness"):
                continue
            words = fault["where"].split(" ")
            who = f"Verifier {words[1]}'s {words[2]}" if words[0] == "verifier" and len(words) > 2 else ""
            who = who or fault["where"].capitalize()
            happened = f" raised {fault['type']}: {fault['message']}"
            if fault["type"] == GradingFault.__name__:  # no code raised it: "check returned None, which ..."
                hook = f"{words[-1]} "
                said = fault["message"]
                happened = f" {said.removeprefix(hook)}" if said.startswith(hook) else f": {said}"
            told[f"{who}{happened} (at {fault['at']})."] = None
    yield from told


def _too_easy(results: Sequence[dict[str, Any]], threshold: float) -> Iterator[str]:
    scores = [row["score"] for row in results if row["score"] is not None]
    best = max(scores, default=0.0)
    if best >= threshold:
        yield f"an Agent that does nothing solves it (score {best:g}); make its Verifiers ask for work."
    elif best > 0:
        yield f"an Agent that does nothing scores {best:g}; make sure that this is meant."


def _unsolved(oracle: str, results: Sequence[dict[str, Any]], threshold: float) -> Iterator[str]:
    for row in results:
        if row["score"] is not None and row["score"] >= threshold:
            continue
        if row["status"] == "awaiting_review":  # a person would have to say
            continue
        score = "no score" if row["score"] is None else f"score {row['score']:g}"
        why = row["stop_reason"] if row["failure"] == "none" else f"failure: {row['failure']}"
        said = "".join(
            f" {fault['type']}: {fault['message']} (at {fault['at']})."
            for fault in row["faults"]
            if fault["where"].startswith("harness")
        )
        yield f"its oracle, Agent {oracle!r}, does not solve it ({score}; {why}).{said}"
        return
