from plural import HindsightTrial


def fewer_guesses(trial: HindsightTrial):
    """Credit the solving guess more when it took fewer guesses."""
    guesses = trial.steps("guess")
    if trial.score:
        yield trial.credit(guesses[-1]["event_id"], 1.0 - 0.1 * (len(guesses) - 1))
