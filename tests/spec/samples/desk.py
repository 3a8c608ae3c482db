"""The support desk of the samples, and the CRM beside it."""

from typing import Literal

from plural import App, State, action


class Ticket(State):
    status: Literal["open", "triaged", "drafted", "resolved"] = "open"
    category: str | None = None
    expected: str = "billing"
    draft_reply: str = ""


class Desk(App):
    state: Ticket

    @action
    def categorize(self, category: Literal["billing", "bug", "account"]) -> str:
        """File the ticket under a category."""
        if self.state.status != "open":
            raise ValueError("the ticket has a category already")
        self.state.category, self.state.status = category, "triaged"
        return f"filed under {category}"

    @action
    def send_reply(self, text: str) -> str:
        """Answer the customer."""
        self.state.draft_reply, self.state.status = text, "drafted"
        return "sent"

    @action
    def resolve(self) -> str:
        """Close the ticket."""
        self.state.status = "resolved"
        return "resolved"

    def terminated(self) -> bool:
        return self.state.status == "resolved"


class Records(State):
    tickets: list[dict[str, str]] = [{"id": "T-7", "status": "open"}, {"id": "T-8", "status": "open"}]
    customers: dict[str, dict[str, str]] = {"C-1": {"name": "Ada"}}


class Crm(App):
    state: Records

    @action(read_only=True)
    def get_ticket(self, id: str) -> dict[str, str]:
        """Show one ticket."""
        return next(ticket for ticket in self.state.tickets if ticket["id"] == id)

    @action(read_only=True)
    def get_customer(self, id: str) -> dict[str, str]:
        """Show one customer."""
        return self.state.customers[id]

    @action
    def close_ticket(self, id: str) -> str:
        """Close one ticket."""
        self.get_ticket(id)["status"] = "closed"
        return f"{id} closed"


class Board(State):
    secret: str = "crane"
    guesses: list[str] = []


class Game(App):
    state: Board

    @action
    def guess(self, word: str) -> str:
        """Guess the word."""
        if len(word) != 5:
            raise ValueError("a word has five letters")
        self.state.guesses.append(word)
        return "solved" if word == self.state.secret else "wrong"

    def terminated(self) -> bool:
        return self.state.secret in self.state.guesses


def play_desk(task, seat):
    seat.act("categorize", category="billing")
    seat.act("send_reply", text="Dear Ada, …")
    seat.act("resolve")
