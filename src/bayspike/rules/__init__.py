"""Learning rules, one file each, all of the protocol in `bayspike.rules.base`.

In come, at every time-step, the two factors of each example's local gradient; out goes the new state of one layer's
weights, and on request the distribution that it stands for. A rule knows no network, no data and no other rule.
"""

from bayspike.rules.base import Rule, initial_weights, state_bytes
from bayspike.rules.bernoulli import BernoulliVI
from bayspike.rules.bgd import BGD
from bayspike.rules.ewc import EWC
from bayspike.rules.gaussian import GaussianVI
from bayspike.rules.laplace import Laplace
from bayspike.rules.mesu import MESU
from bayspike.rules.metaplastic import Metaplastic
from bayspike.rules.sgd import SGD
from bayspike.rules.si import SI
from bayspike.rules.ste import STE
from bayspike.rules.tacos import TACOS

# The names by which the command line and configurations know the rules.
RULES: dict[str, type] = {
    "sgd": SGD,
    "ste": STE,
    "bayes": GaussianVI,
    "bayes-binary": BernoulliVI,
    "ewc": EWC,
    "laplace": Laplace,
    "tacos": TACOS,
    "mesu": MESU,
    "bgd": BGD,
    "si": SI,
    "metaplastic": Metaplastic,
}

__all__ = [
    "BGD",
    "EWC",
    "MESU",
    "RULES",
    "SGD",
    "SI",
    "STE",
    "TACOS",
    "BernoulliVI",
    "GaussianVI",
    "Laplace",
    "Metaplastic",
    "Rule",
    "initial_weights",
    "state_bytes",
]
