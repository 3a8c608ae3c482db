"""`plural review`: what waits for a person, what the person is asked, and what the person says."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plural_gym.cli import completion
from plural_gym.cli.records import also, fault_lines, find_job, job_store, number, when
from plural_gym.cli.terminal import (
    DirectoryOption,
    Interrupted,
    JsonOption,
    ProjectOption,
    open_project,
    print_json,
    print_table,
    say,
    shown,
)
from plural_gym.errors import CredentialMissing, PluralError, UsageError

if TYPE_CHECKING:
    from plural_gym.records.trial_folder import TrialFolder
    from plural_gym.review import Rubric
    from plural_gym.task import TaskSet

TrialArgument = Annotated[
    str, typer.Argument(metavar="TRIAL_ID", help="A Trial's id, or how it begins.", show_default=False)
]
HostedOption = Annotated[bool, typer.Option("--hosted", help="Of a hosted project.")]


def register(app: typer.Typer) -> None:
    """Add these verbs to the noun `review`."""
    app.command("list")(list_)
    app.command("show")(show)
    app.command("submit")(submit)


def list_(
    job: Annotated[
        str | None,
        typer.Option(
            "--job",
            metavar="ID",
            help="Only of this Job, or how its id begins.",
            autocompletion=completion.jobs,
        ),
    ] = None,
    hosted: HostedOption = False,
    directory: DirectoryOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what waits for a person: Trial, Job and Verifier, newest Job first."""
    _refuse_hosted(hosted)
    from plural_gym.review import pending_reviews

    folder = find_job(job, directory, project) if job is not None else None
    root = job_store(directory, project).root if folder is None else folder.path.parent
    waiting = pending_reviews(root, job_id=None if folder is None else folder.id)
    if as_json:
        print_json(
            [{"trial_id": one.trial_id, "job_id": one.job_id, "verifier": one.verifier} for one in waiting]
        )
        return
    if not waiting:
        say("No Trial waits for a review.")
        return
    print_table(["trial", "job", "verifier"], [[one.trial_id, one.job_id, one.verifier] for one in waiting])
    say(f"What is asked: plural review show TRIAL_ID{also(directory)}")


def show(
    trial: TrialArgument,
    directory: DirectoryOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a reviewer is asked of a Trial, each criterion's range, and where the evidence lies."""
    from plural_gym.review import rubrics_of

    folder = job_store(directory, project).find_trial(trial)
    rubrics = rubrics_of(folder)
    result = folder.result()
    given = {row["verifier"]: row.get("review") for row in result["scores"]}
    versions = {row["verifier"]: row["version"] for row in result["scores"]}
    if as_json:
        asked = [
            {
                "verifier": name,
                "version": versions[name],
                "status": "reviewed" if given[name] else result["status"],
                **rubric.model_dump(mode="json"),
                "review": given[name],
            }
            for name, rubric in rubrics.items()
        ]
        places = {"folder": str(folder.path), "artifacts": str(folder.artifacts_path)}
        print_json({"trial_id": folder.id, "job_id": result["job_id"], "verifiers": asked, **places})
        return
    for word, text in (("Trial", folder.id), ("Job", result["job_id"]), ("Status", result["status"])):
        typer.echo(f"{word:<11}{text}")
    for name, rubric in rubrics.items():
        typer.echo()
        typer.echo(f"{name}@{versions[name]}: {_standing(given[name], result)}")
        _show_rubric(rubric)
    typer.echo()
    typer.echo(f"Evidence   plural trial show {folder.id}{also(directory)}")
    typer.echo(f"Artifacts  {shown(folder.artifacts_path)}")
    if result["status"] == "awaiting_review":
        _show_next(folder, rubrics, given, directory)


def _standing(review: Mapping[str, Any] | None, result: Mapping[str, Any]) -> str:
    if review:
        return f"reviewed by {review['reviewer']} at {when(review['submitted'])}"
    return "waits for a review" if result["status"] == "awaiting_review" else "not reviewed"


def _show_rubric(rubric: "Rubric") -> None:
    for line in rubric.instructions.strip().splitlines():
        typer.echo(f"  {line}")
    for one in rubric.criteria:
        weight = f", weight {one.weight:g}" if one.weight != 1 else ""
        typer.echo(f"  - {one.name}: {one.min_score:g} to {one.max_score:g}{weight}")
        for line in one.description.strip().splitlines():
            typer.echo(f"      {line}")


def _show_next(
    folder: "TrialFolder",
    rubrics: "Mapping[str, Rubric]",
    given: Mapping[str, Any],
    directory: Path | None,
) -> None:
    """The command that submits the first review that is missing."""
    name = next(name for name in rubrics if not given[name])
    criteria = rubrics[name].criteria
    scores = [
        f"--score '{one.name}=SCORE'" if " " in one.name else f"--score {one.name}=SCORE" for one in criteria
    ]
    which = f" --verifier {name}" if len(rubrics) > 1 else ""
    said = " ".join(scores) if len(criteria) > 1 else "--score SCORE"
    say(f"Submit     plural review submit {folder.id}{which} {said} --feedback TEXT{also(directory)}")


def submit(
    trial: TrialArgument,
    score: Annotated[
        list[str] | None,
        typer.Option(
            "--score",
            metavar="[CRITERION=]VALUE",
            help="The score; with several criteria once for each, as tone=2.",
        ),
    ] = None,
    verifier: Annotated[
        str | None, typer.Option("--verifier", metavar="NAME", help="Needed where the Trial has several.")
    ] = None,
    feedback: Annotated[str | None, typer.Option("--feedback", help="Notes for the record.")] = None,
    reviewer: Annotated[
        str | None,
        typer.Option("--reviewer", metavar="NAME", help="Who judged; by default your account's name."),
    ] = None,
    hosted: HostedOption = False,
    directory: DirectoryOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Record your review of a Trial. It is never changed; the last one finishes the Trial.

    plural review submit TRIAL_ID --score 2 --feedback "Accurate next steps."
    """
    _refuse_hosted(hosted)
    from plural_gym.reviewing import submit_review
    from plural_gym.trial import Trial

    folder = job_store(directory, project).find_trial(trial)
    try:
        review = submit_review(
            Trial(folder),
            _scores(score or []),
            verifier=verifier,
            feedback=feedback,
            reviewer=reviewer,
            tasks=_tasks_at_hand(project),
        )
    except KeyboardInterrupt:
        raise Interrupted("interrupted; plural review list shows whether the review was recorded.") from None
    result = folder.result()
    if as_json:
        standing = {key: result[key] for key in ("status", "score", "awaits")}
        print_json({"review": review.model_dump(mode="json"), **standing})
        return
    typer.echo(f"Review of Trial {folder.id} for {review.verifier.name} recorded.")
    if result["awaits"]:
        say(f"The Trial still waits for: {', '.join(result['awaits'])}.")
    else:
        typer.echo(f"The Trial {result['status']}, with the score {number(result['score'])}.")
    for line in fault_lines([fault | {"trials": 1} for fault in result["faults"]]):
        say(line)


def _scores(given: Sequence[str]) -> float | dict[str, float]:
    """The scores as they were typed: a bare one, or one a criterion. Raises UsageError."""
    if not given:
        raise UsageError(
            "give the score: --score VALUE, or with several criteria --score CRITERION=VALUE each."
        )
    if len(given) == 1 and "=" not in given[0]:
        return _number(given[0], given[0])
    found: dict[str, float] = {}
    for one in given:
        criterion, _, value = one.rpartition("=")
        if not criterion:
            raise UsageError(f"--score {one!r} names no criterion; write CRITERION=VALUE for each.")
        if criterion in found:
            raise UsageError(f"criterion {criterion!r} has two scores; give one.")
        found[criterion] = _number(value, one)
    return found


def _number(value: str, given: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"--score {given!r} is no number; write a score such as 2 or 0.5.") from None


def _tasks_at_hand(project: Path | None) -> "TaskSet | None":
    """The Tasks of the project here, for code that the Job's own inputs lack; None outside a project."""
    try:
        return open_project(project).tasks
    except PluralError:
        return None


def _refuse_hosted(hosted: bool) -> None:
    if hosted:
        raise CredentialMissing(
            "reviews of a hosted project need plural auth login and a selected project, which this version "
            "does not have. Leave --hosted out to review the Trials on this machine."
        )
