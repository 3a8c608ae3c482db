"""Scores each side of a haggle by its share of the surplus."""

from plural import Episode, VerifierOutput


def share_of_surplus(episode: Episode) -> VerifierOutput:
    """What this seat gained, over the distance between the two limits."""
    final = episode.apps["talks"].final
    price, buyer, seller = final["price"], final["buyer_limit"], final["seller_limit"]
    surplus = buyer - seller
    if price is None:
        score = 1.0 if surplus <= 0 else 0.0
        return VerifierOutput(score=score, evidence=[f"no deal; there was {max(surplus, 0)} to gain"])
    gained = buyer - price if episode.seat == "buyer" else price - seller
    return VerifierOutput(
        score=gained / max(surplus, 1),
        scores={"gained": float(gained)},
        evidence=[f"agreed on {price}; the {episode.seat} gained {gained} of {max(surplus, 0)}"],
    )
