"""Cases: a Verifier's own proof, `verifiers/<name>/cases/*.yaml`, run by `plural verifier test`.

A case is one attempt and what the Verifier must give for it:

    name: rejected guesses cost no guess
    play:                                   # through the real world of a Task ...
      task: wordle/crane
      actions:
        - {action: guess, arguments: {word: zzzzz}}
        - {action: guess, arguments: {word: crane}}
      answer: crane                         # optional
      files: {report.md: "..."}             # what the Agent produced, optional
    expect:
      score: 1.0                            # of check; or {min: 0.6, max: 1.0}, for a judge
      scores: {solved: 1.0}                 # those that are named
      rewards: [-0.1, null]                 # one a step; null: no signal
      credit: [null, 1.0]                   # one a step; null: none in hindsight
      fault: KeyError                       # or true: the code has to fail, with this in its message

or the attempt written out, for worlds that are slow, or states that no play reaches:

    episode:
      state: {status: won}                  # or apps: {game: {initial: {...}, final: {...}}}
      answer: crane
      expected: crane
      steps:
        - {action: guess, arguments: {word: crane}, observation: "...",
           previous_state: {...}, current_state: {...}}

Functions run in this process, without a time limit; a check that is a program, or a judge, is asked as in a
Trial.
"""

import math
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plural_gym.case_models import (
    Bounds,
    CaseAction,
    CaseApp,
    CaseManifest,
    EpisodeCase,
    Expectation,
    PlayCase,
)
from plural_gym.episode import Credit, Episode, HindsightTrial, Usage, recorded_apps
from plural_gym.errors import AppFault, DefinitionError, Fault, PluralError, Problem, ProjectError
from plural_gym.grading import AttemptGrading, Grade, grade
from plural_gym.host.hooks import NO_SIGNAL, HookSet, LocalHooks, Reward
from plural_gym.host.host import AppHost, Outcome
from plural_gym.host.resources import NO_RESOURCES, stage
from plural_gym.host.session import Session
from plural_gym.manifest import Document, Loc, load
from plural_gym.project import Project
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.state import freeze_value
from plural_gym.step import RecordedWorld, TaskView
from plural_gym.verifier import Verifier, VerifierOutput

KINDS = ("correct", "incorrect", "incomplete")
"""The outcomes that every Verifier should be tried on: a case's file name begins with one of them."""
TOLERANCE = 1e-9
"""How far a number may be from the one expected."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that came out otherwise than expected."""

    what: str
    """`score`, `scores.solved`, `rewards[2]`, `check`, ..."""
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.what}: expected {self.expected}, got {self.got}"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What came of one case file."""

    file: str
    """From the project's root."""
    name: str
    """What the case says of itself; its file's name where that could not be read."""
    differences: tuple[Difference, ...] = ()
    problems: tuple[Problem, ...] = ()
    """What kept it from being run."""

    @property
    def passed(self) -> bool:
        """Whether it ran and gave what it had to."""
        return not self.differences and not self.problems


@dataclass(slots=True)
class _Given:
    """What the Verifier gave for one attempt."""

    output: Grade = None
    rewards: Sequence[Reward] = ()
    credits: Sequence[Credit] | Fault = ()
    steps: Sequence[str] = ()
    """Event ids."""

    def faults(self) -> list[Fault]:
        found = [fault for _, fault in self.rewards if fault is not None]
        return [*found, *(one for one in (self.output, self.credits) if isinstance(one, Fault))]


def run_cases(verifier: Verifier, folder: Path, project: Project) -> list[CaseResult]:
    """Run every case in `folder`/cases against a Verifier, in the order of their file names.

    A file that is wrong, or whose attempt cannot be played, becomes a result with its problems.
    """
    return [_run(verifier, path, project) for path in case_files(folder)]


def case_files(folder: Path) -> list[Path]:
    """The case files of a Verifier's folder."""
    return sorted(path for path in (folder / "cases").glob("*.y*ml") if path.suffix in (".yaml", ".yml"))


def missing_kinds(folder: Path) -> list[str]:
    """The kinds of outcome that no case file is named after."""
    names = [path.stem for path in case_files(folder)]
    return [kind for kind in KINDS if not any(name.startswith(kind) for name in names)]


def _run(verifier: Verifier, path: Path, project: Project) -> CaseResult:
    file, name = path.name, path.stem
    try:
        document = load(path, root=project.root)
        file = document.file
        case = document.parse(CaseManifest)
        name = case.name
        if case.play is not None:
            given = _play(verifier, case.play, project, document)
        else:
            assert case.episode is not None
            given = _write_out(verifier, case.episode)
    except ProjectError as error:
        return CaseResult(file, name, problems=error.problems)
    return CaseResult(file, name, tuple(_differences(case.expect, given)))


# --- attempts ---


def _play(verifier: Verifier, case: PlayCase, project: Project, document: Document) -> _Given:
    """Play the actions in the Task's own world. Raises ProjectError with the line that cannot be played."""
    try:
        task = project.tasks.get(case.task)
    except ProjectError:
        raise
    except PluralError as error:
        raise ProjectError([document.problem(("play", "task"), str(error))]) from None
    environment = task.environment
    hooks = LocalHooks([HookSet.of(verifier)])
    host = AppHost(environment.declarations, environment.actions)
    session = Session(host, hooks, task.effective_limits)
    with closing(host), tempfile.TemporaryDirectory(prefix="plural-case-") as scratch:
        resources = NO_RESOURCES
        try:
            if environment.resources:
                resources = Path(scratch, "resources")
                stage(environment, resources)
            session.open(task.view, task.setup, case.seed, resources)
            for index, action in enumerate(case.actions):
                finishes = action.action == "finish" and "finish" not in environment.actions.table
                _act(session, action, finishes, document, ("play", "actions", index))
            if case.answer is not None:
                session.answer = case.answer
            session.stop("agent_response", terminated=True)
            usage = Usage(turns=session.turn)
            left = _left_behind(case.files, Path(scratch))
            episode = session.episode(tuple(left.artifacts()), usage)
        except (AppFault, DefinitionError) as error:
            raise ProjectError([document.problem(("play",), str(error.args[0]))]) from None
        own = session.own_rewards(verifier.name)
        given = _grade(verifier, hooks, episode, own, case.score, left.artifacts_path)
    given.rewards = [outcome.rewards[0] if outcome.rewards else NO_SIGNAL for outcome in session.trail]
    return given


def _act(session: Session, action: CaseAction, finishes: bool, document: Document, loc: Loc) -> None:
    if session.stop_reason is not None:
        said = f"the episode is over before this action ({session.stop_reason}); remove it."
        raise ProjectError([document.problem(loc, said)])
    if finishes:
        session.finish(action.arguments.get("answer"))
        return
    outcome = session.act(action.action, action.arguments)
    if outcome.fault is not None:
        raise ProjectError([document.problem(loc, f"the action failed: {outcome.fault}.")])


def _write_out(verifier: Verifier, case: EpisodeCase) -> _Given:
    """Build the Episode that the case describes, and reward its steps."""
    apps = dict(case.apps)
    if not apps and (case.state is not None or case.steps):
        apps["app"] = CaseApp(final=case.state)
    task = TaskView(case.task, "", case.info, case.metadata, case.expected)
    hooks = LocalHooks([HookSet.of(verifier)])
    rewards, trajectory = _written_steps(case, apps, task, hooks)
    episode = Episode(
        task=task,
        apps=recorded_apps(
            {
                name: (app.control, freeze_value(app.initial), freeze_value(app.final))
                for name, app in apps.items()
            }
        ),
        trajectory=tuple(trajectory),
        observation=case.observation if not trajectory else _last_seen(case, trajectory[-1]),
        answer=case.answer,
        stop_reason=case.stop_reason,
        artifacts=tuple(case.artifacts),
        usage=Usage(turns=len(trajectory)),
    )
    own = [value for value, _ in rewards if value is not None]
    with tempfile.TemporaryDirectory(prefix="plural-case-") as scratch:
        left = _left_behind(case.files, Path(scratch))
        episode = replace(episode, artifacts=(*episode.artifacts, *left.artifacts()))
        given = _grade(verifier, hooks, episode, own, case.score, left.artifacts_path)
    given.rewards = rewards
    return given


def _left_behind(files: Mapping[str, str], scratch: Path) -> TrialFolder:
    """A Trial's folder with the files that a case says the Agent produced."""
    folder = TrialFolder(scratch / "trial")
    folder.create()
    for path, text in files.items():
        file = folder.artifacts_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    folder.pin_artifacts()
    return folder


def _written_steps(
    case: EpisodeCase, apps: Mapping[str, CaseApp], task: TaskView, hooks: LocalHooks
) -> tuple[list[Reward], list[dict[str, Any]]]:
    """The rewards and the records of the steps; a step without State earns no reward."""
    states = {name: freeze_value(app.initial) for name, app in apps.items()}
    rewards: list[Reward] = []
    trajectory: list[dict[str, Any]] = []
    for turn, step in enumerate(case.steps, 1):
        app = step.app or next(iter(apps))
        before, after = freeze_value(step.previous_state), freeze_value(step.current_state)
        event_id = f"step-{turn}"
        seen = (step.observation, step.error)
        if step.has_state:
            states[app] = after
            outcome = Outcome(app, step.action, step.arguments, *seen, None, before, after, False, False)
            given = hooks.reward(task, outcome, turn, RecordedWorld(dict(states)), event_id)
            rewards.append(given[0] if given else NO_SIGNAL)
        else:
            rewards.append(NO_SIGNAL)
        record = {"event_id": event_id, "turn": turn, "seat": None, "app": app, "action": step.action}
        record |= {"arguments": step.arguments, "observation": step.observation, "error": step.error}
        trajectory.append(record)
    return rewards, trajectory


def _last_seen(case: EpisodeCase, last: Mapping[str, Any]) -> Any:
    if case.observation is not None:
        return case.observation
    return {"error": last["error"]} if last["error"] is not None else last["observation"]


def _grade(
    verifier: Verifier,
    hooks: LocalHooks,
    episode: Episode,
    own: Sequence[float],
    score: float | None,
    artifacts: Path,
) -> _Given:
    """Let it grade and give hindsight, as after a live attempt with this Verifier alone."""
    given = _Given(steps=[str(record["event_id"]) for record in episode.trajectory])

    def run(verifier: Verifier, episode: Episode) -> VerifierOutput | Fault:
        return hooks.check(verifier.name, episode, own)

    if verifier.scores:
        own_record = _copied(episode)  # what a check changes in it, hindsight does not see in a Job either
        grades = grade([verifier], lambda verifier: AttemptGrading(own_record, artifacts, run, verifier))
        given.output, score = grades.given[verifier.name], grades.score
    if "hindsight" in verifier.functions():
        trial = HindsightTrial(score, episode.apps, episode.task, episode.trajectory)
        given.credits = hooks.hindsight(verifier.name, trial)
    return given


def _copied(episode: Episode) -> Episode:
    """The same record with values that nobody else holds."""
    seen, answer = deepcopy(episode.observation), deepcopy(episode.answer)
    trajectory = deepcopy(episode.trajectory)
    return replace(episode, task=episode.task.fresh(), trajectory=trajectory, observation=seen, answer=answer)


# --- expected and got ---


def _differences(expect: Expectation, given: _Given) -> list[Difference]:
    faults = given.faults()
    found: list[Difference] = []
    if expect.fault is False:
        for fault in dict.fromkeys(faults):
            found.append(
                Difference(fault.where, "no fault", f"{fault.type}: {fault.message} (at {fault.at})")
            )
    else:
        wanted = "a fault" if expect.fault is True else f"a fault with {expect.fault!r}"
        said = [f"{fault.type}: {fault.message}" for fault in faults]
        if not any(expect.fault is True or str(expect.fault) in one for one in said):
            found.append(Difference("fault", wanted, "; ".join(said) or "none"))
    output = given.output if isinstance(given.output, VerifierOutput) else None
    if expect.score is not None and not isinstance(given.output, Fault):
        found += _compared("score", expect.score, None if output is None else output.score)
    if not isinstance(given.output, Fault):
        scores = {} if output is None else output.scores
        for name, value in expect.scores.items():
            found += _compared(f"scores.{name}", value, scores.get(name))
    if expect.rewards is not None:
        found += _row("rewards", expect.rewards, given.rewards)
    if expect.credit is not None and not isinstance(given.credits, Fault):
        by_step: dict[str, list[float]] = {}
        for credit in given.credits:
            by_step.setdefault(credit.event_id, []).append(credit.value)
        credits: list[Reward] = [
            (math.fsum(by_step[event_id]) if event_id in by_step else None, None) for event_id in given.steps
        ]
        found += _row("credit", expect.credit, credits)
    return found


def _row(what: str, expected: Sequence[float | None], got: Sequence[Reward]) -> list[Difference]:
    """Step by step; where the lengths differ, both in full."""
    if len(expected) != len(got):
        shown = [_shown(value) if fault is None else "fault" for value, fault in got]
        return [
            Difference(
                what,
                f"[{', '.join(map(_shown, expected))}] ({len(expected)} long)",
                f"[{', '.join(shown)}] ({len(got)} long)",
            )
        ]
    found: list[Difference] = []
    for index, (wanted, (value, fault)) in enumerate(zip(expected, got, strict=True)):
        if fault is None:
            found += _compared(f"{what}[{index}]", wanted, value)
    return found


def _compared(what: str, expected: float | Bounds | None, got: float | None) -> list[Difference]:
    if expected is None or got is None:
        equal = expected is got
    elif isinstance(expected, Bounds):
        low = -math.inf if expected.min is None else expected.min
        high = math.inf if expected.max is None else expected.max
        equal = low - TOLERANCE <= got <= high + TOLERANCE
    else:
        equal = math.isclose(expected, got, rel_tol=0.0, abs_tol=TOLERANCE)
    return [] if equal else [Difference(what, _shown(expected), _shown(got))]


def _shown(value: float | Bounds | None) -> str:
    if isinstance(value, Bounds):
        ends = (("at least", value.min), ("at most", value.max))
        return " and ".join(f"{words} {number:.10g}" for words, number in ends if number is not None)
    return "none" if value is None else f"{value:.10g}"
