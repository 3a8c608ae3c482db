"""Calibration: how far a judge agrees with people, over Trials that both have scored.

`plural verifier calibrate` comes here. It reads what the Trials' summaries hold of both; with `now` the judge
is asked again instead, as `plural verifier try` does. Nothing is written.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from plural_gym.agreement import (
    agreement,
    bootstrap,
    mean_difference,
    pooled_spread,
    rank_correlation,
    weighted_kappa,
)
from plural_gym.errors import PluralError, UnknownName, UsageError, suggest
from plural_gym.project import Project
from plural_gym.records.job_folder import JobFolder
from plural_gym.records.strict_json import text
from plural_gym.records.trial_folder import TrialFolder
from plural_gym.relabel import try_verifier
from plural_gym.statistics import Interval
from plural_gym.task import TaskSet
from plural_gym.verifier import Verifier, VerifierOutput

FEW = 10
"""Below so many pairs every figure may be chance."""
SCORE = "score"
"""As a criterion: the Verifier's whole score, 0 to 1."""

Scale = tuple[float, float]
"""The worst and the best score of a criterion."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One attempt as a judge and as a person scored it."""

    trial_id: str
    seat: str | None
    judge: float
    person: float
    length: int
    """Characters of what the attempt left to be judged: actions, what came back, the answer, files."""

    @property
    def difference(self) -> float:
        """How much higher the judge scored."""
        return self.judge - self.person


@dataclass(frozen=True, slots=True)
class Agreement:
    """A judge and a person on one criterion. What the pairs cannot tell is None."""

    criterion: str
    scale: Scale
    """What the scores of both lie between; (0, 1) where their own ranges differ."""
    n: int
    """Pairs."""
    exact: float | None
    """Share of pairs with equal scores."""
    within_one: float | None
    """Share of pairs at most 1 apart; None on a scale no longer than that."""
    kappa: float | None
    """Cohen's kappa with quadratic weights."""
    kappa_interval: Interval | None
    bias: float | None
    """Mean of judge minus person: above 0, the judge is the milder one."""
    bias_interval: Interval | None
    length_bias: float | None
    """Rank correlation of judge minus person with the length: above 0, the judge favours what is long."""
    length_interval: Interval | None
    spread: float | None
    """How much the judge differs from itself between repeats, as a standard deviation."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far a judge agrees with people."""

    job_id: str
    judge: str
    person: str
    """The Human Verifier."""
    asked_now: bool
    """Whether the judge was asked again; else its stored scores were taken."""
    rows: tuple[Agreement, ...]
    """The score, then each criterion that both have."""
    pairs: Mapping[str, tuple[Pair, ...]]
    """By criterion."""
    skipped: Mapping[str, str]
    """Trial -> why it gives no pair."""
    notes: tuple[str, ...]
    """What to bear in mind, in sentences."""

    def farthest(self, most: int = 3) -> list[Pair]:
        """The pairs whose scores lie farthest apart, the farthest first."""
        apart = [pair for pair in self.pairs[SCORE] if abs(pair.difference) > 1e-9]
        return sorted(apart, key=lambda pair: -abs(pair.difference))[:most]

    def to_json(self) -> dict[str, Any]:
        """The outcome as JSON values."""
        return asdict(self)


def calibrate(
    job: JobFolder,
    judge: str,
    *,
    against: str | None = None,
    now: Verifier | None = None,
    tasks: TaskSet | None = None,
) -> Calibration:
    """Compare a judge with the people who reviewed the same Trials.

    Criteria are matched by name; where no name is shared and both have one criterion, those two are.

    Args:
        job: whose Trials.
        judge: the Verifier's name.
        against: the Human Verifier's name; None: the only one.
        now: asked again about every reviewed Trial, in place of the stored scores.
        tasks: where Tasks are looked up that the Job's own inputs do not give; for `now`.

    Raises:
        UnknownName: no Trial has a Verifier of that name.
        UsageError: no Trial was scored by both; says what is missing.
    """
    found = _Found(job, judge, against)
    scored = found.scored() if now is None else found.asked(now, tasks)
    if not scored:
        raise UsageError(found.nothing())
    notes: list[str] = []
    matches = list(_matches(scored[0], now or _pinned(job, judge), notes))
    rows, pairs = _compared(matches, scored)
    few = len(pairs[SCORE])
    if few < FEW:
        notes.append(
            f"only {few} pair{'s' * (few != 1)}: every figure may be chance; have more Trials reviewed, "
            "failures and doubtful cases among them."
        )
    asked = now is not None
    return Calibration(job.id, judge, found.person, asked, rows, pairs, found.skipped, tuple(notes))


def _compared(
    matches: "Sequence[_Match]", scored: "Sequence[_Scored]"
) -> tuple[tuple[Agreement, ...], dict[str, tuple[Pair, ...]]]:
    """One row a match, and the pairs that it comes from."""
    lengths = {one.folder.id: _length(one.folder) for one in scored}
    rows: list[Agreement] = []
    pairs: dict[str, tuple[Pair, ...]] = {}
    for match in matches:
        both = [(one, pair) for one in scored if (pair := match.pair(one, lengths[one.folder.id]))]
        pairs[match.name] = tuple(pair for _, pair in both)
        spreads = [one.judged["scores"].get(f"spread.{match.ours or SCORE}") for one, _ in both]
        rows.append(_agreement(match, pairs[match.name], [value for value in spreads if value is not None]))
    return tuple(rows), pairs


@dataclass(frozen=True, slots=True)
class _Scored:
    """One attempt, scored by both."""

    folder: TrialFolder
    seat: str | None
    judged: Mapping[str, Any]
    """`score` and `scores` of the judge."""
    reviewed: Mapping[str, Any]
    """The Human Verifier's row of the Trial's summary."""


@dataclass(frozen=True, slots=True)
class _Match:
    """One thing that both score."""

    name: str
    ours: str | None
    """The judge's criterion; None: the whole score."""
    theirs: str | None
    """The person's."""
    our_scale: Scale
    their_scale: Scale

    @property
    def scale(self) -> Scale:
        return self.our_scale if self.our_scale == self.their_scale else (0.0, 1.0)

    def pair(self, one: _Scored, length: int) -> Pair | None:
        """Both scores on one scale; None where one of them is missing."""
        judge, person = _score(one.judged, self.ours), _score(one.reviewed, self.theirs)
        if judge is None or person is None:
            return None
        if self.our_scale != self.their_scale:
            judge, person = _share(judge, self.our_scale), _share(person, self.their_scale)
        return Pair(one.folder.id, one.seat, judge, person, length)


def _score(row: Mapping[str, Any], criterion: str | None) -> float | None:
    found: float | None = row["score"] if criterion is None else row["scores"].get(criterion)
    return found


def _share(value: float, scale: Scale) -> float:
    low, high = scale
    return (value - low) / (high - low)


class _Found:
    """The Trials of a Job that a judge and a person scored, and why others were not."""

    def __init__(self, job: JobFolder, judge: str, against: str | None) -> None:
        self._job, self._judge = job, judge
        self.skipped: dict[str, str] = {}
        self._rows: list[tuple[TrialFolder, dict[str, Any]]] = []
        for folder in job.trials():
            if folder.result_path.exists():
                self._rows += [(folder, row) for row in folder.result()["scores"]]
            else:
                self.skipped[folder.id] = "it has not finished"
        self.person = self._person(against)

    def _person(self, against: str | None) -> str:
        people: dict[str, None] = dict.fromkeys(row["verifier"] for _, row in self._rows if row.get("rubric"))
        if against is None:
            if len(people) == 1:
                return next(iter(people))
            if people:
                raise UsageError(
                    f"Job {self._job.id} has several Human Verifiers; say --against {' or '.join(people)}."
                )
            raise UsageError(f"no Trial of Job {self._job.id} has a Human Verifier to compare with.")
        if against not in people:
            raise UnknownName(
                f"no Trial of Job {self._job.id} has a Human Verifier {against!r}; {suggest(against, people)}"
            )
        return against

    def reviewed(self) -> Iterator[tuple[TrialFolder, dict[str, Any]]]:
        """The person's rows that hold a score."""
        for folder, row in self._rows:
            if row["verifier"] == self.person:
                if row["score"] is not None:
                    yield folder, row
                else:
                    self.skipped[folder.id] = "it has not been reviewed"

    def scored(self) -> list[_Scored]:
        """The reviewed attempts with the judge's stored scores."""
        judged = {
            (folder.id, row.get("seat")): row for folder, row in self._rows if row["verifier"] == self._judge
        }
        if not judged:
            names = dict.fromkeys(row["verifier"] for _, row in self._rows if not row.get("rubric"))
            raise UnknownName(
                f"no Trial of Job {self._job.id} was judged by {self._judge!r}; "
                f"{suggest(self._judge, names)} With --judge-now it is asked now."
            )
        found = []
        for folder, row in self.reviewed():
            own = judged.get((folder.id, row.get("seat")))
            if own is None or own["score"] is None:
                self.skipped[folder.id] = "the judge gave no score"
            else:
                found.append(_Scored(folder, row.get("seat"), own, row))
        return found

    def asked(self, judge: Verifier, tasks: TaskSet | None) -> list[_Scored]:
        """The reviewed attempts with what the judge says now."""
        reviewed = list(self.reviewed())
        ids = list(dict.fromkeys(folder.id for folder, _ in reviewed))
        replays = try_verifier(judge, self._job, tasks=tasks, trial_ids=ids)
        self.skipped |= replays.skipped
        outputs = {one.trial_id: one.output for one in replays.trials}
        found = []
        for folder, row in reviewed:
            output = outputs.get(folder.id)
            if isinstance(output, VerifierOutput):
                said = {"score": output.score, "scores": output.scores}
                found.append(_Scored(folder, row.get("seat"), said, row))
            elif output is not None:
                self.skipped[folder.id] = str(output)
        return found

    def nothing(self) -> str:
        """Why there is no pair at all."""
        counted = Counter(self.skipped.values()).most_common()
        why = "; ".join(f"{times} because {reason}" for reason, times in counted) or "there are none"
        both = f"a score of {self._judge!r} and a review for {self.person!r}"
        return f"no Trial of Job {self._job.id} has both {both}: {why}."


def _pinned(job: JobFolder, name: str) -> Verifier | None:
    """A Verifier as the Job was run with; None where that cannot be loaded."""
    try:
        return Project(job.inputs_path).verifiers[name]
    except PluralError:
        return None


def _matches(one: _Scored, judge: Verifier | None, notes: list[str]) -> Iterator[_Match]:
    """What both score: the whole, then each criterion that they share."""
    yield _Match(SCORE, None, None, (0.0, 1.0), (0.0, 1.0))
    theirs = {
        each["name"]: (each["min_score"], each["max_score"]) for each in one.reviewed["rubric"]["criteria"]
    }
    criteria = getattr(judge, "criteria", ())
    ours = {each.name: (each.min_score, each.max_score) for each in criteria}
    shared = [name for name in theirs if name in ours]
    if not shared and len(ours) == len(theirs) == 1:
        (mine,), (other,) = ours, theirs
        yield _Match(f"{mine}/{other}", mine, other, ours[mine], theirs[other])
        return
    for name in shared:
        if ours[name] != theirs[name]:
            low, high = ours[name]
            notes.append(
                f"{name}: the judge scores from {low:g} to {high:g}, people otherwise; both as 0 to 1 here."
            )
        yield _Match(name, name, name, ours[name], theirs[name])
    alone = [name for name in (*ours, *theirs) if name not in shared]
    if alone:
        notes.append(f"not compared, as only one of them scores it: {', '.join(alone)}.")


def _agreement(match: _Match, pairs: Sequence[Pair], spreads: Sequence[float]) -> Agreement:
    judge, person = [pair.judge for pair in pairs], [pair.person for pair in pairs]
    apart, lengths = [pair.difference for pair in pairs], [float(pair.length) for pair in pairs]
    low, high = match.scale
    return Agreement(
        criterion=match.name,
        scale=match.scale,
        n=len(pairs),
        exact=agreement(judge, person),
        within_one=agreement(judge, person, 1.0) if high - low > 1 else None,
        kappa=weighted_kappa(judge, person),
        kappa_interval=bootstrap(weighted_kappa, judge, person),
        bias=mean_difference(judge, person),
        bias_interval=bootstrap(mean_difference, judge, person),
        length_bias=rank_correlation(apart, lengths),
        length_interval=bootstrap(rank_correlation, apart, lengths),
        spread=pooled_spread(spreads),
    )


def _length(folder: TrialFolder) -> int:
    """Characters of what an attempt left to be judged."""
    steps = sum(
        len(text(step.get("arguments"))) + len(text(step.get("observation"))) for step in folder.steps()
    )
    files = sum(int(row["size"]) for row in folder.artifacts())
    return steps + len(text(folder.result()["answer"])) + files
