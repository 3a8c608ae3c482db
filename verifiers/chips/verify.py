"""Rewards every seat of a game for chips with what a hand changed."""

from plural import Step


def won(step: Step) -> dict[str, float] | None:
    """What each seat won or lost with this action; None while the hand goes on."""
    if step.error is not None:
        return None
    before, after = step.previous_state["chips"], step.current_state["chips"]
    if before == after:
        return None
    return {seat: float(after[seat] - before[seat]) for seat in after}
