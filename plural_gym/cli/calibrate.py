"""`plural verifier calibrate`: how far a judge agrees with the people who reviewed the same Trials."""

from typing import TYPE_CHECKING, Annotated

import typer

from plural_gym.cli import completion, describe
from plural_gym.cli.records import find_job
from plural_gym.cli.terminal import (
    DirectoryOption,
    JsonOption,
    ProjectOption,
    counted,
    open_project,
    print_json,
    print_table,
    say,
)
from plural_gym.cli.verifier import JobOption, Named

if TYPE_CHECKING:
    from plural_gym.calibration import Agreement, Calibration
    from plural_gym.statistics import Interval


def register(app: typer.Typer) -> None:
    """Add this verb to the noun `verifier`."""
    app.command("calibrate")(calibrate)


def calibrate(
    job: JobOption,
    name: Named = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="NAME",
            help="The Human Verifier; needed where there are several.",
            autocompletion=completion.verifier,
        ),
    ] = None,
    judge_now: Annotated[
        bool,
        typer.Option(
            "--judge-now", help="Ask the judge again, as it is in the project now. Costs its model calls."
        ),
    ] = False,
    directory: DirectoryOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how far a judge agrees with people, over Trials that both have scored. Saves nothing.

    plural verifier calibrate reply-quality --job JOB_ID --against customer-review
    """
    from plural_gym.calibration import calibrate as compare

    found = open_project(project)
    name = describe.chosen("verifier", name, found, verb="calibrate")
    now = found.verifiers[name] if judge_now else None
    folder = find_job(job, directory, project)
    outcome = compare(folder, name, against=against, now=now, tasks=found.tasks)
    if as_json:
        print_json(outcome.to_json())
    else:
        _show(outcome)


def _show(outcome: "Calibration") -> None:
    headings = [
        "criterion",
        "scale",
        "pairs",
        "equal",
        "within 1",
        "kappa",
        "bias",
        "bias by length",
        "spread",
    ]
    print_table(headings, [_row(row) for row in outcome.rows])
    apart = outcome.farthest()
    if apart:
        typer.echo()
        typer.echo("Farthest apart:")
        print_table(
            ["trial", "judge", "person"],
            [[pair.trial_id, f"{pair.judge:.3f}", f"{pair.person:.3f}"] for pair in apart],
        )
    for note in outcome.notes:
        say(f"! {note}")
    reasons = list(outcome.skipped.values())
    for why in dict.fromkeys(reasons):
        say(f"! {counted(reasons.count(why), 'Trial')} left out: {why}.".replace("..", "."))
    when = "asked now" if outcome.asked_now else "as stored"
    say(
        f"Judge {outcome.judge} ({when}) against {outcome.person}, Job {outcome.job_id}. Kappa: 1 perfect, 0 "
        "chance. Bias: judge minus person. In brackets: 95 % intervals."
    )


def _row(row: "Agreement") -> list[str]:
    low, high = row.scale
    return [
        row.criterion,
        f"{low:g}..{high:g}",
        str(row.n),
        _share(row.exact),
        _share(row.within_one),
        _number(row.kappa, row.kappa_interval),
        _number(row.bias, row.bias_interval, sign="+"),
        _number(row.length_bias, row.length_interval, sign="+"),
        _number(row.spread),
    ]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _number(value: float | None, interval: "Interval | None" = None, sign: str = "") -> str:
    if value is None:
        return "-"
    ends = "" if interval is None else f" [{interval.low:{sign}.2f}, {interval.high:{sign}.2f}]"
    return f"{value:{sign}.2f}{ends}"
