"""Do the members of a committee fire alike? A score for foreign inputs that no softmax can hide.

Members may name the same class for different reasons. With S_m the spikes of the last layer's neurons of member m,
counted up to a time-step, as its read-out has seen them, and M members with the mean S̄,

    discord = Σ_m ‖S_m − S̄‖² / Σ_m ‖S_m‖² = 1 − ‖Σ_m S_m‖² / (M · Σ_m ‖S_m‖²)

is the share of their activity in which they differ: 0 where all fire alike, 1 − 1/M where no two of them share a
neuron. It has no unit: the read-out's scale does not matter, and counts twice as high all round say the same. Mutual
information asks the same of their probabilities, which are near 0 or 1 where a read-out is sure: inputs that arrive
through synapses nothing is known of stir up different neurons in each member, and may still be called the same.
Where nobody fires there is nothing to differ in: 0.
"""

import torch
from torch import Tensor

from bayspike.predict.unrolled import Outcome


def discord_of(together: Tensor, apart: Tensor, members: int) -> Tensor:
    """From Σ_m S_m `(…, neurons)` and Σ_m ‖S_m‖² `(…)`."""
    shared = together.double().square().sum(-1) / (members * apart.double().clamp_min(1e-30))
    return torch.where(apart > 0, (1 - shared).clamp(0, 1), 0.0)  # rounding alone can take it below zero


def discord(counts: Tensor) -> Tensor:
    """From the spikes of every member's neurons, `(members, …, neurons)` to `(…)`."""
    return discord_of(*_sums(counts), len(counts))


class Tally:
    """Adds up what the members of some examples fired; a piece of members at a time, as the forward pass gives them.

    `over_time` keeps it for every time-step, else it is of the whole signal.
    """

    def __init__(self, members: int, time: int, batch: int, *, over_time: bool) -> None:
        self.members, self._over_time = members, over_time
        self.found = torch.zeros((time, batch) if over_time else (batch,), dtype=torch.float64)
        self._together: Tensor | None = None
        self._apart: Tensor | None = None

    def add(self, piece: Outcome, rows: slice) -> None:
        """`rows` are the piece's examples in the whole batch; pieces of the same examples follow one another."""
        together, apart = _over_time(piece) if self._over_time else _sums(piece.tally)
        self._together = together if self._together is None else self._together + together
        self._apart = apart if self._apart is None else self._apart + apart
        if piece.members.stop < self.members:
            return
        found = discord_of(self._together, self._apart, self.members).cpu()
        if self._over_time:
            self.found[len(self.found) - len(found) :, rows] = found  # before, the read-out had not seen anything
        else:
            self.found[rows] = found
        self._together = self._apart = None


def _sums(counts: Tensor) -> tuple[Tensor, Tensor]:
    """Σ_m S_m and Σ_m ‖S_m‖²; no square of all counts is ever in memory."""
    return counts.sum(dim=0), torch.linalg.vector_norm(counts, dim=(0, -1)).square()


def _over_time(piece: Outcome) -> tuple[Tensor, Tensor]:
    """The same after every step: counts of one moment at a time, which stay in the cache."""
    counts = torch.zeros_like(piece.tally)
    steps, (_, batch, neurons) = piece.fired.shape[1], counts.shape
    together, apart = counts.new_empty(steps, batch, neurons), counts.new_empty(steps, batch)
    for step, spikes in enumerate(piece.fired.unbind(1)):
        counts += spikes
        together[step], apart[step] = _sums(counts)
    return together, apart
