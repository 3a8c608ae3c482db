"""Ranking: from the records of finished Trials to a Leaderboard or a Comparison.

Functions of plain mappings, one a Trial, so that they work on records alone; `benchmark.py` gives the rules,
`statistics.py` the arithmetic. Attempts are averaged within a Task first, then Tasks by weight.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from plural_gym import statistics
from plural_gym.errors import UsageError, suggest
from plural_gym.leaderboard import Comparison, Leaderboard, Standing, TaskDifference

AgentFailure = Literal["zero", "exclude"]
FAILURES = ("none", "agent", "environment", "infrastructure", "grader", "timeout")
"""Whose failure ended a Trial; `timeout`: the Agent did not come to an end."""
MIN_TASKS_FOR_INTERVAL = 5
"""Fewer scored Tasks than this give no interval: it would say little about other Tasks."""
TIED_FROM = 0.05
"""An Agent whose adjusted p-value against the first is at least this is tied with it."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How results are ranked."""

    tasks: tuple[str, ...]
    """Every Task of the exam, in order."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """By Task; 1 where none is given."""
    agent_failure: AgentFailure = "zero"
    success_threshold: float = 1.0
    """A score from here on is a success."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """One Agent's counted attempts at the Tasks."""

    scores: dict[str, list[float]]
    """By Task, in the exam's order; only Tasks with a counted attempt."""
    successes: dict[str, list[bool]]


def rank(rows: Iterable[Mapping[str, Any]], rules: Rules, benchmark: str) -> Leaderboard:
    """The leaderboard of these Trials.

    Raises:
        UsageError: a row lacks agent or task, names a Task that is not in the exam or a failure that does
            not exist, or repeats an attempt.
    """
    by_agent: dict[str, list[Mapping[str, Any]]] = {}
    for row in checked(rows, rules):
        by_agent.setdefault(row["agent"], []).append(row)
    counted = {agent: attempts(trials, rules) for agent, trials in by_agent.items()}
    scores = {agent: _score(found.scores, rules) for agent, found in counted.items()}
    total = len(rules.tasks)

    def place(agent: str) -> tuple[bool, float, str]:
        score = scores[agent]
        return len(counted[agent].scores) < total, float("inf") if score is None else -score, agent

    ordered = sorted(by_agent, key=place)
    complete = [agent for agent in ordered if len(counted[agent].scores) == total]
    first = complete[0] if complete else None
    p_values = {} if first is None else _against(first, ordered, counted, rules)
    standings = []
    for agent in ordered:
        place_now = None
        if agent in complete:
            place_now = 1 + sum((scores[other] or 0.0) > (scores[agent] or 0.0) for other in complete)
        standings.append(
            _standing(place_now, agent, by_agent[agent], counted[agent], rules, p_values.get(agent), first)
        )
    return Leaderboard(benchmark, tuple(standings), total)


def contrast(
    a_rows: Iterable[Mapping[str, Any]], b_rows: Iterable[Mapping[str, Any]], rules: Rules
) -> Comparison:
    """A against B, each the rows of one Agent.

    Raises:
        UsageError: as `rank`, and where a side is empty or holds several Agents.
    """
    sides = []
    for label, rows in (("first", a_rows), ("second", b_rows)):
        found = checked(rows, rules)
        agents = sorted({row["agent"] for row in found})
        if len(agents) != 1:
            raise UsageError(
                f"compare takes the rows of one Agent on each side; the {label} holds "
                f"{', '.join(agents) or 'none'}."
            )
        sides.append((agents[0], _means(attempts(found, rules).scores)))
    (a, a_means), (b, b_means) = sides
    common = [task for task in rules.tasks if task in a_means and task in b_means]
    paired = _paired(a_means, b_means, common, rules) if common else None
    return Comparison(
        a=a,
        b=b,
        tasks=tuple(TaskDifference(task, a_means[task], b_means[task]) for task in common),
        difference=paired and paired.mean,
        interval=paired.interval if paired and len(common) >= MIN_TASKS_FOR_INTERVAL else None,
        p_value=paired and paired.p_value,
        wins=paired.wins if paired else 0,
        ties=paired.ties if paired else 0,
        losses=paired.losses if paired else 0,
        only_in_a=tuple(task for task in a_means if task not in b_means),
        only_in_b=tuple(task for task in b_means if task not in a_means),
    )


def checked(rows: Iterable[Mapping[str, Any]], rules: Rules) -> list[Mapping[str, Any]]:
    """The rows, held to the exam's Tasks. Raises UsageError as `rank` says."""
    seen: set[tuple[Any, Any, Any]] = set()
    known = set(rules.tasks)
    found = []
    for row in rows:
        for key in ("agent", "task"):
            if not isinstance(row.get(key), str):
                raise UsageError(f"a row needs {key!r} as text, and has {row.get(key)!r}.")
        task, failure = row["task"], row.get("failure") or "none"
        if task not in known:
            raise UsageError(f"Task {task!r} is not in the Benchmark; {suggest(task, rules.tasks)}")
        if failure not in FAILURES:
            raise UsageError(f"failure {failure!r} of {task!r} does not exist; {suggest(failure, FAILURES)}")
        attempt = (row["agent"], task, row.get("attempt"))
        if attempt[2] is not None and attempt in seen:
            raise UsageError(
                f"attempt {attempt[2]} of {row['agent']!r} at {task!r} stands twice; pass one row a Trial."
            )
        seen.add(attempt)
        found.append(row)
    return found


def attempts(rows: Iterable[Mapping[str, Any]], rules: Rules) -> Attempts:
    """What counts of one Agent's rows, and as what.

    A score counts as it is. Without one, a failure of the Agent (or its timeout) counts 0, or is left out.
    Failures of the environment, the machine or the grader are left out whatever they hold.
    """
    scores: dict[str, list[float]] = {task: [] for task in rules.tasks}
    successes: dict[str, list[bool]] = {task: [] for task in rules.tasks}
    for row in rows:
        score, failure = row.get("score"), row.get("failure") or "none"
        if failure not in ("none", "agent", "timeout"):
            continue
        if score is not None:
            scores[row["task"]].append(float(score))
            successes[row["task"]].append(score >= rules.success_threshold)
        elif failure != "none" and rules.agent_failure == "zero":
            scores[row["task"]].append(0.0)
            successes[row["task"]].append(False)
    return Attempts(
        {task: values for task, values in scores.items() if values},
        {task: values for task, values in successes.items() if values},
    )


def _means(scores: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return dict(zip(scores, statistics.task_means(list(scores.values())), strict=True))


def _weights(tasks: Iterable[str], rules: Rules) -> list[float]:
    return [rules.weights.get(task, 1.0) for task in tasks]


def _score(scores: Mapping[str, Sequence[float]], rules: Rules) -> float | None:
    if not scores:
        return None
    means = _means(scores)
    return statistics.mean_of_tasks(list(means.values()), weights=_weights(means, rules))


def _paired(
    a: Mapping[str, float], b: Mapping[str, float], tasks: Sequence[str], rules: Rules
) -> statistics.PairedDifference:
    return statistics.paired_difference(
        [a[task] for task in tasks], [b[task] for task in tasks], weights=_weights(tasks, rules)
    )


def _against(
    first: str, agents: Sequence[str], counted: Mapping[str, Attempts], rules: Rules
) -> dict[str, float]:
    """Holm-adjusted p-values of every other Agent against the first, where Tasks are shared."""
    best = _means(counted[first].scores)
    raw: dict[str, float] = {}
    for agent in agents:
        means = _means(counted[agent].scores)
        common = [task for task in best if task in means]
        if agent != first and common:
            raw[agent] = _paired(best, means, common, rules).p_value
    return dict(zip(raw, statistics.holm_adjusted(list(raw.values())), strict=True))


def _standing(
    place: int | None,
    agent: str,
    trials: Sequence[Mapping[str, Any]],
    counted: Attempts,
    rules: Rules,
    p_value: float | None,
    first: str | None,
) -> Standing:
    means = _means(counted.scores)
    weights = _weights(means, rules)
    interval = None
    if len(means) >= MIN_TASKS_FOR_INTERVAL:
        interval = statistics.bootstrap_interval(list(means.values()), weights=weights)
    costs = [row["cost_usd"] for row in trials if row.get("cost_usd") is not None]
    seconds = [row["seconds"] for row in trials if row.get("seconds") is not None]
    failures = Counter(row.get("failure") or "none" for row in trials)
    return Standing(
        rank=place,
        agent=agent,
        score=_score(counted.scores, rules),
        interval=interval,
        spread=statistics.spread(list(counted.scores.values())),
        success_rate=statistics.pass_at_k(list(counted.successes.values()), 1, weights=weights)
        if means
        else None,
        coverage=len(means) / len(rules.tasks),
        trials=len(trials),
        waiting=sum(row.get("score") is None and (row.get("failure") or "none") == "none" for row in trials),
        failures={kind: failures[kind] for kind in FAILURES[1:] if failures[kind]},
        cost_usd=statistics.mean_of_tasks(costs) if costs else None,
        cost_count=len(costs),
        seconds=statistics.percentile_nearest_rank(seconds, 50) if seconds else None,
        tied_with_first=True if agent == first else None if p_value is None else p_value >= TIED_FROM,
        p_value=p_value,
    )
