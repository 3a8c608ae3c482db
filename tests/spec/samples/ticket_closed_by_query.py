from plural import Episode, VerifierOutput


def ticket_closed(episode: Episode) -> VerifierOutput:
    ticket = episode.apps["crm"].query("get_ticket", id="T-7")
    return VerifierOutput(score=float(ticket["status"] == "closed"))
