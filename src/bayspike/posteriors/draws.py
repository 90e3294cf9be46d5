"""Random numbers from the caller's generator, wherever that lives: drawn there, then moved to where they are needed.

So the same generator gives the same numbers on every device.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def normal(shape: Sequence[int], like: Tensor, generator: torch.Generator) -> Tensor:
    """Standard normal numbers of the type and on the device of `like`."""
    return torch.randn(*shape, generator=generator, dtype=like.dtype, device=generator.device).to(like.device)


def uniform(shape: Sequence[int], like: Tensor, generator: torch.Generator) -> Tensor:
    """Numbers from [0, 1) of the type and on the device of `like`."""
    return torch.rand(*shape, generator=generator, dtype=like.dtype, device=generator.device).to(like.device)
