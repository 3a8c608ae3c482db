"""Self-play that finds an equilibrium: counterfactual regret minimisation over a shipped poker world.

    python docs/parties/equilibrium.py kuhn-poker --iterations 400
    python docs/parties/equilibrium.py leduc-poker --iterations 200

The game tree is read off the live world, move by move, so what is solved is the world as Agents play it.
Prints how much an opponent who knew the strategy could win against it (exploitability) as it falls.
"""

import argparse
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from plural_gym import shipped

CARDS = ["J", "Q", "K"]


@dataclass
class Node:
    """One point of the game: a decision of a seat, or the end."""

    seat: int
    """Who decides, 0 or 1."""
    known: str = ""
    """All that the seat knows: its information set."""
    moves: dict[str, "Node"] = field(default_factory=dict)
    payoff: float = 0.0
    """At the end, what the first seat won."""


@dataclass
class Chance:
    """All deals of a game and how likely each is."""

    deals: list[tuple[float, Node]]


def read_tree(environment: str) -> Chance:
    """The whole game as the world plays it: every deal, every legal line of play."""
    project = shipped.project()
    env = project.environments[environment].aec(tasks=project.tasks_of(environment), task="one-hand")
    seats = env.possible_agents

    def replayed(deal: Any, line: tuple[str, ...]) -> Node:
        env.reset(seed=0, options={"setup": {"table": {"deal": list(deal)}}})
        for move in line:
            env.step(move)
        if env.game.over:
            return Node(0, payoff=env.game.score(seats[0]))
        seat = env.agent_selection
        view = json.dumps(env.game.live.view(seat))
        names = env.game.codec.names
        legal = [name for name, mark in zip(names, env.infos[seat]["action_mask"], strict=True) if mark]
        moves = {move: replayed(deal, (*line, move)) for move in legal}
        return Node(seats.index(seat), f"{seat} {view}", moves)

    return Chance([(chance, replayed(deal, ())) for deal, chance in deals(environment)])


def deals(environment: str) -> Iterator[tuple[tuple[str, ...], float]]:
    """Every deal by ranks, with its probability."""
    deck, drawn = (CARDS, 2) if environment == "kuhn-poker" else (CARDS * 2, 3)
    drawings = list(itertools.permutations(range(len(deck)), drawn))
    for ranks in dict.fromkeys(tuple(deck[card] for card in cards) for cards in drawings):
        alike = sum(tuple(deck[card] for card in cards) == ranks for cards in drawings)
        yield ranks, alike / len(drawings)


class Solver:
    """CFR+ (Tammelin 2014): regrets never below 0, the average weighted by the iteration."""

    def __init__(self, game: Chance) -> None:
        self.game = game
        self.regrets: dict[str, dict[str, float]] = {}
        self.average: dict[str, dict[str, float]] = {}

    def run(self, iterations: int, watch: Callable[[int, "Solver"], None] | None = None) -> None:
        """Improve both seats in turn; `watch` is told now and then."""
        for iteration in range(1, iterations + 1):
            for seat in (0, 1):
                for chance, root in self.game.deals:
                    self._improve(root, seat, chance, 1.0, iteration)
                for values in self.regrets.values():
                    for move in values:
                        values[move] = max(values[move], 0.0)
            if watch is not None and (iteration & (iteration - 1) == 0 or iteration == iterations):
                watch(iteration, self)

    def _improve(self, node: Node, seat: int, others: float, own: float, weight: int) -> float:
        """The value of a node to `seat`; adds to the regrets of its decisions and to its average strategy."""
        if not node.moves:
            return node.payoff if seat == 0 else -node.payoff
        strategy = normal(self.regrets.setdefault(node.known, dict.fromkeys(node.moves, 0.0)))
        if node.seat != seat:
            return sum(
                strategy[move] * self._improve(child, seat, others * strategy[move], own, weight)
                for move, child in node.moves.items()
            )
        values = {
            move: self._improve(child, seat, others, own * strategy[move], weight)
            for move, child in node.moves.items()
        }
        value = sum(strategy[move] * values[move] for move in values)
        average = self.average.setdefault(node.known, dict.fromkeys(node.moves, 0.0))
        for move in values:
            self.regrets[node.known][move] += others * (values[move] - value)
            average[move] += weight * own * strategy[move]
        return value

    def strategy(self, known: str) -> dict[str, float]:
        """How often each move is made where a seat knows `known`."""
        return normal(self.average[known])

    def value(self) -> float:
        """What the first seat wins a hand when both play the average strategy."""

        def worth(node: Node) -> float:
            if not node.moves:
                return node.payoff
            strategy = self.strategy(node.known)
            return sum(strategy[move] * worth(child) for move, child in node.moves.items())

        return sum(chance * worth(root) for chance, root in self.game.deals)

    def exploitability(self) -> float:
        """What two players who knew the strategy would win against it, a hand and seat: 0 in equilibrium."""
        return sum(best_response(self.game, self.strategy, seat) for seat in (0, 1)) / 2


def best_response(game: Chance, strategy: Callable[[str], dict[str, float]], seat: int) -> float:
    """The most that a seat can win a hand against a strategy that it knows."""
    reached: dict[str, list[tuple[Node, float]]] = {}

    def gather(node: Node, weight: float) -> None:
        if not node.moves:
            return
        if node.seat == seat:
            reached.setdefault(node.known, []).append((node, weight))
        chances = strategy(node.known) if node.seat != seat else dict.fromkeys(node.moves, 1.0)
        for move, child in node.moves.items():
            gather(child, weight * chances[move])

    for chance, root in game.deals:
        gather(root, chance)
    chosen: dict[str, str] = {}

    def worth(node: Node) -> float:
        if not node.moves:
            return node.payoff if seat == 0 else -node.payoff
        if node.seat == seat:
            return worth(node.moves[choice(node.known)])
        chances = strategy(node.known)
        return sum(chances[move] * worth(child) for move, child in node.moves.items() if chances[move])

    def choice(known: str) -> str:
        if known not in chosen:
            nodes = reached[known]
            chosen[known] = max(
                nodes[0][0].moves,
                key=lambda move: sum(weight * worth(node.moves[move]) for node, weight in nodes),
            )
        return chosen[known]

    return sum(chance * worth(root) for chance, root in game.deals)


def normal(weights: dict[str, float]) -> dict[str, float]:
    """Weights as chances; all alike where none is above 0."""
    positive = {move: max(weight, 0.0) for move, weight in weights.items()}
    total = sum(positive.values())
    return {move: weight / total if total else 1 / len(positive) for move, weight in positive.items()}


def main() -> None:
    """Solve a game and print the curve."""
    parser = argparse.ArgumentParser(description="Solve a shipped poker world by self-play.")
    parser.add_argument("environment", choices=["kuhn-poker", "leduc-poker"])
    parser.add_argument("--iterations", type=int, default=400)
    asked = parser.parse_args()
    solver = Solver(read_tree(asked.environment))
    solver.run(asked.iterations, lambda at, now: print(f"{at:6}  exploitability {now.exploitability():.5f}"))
    print(f"value to the first seat {solver.value():+.5f}")


if __name__ == "__main__":
    main()
