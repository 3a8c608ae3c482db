"""What every App kind keeps, and every App: `check_app`.

An App is played through the host, as GymEnv and Jobs play it, on actions drawn from its own action space.
What the App means is for its own tests.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from plural_gym import kinds
from plural_gym.app import ActionSpec, App, AppDeclaration, Control, LiveApp
from plural_gym.board import Board
from plural_gym.errors import CheckpointError
from plural_gym.host.host import AppHost
from plural_gym.host.resources import NO_RESOURCES
from plural_gym.rl.codec import ActionCodec
from plural_gym.state import Frozen, frozen_json, thaw
from plural_gym.step import TaskView
from plural_gym.testing.conformance import Rule, described, shown
from plural_gym.testing.json_schemas import object_schema_flaw

DESCRIBES_ITSELF = Rule(
    "describe() gives the actions as ActionSpecs before anything runs, the same ones at every call",
    "Read names, descriptions and schemas from the declaration alone; no two actions share a name.",
)
SCHEMAS_ARE_OBJECTS = Rule(
    "the parameters of every action are the JSON Schema of an object",
    'Give {"type": "object", "properties": {...}} with valid keywords; {"properties": {}} for no arguments.',
)
SETUP_IS_CHECKED = Rule(
    "check_setup() takes a setup that fits and raises pydantic.ValidationError for an unknown field",
    'Validate a setup against the State, and leave extra="forbid" as it is.',
)
OPENS = Rule(
    "open() starts an episode from any seed and gives an observation that is JSON, or None",
    "Mend what reset() raises, or return plain values from it.",
)
ANSWERS = Rule(
    "no action that fits its schema makes the App fail",
    "Raise ValueError to refuse an input; return JSON values; tighten the type hints of the arguments.",
)
SAME_SEED_SAME_COURSE = Rule(
    "the same seed and actions give the same course, whatever other Apps run beside it",
    "Draw all randomness from self.rng; read no clock; keep nothing on the class or the module.",
)
OPEN_FORGETS = Rule(
    "open() forgets the episode before",
    "Make everything anew in open(): State, generator and whatever else an episode holds.",
)
READ_ONLY_LEAVES_STATE = Rule(
    "a read-only action leaves State as it is",
    "Change nothing in it, or take read_only=True away.",
)
READING_LEAVES_STATE = Rule(
    "snapshot(), terminated() and truncated() change nothing and answer alike when asked again",
    "Let them read State only.",
)
BOARD_CHANGES_NOTHING = Rule(
    "board() gives a Board or None whenever it is asked, and an episode goes the same whoever looks",
    "Return plural.Board(rows) made of State; change nothing and draw nothing from self.rng.",
)
LEGAL_CHANGES_NOTHING = Rule(
    "is_legal() answers for every action and its arguments whenever it is asked, and changes nothing",
    "Let it read State only, and answer for arguments of None too.",
)
STATE_IS_A_VALUE = Rule(
    "what snapshot() gave never changes afterwards",
    "Return JSON bytes (plural_gym.state.freeze_value), or a copy that nobody else holds.",
)
CONTROL_IS_TRUE = Rule(
    "control says whether State can be read: snapshot() is None exactly where control is 'none'",
    "Set control to 'full', 'snapshot', 'none' or 'recorded', by what snapshot() can do.",
)
ENDS_ARE_TRUE = Rule(
    "an App whose `ends` or `cuts` is False is never terminated or truncated",
    "Set `ends` and `cuts` to True where terminated() and truncated() can be.",
)
WRONG_ARGUMENTS_CHANGE_NOTHING = Rule(
    "arguments that do not fit the schema are rejected, and State stays as it was",
    "Let ActionSpec.validate raise pydantic.ValidationError for whatever `parameters` does not allow.",
)
RESTORE_BRINGS_BACK = Rule(
    "restore() brings back what save() saw, any number of times, and the same actions lead on from there",
    "Copy State, generator and all else, in save() and again in restore(); or raise CheckpointError.",
)
CLOSES_TWICE = Rule("close() can be called twice", "Do nothing in close() where nothing is held any more.")

Call = tuple[str, Mapping[str, Any]]
Event = tuple[Any, ...]
_NO_NAME = "no_such_name"


def check_app(
    app: type[App] | AppDeclaration,
    *,
    setup: Mapping[str, Any] | None = None,
    task: TaskView | None = None,
    resources: Path = NO_RESOURCES,
    calls: Sequence[Call] = (),
    seeds: Sequence[int] = (0, 1, 2),
    actions: int = 50,
) -> None:
    """Hold an App to the rules of this file.

    Args:
        app: an App class, or a declaration of any kind.
        setup: State fields to start with, as a Task gives them.
        task: what the App's `reset` sees.
        resources: the folder with the Environment's Resources.
        calls: a course of `(action, arguments)` worth trying: random ones seldom get far in a hard game.
        seeds: one random course each.
        actions: how long random courses are, where the App does not end them.

    Raises:
        ConformanceError: the first rule that is broken.
    """
    declaration = app if isinstance(app, AppDeclaration) else AppDeclaration("python", {"class": app})
    specs = _describe(declaration)
    _schemas(specs)
    world = _World(declaration, dict(setup or {}), task or TaskView("", ""), resources)
    _setup(world)
    courses = [(seed, _sampled(specs, seed, actions)) for seed in seeds]
    if calls:
        courses.append((0, list(calls)))
    for seed, course in courses:
        _course(world, seed, course)
        _restore(world, seed, course)
    for spec in specs:
        _wrong_arguments(
            world, spec, next((args for _, c in courses for name, args in c if name == spec.name), {})
        )
    player = _Player(world, 0)
    with CLOSES_TWICE.never_raises("the second close()"):
        player.live.close()
        player.live.close()


@dataclass(frozen=True, slots=True)
class _World:
    """What an episode of the App starts from."""

    declaration: AppDeclaration
    setup: Mapping[str, Any]
    task: TaskView
    resources: Path


def _describe(declaration: AppDeclaration) -> tuple[ActionSpec, ...]:
    kind: type[LiveApp] = kinds.load("plural.apps", declaration.kind)
    with DESCRIBES_ITSELF.never_raises("describe()"):
        specs, again = kind.describe(declaration), kind.describe(declaration)
    for spec in specs:
        DESCRIBES_ITSELF.require(isinstance(spec, ActionSpec), f"{shown(spec)} is no ActionSpec")
    names = [spec.name for spec in specs]
    DESCRIBES_ITSELF.require(len(set(names)) == len(names), f"the names {names}")
    DESCRIBES_ITSELF.require(tuple(specs) == tuple(again), f"{names}, then {[spec.name for spec in again]}")
    return tuple(specs)


def _schemas(specs: Sequence[ActionSpec]) -> None:
    for spec in specs:
        flaw = object_schema_flaw(spec.parameters)
        SCHEMAS_ARE_OBJECTS.require(flaw is None, f"action {spec.name!r}: {flaw}")
        with SCHEMAS_ARE_OBJECTS.never_raises(f"making an action space of {spec.name!r}"):
            ActionCodec({spec.name: dict(spec.parameters)})


def _setup(world: _World) -> None:
    kind: type[LiveApp] = kinds.load("plural.apps", world.declaration.kind)
    with SETUP_IS_CHECKED.never_raises(f"check_setup({shown(world.setup)})"):
        kind.check_setup(world.declaration, world.setup)
    try:
        kind.check_setup(world.declaration, {**world.setup, _NO_NAME: 1})
    except ValidationError:
        return
    except Exception as error:
        SETUP_IS_CHECKED.require(False, f"an unknown field raised {described(error)}")
    SETUP_IS_CHECKED.require(False, f"the unknown field {_NO_NAME!r} was taken")


def _sampled(specs: Sequence[ActionSpec], seed: int, length: int) -> list[Call]:
    if not specs:
        return []
    codec = ActionCodec({spec.name: dict(spec.parameters) for spec in specs})
    space = deepcopy(codec.space)
    space.seed(seed)
    return [codec.decode(space.sample()) for _ in range(length)]


class _Player:
    """One live App; notes what happens, and holds every action to the rules that concern one action."""

    def __init__(self, world: _World, seed: int, looks: bool = True) -> None:
        self._world = world
        self._looks = looks
        """Whether the board is looked at after every action."""
        self.saw_a_board = False
        self.host = AppHost({"app": world.declaration})
        self.live = self.host.apps["app"]
        self._taken: list[tuple[Frozen, bytes]] = []
        self.events: list[Event] = []
        self.ended = False
        self.open(seed)

    def open(self, seed: int) -> None:
        """Start an episode."""
        world = self._world
        self._taken.clear()
        with OPENS.never_raises(f"open() with seed {seed}"):
            opening = self.host.open(world.task, {"app": world.setup}, seed, world.resources)
        control, readable = self.live.control, self.live.snapshot() is not None
        CONTROL_IS_TRUE.require(
            control in get_args(Control) and readable == (control != "none"),
            f"control is {control!r} and snapshot() is {'a value' if readable else 'None'}",
        )
        self.events = [("reset", opening, self.state())]
        self.ended = self._ends("reset")

    def state(self) -> bytes | None:
        """The State now, as JSON."""
        with STATE_IS_A_VALUE.never_raises("reading what snapshot() gave"):
            frozen = self.live.snapshot()
            if frozen is None:
                return None
            value = frozen_json(frozen)
            thaw(frozen)
        self._taken.append((frozen, value))
        return value

    def act(self, call: Call) -> None:
        """Take one action."""
        name, arguments = call
        said = f"{name}({', '.join(f'{key}={shown(value, 40)}' for key, value in arguments.items())})"
        before = self.live.snapshot()
        with LEGAL_CHANGES_NOTHING.never_raises(f"is_legal() before {said}"):
            self.host.legal([call])
        outcome = self.host.act(name, arguments)
        spec = self.host.actions.table[name][1] if name in self.host.actions.table else None
        after = self.state()
        if spec is not None and spec.read_only and before is not None and after is not None:
            was = frozen_json(before)
            READ_ONLY_LEAVES_STATE.require(was == after, f"{said} made {shown(after)} of {shown(was)}")
        ANSWERS.require(outcome.fault is None, f"{said} failed: {outcome.fault}")
        self.ended = self._ends(said)
        self.events.append((said, outcome.observation, outcome.error, after, self.ended))

    def _ends(self, when: str) -> bool:
        before = self.state()
        with ANSWERS.never_raises(f"terminated() or truncated() after {when}"):
            first = bool(self.live.terminated()), bool(self.live.truncated())
            again = bool(self.live.terminated()), bool(self.live.truncated())
        after = self.state()
        kept = first == again and before == after
        READING_LEAVES_STATE.require(
            kept, f"after {when}: {first} then {again}, State {shown(before)} then {shown(after)}"
        )
        if self._looks:
            self._look(when)
        self._ask(when)
        for word, declared, happened in zip(
            ("terminated", "truncated"), (self.live.ends, self.live.cuts), first, strict=True
        ):
            ENDS_ARE_TRUE.require(declared or not happened, f"it is {word} after {when}")
        return any(first)

    def _look(self, when: str) -> None:
        before = self.state()
        with BOARD_CHANGES_NOTHING.never_raises(f"board() after {when}"):
            board = self.live.board()
        self.saw_a_board = self.saw_a_board or board is not None
        BOARD_CHANGES_NOTHING.require(
            board is None or isinstance(board, Board), f"after {when} it gave {shown(board)}"
        )
        after = self.state()
        BOARD_CHANGES_NOTHING.require(
            before == after, f"after {when} it made {shown(after)} of {shown(before)}"
        )

    def _ask(self, when: str) -> None:
        if self.live.forbids:
            calls = [(name, None) for name in self.host.actions.public]
            before = self.state()
            with LEGAL_CHANGES_NOTHING.never_raises(f"is_legal() after {when}"):
                first, again = self.host.legal(calls), self.host.legal(calls)
            after = self.state()
            LEGAL_CHANGES_NOTHING.require(
                first == again and before == after,
                f"after {when}: {first} then {again}, State {shown(before)} then {shown(after)}",
            )

    def play(self, calls: Sequence[Call]) -> list[Event]:
        """Take actions until they or the episode end; returns all events so far."""
        for _ in self.playing(calls):
            pass
        return self.events

    def playing(self, calls: Sequence[Call]) -> Iterator[None]:
        """Take one action at each `next`."""
        for call in calls:
            if self.ended:
                break
            self.act(call)
            yield
        for frozen, value in self._taken:
            now = frozen_json(frozen)
            STATE_IS_A_VALUE.require(now == value, f"{shown(value)} became {shown(now)}")


def _course(world: _World, seed: int, calls: Sequence[Call]) -> None:
    """The same course again: beside a neighbour, then in the App that has played it."""
    first = _Player(world, seed)
    alone = list(first.play(calls))
    second, neighbour = _Player(world, seed), _Player(world, seed + 1)
    beside = neighbour.playing(calls)
    for _ in second.playing(calls):
        next(beside, None)
    _alike(SAME_SEED_SAME_COURSE, alone, second.events, f"with seed {seed}")
    if first.saw_a_board:
        unseen = _Player(world, seed, looks=False)
        _alike(BOARD_CHANGES_NOTHING, alone, unseen.play(calls), f"with seed {seed} and nobody looking")
        unseen.host.close()
    first.open(seed)
    _alike(OPEN_FORGETS, alone, first.play(calls), f"opened again with seed {seed}")
    for player in (first, second, neighbour):
        player.host.close()


def _restore(world: _World, seed: int, calls: Sequence[Call]) -> None:
    player = _Player(world, seed)
    length = len(player.play(calls)) - 1
    player.open(seed)
    player.play(calls[: length // 2])
    rest = calls[length // 2 : length]
    try:
        saved, before = player.host.save(), player.state()
    except CheckpointError:
        player.host.close()
        return
    first = _go_on(player, rest)
    other = _Player(world, seed + 1)
    for who, restored in (("the same App", player), ("the same App", player), ("a fresh App", other)):
        with RESTORE_BRINGS_BACK.never_raises(f"restore() in {who}"):
            restored.host.restore(saved)
        now = restored.state()
        RESTORE_BRINGS_BACK.require(now == before, f"{shown(before)} came back as {shown(now)} in {who}")
        _alike(RESTORE_BRINGS_BACK, first, _go_on(restored, rest), f"restored in {who}")
    player.host.close()
    other.host.close()


def _go_on(player: _Player, calls: Sequence[Call]) -> list[Event]:
    player.ended, player.events = False, []
    return player.play(calls)


def _alike(rule: Rule, first: Sequence[Event], second: Sequence[Event], how: str) -> None:
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        rule.require(one == other, f"{how}, event {index} was {shown(one)}, then {shown(other)}")
    rule.require(len(first) == len(second), f"{how}, {len(first)} events, then {len(second)}")


def _wrong_arguments(world: _World, spec: ActionSpec, fitting: Mapping[str, Any]) -> None:
    player = _Player(world, 0)
    for wrong in _misfits(spec.parameters, fitting):
        before = player.state()
        outcome = player.host.act(spec.name, wrong)
        said = f"{spec.name} with {shown(wrong)}"
        WRONG_ARGUMENTS_CHANGE_NOTHING.require(outcome.fault is None, f"{said} failed: {outcome.fault}")
        WRONG_ARGUMENTS_CHANGE_NOTHING.require(
            outcome.error is not None, f"{said} was taken; it answered {shown(outcome.observation)}"
        )
        after = player.state()
        WRONG_ARGUMENTS_CHANGE_NOTHING.require(
            before == after, f"{said} was rejected, and made {shown(after)} of {shown(before)}"
        )
    player.host.close()


def _misfits(parameters: Mapping[str, Any], fitting: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Arguments that the schema does not allow, one fault each."""
    if parameters.get("additionalProperties") is False:
        yield {**fitting, _NO_NAME: 1}
    for name in parameters.get("required", ()):
        yield {key: value for key, value in fitting.items() if key != name}
    for name, schema in parameters.get("properties", {}).items():
        if isinstance(schema, Mapping) and schema.get("type") in ("string", "integer", "number", "boolean"):
            yield {**fitting, name: [[]]}
