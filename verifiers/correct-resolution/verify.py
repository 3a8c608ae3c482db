"""Was the ticket filed under the right category, and how far has it come?"""

from plural import Episode, Step, VerifierOutput

ORDER = ("open", "triaged", "drafted", "resolved")


def resolved_correctly(episode: Episode) -> VerifierOutput:
    """1 when the ticket has the expected category, else 0. Reads State, not what the Agent said."""
    expected = episode.state.get("expected")
    category = episode.state.get("category")
    correct = bool(expected) and category == expected
    return VerifierOutput(
        score=float(correct),
        scores={"correct_category": float(correct)},
        evidence=[f"category: {category}; expected: {expected}; correct: {correct}"],
    )


def progress(step: Step) -> float | None:
    """A quarter for each stage the ticket moved on; -0.1 for a rejected action."""
    if step.error:
        return -0.1
    before = ORDER.index(step.previous_state["status"])
    after = ORDER.index(step.current_state["status"])
    return 0.25 * max(after - before, 0)
