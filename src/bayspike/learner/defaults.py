"""What a learner does where nothing is said."""

import math

from bayspike.continual.coresets import Selection
from bayspike.predict.watching import Score
from bayspike.rules import BernoulliVI, GaussianVI, Rule

HIDDEN = (200,)
TIME = 20
BATCH = 32
CORESET_SHARE = 0.1
CORESET_SELECTION: Selection = "medoids"  # level with random ones where many are stored, and ahead where few are
MEMBERS = 10
HELD_BACK = 0.1  # share of the examples that are not learnt but tell what the learner's own inputs look like
FALSE_ALARM = 0.05
FOREIGN_SCORE: Score = "entropy"  # all doubt, that of each member and that between them
REMEMBER = 2000.0  # examples, where there are no boundaries
HORIZON = 5.0  # the same for a rule in the units of the paper
REPLAY = 15  # stored examples beside each one that is learnt alone
MEMORY = 500  # examples stored of those that came alone
LEAST_BATCHES, MOST_EPOCHS = 30, 20  # of a task


def default_rule(binary: bool = False) -> Rule:
    """The learning rule of a learner that is given none: a posterior over every synapse.

    In natural units; of binary synapses in the paper's.
    """
    return BernoulliVI() if binary else GaussianVI()


def default_epochs(examples: int, batch: int) -> int:
    """Once through a large task; a small one is shown again, until it has made a fair number of mini-batches."""
    return min(MOST_EPOCHS, math.ceil(LEAST_BATCHES / math.ceil(examples / batch)))
