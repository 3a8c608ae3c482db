"""Kuhn poker (Kuhn 1950): three cards, one ante, at most one bet."""

from typing import Annotated, Any

from pydantic import Field

from plural import App, State, action

CARDS = ("J", "Q", "K")
"""From the lowest to the highest."""
ENDS = {
    ("check", "check"),
    ("bet", "call"),
    ("bet", "fold"),
    ("check", "bet", "call"),
    ("check", "bet", "fold"),
}


class Hand(State):
    """A hand in play, and what the hands before it came to."""

    hands: Annotated[int, Field(ge=1, le=1000)] = 1
    """How many hands are played."""
    played: int = 0
    deal: tuple[str, str] | None = None
    """The cards of `first` and `second`; drawn where none are given."""
    line: list[str] = []
    """What was done in this hand, in order."""
    chips: dict[str, int] = {"first": 0, "second": 0}
    """Won or lost in the hands that are over."""
    shown: str = ""
    """How the last hand ended, as both seats may know."""


class KuhnPoker(App):
    """A table for two. Each antes one chip and gets one of the cards J, Q and K."""

    state: Hand

    def reset(self, task: Any) -> str:
        """Deal the first hand."""
        if self.state.deal is None:
            self._deal()
        return "Both seats ante one chip. Cards from the lowest: J, Q, K. A bet is one chip."

    def _deal(self) -> None:
        first, second = self.rng.permutation(3)[:2]
        self.state.deal = (CARDS[first], CARDS[second])
        self.state.line = []

    @action
    def check(self) -> str:
        """Bet nothing; only before anybody has bet."""
        return self._move("check")

    @action
    def bet(self) -> str:
        """Bet one chip; only before anybody has bet."""
        return self._move("bet")

    @action
    def call(self) -> str:
        """Match the bet and show the cards."""
        return self._move("call")

    @action
    def fold(self) -> str:
        """Give up the hand, and the ante with it."""
        return self._move("fold")

    def is_legal(self, action: str, arguments: Any = None) -> bool:
        """Check and bet before a bet, call and fold after one."""
        return (action in ("call", "fold")) == ("bet" in self.state.line)

    def _move(self, move: str) -> str:
        if not self.is_legal(move):
            possible = "call or fold" if "bet" in self.state.line else "check or bet"
            raise ValueError(f"you cannot {move} now; {possible}")
        self.state.line = [*self.state.line, move]
        if tuple(self.state.line) in ENDS:
            return self._settle()
        return f"you {move}"

    def _settle(self) -> str:
        """Pay out the hand, and deal the next one."""
        assert self.state.deal is not None
        line, deal = self.state.line, self.state.deal
        if line[-1] == "fold":
            folder = "first" if len(line) % 2 == 1 else "second"
            winner, stake, how = _other(folder), 1, f"{folder} folded"
        else:
            winner = "first" if CARDS.index(deal[0]) > CARDS.index(deal[1]) else "second"
            stake, how = (2 if "bet" in line else 1), f"first showed {deal[0]}, second {deal[1]}"
        loser = _other(winner)
        chips = self.state.chips
        self.state.chips = {**chips, winner: chips[winner] + stake, loser: chips[loser] - stake}
        self.state.played += 1
        self.state.shown = f"{' '.join(line)}: {how}; {winner} won {stake}"
        if self.state.played < self.state.hands:
            self._deal()
        return self.state.shown

    def turn(self) -> str:
        """The seats alternate, `first` begins every hand."""
        return "second" if len(self.state.line) % 2 == 1 else "first"

    def view(self, seat: str) -> dict[str, Any]:
        """A seat's own card, what was done, and the chips."""
        assert self.state.deal is not None
        return {
            "card": self.state.deal[0 if seat == "first" else 1],
            "line": self.state.line,
            "chips": self.state.chips[seat],
            "hand": f"{min(self.state.played + 1, self.state.hands)} of {self.state.hands}",
            "last hand": self.state.shown,
        }

    def forfeit(self, seat: str) -> None:
        """Who leaves loses the ante of the hand and of every hand that is left."""
        left = self.state.hands - self.state.played
        chips, other = self.state.chips, _other(seat)
        self.state.chips = {**chips, other: chips[other] + left, seat: chips[seat] - left}
        self.state.played, self.state.shown = self.state.hands, f"{seat} left"

    def terminated(self) -> bool:
        """Over after the last hand."""
        return self.state.played >= self.state.hands


def _other(seat: str) -> str:
    return "second" if seat == "first" else "first"
