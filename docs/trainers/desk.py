"""The shipped support desk as trainers take it: a catalogue of eight calls, and text hashed to a vector.

The policy has to read the ticket, file it under the category that its text speaks of, and answer, send and
close in order. Sixteen tickets are for training, eight are held out.
"""

from typing import Any

import gymnasium as gym
from players import Player, success_rate

from plural_gym import shipped
from plural_gym.rl.wrappers import DiscreteActions, HashedTextObservation

ID = "plural_gym:plural/SupportDesk-v0"
CATEGORIES = ("billing", "bug", "account", "shipping")
REPLY = "Thank you for writing to us. We are looking into it and will answer within two working days."
CALLS: list[Any] = [
    "read_ticket",
    *[("categorize", {"category": category}) for category in CATEGORIES],
    ("draft_reply", {"text": REPLY}),
    "send_reply",
    "resolve",
]
"""The catalogue of `DiscreteActions`: a policy that writes no text chooses among texts that are given."""


def make(split: str = "train", size: int = 1024) -> gym.Env[Any, Any]:
    """Numbers in, numbers out. The right category is worth 1 at the end, each stage on the way 0.25."""
    env = gym.make(ID, split=split, score_as_reward=True)
    return HashedTextObservation(DiscreteActions(env, CALLS), size)


def rates(player: Player, games: int = 1) -> dict[str, float]:
    """The share of tickets filed rightly by split, over every one of it, `games` times each."""
    found = {}
    for split in ("train", "test"):
        names = shipped.project().tasks_of("support-desk", split).names
        tickets = [name for name in names if name.startswith("support-desk/")]  # others wait for a review
        found[split] = success_rate(make(split), player, tickets, games)
    return found
