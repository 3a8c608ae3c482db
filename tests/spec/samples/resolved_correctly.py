from plural import DeterministicVerifier, Episode, VerifierOutput


def resolved_correctly(episode: Episode) -> VerifierOutput:
    expected = episode.state.get("expected")
    category = episode.state.get("category")
    correct = bool(expected) and category == expected
    return VerifierOutput(
        score=float(correct),
        scores={"correct_category": float(correct)},
        evidence=[f"category: {category}; expected: {expected}; correct: {correct}"],
    )


completion = DeterministicVerifier(
    name="correct-resolution",
    check=resolved_correctly,
)
