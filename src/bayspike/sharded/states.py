"""Whole states from rows, and rows from whole states: for checkpoints, judges and the end of a run.

A checkpoint holds whole matrices, as that of one process does; so a run that was begun by any number of processes can
be taken up by any other number. The first process has to have room for the whole network.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bayspike.posteriors.distributions import Posterior
from bayspike.rules.base import Rule, State
from bayspike.sharded.exchange import Exchange
from bayspike.sharded.training import Part


def parts_by_rows(rule: Rule) -> set[str]:
    """The names of those parts of a rule's state that have a row for every neuron."""
    state = rule.init((2, 3), torch.Generator())
    return {name for name, part in state._asdict().items() if isinstance(part, Tensor) and len(part) == 2}


def whole_state(exchange: Exchange, part: Part, rule: Rule, state: State) -> State | None:
    """The state of a whole layer, in the first process; None in the others. A rule's scratch is left out."""
    by_rows, found = parts_by_rows(rule), dict[str, Any]()
    for name, each in state._asdict().items():
        if isinstance(each, Tensor):
            found[name] = exchange.gather(each, part.shares) if name in by_rows else each
        else:
            found[name] = None
    return None if exchange.rank else state._replace(**found)


def rows_of_state(exchange: Exchange, part: Part, rule: Rule, whole: State | None, own: State) -> State:
    """One's own rows of a whole state that the first process has; `own` is any state of the right shapes."""
    by_rows, found = parts_by_rows(rule), dict[str, Any]()
    for name, each in own._asdict().items():
        if not isinstance(each, Tensor):
            continue
        there = None if whole is None else getattr(whole, name)
        if name in by_rows:
            found[name] = exchange.scatter(there, part.shares, each)
        else:  # the same in all of them
            found[name] = exchange.total(torch.zeros_like(each) if there is None else there.to(each))
    return own._replace(**found)


def whole_posteriors(
    exchange: Exchange, parts: Sequence[Part], posteriors: Sequence[Posterior]
) -> list[Posterior] | None:
    """The distributions over all weights, in the first process; None in the others."""
    found: list[Posterior] = []
    for part, posterior in zip(parts, posteriors, strict=True):
        # every posterior is a dataclass of matrices
        whole = {name: exchange.gather(each, part.shares) for name, each in vars(posterior).items()}
        if not exchange.rank:
            found.append(type(posterior)(**whole))
    return None if exchange.rank else found
