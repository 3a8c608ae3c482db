"""Plans: what episodes start from, read once and shared."""

import pytest

from plural_gym import Limits, Task
from plural_gym.errors import UnknownName, UsageError
from plural_gym.rl.plans import Plans, choose
from plural_gym.task import TaskSet

from .vector_worlds import EATEN, THRIFT, Careful, tasks, world

WORLD = world()


def test_each_task_is_read_when_it_is_first_drawn_and_then_kept() -> None:
    built = []
    found = {task.name: task for task in tasks(WORLD)}

    def build(name: str) -> Task:
        built.append(name)
        return found[name]

    plans = Plans(WORLD, TaskSet(list(found), build), None)
    assert (plans.count, built) == (12, [])
    plan = plans.draw(3)
    assert plans.draw(3) is plan
    assert (built, plan.task.name if plan.task else "") == (["meal-5"], "meal-5")
    assert plan.setup == {"kitchen": {"stock": 5}}
    assert plans.of(found["meal-5"]) is plan


def test_plans_with_the_same_graders_and_limits_have_one_key() -> None:
    lower = Task(**{**dict(tasks(WORLD)[0]), "name": "short", "limits": Limits(turns=2)})
    other = Task(**{**dict(tasks(WORLD)[0]), "name": "other", "verifiers": (THRIFT,)})
    drawn = TaskSet.of([*tasks(WORLD)[:2], lower, other])
    keys = [Plans(WORLD, drawn, None).draw(number).key for number in range(4)]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3
    assert len({Plans(WORLD, drawn, [EATEN]).draw(number).key for number in range(4)}) == 2, "limits differ"


def test_turns_lower_the_limits_and_never_raise_them() -> None:
    drawn = TaskSet.of(tasks(WORLD))
    assert [Plans(WORLD, drawn, None, turns).draw(0).limits.turns for turns in (None, 3, 99)] == [7, 3, 7]


def test_graders_of_one_episode_are_not_kept() -> None:
    plans = Plans(WORLD, None, None)
    assert plans.of(None).graders == ()
    assert plans.of(None, [EATEN]).graders == (EATEN,)
    assert plans.of(None).graders == ()


def test_a_task_is_chosen_by_name_or_as_it_is() -> None:
    task = tasks(WORLD)[2]
    plans = Plans(WORLD, TaskSet.of(tasks(WORLD)), None)
    assert plans.chosen("meal-4").name == "meal-4"
    assert plans.chosen(task) is task
    with pytest.raises(UnknownName, match="there is no Task 'meal-99'"):
        plans.chosen("meal-99")
    with pytest.raises(UnknownName, match="this environment was made without tasks"):
        Plans(WORLD, None, None).chosen("meal-4")
    foreign = tasks(world(Careful))[0]
    with pytest.raises(UsageError, match="plays in 'kitchen', not 'kitchen'"):
        plans.chosen(foreign)


def test_options_that_leave_no_task_are_refused() -> None:
    assert choose(WORLD, None, None, None) is None
    only = choose(WORLD, tasks(WORLD), "meal-4", None)
    assert only is not None and only.names == ("meal-4",)
    with pytest.raises(UsageError, match="tasks= is empty"):
        choose(WORLD, [], None, None)
    with pytest.raises(UsageError, match="task= and split= choose from tasks="):
        choose(WORLD, None, "meal-4", None)
    with pytest.raises(UnknownName, match="no Task is in the split 'train'"):
        choose(WORLD, tasks(WORLD), None, "train")
