"""VectorGymEnv: many environments of one world in one object, stepped in one loop or by a pool of threads.

`gymnasium.make_vec` of a registered id makes one through `rl.entry.make_vector`. It answers as Gymnasium's
`SyncVectorEnv` over GymEnvs does, bit for bit; `vector_rows` turns its members' rows into arrays.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from plural_gym.environment import Environment
from plural_gym.errors import ActionRejected, AppFault, UsageError, suggest
from plural_gym.host.direct import Course
from plural_gym.rl.env import NO_STATUS, GymEnv, silence
from plural_gym.rl.plans import Plans, choose
from plural_gym.rl.vector_inputs import at_least_one, check_batch, masked, mode_of, seeds_of
from plural_gym.rl.vector_rows import ROW, Columns, Row, infos_of, observation_of, row_of

Infos = Literal["full", "rewards", "none"]
Batch = tuple[dict[str, Any], Any, Any, Any, dict[str, Any]]
"""What `step` returns."""

_INFOS = ("full", "rewards", "none")
_OVER: Mapping[str, Course] = {}
"""The courses of a member whose episode is over, or that has none."""


class VectorGymEnv(VectorEnv[dict[str, Any], Any, Any]):
    """`num_envs` independent episodes of one Environment.

    Observations: `{"text": tuple of str, "turn": int32 array (num_envs, 1)}`. Actions: a sequence with one
    action a member, each in any form that `GymEnv.step` takes but keywords. Each member draws its Tasks by
    its own seed.

    An App's fault costs the episode of its member alone: it ends truncated, with the fault in
    `infos["error"]`, and the others go on. Where a new episode cannot even begin, its first step is that end.

    Args:
        environment: the world.
        num_envs: how many members.
        autoreset_mode: what happens after a member's episode. NEXT_STEP: the member's next step resets it.
            SAME_STEP: it is reset at once, `infos["final_obs"]` and `infos["final_info"]` hold what ended.
            DISABLED: nothing; reset it by `options={"reset_mask": bool array}`.
        infos: "full": the members' infos as arrays; "rewards": only `rewards` and `reward_status`; "none":
            none. `final_obs` is there in each.
        workers: threads that step the members, for Apps that wait: for a network, a disk, a sandbox. None:
            one loop in the caller's thread, which is faster for Apps that compute.
        max_episode_steps: lowers `limits.turns`; None: as the Environment and its Tasks say.
        options: as GymEnv takes them; `on_fault` is "truncate" unless given.
    """

    # Gymnasium before 1.3 closes what could not be made, too.
    envs: tuple[GymEnv, ...] = ()
    _pool: ThreadPoolExecutor | None = None

    def __init__(
        self,
        environment: Environment,
        num_envs: int = 1,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        infos: Infos = "full",
        workers: int | None = None,
        max_episode_steps: int | None = None,
        **options: Any,
    ) -> None:
        self.num_envs = at_least_one("num_envs", num_envs)
        self.autoreset_mode = mode_of(autoreset_mode)
        if infos not in _INFOS:
            raise UsageError(f"infos={infos!r} is unknown; {suggest(str(infos), _INFOS)}")
        self._infos = infos
        self._workers = None if workers is None else at_least_one("workers", workers)
        options.setdefault("on_fault", "truncate")
        tasks = choose(environment, *(options.pop(key, None) for key in ("tasks", "task", "split")))
        turns = None if max_episode_steps is None else at_least_one("max_episode_steps", max_episode_steps)
        plans = Plans(environment, tasks, options.get("verifiers"), turns)
        self.envs = tuple(GymEnv(environment, tasks=tasks, **options) for _ in range(self.num_envs))
        for env in self.envs:
            env.plans = plans
        first = self.envs[0]
        self.metadata = {**first.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = first.render_mode
        self.single_action_space = first.action_space
        self.single_observation_space = first.observation_space
        self.action_space = batch_space(first.action_space, self.num_envs)
        self.observation_space = batch_space(first.observation_space, self.num_envs)
        self._isolates = options["on_fault"] == "truncate"
        self._courses: list[Mapping[str, Course]] = [_OVER] * self.num_envs
        self._texts: tuple[str, ...] = ()
        self._turns: tuple[int, ...] = ()
        self._over: frozenset[int] = frozenset()
        """Members whose episode ended with the last step, and was not reset since."""
        self._unbegun: dict[int, str] = {}
        """Why the episode of a member could not begin, until a step has said so."""

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode of every member, or of those in `options["reset_mask"]`.

        Args:
            seed: of the first member; each next member's is larger by one. Or a list with one a member, where
                None lets a member go on in its own sequence.
            options: as `GymEnv.reset` takes them, for every member; "reset_mask": a bool array (num_envs,).
        """
        self._check_open()
        seeds = seeds_of(seed, self.num_envs)
        places: Sequence[int] = range(self.num_envs)
        if options is not None and "reset_mask" in options:
            places = masked(options["reset_mask"], self.num_envs)
            if not self._texts and len(places) < self.num_envs:
                raise gym.error.ResetNeeded("some members never had an episode; call reset() without a mask.")
            options = {key: value for key, value in options.items() if key != "reset_mask"}
        rows = self._each(lambda place: self._begin(place, seeds[place], options), places)
        self._over = self._over.difference(places)
        texts = list(self._texts) or [""] * self.num_envs
        turns = list(self._turns) or [0] * self.num_envs
        for place, row in zip(places, rows, strict=True):
            texts[place], turns[place] = row[:2]
        self._texts, self._turns = tuple(texts), tuple(turns)
        return self._observations(), self._told(tuple(zip(*rows, strict=True)), places)

    def step(self, actions: Any) -> Batch:
        """Take one action of every member.

        Raises:
            gymnasium.error.ResetNeeded: with DISABLED, the episode of a member is over. None was stepped.
            UsageError: this is no sequence of `num_envs` actions. None was stepped.
        """
        self._check_open()
        check_batch(actions, self.num_envs)
        places = range(self.num_envs)
        if not self._texts:
            raise gym.error.ResetNeeded("there is no episode yet; call reset() before step().")
        if self._over and self.autoreset_mode is AutoresetMode.DISABLED:
            raise gym.error.ResetNeeded(
                f"the episodes of members {sorted(self._over)} are over; "
                "reset them by reset(options={'reset_mask': ...}) before step()."
            )
        rows = self._take_all(actions) if self._workers is None else self._each(self._take, places, actions)
        columns = tuple(zip(*rows, strict=True))
        _, _, rewards, terminated, truncated, *_ = columns
        infos: dict[str, Any] = {}
        self._over = frozenset()
        if True in terminated or True in truncated:
            over = [place for place in places if terminated[place] or truncated[place]]
            for place in over:
                self._courses[place] = _OVER
            if self.autoreset_mode is AutoresetMode.SAME_STEP:
                infos = self._restart(rows, over)
                columns = tuple(zip(*rows, strict=True))
            else:
                self._over = frozenset(over)
        self._texts, self._turns, *_ = columns
        infos.update(self._told(columns, places))
        return (
            self._observations(),
            np.array(rewards, np.float64),
            np.array(terminated, np.bool_),
            np.array(truncated, np.bool_),
            infos,
        )

    def _each(self, function: Callable[..., Row], *arguments: Iterable[Any]) -> list[Row]:
        """The row that a function gives for each member, in order."""
        if self._workers is None:
            return list(map(function, *arguments))
        if self._pool is None:
            self._pool = ThreadPoolExecutor(min(self._workers, self.num_envs), "plural-member")
        return list(self._pool.map(function, *arguments))

    def _take_all(self, actions: Any) -> list[Row]:
        """Every member's step, one after another: `_take` without its calls."""
        rows: list[Row] = []
        for action, courses in zip(actions, self._courses, strict=True):
            course = answer = None
            if action.__class__ is dict:
                try:
                    course, given = courses[action["action"]], action["arguments"]
                except (KeyError, TypeError):  # an action in another form, or an episode that is over
                    course = None
            if course is not None:
                answer = course(given)
            rows.append(answer if answer.__class__ is tuple else self._take(len(rows), action, answer))
        return rows

    def _take(self, place: int, action: Any, outcome: Any = None) -> Row:
        """One member's step. `outcome`: what it came to, where it has been taken and is no row yet."""
        if place in self._over:
            return self._begin(place, None, None)
        env = self.envs[place]
        if place in self._unbegun:
            return _unbegun_row(env, self._unbegun.pop(place), ended=True)
        if outcome is None and self._courses[place]:
            try:
                name, given = env._codec.parse(action)
            except ActionRejected:
                pass  # GymEnv makes a step of it
            else:
                course = self._courses[place].get(name)
                outcome = None if course is None else course(given)
        if outcome.__class__ is tuple:
            row: Row = outcome
            return row
        return row_of(env.step(action) if outcome is None else env._result(env.session, outcome))

    def _begin(self, place: int, seed: int | None, options: dict[str, Any] | None) -> Row:
        """One member's reset."""
        env = self.envs[place]
        self._courses[place] = _OVER
        self._unbegun.pop(place, None)
        try:
            text = env.start(seed, options)
        except AppFault as raised:
            if not self._isolates:
                raise
            self._unbegun[place] = str(raised.fault or raised)
            return _unbegun_row(env, self._unbegun[place], ended=False)
        session = env.session
        if session.rows is None:
            session.rows = env.courses(session, ROW)
        self._courses[place] = session.rows
        if not session.rows:
            return text, 0, 0.0, False, False, env.first_info(session), None, None, None, None
        mask = session.host.mask if session.host.watched else None
        return text, 0, 0.0, False, False, NO_STATUS, "", "", mask, session.hooks.rewarding

    def _restart(self, rows: list[Row], over: Sequence[int]) -> dict[str, Any]:
        """Reset members whose episode ended, each in its row; what has to be told of the ends."""
        finals = [rows[place] for place in over]
        for place, row in zip(
            over, self._each(lambda place: self._begin(place, None, None), over), strict=True
        ):
            rows[place] = row
        ended = np.zeros(self.num_envs, np.bool_)
        ended[list(over)] = True
        observations = np.full(self.num_envs, None, np.object_)
        for place, row in zip(over, finals, strict=True):
            observations[place] = observation_of(row)
        infos: dict[str, Any] = {"final_obs": observations, "_final_obs": ended}
        if self._infos != "none":
            told = self._told(tuple(zip(*finals, strict=True)), over)
            infos |= {"final_info": told, "_final_info": ended.copy()}
        return infos

    def _told(self, columns: Columns, places: Sequence[int]) -> dict[str, Any]:
        """As much of the rows' infos as is wanted."""
        if self._infos == "none":
            return {}
        return infos_of(columns, places, self.num_envs, self._add_info, self._infos == "full")

    def _observations(self) -> dict[str, Any]:
        turns = np.empty((self.num_envs, 1), np.int32)
        turns[:, 0] = self._turns
        return {"text": self._texts, "turn": turns}

    def _check_open(self) -> None:
        if self.closed:
            raise gym.error.ClosedEnvironmentError("this vector environment is closed; make a new one.")

    def render(self) -> tuple[Any, ...]:
        """What each member's `render` returns."""
        return tuple(env.render() for env in self.envs)

    def call(self, name: str, *arguments: Any, **keywords: Any) -> tuple[Any, ...]:
        """Each member's attribute of this name; what it returns, where it is a method."""
        found = [env.get_wrapper_attr(name) for env in self.envs]
        return tuple(one(*arguments, **keywords) if callable(one) else one for one in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Each member's attribute of this name."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of every member: to one value each, from a list or tuple, or to one for all."""
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise UsageError(f"set_attr takes one value or {self.num_envs} of them, got {len(values)}.")
        for env, value in zip(self.envs, values, strict=True):
            env.set_wrapper_attr(name, value)

    @property  # type: ignore[misc]
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The members' generators."""
        return self.get_attr("np_random")

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The members' seeds."""
        return self.get_attr("np_random_seed")

    def close_extras(self, **keywords: Any) -> None:
        """End the threads and close every member."""
        if self._pool is not None:
            self._pool.shutdown()
        for env in self.envs:
            env.close()


def _unbegun_row(env: GymEnv, fault: str, *, ended: bool) -> Row:
    """What is said of an episode that could not begin: by its reset, and by the step that ends it."""
    session = env.session
    rewards, status = silence(session.hooks.rewarding)
    info = {"rewards": rewards, "reward_status": status, "action": "", "error": fault}
    if session.host.watched:
        info["action_mask"] = np.ones(len(session.host.watched), np.int8)
    text = '{"error":"the episode could not begin"}'
    return text, 0, 0.0, False, ended, info, None, None, None, None
