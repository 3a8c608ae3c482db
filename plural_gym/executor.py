"""Executor: how a Job's Trials are spread. Kinds lie in `executors/`."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

Plan = TypeVar("Plan")
Done = TypeVar("Done")


class Executor(ABC):
    """Runs one function over many plans, at most `concurrency` at a time, in constant memory."""

    def __init__(self, concurrency: int) -> None:
        self.concurrency = concurrency

    @abstractmethod
    def run(
        self,
        function: Callable[[Plan], Done],
        plans: Iterable[Plan],
        abandon: Callable[[], None] | None = None,
    ) -> Generator[Done, None, None]:
        """Results as they come, in any order. An exception of the function ends the run.

        Closing the iterator, or an exception in it, stops new plans from starting and waits for those that
        run. `abandon` is called before that wait, so that they can be ended early.
        """
