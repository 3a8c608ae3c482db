"""`check_executor`: the shipped kinds keep every rule; for each rule an Executor that breaks it."""

import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from plural_gym.executor import Executor
from plural_gym.executors.threads import Threads
from plural_gym.testing import executors
from plural_gym.testing.conformance import ConformanceError
from plural_gym.testing.executors import check_executor

Run = Generator[Any, None, None]


class Doubles(Threads):
    def run(self, function: Callable[[Any], Any], plans: Iterable[Any]) -> Run:
        for result in super().run(function, plans):
            yield result
            yield result


class RunsTwice(Threads):
    def run(self, function: Callable[[Any], Any], plans: Iterable[Any]) -> Run:
        def twice(plan: Any) -> Any:
            function(plan)
            return function(plan)

        yield from super().run(twice, plans)


class Greedy(Threads):
    def __init__(self, concurrency: int) -> None:
        super().__init__(concurrency + 1)


class OneByOne(Executor):
    def run(self, function: Callable[[Any], Any], plans: Iterable[Any]) -> Run:
        for plan in plans:
            yield function(plan)


class Lists(Threads):
    def run(self, function: Callable[[Any], Any], plans: Iterable[Any]) -> Run:
        yield from super().run(function, list(plans))


class Keeps(Threads):
    kept: list[Any]

    def run(self, function: Callable[[Any], Any], plans: Iterable[Any]) -> Run:
        self.kept = []
        for result in super().run(function, plans):
            self.kept.append(result)
            yield result


class Swallows(Threads):
    def run(self, function: Callable[[Any], Any], plans: Iterable[Any]) -> Run:
        def quiet(plan: Any) -> Any:
            try:
                return function(plan)
            except LookupError:
                return None

        yield from super().run(quiet, plans)


class Wraps(Threads):
    def run(self, function: Callable[[Any], Any], plans: Iterable[Any]) -> Run:
        try:
            yield from super().run(function, plans)
        except LookupError as error:
            raise RuntimeError("a call failed") from error


class Leaves(Executor):
    """Does not wait for what runs when it is closed."""

    def run(self, function: Callable[[Any], Any], plans: Iterable[Any]) -> Run:
        inner = Threads(self.concurrency)
        results = inner.run(function, plans)
        try:
            yield from _unclosed(results)
        except GeneratorExit:
            threading.Thread(target=results.close).start()


def _unclosed(results: Any) -> Any:
    return iter(results.__next__, object())


class Once(Executor):
    def __init__(self, concurrency: int) -> None:
        super().__init__(concurrency)
        self._inner: Threads | None = Threads(concurrency)

    def run(self, function: Callable[[Any], Any], plans: Iterable[Any]) -> Run:
        if self._inner is None:
            raise RuntimeError("cannot schedule new futures after shutdown")
        inner, self._inner = self._inner, None
        yield from inner.run(function, plans)


BROKEN: list[tuple[str, type[Executor], str]] = [
    ("EVERY_PLAN_ONCE", Doubles, "results per plan other than 1: {0: 2, 1: 2"),
    ("EVERY_PLAN_ONCE", RunsTwice, "calls per plan other than 1"),
    ("AT_MOST_CONCURRENCY", Greedy, "2 at a time with concurrency 1"),
    ("USES_CONCURRENCY", OneByOne, "1 at a time with concurrency 3"),
    ("PLANS_ARE_LAZY", Lists, "500 plans were taken when 1 results had come"),
    ("RESULTS_ARE_LET_GO", Keeps, "50 of 50 results were still alive"),
    ("EXCEPTION_ENDS_THE_RUN", Swallows, "the run went on to its end"),
    ("EXCEPTION_ENDS_THE_RUN", Wraps, "a LookupError came out as RuntimeError: a call failed"),
    ("CLOSE_STOPS", Leaves, "calls still ran after close"),
    ("RUNS_AGAIN", Once, "run.. of 5 plans raised RuntimeError"),
]


@pytest.mark.parametrize(("rule", "kind", "seen"), BROKEN)
def test_what_breaks_a_rule_is_caught(rule: str, kind: type[Executor], seen: str) -> None:
    with pytest.raises(ConformanceError, match=seen) as raised:
        check_executor(kind)
    assert raised.value.rule is getattr(executors, rule)


def test_every_rule_is_broken_once(rules_of: Any) -> None:
    assert rules_of(executors) == {rule for rule, _, _ in BROKEN}


def test_the_shipped_kinds() -> None:
    check_executor(Threads)


def test_an_executor_that_waits_for_all_of_a_batch_keeps_the_rules() -> None:
    class Batches(Executor):
        def run(self, function: Callable[[Any], Any], plans: Iterable[Any]) -> Run:
            waiting = iter(plans)
            with ThreadPoolExecutor(self.concurrency) as pool:
                while batch := [plan for _, plan in zip(range(self.concurrency), waiting, strict=False)]:
                    yield from list(pool.map(function, batch))

    check_executor(Batches)
