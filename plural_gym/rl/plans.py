"""Plans: which Tasks a GymEnv draws from, and what an episode of each starts from, read once.

The members of a vector environment share one Plans: thousands of Tasks are then held once, not once a member.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from plural_gym.environment import Environment, Limits
from plural_gym.errors import UnknownName, UsageError
from plural_gym.step import TaskView
from plural_gym.task import Task, TaskSet
from plural_gym.verifier import Verifier

Grader = Verifier | Callable[..., Any]
_KEPT = 16_384
_NO_TASK = TaskView("", "")


class Plan(NamedTuple):
    """All that an episode needs of its Task; holds the Task, so that its id stays its own."""

    task: Task | None
    view: TaskView
    setup: Mapping[str, Any]
    limits: Limits
    graders: tuple[Grader, ...]
    key: tuple[Any, ...]
    """Plans of equal keys have equal limits and the same graders: one Session plays them."""


class Plans:
    """What episodes start from, by number and by Task.

    Args:
        environment: the world of all the Tasks.
        tasks: what is drawn from; None: an unnamed Task.
        verifiers: graders in place of the Tasks' own.
        turns: lowers `limits.turns`.
    """

    def __init__(
        self,
        environment: Environment,
        tasks: TaskSet | None,
        verifiers: Sequence[Grader] | None,
        turns: int | None = None,
    ) -> None:
        self.tasks = tasks
        self._environment = environment
        self._graders = None if verifiers is None else tuple(verifiers)
        self._lowered = None if turns is None else Limits(turns=turns)
        self._by_task: dict[int, Plan] = {}
        self.drawn: dict[int, Plan] = {}
        """Plans by number, as far as they have been drawn."""
        self.count = 1 if tasks is None else len(tasks.names)
        """How many Tasks are drawn from."""

    def draw(self, number: int) -> Plan:
        """The Plan of one of the Tasks that are drawn from, 0 up to `count`."""
        plan = self.drawn.get(number)
        if plan is None:
            if len(self.drawn) >= _KEPT:
                self.drawn.clear()
            task = None if self.tasks is None else self.tasks.get(self.tasks.names[number])
            plan = self.drawn[number] = self.of(task)
        return plan

    def chosen(self, task: Any) -> Task:
        """The Task that was asked for, by name or as it is.

        Raises:
            UsageError: a Task of another Environment.
            UnknownName: no Task of this name.
        """
        if isinstance(task, Task):
            if task.environment != self._environment:
                raise UsageError(
                    f"Task {task.name!r} plays in {task.environment.name!r}, not {self._environment.name!r}."
                )
            return task
        if not isinstance(task, str):
            raise UsageError(f"a Task is chosen by its name, or given as it is; got {ascii(task)[:80]}.")
        if self.tasks is None:
            raise UnknownName(f"there is no Task {task!r}: this environment was made without tasks.")
        return self.tasks.get(task)

    def of(self, task: Task | None, verifiers: Sequence[Grader] | None = None) -> Plan:
        """The Plan of a Task; kept, unless the episode has graders of its own."""
        if verifiers is not None:
            return self._made(task, tuple(verifiers))
        plan = self._by_task.get(id(task))
        if plan is None:
            graders = self._graders
            if graders is None:
                graders = task.verifiers if task is not None else ()
            if len(self._by_task) >= _KEPT:
                self._by_task.clear()
            plan = self._by_task[id(task)] = self._made(task, graders)
        return plan

    def _made(self, task: Task | None, graders: tuple[Grader, ...]) -> Plan:
        limits = self._environment.limits if task is None else task.effective_limits
        limits = limits.lowered(self._lowered)
        key = (*limits.__dict__.values(), *map(id, graders))
        if task is None:
            return Plan(None, _NO_TASK, {}, limits, graders, key)
        return Plan(task, task.view, task.setup, limits, graders, key)


def require_in_split(tasks: TaskSet, task: str, split: str) -> None:
    """Raise UnknownName where a Task does not exist, or not in the split that was asked for."""
    name = tasks.full_name(task)
    if name not in tasks.split(split).names:
        raise UnknownName(f"Task {name!r} is not in the split {split!r}; leave out split=, or task=.")


def choose(
    environment: Environment, tasks: Sequence[Task] | None, task: str | None, split: str | None
) -> TaskSet | None:
    """The Tasks that options leave to draw from.

    Raises:
        UsageError: no Task is left, one is of another Environment, or there is nothing to choose from.
        UnknownName: no Task of that name or split.
    """
    if tasks is None:
        if task is not None or split is not None:
            raise UsageError("task= and split= choose from tasks=, which was not given.")
        return None
    chosen = tasks if isinstance(tasks, TaskSet) else TaskSet.of(tasks)
    if len(chosen) == 0:
        raise UsageError("tasks= is empty; give at least one Task, or leave it out.")
    if not isinstance(tasks, TaskSet):
        for one in chosen:
            if one.environment != environment:
                raise UsageError(
                    f"Task {one.name!r} plays in {one.environment.name!r}, not {environment.name!r}."
                )
    whole = chosen
    if split is not None:
        chosen = chosen.split(split)
    if task is not None:
        if not isinstance(task, str):
            raise UsageError(f"task= is the name of a Task, got {ascii(task)[:80]}.")
        if split is not None:
            require_in_split(whole, task, split)
        name = chosen.full_name(task)
        chosen = TaskSet([name], chosen.get)
    return chosen
