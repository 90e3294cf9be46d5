"""How what the single time-steps say becomes one answer, at every step of a signal.

The paper takes the plain mean of the steps' probabilities (eqs. pred-conf-freq, pred-conf-bayes). A camera is silent
while nothing moves: then the read-out is silent too, its probabilities are uniform, and averaging them in makes every
answer less sure than it deserves. With p_s the probabilities of step s over K classes, and all sums over s ≤ t:

    mean      P_t = Σ p_s / t                                  the paper's, and the default
    weighted  P_t = Σ w_s·p_s / Σ w_s,  w_s = 1 − H(p_s)/log K   a step counts for what it knows; one that knows nothing
                                                               (w = 0) not at all
    logits    P_t = softmax(Σ log p_s / t)                     evidence adds up before it is made a probability: steps
                                                               that agree sharpen each other, silent ones only dilute

Each is a running sum of two numbers a step, what is said and how much it counts, so a stream keeps as little as a mean
does, and gives the very same answers as a whole signal. Members of a committee gather each for itself; the committee's
answer is the mean of theirs, as ever.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from bayspike.errors import require

Gather = Literal["mean", "weighted", "logits"]
GATHERS: tuple[Gather, ...] = get_args(Gather)
FLOOR = 1e-9  # probabilities below it count as it: one step must not be able to rule a class out for good
LEAST = 1e-6  # weight of the uniform answer beside all others: what is said where no step knows anything


class Form(NamedTuple):
    """One way to gather: what a step adds, and how the sums become probabilities."""

    say: Callable[[Tensor], tuple[Tensor, Tensor]]  # probabilities (…, classes) -> what is summed, its weight (…, 1)
    close: Callable[[Tensor, Tensor], Tensor]  # the two sums -> probabilities (…, classes)


def _plain(probabilities: Tensor) -> tuple[Tensor, Tensor]:
    return probabilities, torch.ones_like(probabilities[..., :1])


def _known(probabilities: Tensor) -> tuple[Tensor, Tensor]:
    entropy = -torch.special.xlogy(probabilities, probabilities).sum(dim=-1, keepdim=True)
    most = torch.tensor(float(probabilities.shape[-1]), dtype=probabilities.dtype).log()
    weight = (1 - entropy / most).clamp(0, 1)
    return weight * probabilities, weight


def _logs(probabilities: Tensor) -> tuple[Tensor, Tensor]:
    return probabilities.clamp_min(FLOOR).log(), torch.ones_like(probabilities[..., :1])


FORMS: dict[Gather, Form] = {
    "mean": Form(_plain, lambda said, weight: said / weight),
    "weighted": Form(_known, lambda said, weight: (said + LEAST / said.shape[-1]) / (weight + LEAST)),
    "logits": Form(_logs, lambda said, weight: torch.softmax(said / weight, dim=-1)),
}


def check_gather(name: str) -> None:
    require(name in GATHERS, f"gather must be one of {', '.join(GATHERS)}, but is {name!r}.")


def gathered(gather: Gather, probabilities: Tensor) -> Tensor:
    """The answer at every step from what each step says, `(…, time, batch, classes)`."""
    form = FORMS[gather]
    said, weight = form.say(probabilities.to(torch.float64))  # as a stream's sums are
    return form.close(said.cumsum(dim=-3), weight.cumsum(dim=-3)).to(probabilities.dtype)


class Gathering:
    """The sums of a stream: as many steps as may come, in the memory of one."""

    def __init__(self, gather: Gather, like: Tensor) -> None:
        self._form, self._dtype = FORMS[gather], like.dtype
        self._said = torch.zeros_like(like, dtype=torch.float64)
        self._weight = torch.zeros_like(self._said[..., :1])

    def forget(self) -> None:
        """Begin anew."""
        self._said.zero_()
        self._weight.zero_()

    def add(self, probabilities: Tensor, steps: int = 1) -> None:
        """Take in what `steps` steps say, all the same."""
        said, weight = self._form.say(probabilities.to(torch.float64))
        self._said += steps * said
        self._weight += steps * weight

    def answer(self) -> Tensor:
        """Probabilities as of now, of the shape and type of a step's."""
        return self._form.close(self._said, self._weight).to(self._dtype)
