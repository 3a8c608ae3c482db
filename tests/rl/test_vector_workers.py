"""With `workers`, members that wait do so at the same time, and what they answer stays the same."""

import random
import threading
from typing import Any

import pytest
from gymnasium.vector import AutoresetMode

from plural_gym import App, Environment, Limits, State, action
from plural_gym.errors import AppFault
from plural_gym.rl.vector import VectorGymEnv

from .test_vector import BURN, EAT, MODES, calls
from .vector_worlds import EATEN, THRIFT, same, tasks, world

MEMBERS = 32
TIMEOUT_S = 30


class Queue(State):
    turn: int = 0


class Waiting(App):
    """Answers when all members are waiting for their answers."""

    state: Queue
    meeting = threading.Barrier(MEMBERS)

    def reset(self, task: Any) -> None:
        self.meeting.wait(TIMEOUT_S)

    @action
    def ask(self) -> str:
        """Ask a slow system."""
        self.meeting.wait(TIMEOUT_S)
        self.state.turn += 1
        return f"answer {self.state.turn}"


class Counting(App):
    """Tells how many members act at the same time."""

    state: Queue
    lock = threading.Lock()
    acting = 0
    most = 0

    @action
    def ask(self) -> str:
        """Ask a slow system."""
        with self.lock:
            Counting.acting += 1
            Counting.most = max(Counting.most, Counting.acting)
        threading.Event().wait(0.02)
        with self.lock:
            Counting.acting -= 1
        return threading.current_thread().name


def waiting(app: type[App], number: int, **options: Any) -> VectorGymEnv:
    environment = Environment(name="slow", apps={"slow": app}, limits=Limits(turns=3))
    return VectorGymEnv(environment, number, **options)


def test_members_wait_at_the_same_time() -> None:
    """No member answers before every member acts: a loop would stand still at the first."""
    envs = waiting(Waiting, MEMBERS, workers=MEMBERS)
    envs.reset(seed=0)
    for turn in (1, 2, 3):
        observations, _, _, truncated, _ = envs.step(["ask"] * MEMBERS)
        assert observations["text"] == (f"answer {turn}",) * MEMBERS
    assert truncated.all()
    assert envs.step(["ask"] * MEMBERS)[0]["turn"].sum() == 0, "and are reset at the same time"
    envs.close()


@pytest.mark.parametrize(("workers", "most"), [(None, 1), (1, 1), (4, 4)])
def test_no_more_members_act_at_once_than_there_are_workers(workers: int | None, most: int) -> None:
    Counting.most = 0
    envs = waiting(Counting, 12, workers=workers)
    envs.reset(seed=0)
    names = set(envs.step(["ask"] * 12)[0]["text"])
    assert Counting.most <= most
    if workers == 4:
        assert Counting.most > 1
    assert names <= {f"plural-member_{index}" for index in range(4)} or workers is None
    envs.close()
    running = {thread.name for thread in threading.enumerate()}
    assert not any(name.startswith("plural-member") for name in running), "close ends the threads"


@pytest.mark.parametrize("mode", MODES)
def test_threads_answer_as_the_loop_does(mode: AutoresetMode) -> None:
    environment = world()
    options = {"tasks": tasks(environment, (EATEN,), (THRIFT, EATEN)), "autoreset_mode": mode}
    loop, threads = (
        VectorGymEnv(environment, 9, **options),
        VectorGymEnv(environment, 9, workers=5, **options),
    )
    same(loop.reset(seed=8), threads.reset(seed=8))
    rnd = random.Random(2)
    for _ in range(50):
        actions = calls(loop, rnd)
        first, second = loop.step(actions), threads.step(actions)
        same(first, second)
        over = first[2] | first[3]
        if mode is AutoresetMode.DISABLED and over.any():
            resets = [envs.reset(options={"reset_mask": over.copy()}) for envs in (loop, threads)]
            same(*resets)
    threads.close()


@pytest.mark.parametrize("workers", [None, 3])
def test_a_fault_in_a_thread_costs_its_member_alone(workers: int | None) -> None:
    environment = world()
    envs = VectorGymEnv(environment, 4, workers=workers, tasks=tasks(environment), task="meal-9")
    envs.reset(seed=0)
    observations, _, _, truncated, infos = envs.step([EAT, BURN, EAT, BURN])
    assert truncated.tolist() == [False, True, False, True]
    assert observations["text"][0] == observations["text"][2] == "8 left"
    assert [bool(error) for error in infos["error"]] == [False, True, False, True]
    envs.close()


def test_a_fault_that_is_raised_comes_out_of_its_thread() -> None:
    envs = VectorGymEnv(world(), 3, workers=3, on_fault="raise")
    envs.reset(seed=0)
    with pytest.raises(AppFault, match="smoke"):
        envs.step([EAT, BURN, EAT])
    envs.close()
