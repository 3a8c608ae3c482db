"""RecordLedger: the reward ledger of any training loop, in the Parquet tables that Jobs write too."""

import os
import weakref
from pathlib import Path
from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from plural_gym.errors import AppFault, Fault, UsageError
from plural_gym.host.hooks import HookSet
from plural_gym.records import run_ledger
from plural_gym.records.run_ledger import RunEpisode
from plural_gym.records.strict_json import text
from plural_gym.rl.wrappers.needs import one_env
from plural_gym.verifier import Verifier, VerifierOutput

CUT_OFF = "truncated_externally"
"""Stop reason of an episode that something outside the environment ended: a TimeLimit, a reset, close."""
_KEPT_FAULTS = 100
"""Faults of one episode that differ; more of them are counted with the first."""


class RecordLedger(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Writes every reward and every episode into Parquet, whatever loop steps the environment.

    The tables are `rewards`, one row for each Verifier and step, and `episodes`, with the columns that the
    ledger of a Job has; Parquet readers take `directory/*/ledger/rewards/*.parquet`. Values are what the
    Verifiers gave, not what outer wrappers make of them. Where an episode ends by something outside the
    environment (a TimeLimit, a reset in its midst, `close`), its stop reason is `truncated_externally`; a
    reset before the first step leaves no episode.

    All environments of one process that record the same run share one writer with a folder of its own, so
    workers of an AsyncVectorEnv do not meet. Memory does not grow with the run. A part appears when
    `rows_per_part` rows have come together, at the end of an episode when the last part is older than
    `seconds_per_part`, at `flush`, and when the last environment is closed or collected. What is not yet in a
    part is lost where the process is ended by a signal (SIGKILL, and SIGTERM unless the program handles it)
    and by a worker that is ended without `close`; parts stay whole. Environments that were pickled or forked
    write elsewhere from their next reset on.

    Args:
        env: a GymEnv, or wrappers around one; inside or outside of others does not matter.
        directory: where the writers' folders are; made if need be.
        run: the run's id, the column `job_id`. None: each writer's own. Give one to tell the environments of
            several processes as one run.
        agent: who acts, the column `agent`.
        scores: also run the Verifiers' checks at the end of each episode, for the columns `score` and
            `scores`. In a small world that takes as long as several steps.
        rows_per_part: rows of a part.
        seconds_per_part: how long a row may wait for its part.

    Raises:
        UsageError: no GymEnv inside, or a run that is no name of a folder.
        MachineError: from `reset`, `step` and `close`: the directory cannot be written to.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        directory: str | os.PathLike[str],
        *,
        run: str | None = None,
        agent: str = "policy",
        scores: bool = False,
        rows_per_part: int = 16_384,
        seconds_per_part: float = 60.0,
    ) -> None:
        one_env(env, "RecordLedger")
        if not hasattr(type(env.unwrapped), "session"):
            raise UsageError(
                "RecordLedger needs a GymEnv inside, whose rewards come from Verifiers; inside is a "
                f"{type(env.unwrapped).__name__}."
            )
        if run is not None and (not run or set(run) & set("/\\\0") or run.startswith(".")):
            raise UsageError(f"run is an id that can name a folder, got {run!r}.")
        if type(rows_per_part) is not int or rows_per_part < 1:
            raise UsageError(f"rows_per_part is a whole number from 1, got {rows_per_part!r}.")
        options: dict[str, Any] = {
            "directory": os.fspath(directory),
            "run": run,
            "agent": agent,
            "scores": scores,
            "rows_per_part": rows_per_part,
            "seconds_per_part": seconds_per_part,
        }
        RecordConstructorArgs.__init__(self, **options)
        gym.Wrapper.__init__(self, env)
        self._options = options
        self._join()

    def _join(self) -> None:
        given = self._options
        writer = run_ledger.join(
            given["directory"], given["run"], given["rows_per_part"], given["seconds_per_part"]
        )
        self._record = _Record(writer, self.env.unwrapped, given["agent"], given["scores"])
        self._leave = weakref.finalize(self, self._record.leave, final=True)

    @property
    def ledger_folder(self) -> Path:
        """The folder of this process' writer: `plural_gym.records.ledger.read` takes it, as a Job's."""
        return self._record.writer.folder

    @property
    def run_id(self) -> str:
        """The run's id, the column `job_id`."""
        return self._record.writer.run

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        if self._record.left:
            self._join()
        self._record.cut_off()
        answer = self.env.reset(seed=seed, options=options)
        self._record.began()
        return answer

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        try:
            answer = self.env.step(action)
        except BaseException:
            self._record.broke()
            raise
        self._record.stepped(answer[2], answer[3])
        return answer

    def flush(self) -> None:
        """Write what has come so far as a part, so that readers see it."""
        self._record.writer.flush()

    def close(self) -> None:
        """End the open episode as cut off, write what is left, and close the environment."""
        try:
            self._leave.detach()
            self._record.leave()
        finally:
            self.env.close()

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_record", "_leave")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._join()


class _Record:
    """What is known of one environment's open episode; outlives the wrapper, to tell how it ended."""

    def __init__(self, writer: run_ledger.RunLedger, world: Any, agent: str, scores: bool) -> None:
        self.writer = writer
        self.left = False
        self._world = world
        self._agent = agent
        self._scores = scores
        self._episode: RunEpisode | None = None
        self._verifiers: tuple[int, ...] = ()
        self._known: Any = None
        self._faults: dict[tuple[str, str, str, str], int] = {}

    def began(self) -> None:
        """The environment was reset."""
        world = self._world
        self._session = session = world.session
        if self._known is not session:
            self._known = session
            self._verifiers = _verifiers(self.writer, session)
        task = world.task
        name, version = (None, None) if task is None else (task.name, task.version)
        self._faults = {}
        self._episode = self.writer.begin(self._agent, name, version, world.seed_of_episode)

    def stepped(self, terminated: bool, truncated: bool) -> None:
        """The environment answered an action."""
        if self._episode is None and self._world.session.turn == 0:
            self.began()  # an Autoreset inside has reset in place of the action
            return
        episode, session = self._episode, self._session
        if episode is None:
            return
        if session.stop_reason != "agent_finished":  # `finish` is no step
            self._tell(episode, session)
        if terminated or truncated:
            self._end(episode, session.stop_reason or CUT_OFF, terminated, truncated)

    def _tell(self, episode: RunEpisode, session: Any) -> None:
        """The rewards of the last step."""
        past = session.past[-1]
        if past.__class__ is tuple:
            app, action, rewards = past[0], past[1], past[6]
        else:
            app, action, rewards = past.app, past.action, past.rewards
        episode.steps += 1
        if rewards.__class__ is float:
            episode.returned += rewards
            self.writer.add(episode, self._verifiers[0], session.turn, app, action, rewards, None)
            return
        for verifier, (value, fault) in zip(self._verifiers, rewards, strict=False):
            episode.returned += value or 0.0
            error = None if fault is None else (fault.type, fault.message, fault.at)
            self.writer.add(episode, verifier, session.turn, app, action, value, error)
            if fault is not None:
                self._count(fault)

    def broke(self) -> None:
        """A step raised: the episode is over where the environment says so."""
        episode, session = self._episode, self._world.session if self._episode is not None else None
        if episode is None or session is None or session.stop_reason is None:
            return
        self._tell(episode, session)
        self._end(episode, session.stop_reason, session.terminated, session.truncated)

    def cut_off(self, final: bool = False) -> None:
        """Something outside ends the episode that is open, if one is. `final`: without asking the world."""
        episode = self._episode
        if episode is not None and episode.steps:
            self._end(episode, CUT_OFF, False, True, final)
        self._episode = None

    def leave(self, final: bool = False) -> None:
        """The environment is closed, or nobody holds it any more."""
        if not self.left:
            self.left = True
            try:
                self.cut_off(final)
            finally:
                run_ledger.leave(self.writer)

    def _end(
        self, episode: RunEpisode, reason: str, terminated: bool, truncated: bool, final: bool = False
    ) -> None:
        self._episode = None
        session = self._session
        failed = session.fault is not None
        if failed:
            self._count(session.fault)
        outcome = {
            "stop_reason": reason,
            "terminated": terminated,
            "truncated": truncated,
            "answer": _words(session.answer),
            "status": "failed" if failed else "succeeded",
            "failure": "environment" if failed else "none",
            "trainable": not failed,
            "drop_reason": "environment" if failed else None,
            "score": None,
            "scores": (),
        }
        if self._scores and not failed and not final:
            outcome |= self._graded()
        faults = [
            {"where": where, "type": kind, "message": message, "at": at, "count": count}
            for (where, kind, message, at), count in self._faults.items()
        ]
        self.writer.end(episode, {**outcome, "faults": text(faults)})

    def _graded(self) -> dict[str, Any]:
        """The columns that the checks fill."""
        try:
            outputs = self._world.outputs()
        except AppFault as error:  # a State that has no JSON form
            self._count(error.fault or Fault.of(error, "apps"))
            lost = {"trainable": False, "drop_reason": "environment"}
            return {"status": "failed", "failure": "environment", **lost}
        faults = [output for output in outputs.values() if isinstance(output, Fault)]
        for fault in faults:
            self._count(fault)
        rows = []
        for grader in self._session.graders:
            name = grader.name if isinstance(grader, Verifier) else HookSet.of(grader).name
            if name in outputs:
                output = outputs[name]
                rows.append(
                    {
                        "verifier": name,
                        "version": getattr(grader, "version", None),
                        "score": output.score if isinstance(output, VerifierOutput) else None,
                        "weight": float(getattr(grader, "weight", 1.0)),
                    }
                )
        graded = {"score": None if faults else self._world.score(), "scores": rows}
        return graded | {"status": "failed", "failure": "grader"} if faults else graded

    def _count(self, fault: Fault) -> None:
        key = fault.where, fault.type, fault.message, fault.at
        if key not in self._faults and len(self._faults) >= _KEPT_FAULTS:
            key = next(iter(self._faults))
        self._faults[key] = self._faults.get(key, 0) + 1


def _verifiers(writer: run_ledger.RunLedger, session: Any) -> tuple[int, ...]:
    """The writer's numbers of those who reward in a session, in the order of its rewards."""
    graders = [one for one in session.graders if isinstance(one, Verifier)]
    known = {one.name: (one.version, one.content_hash) for one in graders}
    return tuple(writer.verifier(name, *known.get(name, (None, None))) for name in session.hooks.rewarding)


def _words(answer: Any) -> str | None:
    """Text as it is; anything else as JSON."""
    return answer if answer is None or isinstance(answer, str) else text(answer)
