"""Records many Trials of six steps in one Job and prints how much memory the Job's process held meanwhile.

    python tests/performance/bench_memory.py --trials 10000

The peak after the first thousand and the peak at the end should be the same but for what the Job knows of
each Trial: its plan. Workers' memory is not counted; each lives for one Trial.
"""

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

from plural_gym.agent import Agent
from plural_gym.job import Job, Progress
from plural_gym.records import ledger
from plural_gym.shipped import project


def six_guesses(task: object, seat: object) -> None:
    """Guess six times, never the secret: every Trial has exactly six steps."""
    for word in ("fuzzy", "fuzzy", "fuzzy", "fuzzy", "fuzzy", "fuzzy"):
        seat.act("guess", word=word)  # type: ignore[attr-defined]


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    names = [name for name in project().tasks.names if name.startswith("wordle/") and "fuzzy" not in name]
    tasks = project().tasks.choose(names[:500])
    readings: dict[int, float] = {}

    def note(progress: Progress) -> None:
        if progress.done % max(options.trials // 10, 1) == 0:
            readings[progress.done] = round(resident_mb(), 1)

    with tempfile.TemporaryDirectory() as folder:
        job = Job(
            tasks,
            [Agent(name="six", harness=six_guesses)],
            attempts=max(options.trials // len(tasks), 1),
            directory=folder,
            progress=note,
        )
        began = time.perf_counter()
        result = job.run()
        seconds = time.perf_counter() - began
        steps = ledger.read(result.folder, "steps").num_rows
    report = {
        "trials": job.trial_count,
        "ledger_step_rows": steps,
        "seconds": round(seconds, 1),
        "trials_per_second": round(job.trial_count / seconds, 1),
        "resident_mb_by_trials": readings,
        "peak_resident_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }
    print(json.dumps(report, indent=None if options.json else 2))


if __name__ == "__main__":
    main()
