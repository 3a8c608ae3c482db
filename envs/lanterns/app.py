"""Lanterns: a small cooperative game of the Hanabi family (Bauza 2010) for three seats."""

from typing import Annotated, Any, Literal

from pydantic import Field

from plural import App, State, action

Seat = Literal["north", "east", "south"]
SEATS: tuple[Seat, ...] = ("north", "east", "south")
Color = Literal["red", "blue"]
COLORS: tuple[Color, ...] = ("red", "blue")
COPIES = {1: 3, 2: 2, 3: 2, 4: 1}
"""How many cards there are of each number, in each color."""
HAND = 3
HINTS = 6
LIVES = 3


class Table(State):
    """The cards, the lanterns that are lit, and what everybody has been told."""

    deck: list[str] = []
    hands: dict[str, list[str]] = {}
    """By seat; a card is `red 1`. Each seat sees all hands but its own."""
    told: dict[str, list[list[str]]] = {}
    """By seat and card, what the holder knows of it: `red`, `1`, `not blue`, …"""
    lit: dict[str, int] = {"red": 0, "blue": 0}
    """By color, the highest lantern that is lit."""
    dark: list[str] = []
    """Cards that were given up or misplaced."""
    hints: int = HINTS
    lives: int = LIVES
    turn: Seat = "north"
    last_turns: int = len(SEATS)
    """Turns that are left once the deck is empty."""
    log: list[str] = []
    """What has happened, as everybody saw it."""


class Lanterns(App):
    """Light the lanterns of each color from 1 to 4. You do not see your own cards; the others do."""

    state: Table

    def reset(self, task: Any) -> str:
        """Shuffle and deal."""
        cards = [
            f"{color} {number}"
            for color in COLORS
            for number, copies in COPIES.items()
            for _ in range(copies)
        ]
        deck = [cards[place] for place in self.rng.permutation(len(cards))]
        self.state.hands = {seat: [deck.pop() for _ in range(HAND)] for seat in SEATS}
        self.state.told = {seat: [[] for _ in range(HAND)] for seat in SEATS}
        self.state.deck = deck
        return (
            f"Two colors, numbers 1 to 4: three 1s, two 2s, two 3s and one 4 of each. {HINTS} hints, {LIVES} "
            "lives. A card that does not come next costs a life; giving one up brings a hint back."
        )

    @action
    def light(self, card: Annotated[int, Field(ge=1, le=HAND)]) -> str:
        """Put one of your own cards on the table, in the hope that it comes next in its color.

        Args:
            card: its place in your hand, from 1.
        """
        name = self._taken(card)
        color, number = name.split()
        if int(number) == self.state.lit[color] + 1:
            self.state.lit = {**self.state.lit, color: int(number)}
            return self._done(f"lit {name}")
        self.state.dark = [*self.state.dark, name]
        self.state.lives -= 1
        return self._done(f"misplaced {name}")

    @action
    def give_up(self, card: Annotated[int, Field(ge=1, le=HAND)]) -> str:
        """Give up one of your own cards and get a hint back.

        Args:
            card: its place in your hand, from 1.
        """
        name = self._taken(card)
        self.state.dark = [*self.state.dark, name]
        self.state.hints = min(self.state.hints + 1, HINTS)
        return self._done(f"gave up {name}")

    @action
    def hint(self, seat: Seat, about: Literal["red", "blue", "1", "2", "3", "4"]) -> str:
        """Tell another seat which of its cards are of a color, or of a number. Costs a hint.

        Args:
            seat: who is told.
            about: the color or the number.
        """
        if seat == self.seat:
            raise ValueError("tell another seat; you do not know your own cards")
        if not self.state.hints:
            raise ValueError("there are no hints left; light or give up a card")
        hand = self.state.hands[seat]
        places = [place for place, card in enumerate(hand, 1) if about in card.split()]
        if not places:
            raise ValueError(f"{seat} has no card that is {about}")
        told = [
            [*known, about if place in places else f"not {about}"]
            for place, known in enumerate(self.state.told[seat], 1)
        ]
        self.state.told = {**self.state.told, seat: told}
        self.state.hints -= 1
        return self._done(f"told {seat}: {about} at {', '.join(map(str, places))}")

    def _taken(self, card: int) -> str:
        """Take a card out of the acting seat's hand and draw another."""
        assert self.seat is not None
        hand, told = list(self.state.hands[self.seat]), list(self.state.told[self.seat])
        if card > len(hand):
            raise ValueError(f"you hold {len(hand)} cards")
        name = hand.pop(card - 1)
        told.pop(card - 1)
        if self.state.deck:
            hand.append(self.state.deck[-1])
            told.append([])
            self.state.deck = self.state.deck[:-1]
        self.state.hands = {**self.state.hands, self.seat: hand}
        self.state.told = {**self.state.told, self.seat: told}
        return name

    def _done(self, what: str) -> str:
        """Note what happened and pass the turn on."""
        assert self.seat is not None
        self.state.log = [*self.state.log, f"{self.seat} {what}"][-6:]
        if not self.state.deck:
            self.state.last_turns -= 1
        self.state.turn = SEATS[(SEATS.index(self.state.turn) + 1) % len(SEATS)]
        return what

    def is_legal(self, action: str, arguments: Any = None) -> bool:
        """Hints need a hint left, another seat and a card that fits; cards must be held."""
        if action == "hint":
            if not self.state.hints:
                return False
            if arguments is None:
                return True
            hand = self.state.hands[arguments["seat"]]
            return arguments["seat"] != self.seat and any(arguments["about"] in card.split() for card in hand)
        held = len(self.state.hands[self.seat]) if self.seat is not None else HAND
        return arguments is None or arguments["card"] <= held

    def turn(self) -> str:
        """North, east, south, and again."""
        return self.state.turn

    def view(self, seat: str) -> dict[str, Any]:
        """Every hand but the seat's own; of that only what it has been told."""
        return {
            "you are": seat,
            "hands": {other: hand for other, hand in self.state.hands.items() if other != seat},
            "others know": {other: told for other, told in self.state.told.items() if other != seat},
            "you know": self.state.told[seat],
            "lit": self.state.lit,
            "dark": self.state.dark,
            "hints": self.state.hints,
            "lives": self.state.lives,
            "cards left": len(self.state.deck),
            "log": self.state.log,
        }

    def forfeit(self, seat: str) -> None:
        """Whose keeper is gone is passed over: its cards stay where they are."""
        self.state.turn = SEATS[(SEATS.index(self.state.turn) + 1) % len(SEATS)]
        self.state.last_turns -= 1
        self.state.log = [*self.state.log, f"{seat} was passed over"][-6:]

    def terminated(self) -> bool:
        """Over when all is lit, no life is left, or the last turns are done."""
        return self.state.lives <= 0 or self.state.last_turns <= 0 or sum(self.state.lit.values()) == 8
