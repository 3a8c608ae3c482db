from plural import Episode, VerifierOutput


def right_team(episode: Episode) -> VerifierOutput:
    answer = str(episode.answer or "").strip().lower()
    return VerifierOutput(
        score=float(answer == episode.expected),
        evidence=[f"answered {answer!r}, expected {episode.expected!r}"],
    )
