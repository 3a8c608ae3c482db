"""`plural verifier validate`, `test`, `try` and `apply`: a Verifier on made-up, known and stored attempts."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plural_gym.cli import completion, describe, words
from plural_gym.cli.records import fault_lines, find_job, number
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
from plural_gym.errors import UsageError

if TYPE_CHECKING:
    from plural_gym.cases import CaseResult
    from plural_gym.records.trial_folder import TrialFolder
    from plural_gym.relabel import Replays
    from plural_gym.replay import Replayed

Named = Annotated[
    str | None,
    typer.Argument(
        metavar="[NAME]",
        help="A Verifier; by default the one in whose folder you are.",
        autocompletion=completion.verifier,
    ),
]
JobOption = Annotated[
    str,
    typer.Option(
        "--job", metavar="ID", help="The Job whose Trials are used.", autocompletion=completion.jobs
    ),
]
TrialOption = Annotated[
    list[str] | None, typer.Option("--trial", metavar="ID", help="Only this Trial of it. Repeat it.")
]


def register(app: typer.Typer) -> None:
    """Add these verbs to the noun `verifier`."""
    app.command("validate")(validate)
    app.command("try")(try_)
    app.command("apply")(apply)
    app.command("test")(test)


def validate(
    name: Named = None,
    timeout: Annotated[
        float,
        typer.Option("--timeout", min=0.1, help="Seconds that loading it, and each function, may take."),
    ] = 20.0,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check one, or without a name the whole project; all problems at once, exit code 3.

    One Verifier is also tried, in a process of its own: what its functions say of a few random actions in the
    world of its first Task. What fails there is a warning.
    """
    from plural_gym.cli.rehearsal import rehearse
    from plural_gym.project_files import Layout

    found = open_project(project)
    here = describe.here("verifier", found) if name is None else None
    if name is None and here is not None:
        name = here.name
    if name is None:
        words.validate_project(project, as_json)
        return
    layout = Layout(found.root)
    resource = words.found_one(layout, "verifier", name, found)
    tried = rehearse(found.root, name, timeout)
    told = [*layout.problems, *layout.markers()]
    problems = list(dict.fromkeys([*words.problems_of(resource, layout, told), *tried.problems]))
    facts = {"word": "verifier", "name": name, **tried.facts}
    words.tell(f"verifier/{name}", problems, tried.warnings, facts, as_json)
    if not as_json:
        typer.echo(f"version {facts['version']}")
        typer.echo(facts["content_hash"])
        on = facts["tried"]
        if on is not None:
            actions = counted(on["actions"], "action")
            typer.echo(f"tried {', '.join(on['functions'])} on Task {on['task']}: {actions}")


def try_(
    job: JobOption,
    name: Named = None,
    trial: TrialOption = None,
    directory: DirectoryOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a Verifier gives on stored Trials now. Saves nothing.

    plural verifier try solved --job JOB_ID
    """
    _replay(name, job, trial, directory, project, as_json, save=False)


def apply(
    job: JobOption,
    name: Named = None,
    trial: TrialOption = None,
    directory: DirectoryOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add what a Verifier gives now to the reward ledger of stored Trials.

    It takes the place of what the same Verifier and version gave before. Scores never change.
    """
    _replay(name, job, trial, directory, project, as_json, save=True)


def _replay(
    name: str | None,
    job: str,
    trial: list[str] | None,
    directory: Path | None,
    project: Path | None,
    as_json: bool,
    save: bool,
) -> None:
    from plural_gym.records.job_folder import JobStore
    from plural_gym.relabel import apply_verifier, try_verifier

    found = open_project(project)
    name = describe.chosen("verifier", name, found, verb="apply" if save else "try")
    verifier = found.verifiers[name]
    folder = find_job(job, directory, project)
    store = JobStore(folder.path.parent)
    ids = None
    if trial:
        ids = list(dict.fromkeys(store.find_trial(f"{folder.id}/{one}").id for one in trial))
    before = {one.id: one for one in folder.trials()}
    stored = {} if save else {one: _given_before(before[one], name) for one in before}
    with _printed() as log:
        run = apply_verifier if save else try_verifier
        outcome = run(verifier, folder, tasks=found.tasks, trial_ids=ids, log=log)
    if as_json:
        print_json(outcome.to_json())
    else:
        _show(outcome, before, stored)
    if any(one.faults for one in outcome.trials):
        raise typer.Exit(1)


@contextmanager
def _printed() -> Iterator[Path]:
    """A file for what the Verifier's code prints, which is shown at the end."""
    with tempfile.TemporaryDirectory(prefix="plural-verifier-") as folder:
        log = Path(folder) / "verifier.log"
        yield log
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        if text.strip():
            say("The Verifier's code printed:")
            say(text.rstrip())


def _given_before(folder: "TrialFolder", verifier: str) -> dict[str, float | None]:
    """What a Trial's record holds of a Verifier: its score, and the sums of its current rewards."""
    if not folder.result_path.exists():
        return {}
    rows = [row for row in folder.current_rewards() if row["verifier"] == verifier]
    score = next((row["score"] for row in folder.result()["scores"] if row["verifier"] == verifier), None)
    return {"score": score, "step": _sum(rows, "step"), "hindsight": _sum(rows, "hindsight")}


def _sum(rows: list[dict[str, Any]], kind: str) -> float | None:
    values = [row["value"] for row in rows if row["kind"] == kind and row["value"] is not None]
    return sum(values) if values else None


def _show(
    outcome: "Replays", folders: "dict[str, TrialFolder]", stored: dict[str, dict[str, float | None]]
) -> None:
    headings = ["trial", "task", "agent", "score", "rewards", "credit"]
    rows = []
    for one in outcome.trials:
        result = folders[one.trial_id].result()
        now = _sums(one)
        was = stored.get(one.trial_id)
        cells = [number(value) if was is None else _change(was.get(key), value) for key, value in now.items()]
        rows.append([one.trial_id, result["task"], result["agent"], *cells])
    if rows:
        print_table(headings, rows)
    if len(outcome.trials) == 1:
        _show_steps(outcome.trials[0])
    for note, times in Counter(note for one in outcome.trials for note in one.notes).items():
        say(f"! {note}" + (f" ({counted(times, 'Trial')})" if times > 1 else ""))
    for why, times in Counter(outcome.skipped.values()).items():
        say(f"! {counted(times, 'Trial')} left alone: {why}.".replace("..", "."))
    for line in fault_lines(_faults(outcome)):
        say(line)
    what = f"Verifier {outcome.verifier}@{outcome.version} on {counted(len(outcome.trials), 'Trial')}"
    if outcome.run_id is None:
        say(f"{what} of Job {outcome.job_id}; nothing was saved.")
    else:
        say(f"{what} of Job {outcome.job_id}; its rewards are in their ledgers as run {outcome.run_id}.")


def _sums(one: "Replayed") -> dict[str, float | None]:
    rewards = [reward.value for reward in one.rewards if reward.value is not None]
    credits = [credit.value for credit in one.credits] if isinstance(one.credits, tuple) else []
    return {
        "score": one.score,
        "step": sum(rewards) if rewards else None,
        "hindsight": sum(credits) if credits else None,
    }


def _change(was: float | None, now: float | None) -> str:
    """The value now, with the stored one where they differ."""
    same = was is now or (was is not None and now is not None and abs(was - now) < 1e-9)
    return number(now) if same else f"{number(now)} (was {number(was)})"


def _show_steps(one: "Replayed") -> None:
    """Rewards and credit step by step, and the check's words."""
    credits: dict[str, float] = {}
    for credit in one.credits if isinstance(one.credits, tuple) else ():
        credits[credit.event_id] = credits.get(credit.event_id, 0.0) + credit.value
    rewards = {reward.event_id: reward for reward in one.rewards}
    rows = []
    for event_id, record in one.records.items():
        reward = rewards.get(event_id)
        given = "" if reward is None else "fault" if reward.fault is not None else number(reward.value)
        credit_text = number(credits[event_id]) if event_id in credits else ""
        rows.append([str(record["turn"]), record["action"] or "", given, credit_text])
    if rows and (rewards or credits):
        typer.echo()
        print_table(["turn", "action", "reward", "credit"], rows)
    if one.score is not None:
        for line in one.to_json()["evidence"]:
            typer.echo(f"  {line}")


def _faults(outcome: "Replays") -> list[dict[str, Any]]:
    """Faults alike as one row, as `JobResult.faults` gives them."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for one in outcome.trials:
        for fault, times in Counter(one.faults).items():
            key = (fault.where, fault.type, fault.message, fault.at)
            row = found.setdefault(
                key,
                {**dict(zip(("where", "type", "message", "at"), key, strict=True)), "count": 0, "trials": 0},
            )
            row["count"] += times
            row["trials"] += 1
    return list(found.values())


def test(name: Named = None, project: ProjectOption = None, as_json: JsonOption = False) -> None:
    """Run a Verifier on its own cases, and end with code 1 if one fails.

    The cases are the files verifiers/NAME/cases/*.yaml: attempts, and what the Verifier must give for each.
    A judge is asked about each, which costs its model calls.
    """
    from plural_gym.cases import case_files, missing_kinds, run_cases

    found = open_project(project)
    name = describe.chosen("verifier", name, found, verb="test")
    verifier = found.verifiers[name]
    folder = verifier.folder
    assert folder is not None
    cases = f"{folder.relative_to(found.root).as_posix()}/cases"
    if not verifier.runs_again:
        raise UsageError(
            f"there is nothing to run: a person scores by Verifier {name!r} of kind {verifier.kind!r}, "
            "in plural review submit."
        )
    asked = len(case_files(folder))
    if not asked:
        raise UsageError(f"Verifier {name!r} has no cases; write the first: {cases}/correct.yaml.")
    if verifier.models():
        from plural_gym.gateway.client import require

        require(verifier.models())
        say(f"The judge is asked about {counted(asked, 'case')}.")
    results = run_cases(verifier, folder, found)
    failed = sum(not result.passed for result in results)
    lacking = missing_kinds(folder)
    if as_json:
        rows = [_case_record(result) for result in results]
        print_json({"verifier": name, "failed": failed, "missing": lacking, "cases": rows})
    else:
        _show_cases(results)
        for kind in lacking:
            say(f"! No case shows what is {kind}; add {cases}/{kind}.yaml.")
    if failed:
        raise typer.Exit(1)


def _case_record(result: "CaseResult") -> dict[str, Any]:
    differences = [{"what": one.what, "expected": one.expected, "got": one.got} for one in result.differences]
    return {
        "file": result.file,
        "name": result.name,
        "passed": result.passed,
        "differences": differences,
        "problems": [str(problem) for problem in result.problems],
    }


def _show_cases(results: "list[CaseResult]") -> None:
    for result in results:
        typer.echo(f"{'ok    ' if result.passed else 'FAILED'}  {result.file}  {result.name}")
        for line in (*result.differences, *result.problems):
            typer.echo(f"        {line}")
    passed = sum(result.passed for result in results)
    typer.echo(f"{passed} of {counted(len(results), 'case')} passed.")
