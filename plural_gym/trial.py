"""Trial: one attempt; one Agent, one Task, one try.

`TrialPlan` is a Trial before it runs, `Trial` reads one from its folder; `execution.py` plays and grades it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from plural_gym.agent import Agent
from plural_gym.receipt import Pin, Receipt
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.refs import origin
from plural_gym.review import Review, reviews_of
from plural_gym.task import Task


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """One Trial before it runs: everything its result depends on."""

    id: str
    job_id: str
    group_id: str
    """The set of attempts of one Agent at one Task, over which a group's mean is taken."""
    attempt: int
    """Counted from 1."""
    task: Task
    agent: Agent
    """Who plays; in a party, who has the first seat."""
    seed: int
    benchmark: Pin | None = None
    mode: str = "eval"
    why_not: tuple[str, ...] = ()
    """Why the inputs cannot be loaded again; empty where they can."""
    seats: Mapping[str, Agent] = field(default_factory=dict)
    """In a party, who has which seat, in the order of the seats."""
    line_up: str = ""
    """What the Agents of a party are called together; "" for a single Agent."""

    @property
    def agents(self) -> Mapping[str | None, Agent]:
        """Every Agent by its seat; {None: agent} for a single one."""
        found: dict[str | None, Agent] = {None: self.agent}
        return found if not self.seats else {seat: agent for seat, agent in self.seats.items()}

    @property
    def player(self) -> str:
        """Who plays, as results name it: the Agent, or the line-up."""
        return self.line_up or self.agent.name


def why_not_rerunnable(task: Task, agent: Agent) -> tuple[str, ...]:
    """Why a later process could not load this Task and Agent from their files; empty where it can."""
    reasons: dict[str, None] = {}
    code = [
        *(app.options["class"] for app in task.environment.declarations.values() if "class" in app.options),
        *(function for verifier in task.verifiers for function in verifier.functions().values()),
        agent.driver().code,
    ]
    for target in code:
        why = origin(target).why_not
        if why is not None:
            reasons[why] = None
    return tuple(reasons)


class Trial:
    """A finished or running Trial, read from its folder."""

    def __init__(self, folder: TrialFolder) -> None:
        self.folder = folder

    @property
    def id(self) -> str:
        """Unique among all Trials."""
        return self.folder.id

    @property
    def finished(self) -> bool:
        """Whether its record is complete and sound."""
        return self.folder.finished()

    @property
    def result(self) -> dict[str, Any]:
        """The summary in `result.json`. Raises RecordError where the Trial has not finished."""
        return self.folder.result()

    @property
    def status(self) -> str:
        """`running`, `interrupted`, or how it ended."""
        if not self.folder.result_path.exists():
            return "running" if self.folder.running() else "interrupted"
        return str(self.result["status"])

    @property
    def score(self) -> float | None:
        """The Trial's score; None where it is unknown."""
        score: float | None = self.result["score"]
        return score

    @property
    def task(self) -> str:
        """Name of the Task."""
        return str(self.result["task"])

    @property
    def agent(self) -> str:
        """Name of the Agent."""
        return str(self.result["agent"])

    @property
    def rewards(self) -> list[dict[str, Any]]:
        """The ledger's rows: each Verifier's newest run."""
        return self.folder.current_rewards()

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The Environment steps, with every App's State before and after."""
        return list(self.folder.steps())

    @property
    def reviews(self) -> list[Review]:
        """What people have said of it, by Human Verifier."""
        return reviews_of(self.folder)

    @property
    def receipt(self) -> Receipt:
        """The exact inputs."""
        return Receipt(**self.folder.receipt())

    def __repr__(self) -> str:
        return f"Trial({self.id!r}, status={self.status!r})"
