"""Was the secret word found? Reads the game's State, never what the Agent says."""

from collections.abc import Iterator

from plural import Episode, HindsightTrial, VerifierOutput


def solved(episode: Episode) -> VerifierOutput:
    """1 when the game was won, else 0; a game cut off before its end is not won."""
    game = episode.state
    won = float(game["status"] == "won")
    guesses = game["guesses"]
    return VerifierOutput(
        score=won,
        scores={"solved": won, "guesses": float(len(guesses))},
        evidence=[
            f"status: {game['status']}; secret: {game['secret']}; guesses: {', '.join(guesses) or 'none'}"
        ],
    )


def fewer_guesses(trial: HindsightTrial) -> Iterator[object]:
    """Credit the solving guess more when it took fewer guesses: 1.0, less 0.1 for each that came before.

    Rejected guesses are steps too, but the game does not count them, and neither does this.
    """
    guesses = [step for step in trial.steps("guess") if not step.get("error")]
    if trial.score and guesses:
        yield trial.credit(guesses[-1]["event_id"], 1.0 - 0.1 * (len(guesses) - 1))
