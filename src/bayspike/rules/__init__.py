"""Learning rules, one file each, all of the protocol in `bayspike.rules.base`."""

from bayspike.rules.base import Rule, initial_weights, state_bytes
from bayspike.rules.bernoulli import BernoulliVI
from bayspike.rules.gaussian import GaussianVI
from bayspike.rules.sgd import SGD
from bayspike.rules.ste import STE

# The names by which the command line and configurations know the rules.
RULES: dict[str, type] = {
    "sgd": SGD,
    "ste": STE,
    "bayes": GaussianVI,
    "bayes-binary": BernoulliVI,
}

__all__ = ["RULES", "SGD", "STE", "BernoulliVI", "GaussianVI", "Rule", "initial_weights", "state_bytes"]
