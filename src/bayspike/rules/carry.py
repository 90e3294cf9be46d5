"""How hard the posterior of earlier tasks is to be held: the carry κ, by what is stored of them.

The less of the past can be shown again, the harder it must be held. The constants were fitted on validation images of
split-MNIST and on small digits: a rule of thumb that saves a search, and no law.
"""

from bayspike.rules.base import Pace

MOST_CARRY, LARGE_TASK = 3000.0, 2000.0  # κ where nothing is stored after large tasks; half of it with so many examples
ENOUGH, ENOUGH_SHARE = 12.3, 0.03  # examples of a class, and share of it, that make a difference when stored


def carry_at(pace: Pace, chosen: float | None, boundless: bool) -> float:
    """κ in natural units: chosen by hand or by `carry_for`, from the second task on. A rule without boundaries
    carries nothing unless it is told to."""
    if boundless:
        return 1.0 if chosen is None else chosen
    return carry_for(pace) if chosen is None or pace.first else chosen


def carry_for(pace: Pace) -> float:
    """κ by what is stored: 1 in the first task, which has no past; near 1, the paper's rule, where much is stored.

    A task of few new examples has taught little that could be held. What counts of the stored ones is how many there
    are of a class, and which share of it they are; one that is shifted when it is shown again counts for each place.
    """
    if pace.first:
        return 1.0
    learnt: float = 1 / (1 + (LARGE_TASK / max(1.0, pace.fresh)) ** 2.5)
    return max(1.0, MOST_CARRY * learnt / (1 + pace.stored / ENOUGH + pace.share / ENOUGH_SHARE) ** 2)
