"""Price talks: alternating offers between a buyer and a seller with private limits."""

from typing import Annotated, Any, Literal

from pydantic import Field

from plural import App, State, action

Price = Annotated[int, Field(ge=0, le=1000)]


class Talk(State):
    """What is traded, on which terms, and how far the talks have come."""

    item: str = "a used bicycle"
    buyer_limit: Price | None = None
    """The most that the item is worth to the buyer; drawn where none is given."""
    seller_limit: Price | None = None
    """The least that the seller can take; drawn where none is given."""
    rounds: Annotated[int, Field(ge=1, le=20)] = 10
    """How many offers there may be in all."""
    offers: list[dict[str, Any]] = []
    """Every offer so far: who made it, the price, and what was said with it."""
    turn: Literal["buyer", "seller"] = "buyer"
    price: int | None = None
    """What was agreed; None while nothing is."""
    ended: Literal["", "agreed", "walked away", "out of rounds"] = ""


class Talks(App):
    """Two people and one price. Whoever is asked may take the last offer, make another, or leave."""

    state: Talk

    def reset(self, task: Any) -> str:
        """Draw the limits that the Task leaves open."""
        if self.state.buyer_limit is None:
            self.state.buyer_limit = int(self.rng.integers(300, 800))
        if self.state.seller_limit is None:
            self.state.seller_limit = int(self.rng.integers(100, 600))
        return f"For sale: {self.state.item}. There are {self.state.rounds} offers at most."

    @action
    def offer(self, price: Price, message: Annotated[str, Field(max_length=500)] = "") -> str:
        """Propose a price, and say something with it.

        Args:
            price: in whole euros.
            message: what the other side reads.
        """
        assert self.seat is not None
        made = {"by": self.seat, "price": price, "message": message}
        self.state.offers = [*self.state.offers, made]
        self.state.turn = "seller" if self.seat == "buyer" else "buyer"
        if len(self.state.offers) >= self.state.rounds:
            self.state.ended = "out of rounds"
            return f"you offered {price}; that was the last round, and there is no deal"
        return f"you offered {price}"

    @action
    def accept(self) -> str:
        """Take the other side's last offer. This is binding."""
        if not self.state.offers:
            raise ValueError("there is no offer to accept yet; make one")
        self.state.price, self.state.ended = self.state.offers[-1]["price"], "agreed"
        return f"agreed on {self.state.price}"

    @action
    def walk_away(self) -> str:
        """End the talks without a deal."""
        self.state.ended = "walked away"
        return "you walked away"

    def is_legal(self, action: str, arguments: Any = None) -> bool:
        """Accept needs an offer."""
        return action != "accept" or bool(self.state.offers)

    def turn(self) -> str:
        """The two alternate; the buyer begins."""
        return self.state.turn

    def view(self, seat: str) -> dict[str, Any]:
        """The seat's own limit and what was said; never the other side's limit."""
        limit = self.state.buyer_limit if seat == "buyer" else self.state.seller_limit
        return {
            "you are": seat,
            "item": self.state.item,
            "your limit": limit,
            "offers": self.state.offers,
            "offers left": self.state.rounds - len(self.state.offers),
        }

    def forfeit(self, seat: str) -> None:
        """Who leaves has walked away."""
        self.state.ended = "walked away"

    def terminated(self) -> bool:
        """Over once there is a deal, or can be none."""
        return self.state.ended != ""
