"""The Executor kind `threads`: a pool of threads in this process. A Trial mostly waits on its workers."""

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice

from plural_gym.executor import Done, Executor, Plan


class Threads(Executor):
    """At most `concurrency` threads; no more plans are taken than threads are free."""

    def run(
        self,
        function: Callable[[Plan], Done],
        plans: Iterable[Plan],
        abandon: Callable[[], None] | None = None,
    ) -> Generator[Done, None, None]:
        waiting = iter(plans)
        with ThreadPoolExecutor(self.concurrency, thread_name_prefix="plural-trial") as pool:
            running: set[Future[Done]] = set()
            try:
                while True:
                    for plan in islice(waiting, self.concurrency - len(running)):
                        running.add(pool.submit(function, plan))
                    if not running:
                        return
                    finished, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in finished:
                        yield future.result()
            except BaseException:
                for future in running:
                    future.cancel()
                if abandon is not None:
                    abandon()
                raise
