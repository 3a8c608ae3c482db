from plural import Episode, VerifierOutput


def ticket_closed(episode: Episode) -> VerifierOutput:
    crm = episode.apps["crm"]
    opened = crm.initial["tickets"]
    closed = [item for item in crm.final["tickets"] if item["status"] == "closed"]
    return VerifierOutput(
        score=float(any(item["id"] == "T-7" for item in closed)),
        evidence=[f"{len(closed)} of {len(opened)} tickets closed"],
    )
