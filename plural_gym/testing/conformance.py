"""Rule: one thing that every kind of a contract keeps; ConformanceError: a kind that does not.

The other files of this package declare their contract's rules as constants and hold a kind to them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from plural_gym.errors import raised_at


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that every kind of a contract keeps."""

    law: str
    """What holds, as a sentence without its full stop."""
    mend: str
    """What to do about a kind of which it does not hold, in sentences."""

    def require(self, kept: bool, seen: str) -> None:
        """Raise ConformanceError with what was seen, unless the rule is kept."""
        if not kept:
            raise ConformanceError(self, seen)

    @contextmanager
    def never_raises(self, doing: str) -> Iterator[None]:
        """Whatever is raised inside breaks the rule; a rule broken inside stays that rule."""
        try:
            yield
        except ConformanceError:
            raise
        except (Exception, SystemExit) as error:
            raise ConformanceError(self, f"{doing} raised {described(error)}") from error


class ConformanceError(AssertionError):
    """A kind breaks a rule of its contract."""

    def __init__(self, rule: Rule, seen: str) -> None:
        super().__init__(rule, seen)
        self.rule = rule
        self.seen = seen

    def __str__(self) -> str:
        return f"{self.rule.law}.\n  seen: {self.seen}.\n  mend: {self.rule.mend}"


def shown(value: Any, longest: int = 160) -> str:
    """A value as a message shows it, cut where it is long."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= longest else text[: longest - 3] + "..."


def described(error: BaseException) -> str:
    """An exception as a message shows it, with the line of author code."""
    text = str(error).strip().rstrip(".")
    text = text if len(text) <= 400 else text[:397] + "..."
    return f"{type(error).__name__}: {text} (at {raised_at(error)})"
