"""Scores and rewards a table of lantern keepers, all alike."""

from plural import Episode, Step, VerifierOutput

LANTERNS = 8


def share(episode: Episode) -> VerifierOutput:
    """The share of the lanterns that were lit."""
    lit = episode.apps["table"].final["lit"]
    return VerifierOutput(score=sum(lit.values()) / LANTERNS, evidence=[f"lit: {lit}"])


def lantern(step: Step) -> dict[str, float] | None:
    """An eighth to every seat for a lantern, less for a misplaced card."""
    if step.error is not None:
        return None
    before, after = step.previous_state, step.current_state
    gained = sum(after["lit"].values()) - sum(before["lit"].values())
    lost = before["lives"] - after["lives"]
    worth = gained / LANTERNS - 0.05 * lost
    return {seat: worth for seat in after["hands"]} if worth else None
