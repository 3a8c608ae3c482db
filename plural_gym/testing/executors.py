"""What every Executor keeps: `check_executor`.

What runs tells the check by files and clock readings, so that an Executor may use other processes of this
machine. The functions it runs are picklable.
"""

import gc
import tempfile
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plural_gym.executor import Executor
from plural_gym.testing.conformance import Rule, described, shown

EVERY_PLAN_ONCE = Rule(
    "run() calls the function once for each plan, and yields each result once",
    "Take one plan at a time from the iterator and yield what the function returned for it.",
)
AT_MOST_CONCURRENCY = Rule(
    "no more than `concurrency` calls run at a time",
    "Start a call only when fewer than `concurrency` are running.",
)
USES_CONCURRENCY = Rule(
    "`concurrency` calls do run at a time while there are plans",
    "Start the next call as soon as one has ended.",
)
PLANS_ARE_LAZY = Rule(
    "plans are taken from the iterator as they are needed, a few ahead of the results at most",
    "Do not turn the plans into a list; take the next one when a call has ended.",
)
RESULTS_ARE_LET_GO = Rule(
    "a result that was yielded is not kept",
    "Drop each result, future and reference once it is yielded.",
)
EXCEPTION_ENDS_THE_RUN = Rule(
    "an exception of the function is raised from the iterator, and no further plan starts",
    "Raise it as it is, once the calls that run have ended.",
)
CLOSE_STOPS = Rule(
    "closing the iterator starts no more plans and waits for the calls that run",
    "Clean up in `finally`, around the `yield`.",
)
RUNS_AGAIN = Rule("an Executor runs any number of times", "Make pools and queues anew in run().")

_CONCURRENCY = 3
_PLANS = 40


def check_executor(make: Callable[[int], Executor]) -> None:
    """Hold an Executor to the rules of this file.

    Args:
        make: builds an Executor of a concurrency; the class itself, as a rule.

    Raises:
        ConformanceError: the first rule that is broken.
    """
    with tempfile.TemporaryDirectory(prefix="plural-") as folder:
        for concurrency in (1, _CONCURRENCY):
            _once(make(concurrency), Path(folder) / f"once-{concurrency}", concurrency)
        _lazy(make(_CONCURRENCY))
        _failing(make(_CONCURRENCY), Path(folder) / "failing")
        _closing(make(_CONCURRENCY), Path(folder) / "closing")
        _again(make(_CONCURRENCY))


@dataclass(frozen=True)
class _Result:
    """One call: its plan, and when it ran."""

    plan: int
    began: float
    ended: float


@dataclass(frozen=True)
class _Work:
    """A function that takes a while and leaves a line at its beginning and at its end."""

    journal: Path | None = None
    seconds: float = 0.0
    fails_at: int | None = None
    slow_from: int = 0
    """Plans before this one take no time."""

    def __call__(self, plan: int) -> _Result:
        began = time.monotonic()
        self._note(f"began {plan}")
        if plan == self.fails_at:
            raise LookupError(f"plan {plan} failed on purpose")
        time.sleep(self.seconds if plan >= self.slow_from else 0.0)
        self._note(f"ended {plan}")
        return _Result(plan, began, time.monotonic())

    def _note(self, line: str) -> None:
        if self.journal is not None:
            with self.journal.open("a", encoding="utf-8") as journal:
                journal.write(line + "\n")

    def noted(self, word: str) -> list[int]:
        """The plans that began, or ended."""
        lines = self.journal.read_text("utf-8").splitlines() if self.journal and self.journal.exists() else []
        return [int(line.split()[1]) for line in lines if line.startswith(word)]


def _once(executor: Executor, journal: Path, concurrency: int) -> None:
    work = _Work(journal, seconds=0.005)
    with EVERY_PLAN_ONCE.never_raises("run()"):
        results = list(executor.run(work, iter(range(_PLANS))))
    for what, plans in (("results", [result.plan for result in results]), ("calls", work.noted("began"))):
        counts = Counter(plans)
        wrong = {plan: counts[plan] for plan in range(_PLANS) if counts[plan] != 1}
        EVERY_PLAN_ONCE.require(not wrong, f"{what} per plan other than 1: {shown(wrong)}")
    peak = _peak(results)
    said = f"{peak} at a time with concurrency {concurrency}"
    AT_MOST_CONCURRENCY.require(peak <= concurrency, said)
    USES_CONCURRENCY.require(peak == concurrency, said)


def _peak(results: list[_Result]) -> int:
    """The largest number of calls that ran at one moment."""
    marks = sorted([(result.began, 1) for result in results] + [(result.ended, -1) for result in results])
    running = most = 0
    for _, change in marks:
        running += change
        most = max(most, running)
    return most


def _lazy(executor: Executor) -> None:
    taken = received = 0

    def plans() -> Iterator[int]:
        nonlocal taken
        for plan in range(500):
            taken += 1
            yield plan

    ahead = 3 * _CONCURRENCY
    alive: list[weakref.ref[_Result]] = []
    with closing(executor.run(_Work(), plans())) as results:
        for result in results:
            received += 1
            PLANS_ARE_LAZY.require(
                taken - received <= ahead, f"{taken} plans were taken when {received} results had come"
            )
            alive.append(weakref.ref(result))
            if received % 50 == 0:
                del result
                gc.collect()
                kept = sum(one() is not None for one in alive)
                RESULTS_ARE_LET_GO.require(kept <= ahead, f"{kept} of {received} results were still alive")
    EVERY_PLAN_ONCE.require(received == 500, f"{received} results of 500 plans")


def _failing(executor: Executor, journal: Path) -> None:
    work = _Work(journal, seconds=0.005, fails_at=5)
    try:
        for _ in executor.run(work, iter(range(_PLANS))):
            pass
    except LookupError as error:
        message = str(error.args[0] if error.args else "")
        EXCEPTION_ENDS_THE_RUN.require("plan 5 failed on purpose" in message, f"it raised {described(error)}")
    except Exception as error:
        EXCEPTION_ENDS_THE_RUN.require(False, f"a LookupError came out as {described(error)}")
    else:
        EXCEPTION_ENDS_THE_RUN.require(False, "the run went on to its end")
    began = len(work.noted("began"))
    EXCEPTION_ENDS_THE_RUN.require(
        began <= 6 + 3 * _CONCURRENCY, f"plan 5 failed, and {began} plans of {_PLANS} began"
    )
    _settled(EXCEPTION_ENDS_THE_RUN, work, "the exception", failed=1)


def _closing(executor: Executor, journal: Path) -> None:
    work = _Work(journal, seconds=0.1, slow_from=1)
    results = executor.run(work, iter(range(_PLANS)))
    next(results)
    with CLOSE_STOPS.never_raises("close()"):
        results.close()
    _settled(CLOSE_STOPS, work, "close()")
    began = len(work.noted("began"))
    CLOSE_STOPS.require(began <= 1 + 3 * _CONCURRENCY, f"one result was read, and {began} plans began")


def _settled(rule: Rule, work: _Work, after: str, failed: int = 0) -> None:
    """Nothing runs any more, and nothing starts."""
    began, ended = len(work.noted("began")), len(work.noted("ended"))
    running = began - ended - failed
    rule.require(running == 0, f"{running} calls still ran after {after}")
    time.sleep(0.05)
    late = len(work.noted("began")) - began
    rule.require(late == 0, f"{late} plans began after {after}")


def _again(executor: Executor) -> None:
    for plans in (0, 5, 5):
        with RUNS_AGAIN.never_raises(f"run() of {plans} plans"):
            results: list[Any] = list(executor.run(_Work(), iter(range(plans))))
        RUNS_AGAIN.require(len(results) == plans, f"{plans} plans gave {len(results)} results")
