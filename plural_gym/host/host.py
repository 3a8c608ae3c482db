"""AppHost: the Apps of one world, played one action at a time.

In this process for GymEnv, behind a socket for Jobs (`host.serve`, `host.client`). It knows actions, State
and faults; rewards, limits and records belong to the Session that drives it.
"""

import hashlib
from asyncio import CancelledError
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import CoroutineType
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from plural_gym import kinds
from plural_gym.app import AppDeclaration, CertainFit, Control, LiveApp, explain_rejection, settle
from plural_gym.apps.python import PythonApp
from plural_gym.board import Board
from plural_gym.environment import Actions
from plural_gym.errors import (
    ActionRejected,
    AppFault,
    CheckpointError,
    Fault,
    QueryRefused,
    UnknownName,
    suggest,
)
from plural_gym.host.table import forfeit, table_of, view_of
from plural_gym.party import Table
from plural_gym.records.strict_json import legible
from plural_gym.state import Frozen, freeze_value, thaw
from plural_gym.step import TaskView

AuthorError = (Exception, SystemExit, CancelledError)
"""What author code may raise and stays its own fault: all but an interrupt of the process."""
_SCALARS = frozenset({str, int, bool, type(None)})
_NO_SETUP: Mapping[str, Any] = {}


class Outcome:
    """What one action came to, State before and after included: the controller's side of an action."""

    __slots__ = (
        "action",
        "after",
        "app",
        "arguments",
        "before",
        "error",
        "fault",
        "observation",
        "rewards",
        "seat",
        "stop_reason",
        "terminated",
        "truncated",
    )

    app: str | None
    """The acting App; None where no single App is meant."""
    action: str
    arguments: Mapping[str, Any]
    """As the Agent sent them, JSON values."""
    observation: Any
    """What the action returned, a JSON value; None after an error or a fault."""
    error: str | None
    """Why the input was rejected, for the Agent to read."""
    fault: Fault | None
    """The App's own failure; the Agent hears only that the action failed."""
    before: Frozen | None
    after: Frozen | None
    """The acting App's State around the action; None where nobody asked or it cannot be read."""
    terminated: bool
    truncated: bool
    rewards: Sequence[tuple[float | None, Fault | None]]
    """Each rewarding Verifier's part, set by the Session: (value, None), (None, None) or (None, fault)."""
    stop_reason: str | None
    """Why the episode ended with this action, set by the Session; None where it goes on."""
    seat: str | None
    """Who acted, in a party; set by the Session."""

    def __init__(
        self,
        app: str | None,
        action: str,
        arguments: Mapping[str, Any],
        observation: Any,
        error: str | None,
        fault: Fault | None,
        before: Frozen | None,
        after: Frozen | None,
        terminated: bool,
        truncated: bool,
    ) -> None:
        self.app = app
        self.action = action
        self.arguments = arguments
        self.observation = observation
        self.error = error
        self.fault = fault
        self.before = before
        self.after = after
        self.terminated = terminated
        self.truncated = truncated
        self.rewards = ()
        self.stop_reason = None
        self.seat = None


AskedCall = tuple[str, Mapping[str, Any] | None]
"""An action's name and its arguments; None for the arguments: with some."""


class DirectAction(NamedTuple):
    """What DirectSession knows of an action of a Python App."""

    name: str
    fits: CertainFit
    """The test that arguments are certain to fit as they are."""
    call: str
    """The expression that calls the action of `app` with the arguments of `given`."""


class AppHost:
    """One world's Apps. `open` starts an episode; `act` plays; an episode is played from one thread."""

    def __init__(
        self,
        declarations: Mapping[str, AppDeclaration],
        actions: Actions | None = None,
        seats: tuple[str, ...] = (),
    ) -> None:
        kind_of = {name: kinds.load("plural.apps", app.kind) for name, app in declarations.items()}
        self.actions = actions or Actions(
            {name: kind_of[name].describe(app) for name, app in declarations.items()}
        )
        self.apps: dict[str, LiveApp] = {name: kind_of[name](app) for name, app in declarations.items()}
        self._table = {
            name: (app, spec, self.apps[app], spec.validate, spec.fits and spec.fits.test, spec.read_only)
            for name, (app, spec) in self.actions.table.items()
        }
        self.seats = seats
        """The seats of a party; () for a single Agent."""
        self.table = Table(())
        """Who may act and who is out, kept where there are seats."""
        self.only = next(iter(self.apps)) if len(self.apps) == 1 else None
        self._lives = tuple(self.apps.values())
        self._ending = tuple(live for live in self._lives if live.ends)
        self._cutting = tuple(live for live in self._lives if live.cuts)
        self.forbids = any(live.forbids for live in self._lives)
        """Whether some App says of its actions which are legal."""
        self.watched: tuple[str, ...] = ()
        """The actions of which `mask` is kept: see `watch`."""
        self.mask: tuple[bool, ...] = ()
        """Which of `watched` were legal when the last action had been taken."""
        self._keeps = self.only is not None and self._lives[0].control == "full"
        """Whether the App's State after an action is known to be what it is before the next one: nobody else
        acts on it, and it does not live elsewhere."""
        self.last: Frozen | None = None
        """The State as it was last taken, where `_keeps` holds and no action has come since."""

    def open(self, task: TaskView, setup: Mapping[str, Mapping[str, Any]], seed: int, resources: Path) -> Any:
        """Start an episode; returns the opening observation, a JSON value or None.

        With several opening observations: a mapping from App to observation.

        Raises:
            AppFault: an App could not be set up, or its `reset` or `is_legal` failed.
        """
        self.last = None
        said: Any = None
        if self.only is not None:
            said = self._open(0, self.only, self._lives[0], task, setup, seed, resources)
        else:
            said = self._open_all(task, setup, seed, resources)
        if self.watched:
            self.mask = self._masked()
        if self.seats:
            self.table = table_of(self.apps, self.seats, self._over())
        return said

    def _open_all(
        self, task: TaskView, setup: Mapping[str, Mapping[str, Any]], seed: int, resources: Path
    ) -> Any:
        opening: dict[str, Any] = {}
        for index, (name, live) in enumerate(self.apps.items()):
            said = self._open(index, name, live, task, setup, seed, resources)
            if said is not None:
                opening[name] = said
        if not opening:
            return None
        return next(iter(opening.values())) if len(opening) == 1 else opening

    def _open(
        self,
        index: int,
        name: str,
        live: LiveApp,
        task: TaskView,
        setup: Mapping[str, Mapping[str, Any]],
        seed: int,
        resources: Path,
    ) -> Any:
        """Start one App; its opening observation, a JSON value or None."""
        try:
            entropy = seed if index == 0 else _entropy(seed, index)
            said = live.open(task.fresh(), setup.get(name, _NO_SETUP), entropy, resources)
            return said if said is None or type(said) is str else thaw(freeze_value(said))
        except Exception as error:
            fault = Fault.of(error, f"app {name}")
            raise AppFault(f"{fault} while the episode was being set up.", fault) from error

    def act(
        self, name: str, arguments: Mapping[str, Any], watch: bool = True, seat: str | None = None
    ) -> Outcome:
        """Perform one action. Wrong input comes back as `error`, the App's failure as `fault`; never raises.

        Args:
            name: bare, `app.action` or `app__action`.
            arguments: JSON values, or the Python values of the action's hints.
            watch: whether to take the acting App's State before and after.
            seat: who acts, in a party.
        """
        entry = self._table.get(name)
        if entry is None:
            return self._unknown(name, arguments, watch)
        app_name, spec, live, validate, fits, read_only = entry
        before = after = observation = error = fault = None
        terminated = truncated = False
        watch = watch or read_only
        last, self.last = self.last, None
        sent = _as_sent(arguments)
        try:
            if watch:
                before = last or live.snapshot()
            checked = arguments
            if fits is None or not fits(arguments):
                try:
                    checked = validate(arguments)
                except ValidationError as raised:
                    raise explain_rejection(spec, raised) from None
            observation = live.act(spec, checked, seat)
            if type(observation) is not str:
                observation = as_seen(observation)
            elif not observation.isascii():
                observation = legible(observation)
        except AuthorError as raised:
            observation, error, fault = None, *blame(raised, app_name)
        try:
            if watch:
                after = live.snapshot()
                if self._keeps:
                    self.last = after
                if read_only and after != before and fault is None:
                    observation = None
                    fault = Fault(
                        f"app {app_name}",
                        "AppFault",
                        f"read-only action {spec.name!r} changed State",
                        spec.name,
                    )
            for other in self._ending:
                if other.terminated():
                    terminated = True
            for other in self._cutting:
                if other.truncated():
                    truncated = True
            if self.watched:
                self.mask = self._masked()
            if self.seats:
                self.table = table_of(self.apps, self.seats, terminated or truncated)
        except AppFault as raised:
            observation, fault = None, fault or raised.fault or Fault.of(raised, f"app {app_name}")
        except AuthorError as raised:
            observation, fault = None, fault or Fault.of(raised, f"app {app_name}")
        return Outcome(
            app_name, spec.name, sent, observation, error, fault, before, after, terminated, truncated
        )

    def _unknown(self, name: str, arguments: Mapping[str, Any], watch: bool) -> Outcome:
        name = legible(name)
        error = self.actions.explain_unknown(name)
        state = self.snapshot(self.only) if self.only is not None and watch else None
        return Outcome(self.only, name, _as_sent(arguments), None, error, None, state, state, False, False)

    def watch(self, names: Sequence[str]) -> None:
        """Keep `mask` of these actions from now on. What is no App's action is always legal in it."""
        self.watched = tuple(names)
        calls = [(name, None) for name in names if name in self._table]
        known, ask = [name in self._table for name in names], self.judge(calls)

        def masked() -> tuple[bool, ...]:
            answers = iter(ask())
            return tuple([not found or next(answers) for found in known])

        self._masked = masked

    def _over(self) -> bool:
        return any(live.terminated() or live.truncated() for live in self._lives)

    def view(self, seat: str) -> Any:
        """What a seat sees now, a JSON value; None for nothing. Raises AppFault where an App failed."""
        return view_of(self.apps, seat)

    def forfeit(self, seat: str) -> bool:
        """Take a seat out whose Agent has left; whether the Apps go on without it.

        Raises:
            AppFault: an App failed, or names a seat that cannot act.
        """
        settled = forfeit(self.apps, seat)
        if settled:
            self.last = None
            self.table = table_of(self.apps, self.seats, self._over())
        return settled

    def legal(self, calls: Sequence[AskedCall], seat: str | None = None) -> list[bool]:
        """For each call, a name and arguments, whether it may be taken now; arguments None: with some.

        False also where there is no such action or its arguments do not fit. Never enforced.

        Args:
            calls: names as `act` takes them, arguments as JSON values.
            seat: who would act, in a party.

        Raises:
            AppFault: an App's `is_legal` failed.
        """
        return self.judge(calls, seat)()

    def judge(self, calls: Sequence[AskedCall], seat: str | None = None) -> Callable[[], list[bool]]:
        """A function that gives the answer of `legal` to the same calls at any time. It checks them once."""
        asked = [self._asked(name, arguments) for name, arguments in calls]

        def legal() -> list[bool]:
            found = []
            for one in asked:
                if one.__class__ is bool:
                    found.append(one)
                    continue
                app_name, live, spec, arguments = one
                try:
                    found.append(live.is_legal(spec, arguments, seat))
                except AuthorError as raised:
                    fault = Fault.of(raised, f"app {app_name}")
                    raise AppFault(f"{fault}, asked whether {spec.name} is legal.", fault) from raised
            return found

        return legal

    def _asked(self, name: str, arguments: Mapping[str, Any] | None) -> Any:
        """The answer where it never changes; else App, action and checked arguments."""
        entry = self._table.get(name)
        if entry is None:
            return False
        app_name, spec, live, validate, fits, _ = entry
        if arguments is not None and (fits is None or not fits(arguments)):
            try:
                arguments = validate(arguments)
            except (ValidationError, ActionRejected):
                return False
        return (app_name, live, spec, arguments) if live.forbids else True

    def direct_actions(self) -> "tuple[PythonApp | None, dict[str, DirectAction]]":
        """For DirectSession: the only App and, by name, each of its actions that can go the short way."""
        live = self._lives[0] if self.only is not None else None
        if not isinstance(live, PythonApp):
            return None, {}
        found = {}
        for name, (_, spec) in self.actions.table.items():
            call = live.call(spec)
            if spec.fits is not None and call is not None and not spec.read_only:
                found[name] = DirectAction(spec.name, spec.fits, call)
        return live, found

    def app_names(self) -> tuple[str, ...]:
        """The Apps, in declared order."""
        return tuple(self.apps)

    def controls(self) -> dict[str, Control]:
        """How far the host controls each App's State."""
        return {name: live.control for name, live in self.apps.items()}

    def snapshot(self, app: str) -> Frozen | None:
        """One App's State now, as a value; None where it cannot be read.

        Raises:
            AppFault: it has no JSON form.
        """
        try:
            return self.apps[app].snapshot()
        except AuthorError as error:
            fault = Fault.of(error, f"app {app}")
            raise AppFault(f"{fault}; its State was read.", fault) from error

    def snapshots(self) -> dict[str, Frozen | None]:
        """Every App's State now."""
        if self._keeps and self.only is not None:
            self.last = self.snapshot(self.only)
            return {self.only: self.last}
        return {name: self.snapshot(name) for name in self.apps}

    def boards(self) -> dict[str, Board | Fault]:
        """What each App shows a person now; a Fault where its `board` failed. Without Apps that show none."""
        shown: dict[str, Board | Fault] = {}
        for name, live in self.apps.items():
            try:
                board = live.board()
            except AuthorError as raised:
                shown[name] = Fault.of(raised, f"app {name} board")
            else:
                if board is not None:
                    shown[name] = board
        return shown

    def query(self, app: str, action: str, arguments: Mapping[str, Any]) -> Any:
        """What a read-only action answers, a JSON value. The App is left as it was, randomness included.

        Raises:
            QueryRefused: the action can change State, or did.
            UnknownName: no such App or action.
            ActionRejected: the arguments do not fit, or the action rejected them.
            AppFault: the action failed.
        """
        if app not in self.apps:
            raise UnknownName(f"the Environment has no App {app!r}; {suggest(app, self.apps)}")
        spec = next((spec for spec in self.actions.by_app[app] if spec.name == action), None)
        if spec is None:
            names = [spec.name for spec in self.actions.by_app[app]]
            raise UnknownName(f"App {app!r} has no action {action!r}; {suggest(action, names)}")
        if not spec.read_only:
            raise QueryRefused(f"query refuses {action!r}: it can change State. Use a read-only action.")
        live = self.apps[app]
        kept = None
        with suppress(CheckpointError, NotImplementedError):  # a kind that cannot be put back promises itself
            kept = live.save()
        outcome = self.act(f"{app}.{action}", arguments)
        if kept is not None:
            # Whatever the action touched, its generator included, the world that is graded stays as it was.
            live.restore(kept)
        if outcome.error is not None:
            raise ActionRejected(outcome.error)
        if outcome.fault is not None:
            raise AppFault(str(outcome.fault), outcome.fault)
        return outcome.observation

    def save(self) -> dict[str, Any]:
        """Every App as a value that `restore` takes. Raises CheckpointError with the Apps that cannot."""
        saved: dict[str, Any] = {}
        refused = []
        for name, live in self.apps.items():
            try:
                saved[name] = live.save()
            except (CheckpointError, NotImplementedError) as error:
                refused.append(f"{name}: {error}" if str(error) else name)
        if refused:
            raise CheckpointError(f"cannot be saved: {'; '.join(refused)}")
        return saved

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Put every App back to what `save` gave."""
        self.last = None
        for name, live in self.apps.items():
            live.restore(saved[name])
        if self.seats:
            self.table = table_of(self.apps, self.seats, self._over())
        if self.watched:
            self.mask = self._masked()

    def close(self) -> None:
        """Let go of the Apps."""
        for live in self._lives:
            live.close()


def _entropy(seed: int, index: int) -> int:
    """A seed of its own for each App, so that one App's draws never shift another's."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{index}".encode()).digest()[:8], "big")


def blame(raised: BaseException, app_name: str) -> tuple[str | None, Fault | None]:
    """(why the input was rejected, None) or (None, the App's fault) for what an action raised."""
    # Only a plain ValueError rejects: a subclass, such as pydantic's, may print State in its message.
    if isinstance(raised, ActionRejected) or type(raised) is ValueError:
        return legible(str(raised)), None
    return None, Fault.of(raised, f"app {app_name}")


def as_seen(result: Any) -> Any:
    """What an action returned, as a JSON value that the App does not hold."""
    if type(result) is CoroutineType:
        result = settle(result)
    if type(result) in _SCALARS and not (type(result) is int and not _short(result)):
        return result
    try:
        return thaw(freeze_value(result))
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        # As it is, it would pass for a rejection of the Agent's input.
        raise PydanticSerializationError(f"what the action returned has no JSON form: {error}") from error


def _as_sent(arguments: Any) -> dict[str, Any]:
    """Arguments as JSON values that neither the sender nor the App can change any more."""
    if type(arguments) is dict:
        for value in arguments.values():
            kind = type(value)
            if (
                kind not in _SCALARS
                or (kind is str and not value.isascii())
                or (kind is int and not _short(value))
            ):
                break
        else:
            return arguments.copy()
    try:
        value = thaw(freeze_value(arguments))
    except Exception:  # of a stranger's object, or of what contains itself
        value = {legible(str(key)): _in_words(item) for key, item in dict(arguments).items()}
    return value if isinstance(value, dict) else {}


def _short(number: int) -> bool:
    """Whether records hold the number as one: within 64 bits."""
    return -(2**63) <= number < 2**63


def _in_words(value: Any) -> Any:
    """A value that has no JSON form, as text; others as they are."""
    try:
        return thaw(freeze_value(value))
    except Exception:
        pass
    try:
        return legible(value if isinstance(value, str) else repr(value))[:1000]
    except Exception:
        return f"<{type(value).__name__}>"
