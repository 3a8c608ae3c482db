"""What every Runtime keeps: `check_runtime`.

It speaks to processes over their channels only, as a Job does, and reads their logs; how a Runtime starts and
ends a process is its own affair.
"""

import json
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from plural_gym import refs
from plural_gym.app import AppDeclaration
from plural_gym.episode import Usage
from plural_gym.errors import MachineError
from plural_gym.host import wire
from plural_gym.host.hooks import HookSet
from plural_gym.runtime import ChannelLost, Process, Role, Runtime
from plural_gym.step import TaskView
from plural_gym.testing.conformance import ConformanceError, Rule, described, shown

STARTS = Rule(
    "open() starts a process of either role that answers its requests",
    "Run plural_gym.host.serve.serve(role, channel) in the process, with the project's code in its reach.",
)
CARRIES = Rule(
    "messages arrive whole and in order, in both directions, 5 MB ones too",
    "Give Process.channel a stream socket, and copy all that it carries until either end closes.",
)
STARTS_FROM_THREADS = Rule(
    "open() may be called from many threads at once",
    "Guard what the calls share with a lock.",
)
LOGS = Rule(
    "what a process says on standard output and error stands in its log, even when the process was killed",
    "Send both to the log's file unbuffered, or by lines.",
)
SAYS_HOW_IT_ENDED = Rule(
    "a process that exits closes its channel, and kill() says with which status it had exited",
    "Close the socket with the process; let kill() collect the exit status and put it into words.",
)
KILLS = Rule(
    "kill() ends a process that loops, and says so in words",
    "Send SIGKILL, or what is as final, and wait for the end.",
)
KILLS_TWICE = Rule(
    "kill() can be called again, and says the same",
    "Keep the words of the first call.",
)
SPARES_SIBLINGS = Rule(
    "the end of one process leaves the others as they were",
    "Give each process a life of its own.",
)
CLOSE_ENDS_ALL = Rule(
    "close() ends every process and closes its channel",
    "Keep track of what was started, end it in close(), and wait for it.",
)
CLOSES_TWICE = Rule("close() can be called twice", "Do nothing in close() where nothing is held any more.")
CLOSED_STAYS_CLOSED = Rule(
    "open() after close() raises MachineError",
    "Note in close() that it was called, and look in open().",
)
IDENTITY_IS_JSON = Rule("identity() is a JSON object", "Return a dict of names and plain values.")

ANSWER_S = 60.0
"""For one answer, the start of a process included."""
_STATUS = 7
_LARGE = 5 * 1024 * 1024


def check_runtime(make: Callable[[], Runtime]) -> None:
    """Hold a Runtime to the rules of this file.

    Args:
        make: builds a new Runtime; called twice.

    Raises:
        ConformanceError: the first rule that is broken.
    """
    with tempfile.TemporaryDirectory(prefix="plural-") as folder:
        logs = Path(folder)
        with _Opener(make()) as opener:
            _identity(opener.runtime)
            _play(opener, logs)
            with CLOSES_TWICE.never_raises("the first close()"):
                opener.runtime.close()
            with CLOSES_TWICE.never_raises("the second close()"):
                opener.runtime.close()
            _closed(opener.runtime, logs)
        with _Opener(make()) as opener:
            _close_while_running(opener, logs)


def _identity(runtime: Runtime) -> None:
    with IDENTITY_IS_JSON.never_raises("writing identity() as JSON"):
        identity = runtime.identity()
        again = json.loads(json.dumps(identity, allow_nan=False))
    IDENTITY_IS_JSON.require(isinstance(identity, dict) and identity == again, shown(identity))


def _play(opener: "_Opener", logs: Path) -> None:
    sibling = _Peer(opener, "apps", logs / "sibling.log")
    roles: tuple[Role, ...] = ("apps", "hooks")
    for role in roles:
        peer = _Peer(opener, role, logs / f"{role}.log")
        _carries(peer)
        _speaks(peer)
        _leaves(_Peer(opener, role, logs / f"{role}-leaves.log"))
        _loops(_Peer(opener, role, logs / f"{role}-loops.log"))
    _many(opener, logs)
    said = sibling.do(SPARES_SIBLINGS, "echo", text="well")
    SPARES_SIBLINGS.require(said == "well", f"a process opened before the others answered {shown(said)}")
    sibling.process.kill()


class _Opener:
    """A Runtime, and every process it was asked for; ends them all with its block, whatever broke."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._opened: list[Process] = []

    def open(self, role: Role, log: Path) -> Process:
        """Start a process."""
        process = self.runtime.open(role, log)
        self._opened.append(process)
        return process

    def __enter__(self) -> "_Opener":
        return self

    def __exit__(self, *raised: object) -> None:
        for process in self._opened:
            with suppress(Exception):
                process.kill()
            process.channel.close()
        with suppress(Exception):
            self.runtime.close()


class _Peer:
    """One process, ready to take orders; either role does the same on the same order."""

    def __init__(self, opener: _Opener, role: Role, log: Path) -> None:
        self.role, self.log = role, log
        with STARTS.never_raises(f"open({role!r}, log)"):
            self.process = opener.open(role, log)
        folder = Path(__file__).parent
        first: dict[str, Any]
        if role == "apps":
            app = AppDeclaration("python", {"class": refs.load("probe.py:Probe", folder)}, folder)
            task = wire.task_json(TaskView("", ""))
            first = {"op": "open", "apps": wire.pack_apps({"probe": app}), "task": task, "setup": {}}
            first |= {"seed": 0, "resources": "/nowhere"}
        else:
            hooks = wire.pack_hooks(HookSet("probe", check=refs.load("probe.py:check", folder)))
            first = {"op": "load", "task": wire.task_json(TaskView("", "")), "apps": ["probe"]}
            first |= {"hooks": [hooks]}
        answer = self.exchange(STARTS, first)
        STARTS.require("raised" not in answer, f"role {role!r} answered {shown(answer)} to its first request")

    def exchange(self, rule: Rule, request: Mapping[str, Any]) -> Any:
        """The answer to one request."""
        with rule.never_raises(f"a request to a process of role {self.role!r}"):
            self.process.channel.send(request)
            return self.process.channel.receive(ANSWER_S)

    def order(self, order: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The request that makes the probe do something."""
        if self.role == "apps":
            return {"op": "act", "name": order, "arguments": dict(given), "watch": True, "seat": None}
        episode: dict[str, Any] = {"states": {}, "trajectory": [], "observation": None, "artifacts": []}
        episode |= {"stop_reason": None, "answer": {"do": order, **given}, "usage": asdict(Usage())}
        episode["seat"] = None
        if order == "ask":
            episode["states"] = {"probe": ["full", None, None]}
        return {"op": "check", "verifier": "probe", "episode": episode}

    def do(self, rule: Rule, order: str, **given: Any) -> Any:
        """What the probe answers to an order; its text."""
        return self.text(rule, self.exchange(rule, self.order(order, given)))

    def text(self, rule: Rule, answer: Any) -> Any:
        """The text of an answer; ConformanceError where it has none."""
        try:
            if self.role == "apps":
                seen = answer["observation"]
                return seen["text"] if isinstance(seen, dict) else seen
            return answer["output"]["evidence"][0]
        except (KeyError, TypeError, IndexError):
            raise ConformanceError(
                rule, f"a process of role {self.role!r} answered {shown(answer)}"
            ) from None


def _carries(peer: _Peer) -> None:
    large = "0123456789abcdef" * (_LARGE // 16)
    for text in ("", "one", "zwei 🙂 \x00", large, "last"):
        with CARRIES.never_raises(f"a message of {len(text)} characters to role {peer.role!r}"):
            back = peer.do(CARRIES, "echo", text=text)
        said = f"role {peer.role!r} gave {shown(back, 40)} back for {shown(text, 40)}"
        CARRIES.require(back == text, said)
    if peer.role == "hooks":
        question = peer.exchange(CARRIES, peer.order("ask", {}))
        CARRIES.require("ask" in question, f"a hook that queries an App sent {shown(question)}")
        back = peer.text(CARRIES, peer.exchange(CARRIES, {"value": large}))
        CARRIES.require(back == large, f"a hook that was told 5 MB knew {shown(back, 40)}")


def _speaks(peer: _Peer) -> None:
    peer.do(LOGS, "speak", text="a word in the log")
    peer.process.kill()
    written = peer.log.read_text(encoding="utf-8", errors="replace") if peer.log.exists() else ""
    for stream in ("out", "err"):
        line = f"{stream} a word in the log"
        LOGS.require(line in written, f"role {peer.role!r} said {line!r}; the log holds {shown(written)}")


def _leaves(peer: _Peer) -> None:
    peer.process.channel.send(peer.order("leave", {"status": _STATUS}))
    try:
        answer = peer.process.channel.receive(ANSWER_S)
        SAYS_HOW_IT_ENDED.require(False, f"a process that exited answered {shown(answer)}")
    except ChannelLost:
        pass
    except TimeoutError:
        SAYS_HOW_IT_ENDED.require(False, f"the channel was open {ANSWER_S:g} s after the process had exited")
    words = _kill(SAYS_HOW_IT_ENDED, peer)
    SAYS_HOW_IT_ENDED.require(
        str(_STATUS) in words, f"kill() of a process that had exited with {_STATUS} said {words!r}"
    )
    again = _kill(KILLS_TWICE, peer)
    KILLS_TWICE.require(again == words, f"first {words!r}, then {again!r}")


def _loops(peer: _Peer) -> None:
    peer.process.channel.send(peer.order("loop", {}))
    try:
        answer = peer.process.channel.receive(0.15)
        KILLS.require(False, f"a process that loops answered {shown(answer)}")
    except TimeoutError:
        pass
    except ChannelLost as error:
        KILLS.require(False, f"a process that loops was lost: {described(error)}")
    words = _kill(KILLS, peer)
    KILLS.require(bool(words), f"kill() said {words!r}")
    KILLS.require(not _writes(peer.log), f"role {peer.role!r} still writes into its log after kill()")


def _kill(rule: Rule, peer: _Peer) -> str:
    with rule.never_raises("kill()"):
        words = peer.process.kill()
    rule.require(isinstance(words, str), f"kill() returned {shown(words)}, no words")
    return words


def _writes(log: Path) -> bool:
    """Whether a process that loops still lives: it would write every few milliseconds."""
    size = log.stat().st_size if log.exists() else 0
    time.sleep(0.1)
    return (log.stat().st_size if log.exists() else 0) != size


def _many(opener: _Opener, logs: Path) -> None:
    answers: list[Any] = [None] * 6

    def one(index: int) -> None:
        try:
            peer = _Peer(opener, "apps", logs / f"many-{index}.log")
            answers[index] = peer.do(STARTS_FROM_THREADS, "echo", text=str(index))
            peer.process.kill()
        except ConformanceError as error:
            answers[index] = error.seen

    threads = [threading.Thread(target=one, args=(index,)) for index in range(len(answers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [str(index) for index in range(len(answers))]
    STARTS_FROM_THREADS.require(
        answers == expected, f"{len(answers)} threads were answered {shown(answers, 400)}"
    )


def _closed(runtime: Runtime, logs: Path) -> None:
    try:
        process = runtime.open("apps", logs / "late.log")
    except MachineError:
        return
    except Exception as error:
        CLOSED_STAYS_CLOSED.require(False, f"it raised {described(error)}")
    process.kill()
    runtime.close()
    CLOSED_STAYS_CLOSED.require(False, "a process was started")


def _close_while_running(opener: _Opener, logs: Path) -> None:
    idle = _Peer(opener, "hooks", logs / "idle.log")
    busy = _Peer(opener, "apps", logs / "busy.log")
    busy.process.channel.send(busy.order("loop", {}))
    time.sleep(0.1)
    with CLOSE_ENDS_ALL.never_raises("close() with processes at work"):
        opener.runtime.close()
    CLOSE_ENDS_ALL.require(not _writes(busy.log), "a process at work still writes into its log after close()")
    for peer in (idle, busy):
        try:
            answer = peer.process.channel.receive(5)
            CLOSE_ENDS_ALL.require(False, f"after close() a process sent {shown(answer)}")
        except TimeoutError:
            CLOSE_ENDS_ALL.require(False, "a process's channel was open 5 s after close()")
        except ChannelLost:
            pass
