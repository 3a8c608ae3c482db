"""The Executor `threads`: as many plans at once as it may, no more plans in memory, and an orderly end."""

import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import closing

import pytest

from plural_gym.executors.threads import Threads


def test_every_plan_is_done_and_no_more_at_once_than_allowed() -> None:
    lock, running, most = threading.Lock(), 0, 0

    def work(plan: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.002)
        with lock:
            running -= 1
        return plan * 2

    assert sorted(Threads(3).run(work, range(40))) == [plan * 2 for plan in range(40)]
    assert most == 3


def test_plans_are_taken_when_a_thread_is_free() -> None:
    taken = 0

    def plans() -> Iterator[int]:
        nonlocal taken
        for plan in range(10_000):
            taken += 1
            yield plan

    done = 0
    with closing(Threads(4).run(lambda plan: plan, plans())) as results:
        for _ in results:
            done += 1
            assert taken <= done + 4
            if done == 50:
                break
    assert taken <= 54


def test_memory_does_not_grow_with_the_number_of_plans() -> None:
    plans = (bytearray(100_000) for _ in range(2_000))
    tracemalloc.start()
    try:
        assert sum(Threads(2).run(len, plans)) == 200_000_000
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


def test_an_exception_ends_the_run_and_nothing_new_starts() -> None:
    started: list[int] = []

    def work(plan: int) -> int:
        started.append(plan)
        if plan == 5:
            raise LookupError("five")
        return plan

    with pytest.raises(LookupError, match="five"):
        list(Threads(2).run(work, iter(range(10_000))))
    assert len(started) < 20


@pytest.mark.parametrize("how", ["close", "raise in a plan", "interrupt the consumer"])
def test_what_still_runs_is_abandoned_before_it_is_waited_for(how: str) -> None:
    abandoned, ended = threading.Event(), threading.Event()

    def work(plan: int) -> int:
        if plan == 1:
            assert abandoned.wait(10)
            ended.set()
        elif plan == 2 and how == "raise in a plan":
            raise LookupError
        return plan

    results = Threads(2).run(work, iter([1, 0, 2]), abandoned.set)
    assert next(results) == 0
    if how == "close":
        results.close()
    elif how == "raise in a plan":
        with pytest.raises(LookupError):
            next(results)
    else:
        with pytest.raises(KeyboardInterrupt):
            results.throw(KeyboardInterrupt())
    assert ended.is_set()


def test_nothing_to_do_is_done_at_once() -> None:
    abandoned: list[bool] = []
    assert list(Threads(2).run(len, [], lambda: abandoned.append(True))) == [] and not abandoned
