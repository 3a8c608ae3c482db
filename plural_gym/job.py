"""Job: one run; Agents x Tasks x attempts, with every input pinned. Plans, runs, resumes, repeats.

The record on disk is the truth: `JobResult` and everything built on it read the Job's folder.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any, Literal

from plural_gym import kinds, notebook, ratings
from plural_gym.agent import Agent
from plural_gym.benchmark import Benchmark
from plural_gym.errors import (
    CredentialMissing,
    DefinitionError,
    MachineError,
    PluralError,
    RecordError,
    UsageError,
)
from plural_gym.execution import TrialCancelled, is_repeated, run_trial
from plural_gym.executor import Executor
from plural_gym.gateway.client import require
from plural_gym.inputs import Inputs
from plural_gym.leaderboard import Leaderboard
from plural_gym.project import Project
from plural_gym.ranking import Rules, rank
from plural_gym.receipt import Pin, packages
from plural_gym.records import ledger
from plural_gym.records.job_folder import JOBS as JOBS
from plural_gym.records.job_folder import JobFolder, JobStore
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.runtime import Runtime
from plural_gym.seating import Entry, Seats, line_up_entry, line_up_name, round_robin
from plural_gym.task import Task, TaskSet
from plural_gym.trial import Trial, TrialPlan, why_not_rerunnable

Mode = Literal["eval", "train"]
SCHEMA = "plural.job/1"
_PINNED = ("seed", "attempts", "mode", "tasks", "agents", "line_ups", "benchmark")
"""What two runs of one Job must agree on."""
_JOB_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Progress:
    """Told after every finished Trial."""

    done: int
    total: int
    trial: Mapping[str, Any]
    """The Trial's result."""
    mean_score: float | None
    """Mean of the scores so far; None before the first."""
    seconds: float
    """Since the Job started to run."""
    reused: int = 0
    """How many of `done` had finished in an earlier run of the Job."""


@dataclass(slots=True)
class _Tally:
    scored: int = 0
    total: float = 0.0
    failures: dict[str, int] = field(default_factory=dict)


class Job:
    """One run of Agents on Tasks or on a Benchmark.

    Args:
        tasks: the Tasks, in order; or give `benchmark`.
        agents: who plays; each needs a name of its own. In a party each plays all seats: self-play.
        seats: for a party, line-ups that map every seat to an Agent; or "round-robin": all of `agents`
            against one another, in every seat.
        benchmark: the exam whose Tasks and ranking rules are used.
        attempts: tries per Agent and Task.
        concurrency: Trials at once; None: one for each processor, at most eight.
        seed: repeats all randomness of the Apps; every Agent meets the same seeds.
        mode: "eval", or "train" to capture model exchanges exactly.
        directory: where Jobs are kept.
        executor: the kind that spreads the Trials.
        progress: called after each finished Trial, in the thread that runs the Job.

    Raises:
        DefinitionError: no Tasks or Agents, or two of one name.
    """

    def __init__(
        self,
        tasks: Sequence[Task] | None = None,
        agents: Sequence[Agent] = (),
        *,
        seats: Seats | None = None,
        benchmark: Benchmark | None = None,
        attempts: int = 1,
        concurrency: int | None = None,
        seed: int = 0,
        mode: Mode = "eval",
        directory: str | Path = JOBS,
        executor: str = "threads",
        progress: Callable[[Progress], None] | None = None,
        job_id: str | None = None,
        rerun_of: str | None = None,
    ) -> None:
        if (tasks is None) == (benchmark is None):
            raise DefinitionError("a Job runs either tasks or a benchmark; give one of them.")
        if benchmark is not None and not isinstance(benchmark, Benchmark):
            raise DefinitionError(f"benchmark is {benchmark!r}; pass project.benchmarks[...].")
        given: tuple[Any, Any] = (tasks, agents)
        if isinstance(given[0], Task) or isinstance(given[1], Agent):
            raise DefinitionError("tasks and agents are sequences: tasks=[task], agents=[agent].")
        strange = next((agent for agent in agents if not isinstance(agent, Agent)), None)
        if strange is not None:
            raise DefinitionError(f"agents holds {strange!r}, which is no Agent; pass project.agents[...].")
        chosen = benchmark.tasks if benchmark is not None else tasks
        assert chosen is not None
        self.tasks = chosen if isinstance(chosen, TaskSet) else TaskSet.of(list(chosen))
        if not len(self.tasks):
            raise DefinitionError("a Job needs at least one Task.")
        entries = _entries(agents, seats, self.tasks)
        agents = _seated(entries) if entries else agents
        if not agents:
            raise DefinitionError("a Job needs at least one Agent.")
        names = [agent.name for agent in agents]
        doubled = next((name for name in names if names.count(name) > 1), None)
        if doubled is not None:
            raise DefinitionError(f"two Agents are named {doubled!r}; give one another name.")
        for what, value in (("attempts", attempts), ("concurrency", concurrency)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise DefinitionError(f"{what} is a whole number from 1, got {value!r}.")
        seed = _whole_seed(seed)
        if job_id is not None and not (isinstance(job_id, str) and _JOB_ID.fullmatch(job_id)):
            raise DefinitionError(
                f"job_id is 1 to 64 letters, digits, '-' and '_', got {ascii(job_id)[:80]}."
            )
        for agent in agents:
            agent.driver()
            _require_credentials(agent)
        if mode not in ("eval", "train"):
            raise DefinitionError(f"mode is 'eval' or 'train', not {mode!r}.")
        self.agents = tuple(agents)
        self.entries = entries or tuple(Entry(agent.name, agent) for agent in agents)
        """Who plays every Task: each Agent, or each line-up."""
        for task in _distinct_environments(self.tasks):
            for entry in self.entries:
                entry.seats(task.environment.party)
        self.benchmark = benchmark
        self.attempts = attempts
        self.seed = seed
        self.mode: Mode = mode
        self.id = job_id or f"job_{secrets.token_hex(6)}"
        self.folder = JobStore(directory).job(self.id)
        self.rerun_of = rerun_of
        self.concurrency = concurrency or min(self.trial_count, os.cpu_count() or 1, 8)
        self._executor = executor
        self._progress = progress
        self._stop = threading.Event()
        self._why_not: tuple[str, ...] = ()

    @property
    def trial_count(self) -> int:
        """Agents, or line-ups, x Tasks x attempts."""
        return len(self.tasks) * len(self.entries) * self.attempts

    def plans(self) -> Iterator[TrialPlan]:
        """Every Trial, in order: by Task, then Agent, then attempt."""
        pin = None if self.benchmark is None else Pin.of(self.benchmark)
        for task in self.tasks:
            for entry in self.entries:
                seats = entry.seats(task.environment.party)
                players = list(seats.values()) or [entry.agent]
                why_not = tuple(
                    dict.fromkeys(why for one in players for why in why_not_rerunnable(task, one))
                )
                for attempt in range(1, self.attempts + 1):
                    yield TrialPlan(
                        id=_trial_id(self.id, entry.name, task.name, attempt),
                        job_id=self.id,
                        group_id=f"{self.id}/{entry.name}/{task.name}",
                        attempt=attempt,
                        task=task,
                        agent=players[0],
                        seats=seats,
                        line_up=entry.name if seats else "",
                        seed=int(_digest(self.seed, task.name, attempt)[:15], 16),
                        benchmark=pin,
                        mode=self.mode,
                        why_not=why_not or self._why_not,
                    )

    def pins(self) -> dict[str, Any]:
        """What is pinned before anything runs; two runs of one Job must agree on it."""
        rules = None if self.benchmark is None else asdict(self.benchmark.rules)
        reasons: dict[str, None] = {}
        for task in self.tasks:
            for agent in self.agents:
                reasons.update(dict.fromkeys(why_not_rerunnable(task, agent)))
        return {
            "schema_version": SCHEMA,
            "job_id": self.id,
            "mode": self.mode,
            "seed": self.seed,
            "attempts": self.attempts,
            "benchmark": None if self.benchmark is None else Pin.of(self.benchmark).model_dump(),
            "rules": rules,
            "tasks": [
                {"name": task.name, "version": task.version, "content_hash": task.content_hash}
                for task in self.tasks
            ],
            "agents": [{**Pin.of(agent).model_dump(), "model": agent.model} for agent in self.agents],
            "line_ups": [
                {seat: agent.name for seat, agent in entry.line_up.items()}
                for entry in self.entries
                if entry.line_up is not None
            ],
            "rerunnable": not reasons,
            "why_not": list(reasons),
            "rerun_of": self.rerun_of,
            "packages": dict(packages()),
        }

    def run(self) -> "JobResult":
        """Run every Trial that has not finished yet, seal the ledger, and return the result.

        A Job that was killed goes on where it stopped, and Trials that the machine failed (`infrastructure`)
        are run again, once in each `run`. Ctrl-C ends the Trials in flight unsealed and raises
        KeyboardInterrupt; `run` again resumes.

        Raises:
            CredentialMissing: a judge's model needs a key that is not set; nothing was run.
            MachineError: the Job runs in another process, or the machine could not.
            RecordError: the folder belongs to a Job with other inputs.
        """
        require(choice for task in self.tasks for verifier in task.verifiers for choice in verifier.models())
        kinds_used = {task.environment.runtime.kind for task in _distinct_environments(self.tasks)}
        runtime_classes = {kind: kinds.load("plural.runtimes", kind) for kind in kinds_used}
        source = self._prepare()
        runtimes: dict[str, Runtime] = {}
        with self.folder.lock():
            try:
                for task in _distinct_environments(self.tasks):
                    choice = task.environment.runtime
                    if choice.kind not in runtimes:
                        runtimes[choice.kind] = runtime_classes[choice.kind](choice.options)
                self._run_all(source.plans(), runtimes)
            finally:
                for runtime in runtimes.values():
                    runtime.close()
            seal(self.folder)
        if self.folder.unsettled():
            seal(self.folder)  # who reviewed a Trial in the meantime left this to us
        return JobResult(self.folder)

    def _prepare(self) -> "Job":
        """Pin and copy every input; returns the Job whose Tasks and Agents are played.

        Words of a project are played from the copy, so that nobody who edits the project while the Job runs
        changes what was pinned. Words built in Python are played as they are.
        """
        pins = self.pins()
        if self.folder.pins_path.exists():
            known = self.folder.pins()
            for key in _PINNED:
                if known.get(key) != pins[key]:
                    raise RecordError(
                        f"Job {self.id}: {key} differs from what it was started with; start a new Job."
                    )
            self._why_not = tuple(known["why_not"])
        else:
            # Inputs first: a Job that can be seen can be resumed.
            inputs = Inputs(self.folder.inputs_path)
            inputs.keep(self.tasks, self.agents, self.benchmark)
            self._why_not = (*pins["why_not"], *inputs.problems)
            self._why_not = self._why_not or self._unlike(pins)
            pins |= {"rerunnable": not self._why_not, "why_not": list(self._why_not)}
            self.folder.create({**pins, "created": time.time()})
        folders = [agent.folder for agent in self.agents]
        folders += [folder for task in self.tasks for folder in (task.folder, task.environment.folder)]
        if self._why_not or None in folders:
            return self
        return self._copy(pins)

    def _copy(self, pins: Mapping[str, Any]) -> "Job":
        """This Job, made of its own copy of its inputs."""
        return _reopened(self.folder, pins, job_id=self.id, rerun_of=self.rerun_of)

    def _unlike(self, pins: Mapping[str, Any]) -> tuple[str, ...]:
        """Why the copy of the inputs cannot stand for them; empty where it can."""
        try:
            copied = self._copy(pins).pins()
        except (PluralError, OSError) as error:
            return (f"the copy of its inputs cannot be loaded: {error}",)
        unlike = [key for key in _PINNED if copied[key] != pins[key]]
        return (f"the copy of its inputs differs in: {', '.join(unlike)}",) if unlike else ()

    def _run_all(self, plans: Iterator[TrialPlan], runtimes: Mapping[str, Runtime]) -> None:
        began = time.monotonic()
        tally, done, reused = _Tally(), 0, 0
        executor: Executor = kinds.load("plural.executors", self._executor)(self.concurrency)

        def one(plan: TrialPlan) -> tuple[dict[str, Any], bool] | None:
            if self._stop.is_set():
                return None
            folder = self.folder.trial(plan.id)
            if folder.result_path.exists() and folder.finished():
                known = folder.result()
                if not is_repeated(known):
                    return known, True
                forget_ledger()
            runtime = runtimes[plan.task.environment.runtime.kind]
            try:
                return run_trial(plan, folder, runtime, self._stop), False
            except TrialCancelled:
                return None

        guard = threading.Lock()

        def forget_ledger() -> None:
            # It may hold the rows of a Trial that is played again; sealed anew, it holds the new ones alone.
            with guard:
                shutil.rmtree(self.folder.ledger_path, ignore_errors=True)

        def abandon() -> None:
            self._stop.set()
            for runtime in runtimes.values():
                runtime.close()

        with closing(executor.run(one, plans, abandon)) as finished:
            for outcome in finished:
                if outcome is None:
                    continue
                result, known = outcome
                done += 1
                reused += known
                if result["score"] is not None:
                    tally.scored += 1
                    tally.total += result["score"]
                if self._progress is not None:
                    mean = tally.total / tally.scored if tally.scored else None
                    self._progress(
                        Progress(done, self.trial_count, result, mean, time.monotonic() - began, reused)
                    )

    @classmethod
    def open(
        cls,
        folder: JobFolder,
        *,
        concurrency: int | None = None,
        progress: Callable[[Progress], None] | None = None,
        fresh: bool = False,
    ) -> "Job":
        """A Job from its folder, with the inputs it was started with: to resume it, or `fresh` to repeat it.

        Raises:
            UsageError: its inputs cannot be loaded again; says why.
        """
        pins = folder.pins()
        if not pins["rerunnable"]:
            raise UsageError(
                f"Job {folder.id} cannot be {'repeated' if fresh else 'resumed'} from its record: "
                f"{'; '.join(pins['why_not'])}. Run it from the code that made it."
            )
        return _reopened(
            folder,
            pins,
            concurrency=concurrency,
            progress=progress,
            job_id=None if fresh else folder.id,
            rerun_of=folder.id if fresh else pins["rerun_of"],
        )


class JobResult:
    """What a Job's folder says: its Trials, its leaderboard, what went wrong."""

    def __init__(self, folder: JobFolder) -> None:
        self.folder = folder
        self._pins = folder.pins()

    @property
    def id(self) -> str:
        """The Job's id."""
        return self.folder.id

    @property
    def trials(self) -> list[Trial]:
        """Every Trial that was started, in the Job's order."""
        return [Trial(folder) for folder in self._folders() if folder.path.exists()]

    def _folders(self) -> Iterator[TrialFolder]:
        for task in self._pins["tasks"]:
            for player in self._players():
                for attempt in range(1, self._pins["attempts"] + 1):
                    name = _trial_id(self.id, player, task["name"], attempt)
                    yield self.folder.trial(name)

    def _players(self) -> list[str]:
        """Who played, as results name it: line-ups, or Agents."""
        line_ups = [line_up_name(line_up) for line_up in self._pins["line_ups"]]
        return line_ups or [agent["name"] for agent in self._pins["agents"]]

    def results(self) -> Iterator[dict[str, Any]]:
        """The summary of every finished Trial, one at a time."""
        for folder in self._folders():
            if folder.result_path.exists():
                yield folder.result()

    def rows(self) -> Iterator[dict[str, Any]]:
        """What a leaderboard needs of every finished Trial; of a party, a row for every seat."""
        sat: dict[tuple[str, str], int] = {}
        for result in self.results():
            row = {
                "agent": result["agent"],
                "task": result["task"],
                "attempt": result["attempt"],
                "score": result["score"],
                "failure": result["failure"],
                "status": result["status"],
                "cost_usd": result["usage"].get("cost_usd"),
                "seconds": result["seconds"],
            }
            for seat in result["seats"]:
                if seat is None:
                    yield row
                    continue
                failed = result["failure"] if result["failure"] != "none" else seat["failure"]
                # Every time that an Agent sat at a Task is an attempt of its own.
                attempt = sat[seat["agent"], row["task"]] = sat.get((seat["agent"], row["task"]), 0) + 1
                own = {"agent": seat["agent"], "score": seat["score"], "failure": failed}
                yield row | own | {"attempt": attempt}

    @property
    def leaderboard(self) -> Leaderboard:
        """Agents ranked by score, by the Benchmark's rules or, without one, every Task alike."""
        return rank(self.rows(), self.rules, self.exam)

    @property
    def ratings(self) -> list[ratings.Rating]:
        """How strong the Agents are that met at one table, the strongest first; [] where none met.

        Raises:
            MachineError: the library that fits them is not installed.
        """
        met = ratings.games(self.results()) if self._pins["line_ups"] else []
        lacking = ratings.missing()
        if met and lacking is not None:
            raise MachineError(f"ratings need a library: {lacking}")
        return ratings.rate(met)

    @property
    def exam(self) -> str:
        """What was run: `name@version` of the Benchmark, or how many Tasks."""
        pin = self._pins["benchmark"]
        return f"{pin['name']}@{pin['version']}" if pin else "no Benchmark"

    @property
    def rules(self) -> Rules:
        """How its results are ranked."""
        rules = self._pins["rules"] or {"tasks": [task["name"] for task in self._pins["tasks"]]}
        return Rules(**{**rules, "tasks": tuple(rules["tasks"])})

    def faults(self) -> list[dict[str, Any]]:
        """Failures of author code, alike ones as one: where, type, message, at, steps, trials."""
        found: dict[tuple[str, ...], dict[str, Any]] = {}
        for result in self.results():
            for fault in result["faults"]:
                key = (fault["where"], fault["type"], fault["message"], fault["at"])
                parts = dict(zip(("where", "type", "message", "at"), key, strict=True))
                row = found.setdefault(key, {**parts, "count": 0, "trials": 0})
                row["count"] += fault["count"]
                row["trials"] += 1
        return list(found.values())

    def summary(self) -> dict[str, Any]:
        """The Job's `result.json`."""
        counts: dict[str, int] = {}
        failures: dict[str, int] = {}
        for result in self.results():
            counts[result["status"]] = counts.get(result["status"], 0) + 1
            if result["failure"] != "none":
                failures[result["failure"]] = failures.get(result["failure"], 0) + 1
        total = len(self._pins["tasks"]) * len(self._players()) * self._pins["attempts"]
        done = sum(counts.values())
        if done < total:
            status = "cancelled"
        elif counts.get("awaiting_review"):
            status = "awaiting_review"
        else:
            status = "failed" if counts.get("failed") else "succeeded"
        return {
            "schema_version": SCHEMA,
            "job_id": self.id,
            "status": status,
            "trials": total,
            "finished": done,
            "by_status": counts,
            "failures": failures,
            "leaderboard": self.leaderboard.to_json(),
            "ratings": None if ratings.missing() else [one.to_json() for one in self.ratings],
            "faults": self.faults(),
        }

    def __repr__(self) -> str:
        return f"JobResult({self.id!r})"

    def _repr_html_(self) -> str:
        """How the Job stands, as a notebook shows it: its leaderboard, and what failed."""
        told = self.summary()
        parts = [self.leaderboard._repr_html_()]
        if told["faults"]:
            columns = ("where", "type", "message", "at", "count", "trials")
            rows = ([fault[column] for column in columns] for fault in told["faults"])
            parts.append(notebook.table(columns, rows, "failures of author code"))
        stands = f"{told['status']}: {told['finished']} of {told['trials']} Trials"
        return notebook.card(f"Job {self.id}", *parts, aside=notebook.span(stands, notebook.QUIET))


def seal(folder: JobFolder) -> None:
    """Bring a Job's ledger and summary to what its Trials say now.

    Once both hold it, the notes of what had changed late are removed.

    Raises:
        MachineError: the disk refuses.
    """
    settled = [note for note, trial in folder.unsettled().items() if _settled(folder.trial(trial))]
    ledger.seal(folder)
    folder.summarise(lambda: JobResult(folder).summary())
    folder.settle_notes(settled)


def _settled(trial: TrialFolder) -> bool:
    """Whether nobody is at work on a Trial, and nothing of its late changes is left to do."""
    if not trial.result_path.exists():
        return True
    try:
        with trial.lock():
            return trial.settled()
    except MachineError:
        return False


def _reopened(folder: JobFolder, pins: Mapping[str, Any], **settings: Any) -> Job:
    """A Job made of a folder's copy of its inputs."""
    project = Project.open(folder.inputs_path)
    benchmark = project.benchmarks[pins["benchmark"]["name"]] if pins["benchmark"] else None
    names = [task["name"] for task in pins["tasks"]]
    line_ups = [
        {seat: project.agents[name] for seat, name in line_up.items()} for line_up in pins["line_ups"]
    ]
    return Job(
        None if benchmark is not None else TaskSet(names, project.tasks.get),
        [project.agents[pin["name"]] for pin in pins["agents"]],
        seats=line_ups or None,
        benchmark=benchmark,
        attempts=pins["attempts"],
        seed=pins["seed"],
        mode=pins["mode"],
        directory=folder.path.parent,
        **settings,
    )


def _whole_seed(seed: Any) -> int:
    """A seed as an int; NumPy's integers are such. Raises DefinitionError for anything else."""
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        raise DefinitionError(f"seed is a whole number, got {seed!r}.")
    if not -(2**63) <= (whole := int(seed)) < 2**63:
        raise DefinitionError("seed is a whole number of at most 64 bits: from -2**63 to 2**63 - 1.")
    return whole


def _entries(agents: Sequence[Agent], seats: Seats | None, tasks: TaskSet) -> tuple[Entry, ...]:
    """The line-ups that are asked for; () where each Agent plays by itself."""
    if seats is None:
        return ()
    if isinstance(seats, str):
        parties = {task.environment.party for task in _distinct_environments(tasks)}
        names = {() if party is None else party.names for party in parties}
        if seats != "round-robin":
            raise DefinitionError(f"seats is a list of line-ups or 'round-robin', not {seats!r}.")
        if len(names) != 1 or () in names:
            raise DefinitionError("a round-robin needs Tasks that are all played by the same seats.")
        seats = round_robin(agents, names.pop())
    entries = tuple(line_up_entry(line_up) for line_up in seats)
    if not entries:
        raise DefinitionError("seats= is empty; give at least one line-up, or leave it out.")
    known = [entry.name for entry in entries]
    doubled = next((name for name in known if known.count(name) > 1), None)
    if doubled is not None:
        raise DefinitionError(f"the line-up {doubled} is given twice; use attempts= to play it again.")
    return entries


def _seated(entries: Sequence[Entry]) -> list[Agent]:
    """The Agents of all line-ups, each once."""
    found = {id(agent): agent for entry in entries for agent in (entry.line_up or {}).values()}
    return list(found.values())


def _require_credentials(agent: Agent) -> None:
    """Raise CredentialMissing where the environment does not hold what an Agent names."""
    missing = [name for name in agent.credentials if not os.environ.get(name)]
    if missing:
        raise CredentialMissing(
            f"Agent {agent.name!r} needs the credential {missing[0]}; set the variable of that name."
        )


def _distinct_environments(tasks: TaskSet) -> list[Task]:
    """One Task of each Environment."""
    return list({id(task.environment): task for task in tasks}.values())


def _trial_id(job: str, agent: str, task: str, attempt: int) -> str:
    return "trl_" + _digest(job, agent, task, attempt)[:16]


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
