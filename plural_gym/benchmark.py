"""Benchmark: the exam; a fixed, ordered set of Tasks and the rules by which results are ranked.

How rows become a leaderboard lies in `ranking.py`; it works on plain rows, one a finished Trial.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field, PrivateAttr, field_validator, model_validator

from plural_gym.errors import UnknownName
from plural_gym.identity import content_hash
from plural_gym.leaderboard import Comparison, Leaderboard
from plural_gym.ranking import AgentFailure, Rules, contrast, rank
from plural_gym.task import Task, TaskSet
from plural_gym.word import Word


class Benchmark(Word):
    """A fixed, ordered set of Tasks, and how Agents are ranked on it: by score alone.

    Raises:
        DefinitionError: no Tasks, two of one name, or a weight that is not > 0 or names no Task of it.
    """

    name: str = Field(min_length=1)
    version: str
    """Told with every result, so that it is never quietly compared against another exam."""
    tasks: Sequence[Task]
    """Kept as a TaskSet: ordered, found by name, built when first asked for."""
    weights: dict[str, float] = Field(default_factory=dict)
    """A Task's share of the score by its name; 1 where none is given."""
    agent_failure: AgentFailure = "zero"
    """What an attempt counts that the Agent failed without a score."""
    success_threshold: float | None = Field(default=None, allow_inf_nan=False)
    """The score from which an attempt is a success; None: 1."""
    purpose: str = ""
    """What a high score is meant to show."""
    title: str = ""
    description: str = ""

    _folder: Path | None = PrivateAttr(default=None)

    @field_validator("tasks", mode="plain")
    @classmethod
    def _tasks_in_order(cls, value: Any) -> TaskSet:
        if isinstance(value, TaskSet):
            found = value
        elif isinstance(value, Iterable) and not isinstance(value, (str, Mapping)):
            items = list(value)
            strange = next((item for item in items if not isinstance(item, Task)), None)
            if strange is not None:
                raise ValueError(f"tasks holds {strange!r}, which is no Task")
            found = TaskSet.of(items)
        else:
            raise ValueError(f"tasks is a sequence of Tasks, got {value!r}")
        if not len(found):
            raise ValueError("a Benchmark needs at least one Task")
        return found

    @model_validator(mode="after")
    def _weights_are_of_its_tasks(self) -> "Benchmark":
        weights: dict[str, float] = {}
        for name, weight in self.weights.items():
            if not (weight > 0 and math.isfinite(weight)):
                raise ValueError(f"weight of {name!r} must be a finite number > 0, got {weight:g}")
            try:
                full = self.task_set.full_name(name)
            except UnknownName as error:
                raise ValueError(f"weights: {error}") from None
            if full in weights:
                raise ValueError(f"weights name the Task {full!r} twice")
            weights[full] = weight
        self.__dict__["weights"] = weights
        return self

    @property
    def task_set(self) -> TaskSet:
        """The Tasks, found by name."""
        assert isinstance(self.tasks, TaskSet)
        return self.tasks

    @property
    def folder(self) -> Path | None:
        """Its folder in a project; None where it was built in Python."""
        return self._folder

    @property
    def content_hash(self) -> str:
        """Identity of the exam: its Tasks by their hashes, their order and weights, and the rules."""
        return content_hash(
            "benchmark",
            {
                "tasks": [
                    {"name": task.name, "hash": task.content_hash, "weight": self.weights.get(task.name, 1.0)}
                    for task in self.tasks
                ],
                "agent_failure": self.agent_failure,
                "success_threshold": self.rules.success_threshold,
            },
        )

    @property
    def rules(self) -> Rules:
        """How results are ranked, without the Tasks themselves."""
        threshold = 1.0 if self.success_threshold is None else self.success_threshold
        return Rules(self.task_set.names, self.weights, self.agent_failure, threshold)

    def leaderboard(self, rows: Iterable[Mapping[str, Any]]) -> Leaderboard:
        """Agents ranked by score, from one row a Trial.

        Args:
            rows: `agent`, `task`, `attempt`, `score` (None: unknown), `failure` (none, agent, environment,
                infrastructure, grader, timeout), `cost_usd`, `seconds`, `status`.

        Raises:
            UsageError: a row that names another Task or repeats an attempt.
        """
        return rank(rows, self.rules, f"{self.name} {self.version}")

    def compare(self, a_rows: Iterable[Mapping[str, Any]], b_rows: Iterable[Mapping[str, Any]]) -> Comparison:
        """One Agent's rows against another's, paired by Task. Raises UsageError as `leaderboard`."""
        return contrast(a_rows, b_rows, self.rules)
