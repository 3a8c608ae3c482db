"""`check_runtime`: the shipped kinds keep every rule; for each rule a Runtime that breaks it."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from plural_gym.errors import MachineError
from plural_gym.runtime import Channel, Process, Role
from plural_gym.runtimes.local import LocalProcess, LocalRuntime
from plural_gym.testing import runtimes
from plural_gym.testing.conformance import ConformanceError
from plural_gym.testing.runtimes import check_runtime

MADE: list[LocalRuntime] = []


@pytest.fixture(autouse=True)
def everything_ends() -> Iterator[None]:
    yield
    for runtime in MADE:
        LocalRuntime.close(runtime)
    MADE.clear()


class Kept(LocalRuntime):
    """Ends with its test, whatever its own close() leaves undone."""

    def __init__(self) -> None:
        super().__init__({})
        MADE.append(self)


class Changed(Process):
    """A process of which a test changes one thing."""

    def __init__(self, inner: LocalProcess) -> None:
        self.inner = inner
        self.channel = inner.channel

    def kill(self) -> str:
        return self.inner.kill()


class OneRole(Kept):
    def open(self, role: Role, log: Path) -> LocalProcess:
        return super().open("apps", log)


class NeverStarts(Kept):
    def open(self, role: Role, log: Path) -> LocalProcess:
        raise MachineError("no room")


class Cuts(Kept):
    """Its channels cut long messages."""

    def open(self, role: Role, log: Path) -> Any:
        process = Changed(super().open(role, log))
        inner = process.channel

        class Short:
            send, close = inner.send, inner.close

            def receive(self, timeout_s: float | None = None) -> Any:
                answer = inner.receive(timeout_s)
                seen = answer.get("observation")
                return (
                    {**answer, "observation": {"text": seen["text"][:10_000]}}
                    if isinstance(seen, dict)
                    else answer
                )

        process.channel = cast(Channel, Short())
        return process


class OneThread(Kept):
    busy = False

    def open(self, role: Role, log: Path) -> LocalProcess:
        if self.busy:
            raise MachineError("busy")
        self.busy = True
        time.sleep(0.02)
        process = super().open(role, log)
        self.busy = False
        return process


class Mute(Kept):
    def open(self, role: Role, log: Path) -> LocalProcess:
        return super().open(role, Path(os.devnull))


class SaysGone(Kept):
    class Ended(Changed):
        def kill(self) -> str:
            super().kill()
            return "it is gone"

    def open(self, role: Role, log: Path) -> Any:
        return self.Ended(super().open(role, log))


class LetsLive(Kept):
    class Alive(Changed):
        def kill(self) -> str:
            return "it exited with status 7"

    def open(self, role: Role, log: Path) -> Any:
        return self.Alive(super().open(role, log))


class Forgets(Kept):
    class Forgotten(Changed):
        killed = False

        def kill(self) -> str:
            words = "it is unknown" if self.killed else super().kill()
            self.killed = True
            return words

    def open(self, role: Role, log: Path) -> Any:
        return self.Forgotten(super().open(role, log))


class EndsSiblings(Kept):
    first: LocalProcess | None = None

    class Deadly(Changed):
        sibling: LocalProcess

        def kill(self) -> str:
            self.sibling.kill()
            return super().kill()

    def open(self, role: Role, log: Path) -> Any:
        process = self.Deadly(super().open(role, log))
        self.first = process.sibling = self.first or process.inner
        return process


class LeavesThem(Kept):
    def close(self) -> None:
        self._closed = True


class ClosesOnce(Kept):
    def close(self) -> None:
        if self._closed:
            raise OSError("closed already")
        super().close()


class Reopens(Kept):
    def close(self) -> None:
        super().close()
        self._closed = False


class Unwritable(Kept):
    def identity(self) -> dict[str, Any]:
        return {"lock": threading.Lock()}


BROKEN: list[tuple[str, type[Kept], str]] = [
    ("STARTS", OneRole, "role 'hooks' answered .*AttributeError"),
    ("STARTS", NeverStarts, r"open\('apps', log\) raised MachineError: no room"),
    ("CARRIES", Cuts, "role 'apps' gave '0123456789abcdef"),
    ("STARTS_FROM_THREADS", OneThread, "6 threads were answered .*MachineError: busy"),
    ("LOGS", Mute, "role 'apps' said 'out a word in the log'; the log holds ''"),
    ("SAYS_HOW_IT_ENDED", SaysGone, "exited with 7 said 'it is gone'"),
    ("KILLS", LetsLive, "role 'apps' still writes into its log after kill"),
    ("KILLS_TWICE", Forgets, "first 'it exited with status 7', then 'it is unknown'"),
    ("SPARES_SIBLINGS", EndsSiblings, "a request to a process of role 'apps' raised ChannelLost"),
    ("CLOSE_ENDS_ALL", LeavesThem, "still writes into its log after close"),
    ("CLOSES_TWICE", ClosesOnce, "the second close.. raised OSError: closed already"),
    ("CLOSED_STAYS_CLOSED", Reopens, "a process was started"),
    ("IDENTITY_IS_JSON", Unwritable, "raised TypeError"),
]


@pytest.mark.parametrize(("rule", "kind", "seen"), BROKEN)
def test_what_breaks_a_rule_is_caught(rule: str, kind: type[Kept], seen: str) -> None:
    with pytest.raises(ConformanceError, match=seen) as raised:
        check_runtime(kind)
    assert raised.value.rule is getattr(runtimes, rule)


def test_every_rule_is_broken_once(rules_of: Any) -> None:
    assert rules_of(runtimes) == {rule for rule, _, _ in BROKEN}


def test_the_shipped_kinds() -> None:
    check_runtime(lambda: LocalRuntime({}))
