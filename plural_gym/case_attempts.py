"""The attempts of cases, played through a Task's world or written out, and what a Verifier gives for them.

`cases.py` compares that with what a case expects.
"""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plural_gym.case_models import CaseAction, CaseApp, EpisodeCase, PlayCase
from plural_gym.episode import Credit, Episode, HindsightTrial, Usage, recorded_apps
from plural_gym.errors import AppFault, DefinitionError, Fault, PluralError, ProjectError
from plural_gym.grading import AttemptGrading, Grade, grade
from plural_gym.host.hooks import NO_SIGNAL, HookSet, LocalHooks, Reward
from plural_gym.host.host import AppHost, Outcome
from plural_gym.host.resources import NO_RESOURCES, stage
from plural_gym.host.session import Session
from plural_gym.manifest import Document, Loc
from plural_gym.party import share
from plural_gym.project import Project
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.state import freeze_value
from plural_gym.step import RecordedWorld, TaskView
from plural_gym.verifier import Verifier, VerifierOutput


@dataclass(slots=True)
class Given:
    """What a Verifier gave for one attempt."""

    output: Grade = None
    rewards: Sequence[Reward] = ()
    credits: Sequence[Credit] | Fault = ()
    steps: Sequence[str] = ()
    """Event ids."""

    def faults(self) -> list[Fault]:
        found = [fault for _, fault in self.rewards if fault is not None]
        return [*found, *(one for one in (self.output, self.credits) if isinstance(one, Fault))]


def play(verifier: Verifier, case: PlayCase, project: Project, document: Document) -> Given:
    """Play the actions in the Task's own world. Raises ProjectError with the line that cannot be played."""
    try:
        task = project.tasks.get(case.task)
    except ProjectError:
        raise
    except PluralError as error:
        raise ProjectError([document.problem(("play", "task"), str(error))]) from None
    environment = task.environment
    if environment.party is not None:
        said = f"Task {task.name!r} is played by several seats; write the attempt out, as 'episode'."
        raise ProjectError([document.problem(("play", "task"), said)])
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


def write_out(verifier: Verifier, case: EpisodeCase) -> Given:
    """Build the Episode that the case describes, and reward its steps."""
    apps = dict(case.apps)
    if not apps and (case.state is not None or case.steps):
        apps["app"] = CaseApp(final=case.state)
    task = TaskView(case.task, "", case.info, case.metadata, case.expected)
    hooks = LocalHooks([HookSet.of(verifier)], seats=case.seats)
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
        seat=case.seat,
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
            given = hooks.reward(task, outcome, turn, RecordedWorld(dict(states)), event_id, step.seat)
            value, fault = given[0] if given else NO_SIGNAL
            rewards.append((share(value, step.seat, case.seat), fault))
        else:
            rewards.append(NO_SIGNAL)
        record = {"event_id": event_id, "turn": turn, "seat": step.seat, "app": app, "action": step.action}
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
) -> Given:
    """Let it grade and give hindsight, as after a live attempt with this Verifier alone."""
    given = Given(steps=[str(record["event_id"]) for record in episode.trajectory])

    def run(verifier: Verifier, episode: Episode) -> VerifierOutput | Fault:
        return hooks.check(verifier.name, episode, own)

    if verifier.scores:
        own_record = _copied(episode)  # what a check changes in it, hindsight does not see in a Job either
        grades = grade([verifier], lambda verifier: AttemptGrading(own_record, artifacts, run, verifier))
        given.output, score = grades.given[verifier.name], grades.score
    if "hindsight" in verifier.functions():
        trial = HindsightTrial(score, episode.apps, episode.task, episode.trajectory, seat=episode.seat)
        given.credits = hooks.hindsight(verifier.name, trial)
    return given


def _copied(episode: Episode) -> Episode:
    """The same record with values that nobody else holds."""
    seen, answer = deepcopy(episode.observation), deepcopy(episode.answer)
    trajectory = deepcopy(episode.trajectory)
    return replace(episode, task=episode.task.fresh(), trajectory=trajectory, observation=seen, answer=answer)
