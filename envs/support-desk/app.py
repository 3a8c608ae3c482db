"""A support desk with one ticket, which goes from open over triaged and drafted to resolved."""

from typing import Literal

from plural import App, Board, Cell, State, action

Category = Literal["billing", "bug", "account", "shipping"]
STAGES = ("open", "triaged", "drafted", "resolved")


class Ticket(State):
    """One customer's ticket."""

    status: Literal["open", "triaged", "drafted", "resolved"] = "open"
    customer: str = "Ada Park"
    issue: str = "I was charged twice for my subscription this month."
    category: Category | None = None
    expected: Category = "billing"
    """The right category, which the Agent never sees."""
    draft_reply: str = ""
    sent: bool = False
    """Whether the customer got the reply."""


class Desk(App):
    """A support desk with one ticket: read it, file it, answer it, resolve it, in this order."""

    state: Ticket

    @action(read_only=True)
    def read_ticket(self) -> dict[str, str | bool | None]:
        """Show the customer's message and how far the ticket has come."""
        ticket = self.state
        return {
            "customer": ticket.customer,
            "issue": ticket.issue,
            "status": ticket.status,
            "category": ticket.category,
            "draft_reply": ticket.draft_reply,
            "sent": ticket.sent,
        }

    @action
    def categorize(self, category: Category) -> str:
        """File the open ticket under one category. This cannot be changed later.

        Args:
            category: billing (charges, refunds, invoices), bug (the product misbehaves), account (signing in,
                personal data, closing an account) or shipping (parcels and deliveries).
        """
        ticket = self.state
        if ticket.category is not None:
            raise ValueError(f"the ticket is filed under {ticket.category} already")
        ticket.category = category
        ticket.status = "triaged"
        return f"filed under {category}"

    @action
    def draft_reply(self, text: str) -> str:
        """Write the reply to the customer. A later draft replaces an earlier one until the reply is sent.

        Args:
            text: The whole reply.
        """
        ticket = self.state
        if ticket.status == "open":
            raise ValueError("file the ticket under a category before you draft a reply")
        if ticket.sent:
            raise ValueError("the reply was sent and cannot be changed")
        if not text.strip():
            raise ValueError("the reply is empty")
        ticket.draft_reply = text
        ticket.status = "drafted"
        return "draft saved"

    @action
    def send_reply(self) -> str:
        """Send the drafted reply to the customer."""
        ticket = self.state
        if ticket.status != "drafted":
            raise ValueError("there is no draft to send; write one with draft_reply")
        if ticket.sent:
            raise ValueError("the reply was sent already")
        ticket.sent = True
        return f"reply sent to {ticket.customer}"

    @action
    def resolve(self) -> str:
        """Close the ticket once its reply was sent."""
        ticket = self.state
        if not ticket.sent:
            raise ValueError("send a reply before you resolve the ticket")
        ticket.status = "resolved"
        return "ticket resolved"

    def board(self) -> Board:
        """The ticket as the desk's staff would see it; never the right category."""
        ticket = self.state
        reached = STAGES.index(ticket.status)
        colors = ["green"] * reached + ["blue"] + ["#30363d"] * (len(STAGES) - 1 - reached)
        facts = {
            "From": ticket.customer,
            "Wrote": ticket.issue,
            "Filed as": ticket.category or "–",
            "Reply": ticket.draft_reply or "–",
            "Sent": "yes" if ticket.sent else "no",
        }
        rows = [[Cell(name, color="grey"), value] for name, value in facts.items()]
        return Board([map(Cell, STAGES, colors), *rows], title="Ticket")

    def terminated(self) -> bool:
        """The ticket was resolved."""
        return self.state.status == "resolved"
