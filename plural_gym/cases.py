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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plural_gym.case_attempts import Given, play, write_out
from plural_gym.case_models import Bounds, CaseManifest, Expectation
from plural_gym.errors import Fault, Problem, ProjectError
from plural_gym.host.hooks import Reward
from plural_gym.manifest import load
from plural_gym.project import Project
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
            given = play(verifier, case.play, project, document)
        else:
            assert case.episode is not None
            given = write_out(verifier, case.episode)
    except ProjectError as error:
        return CaseResult(file, name, problems=error.problems)
    return CaseResult(file, name, tuple(_differences(case.expect, given)))


def _differences(expect: Expectation, given: Given) -> list[Difference]:
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
