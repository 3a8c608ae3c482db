"""Leduc poker (Southey et al. 2005): two cards each of J, Q and K, two rounds, at most two bets a round."""

from typing import Annotated, Any

from pydantic import Field

from plural import App, State, action

RANKS = ("J", "Q", "K")
"""From the lowest to the highest."""
BETS = (2, 4)
"""Chips that a bet adds, in the first round and in the second."""
MOST_BETS = 2
"""In one round: a bet and one raise."""


class Hand(State):
    """A hand in play, and what the hands before it came to."""

    hands: Annotated[int, Field(ge=1, le=1000)] = 1
    """How many hands are played."""
    played: int = 0
    deal: tuple[str, str, str] | None = None
    """The cards of `first` and `second` and the common one; drawn where none are given."""
    lines: list[list[str]] = [[]]
    """What was done in each round so far, in order."""
    pot: dict[str, int] = {"first": 1, "second": 1}
    """What each seat has put in: the ante of one chip, and its bets."""
    chips: dict[str, int] = {"first": 0, "second": 0}
    """Won or lost in the hands that are over."""
    shown: str = ""
    """How the last hand ended, as both seats may know."""


class LeducPoker(App):
    """A table for two. A pair with the common card wins, else the higher card; equal cards share."""

    state: Hand

    def reset(self, task: Any) -> str:
        """Deal the first hand."""
        if self.state.deal is None:
            self._deal()
        return (
            "Both seats ante one chip and get one of the cards J J Q Q K K. After the first round a common "
            "card is shown. A bet is 2 chips in the first round, 4 in the second; one raise a round."
        )

    def _deal(self) -> None:
        deck = self.rng.permutation([*RANKS, *RANKS])[:3]
        self.state.deal = (str(deck[0]), str(deck[1]), str(deck[2]))
        self.state.lines, self.state.pot = [[]], {"first": 1, "second": 1}

    @action
    def check(self) -> str:
        """Bet nothing; only while nobody has bet in this round."""
        return self._move("check")

    @action
    def bet(self) -> str:
        """Bet, or raise the other player's bet."""
        return self._move("bet")

    @action
    def call(self) -> str:
        """Match the other player's bet."""
        return self._move("call")

    @action
    def fold(self) -> str:
        """Give up the hand and what was put in."""
        return self._move("fold")

    def is_legal(self, action: str, arguments: Any = None) -> bool:
        """Check before a bet, call and fold after one, bet at most twice a round."""
        bets = self.state.lines[-1].count("bet")
        if action == "bet":
            return bets < MOST_BETS
        return (action in ("call", "fold")) == (bets > 0)

    def _move(self, move: str) -> str:
        assert self.seat is not None
        seat, other = self.seat, _other(self.seat)
        if not self.is_legal(move):
            legal = [name for name in ("check", "bet", "call", "fold") if self.is_legal(name)]
            raise ValueError(f"you cannot {move} now; {' or '.join(legal)}")
        state = self.state
        line = [*state.lines[-1], move]
        state.lines = [*state.lines[:-1], line]
        if move == "fold":
            return self._settle(other, f"{seat} folded")
        if move in ("bet", "call"):
            more = BETS[len(state.lines) - 1] if move == "bet" else 0
            state.pot = {**state.pot, seat: state.pot[other] + more}
        if move == "bet" or line == ["check"]:
            return f"you {move}"
        return self._next_round(f"you {move}")

    def _next_round(self, said: str) -> str:
        assert self.state.deal is not None
        first, second, common = self.state.deal
        if len(self.state.lines) == 1:
            self.state.lines = [*self.state.lines, []]
            return f"{said}; the common card is {common}"
        strength = {"first": _strength(first, common), "second": _strength(second, common)}
        winner = max(strength, key=lambda seat: strength[seat])
        shown = f"first showed {first}, second {second}, with {common}"
        return self._settle(winner if strength["first"] != strength["second"] else None, shown)

    def _settle(self, winner: str | None, how: str) -> str:
        """Pay out the hand, and deal the next one."""
        state = self.state
        lines = " / ".join(" ".join(line) for line in state.lines)
        if winner is None:
            state.shown = f"{lines}: {how}; the pot is shared"
        else:
            loser = _other(winner)
            stake, chips = state.pot[loser], state.chips
            state.chips = {**chips, winner: chips[winner] + stake, loser: chips[loser] - stake}
            state.shown = f"{lines}: {how}; {winner} won {stake}"
        state.played += 1
        if state.played < state.hands:
            self._deal()
        return state.shown

    def turn(self) -> str:
        """The seats alternate, `first` begins every round."""
        return "second" if len(self.state.lines[-1]) % 2 == 1 else "first"

    def view(self, seat: str) -> dict[str, Any]:
        """A seat's own card, the common one once it is shown, what was done, and the chips."""
        assert self.state.deal is not None
        return {
            "card": self.state.deal[0 if seat == "first" else 1],
            "common": self.state.deal[2] if len(self.state.lines) > 1 else None,
            "lines": self.state.lines,
            "pot": self.state.pot,
            "chips": self.state.chips[seat],
            "hand": f"{min(self.state.played + 1, self.state.hands)} of {self.state.hands}",
            "last hand": self.state.shown,
        }

    def forfeit(self, seat: str) -> None:
        """Who leaves loses what it put in, and the ante of every hand that is left."""
        state, other = self.state, _other(seat)
        lost = state.pot[seat] + state.hands - state.played - 1
        state.chips = {**state.chips, other: state.chips[other] + lost, seat: state.chips[seat] - lost}
        state.played, state.shown = state.hands, f"{seat} left"

    def terminated(self) -> bool:
        """Over after the last hand."""
        return self.state.played >= self.state.hands


def _strength(card: str, common: str) -> int:
    return RANKS.index(card) + (len(RANKS) if card == common else 0)


def _other(seat: str) -> str:
    return "second" if seat == "first" else "first"
