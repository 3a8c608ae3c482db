"""How much closer the best guess so far has come to the secret word.

A row of marks is worth 0.1 for each `g` and 0.05 for each `y`. A guess earns what its row is worth more than
the best row before it, and the solving guess 0.5 more; a rejected guess loses 0.1. So the rewards of a solved
game without rejected guesses sum to 1.0 whatever its course, those of an unsolved one to less than 0.5, and
repeating a guess earns nothing.
"""

from itertools import product

from plural import Step

WORTH = {"".join(marks): 2 * marks.count("g") + marks.count("y") for marks in product("gy-", repeat=5)}
"""What each row of marks is worth, in twentieths: whole numbers, so that differences are exact."""
SOLVED = WORTH["ggggg"]


def progress(step: Step) -> float | None:
    """The growth of the best row's worth, in steps of 0.05; -0.1 for a rejected guess."""
    if step.error:
        return -0.1
    best = latest = 0
    for marks in step.current_state["marks"]:
        if latest > best:
            best = latest
        latest = WORTH[marks]
    if latest <= best:
        return 0.0
    growth = latest - best
    return (growth + 10) / 20 if latest == SOLVED else growth / 20
