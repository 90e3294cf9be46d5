"""Mini-batches from the current task and the coresets of the past (paper, eqs. continual-freq-reg, bayes-hybrid).

The objective is a *sum of mean losses*: every past coreset weighs as much as the current data. `balanced` shares
each mini-batch equally among the current task and the k − 1 past ones: its mean loss is that sum divided by k, so
that the temperature ρ (or EWC's α) weighs k times what it would beside the sum. `pooled` draws uniformly from the
union, where a coreset weighs by its size; `none` never replays.

An epoch presents every example of the current task once. The plan of a task is a pure function of its seed, so a
run that is taken up again finds the same batches.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from bayspike.data.base import Samples
from bayspike.errors import UserError, require_range

Mixing = Literal["balanced", "pooled", "none"]


class Plan(NamedTuple):
    """All mini-batches of a task: for each presentation its source (0: current task, k: k-th coreset) and index."""

    sources: Tensor  # (presentations,)
    indices: Tensor  # (presentations,)
    batch: int

    def __len__(self) -> int:
        return -(-len(self.sources) // self.batch)

    @property
    def presentations(self) -> int:
        return len(self.sources)

    @property
    def replayed(self) -> int:
        """Presentations of stored examples."""
        return int((self.sources > 0).sum())

    def pick(self, position: int) -> tuple[Tensor, Tensor]:
        """Sources and indices of one mini-batch."""
        here = slice(position * self.batch, (position + 1) * self.batch)
        return self.sources[here], self.indices[here]


def plan_task(current: int, stored: Sequence[int], *, batch: int, epochs: int, mixing: Mixing, seed: int) -> Plan:
    """Plan a task of `current` examples with coresets of the `stored` sizes (empty ones are passed over)."""
    require_range("batch", batch, 1)
    require_range("epochs", epochs, 1)
    if mixing not in get_args(Mixing):
        raise UserError(f"replay must be one of {', '.join(get_args(Mixing))}, but is {mixing!r}.")
    generator = torch.Generator().manual_seed(seed)
    coresets = [k for k, size in enumerate(stored, start=1) if size > 0] if mixing != "none" else []
    fresh = torch.cat([torch.randperm(current, generator=generator) for _ in range(epochs)])
    if mixing == "balanced" and coresets:
        # One column per source and one example of each in every row: any window of rows is balanced.
        columns = [fresh] + [_cycle(stored[k - 1], len(fresh), generator) for k in coresets]
        names = torch.tensor([0, *coresets]).expand(len(fresh), -1)
        return Plan(names.flatten(), torch.stack(columns, dim=1).flatten(), batch)
    if not coresets:
        return Plan(torch.zeros_like(fresh), fresh, batch)
    sizes = torch.tensor([current] + [stored[k - 1] for k in coresets])
    sources = torch.tensor([0, *coresets]).repeat_interleave(sizes)
    indices = torch.cat([torch.arange(size) for size in sizes.tolist()])
    shuffle = torch.cat([torch.randperm(len(sources), generator=generator) for _ in range(epochs)])
    return Plan(sources[shuffle], indices[shuffle], batch)


def first_time(plan: Plan, position: int, current: int) -> Tensor:
    """Which presentations of a mini-batch are seen for the first time, as numbers in the order of `fetch`.

    A stored example was counted as evidence by its own task, and an example of this task in the first epoch.
    """
    sources, _ = plan.pick(position)
    before = int((plan.sources[: position * plan.batch] == 0).sum())
    fresh = int((sources == 0).sum())
    new = max(0, min(fresh, current - before))
    return torch.cat([torch.ones(new), torch.zeros(len(sources) - new)])


def _cycle(size: int, length: int, generator: torch.Generator) -> Tensor:
    """Indices 0 … size − 1 in fresh random orders, one after another, cut to `length`."""
    rounds = -(-length // size)
    return torch.cat([torch.randperm(size, generator=generator) for _ in range(rounds)])[:length]


def fetch(
    parts: Sequence[Samples], sources: Tensor, indices: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Spikes `(time, batch, inputs)` and labels of the presentations, grouped by source."""
    spikes, labels = [], []
    for source in sources.unique().tolist():
        chosen = indices[sources == source]
        spikes.append(parts[source].spikes(chosen, generator))
        labels.append(parts[source].labels[chosen])
    return torch.cat(spikes, dim=1), torch.cat(labels)
