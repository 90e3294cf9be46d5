"""Denormal numbers: slow on many processors, and of no use here.

Squared errors underflow and traces die away, and products with denormal factors can take several times as long. The
switch that flushes them to nought belongs to the thread, not to a computation, so it is put back after use.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def flushed_denormals() -> Iterator[None]:
    """Let denormal numbers count as nought within the block; usable as a decorator too."""
    already = sys.float_info.min / 2 == 0.0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(already)
