"""Coresets (paper, Sec. "Regularization-based Continual Learning"): the few examples of a task kept for replay.

Drawn once, at the end of the task, and fixed from then on. `random` takes the same share of every class, as in the
paper; `herding` greedily picks the examples whose mean is nearest to the class mean; `medoids` those that leave every
example of the class near a kept one; `reservoir` is a uniform draw from the stream that never needs to know the classes
or the length of the task.
"""

from typing import Literal, get_args

import torch
from torch import Tensor

from bayspike.data.base import Samples
from bayspike.errors import UserError, require_range

Selection = Literal["random", "herding", "medoids", "reservoir"]
POOL = 1000  # examples of a class that herding and medoids look at: bounds their memory


def draw_coreset(samples: Samples, share: float, selection: Selection, generator: torch.Generator) -> Tensor:
    """Indices of the examples to keep: `share` of every class (at least one of each, none at share 0)."""
    require_range("coreset share", share, 0, 1)
    if selection not in get_args(Selection):
        raise UserError(f"coreset selection must be one of {', '.join(get_args(Selection))}, but is {selection!r}.")
    if share == 0:
        return torch.empty(0, dtype=torch.int64)
    if selection == "reservoir":
        return _reservoir(len(samples), max(1, round(share * len(samples))), generator)
    chosen = []
    for label in samples.labels.unique().tolist():
        members = (samples.labels == label).nonzero().flatten()
        count = max(1, round(share * len(members)))
        shuffled = members[torch.randperm(len(members), generator=generator)]
        if selection in CHOOSE:
            pool = shuffled[: max(POOL, count)]
            shuffled = pool[CHOOSE[selection](_rates(samples, pool, generator), count)]
        chosen.append(shuffled[:count])
    return torch.cat(chosen).sort().values


def _reservoir(length: int, size: int, generator: torch.Generator) -> Tensor:
    """Algorithm R: after any number of examples each seen so far is kept with the same probability."""
    kept = torch.arange(min(size, length))
    for index in range(size, length):
        slot = int(torch.randint(index + 1, (), generator=generator))
        if slot < size:
            kept[slot] = index
    return kept.sort().values


def _rates(samples: Samples, indices: Tensor, generator: torch.Generator) -> Tensor:
    """Spike rate of every input channel over time, `(batch, inputs)`."""
    return torch.cat([_rate(samples.spikes(part, generator)) for part in indices.split(256)])


def _rate(spikes: Tensor) -> Tensor:
    """Step after step: in floats, hundreds of recordings at once would take four times the room of their bytes."""
    count = torch.zeros(spikes.shape[1:], device=spikes.device)
    for step in spikes:
        count += step
    return count / len(spikes)


def _herd(features: Tensor, count: int) -> Tensor:
    """Greedy choice of `count` rows whose running mean stays closest to the mean of all."""
    target = features.mean(dim=0)
    total = torch.zeros_like(target)
    free = torch.ones(len(features), dtype=torch.bool)
    picks = []
    for taken in range(1, count + 1):
        distance = ((total + features) / taken - target).square().sum(dim=1)
        distance[~free] = torch.inf
        best = int(distance.argmin())
        picks.append(best)
        free[best] = False
        total += features[best]
    return torch.tensor(picks)


def _medoids(features: Tensor, count: int) -> Tensor:
    """Greedy choice of `count` rows under which Σ_i max_j cos(x_i, x_j), over the chosen j, grows fastest.

    The sum is submodular, so greed comes within 1 − 1/e of the best choice (facility location: Nemhauser, Wolsey &
    Fisher 1978). The mean tells what a class looks like; this, in how many ways.
    """
    if count == len(features):
        return torch.arange(count)
    rows = features / features.norm(dim=1, keepdim=True).clamp_min(torch.finfo(features.dtype).tiny)
    alike = rows @ rows.T
    nearest = torch.full((len(rows),), -1.0, dtype=alike.dtype)
    free = torch.ones(len(rows), dtype=torch.bool)
    picks = []
    for _ in range(count):
        gain = (alike - nearest).clamp_min(0).sum(dim=1)
        gain[~free] = -torch.inf
        best = int(gain.argmax())
        picks.append(best)
        free[best] = False
        nearest = torch.maximum(nearest, alike[best])
    return torch.tensor(picks)


CHOOSE = {"herding": _herd, "medoids": _medoids}  # by the rates of a class's examples
