"""How the progress of a Job is shown: a live bar in a terminal, plain lines everywhere else; on stderr."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from plural_gym.cli.terminal import say, stderr

if TYPE_CHECKING:
    from plural_gym.job import Progress

_LINES_UP_TO = 100
"""A Job of more Trials than this tells of one a while instead of each, where there is no terminal."""
_WHILE_S = 5.0


@contextmanager
def shown_progress(total: int, quiet: bool) -> "Iterator[Callable[[Progress], None]]":
    """What to call after each Trial: a bar in a terminal, else lines; with `quiet` no lines either."""
    if stderr().is_terminal:
        with _bar(total) as tell:
            yield tell
    else:
        yield (lambda progress: None) if quiet else _Lines()


@contextmanager
def _bar(total: int) -> "Iterator[Callable[[Progress], None]]":
    from rich import progress as bars

    columns = (
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TextColumn("{task.fields[mean]}"),
        bars.TextColumn("{task.fields[failed]}", style="red"),
        bars.TimeElapsedColumn(),
        bars.TextColumn("left"),
        bars.TimeRemainingColumn(),
    )
    failed = [0]
    with bars.Progress(*columns, console=stderr(), transient=True) as bar:
        row = bar.add_task("", total=total, mean="", failed="")

        def tell(progress: "Progress") -> None:
            failed[0] += progress.trial["status"] == "failed"
            mean = "" if progress.mean_score is None else f"mean {progress.mean_score:.3f}"
            lost = f"{failed[0]} failed" if failed[0] else ""
            bar.update(row, completed=progress.done, mean=mean, failed=lost)

        yield tell


class _Lines:
    """A line a Trial; of a large Job one every few seconds, each failure and the last."""

    def __init__(self) -> None:
        self._last = 0.0

    def __call__(self, progress: "Progress") -> None:
        trial, now = progress.trial, time.monotonic()
        failed = trial["status"] == "failed"
        due = now - self._last >= _WHILE_S or progress.done == progress.total
        if progress.total > _LINES_UP_TO and not failed and not due:
            return
        self._last = now
        score = "-" if trial["score"] is None else f"{trial['score']:.3f}"
        mean = "" if progress.mean_score is None else f"  mean {progress.mean_score:.3f}"
        status = f"{trial['status']} ({trial['failure']})" if failed else trial["status"]
        place = f"{progress.done:>{len(str(progress.total))}}/{progress.total}"
        say(f"{place}  {trial['trial_id']}  {trial['task']}  {trial['agent']}  {status}  {score}{mean}")
