"""Which form of the inner loops is used: the plain one of torch, the default and the reference, or a compiled one.

The compiled form (numba, the extra `fast`) does in one pass over memory what torch does in several, and gives the same
results within rounding. It is asked for by name, and the name is part of a run's configuration: a run that was begun
with it goes on with it. It serves dense layers without lateral synapses, of exponential filters, in single precision on
the CPU: whole committees and points, and the Gaussian rule with draws at the neurons. Everything else, a convolution
or a time block for example, takes the plain form whatever was asked for.
"""

from importlib.util import find_spec
from typing import Literal, get_args

from bayspike.errors import UserError, require

Kernels = Literal["plain", "compiled"]
KERNELS: tuple[Kernels, ...] = get_args(Kernels)


def check_kernels(name: str) -> None:
    """Refuse a name that is none."""
    require(name in KERNELS, f"kernels must be one of {', '.join(KERNELS)}, but is {name!r}.")


def require_kernels(name: str) -> None:
    """Refuse compiled kernels where there is no compiler too: asked where they are about to be used."""
    check_kernels(name)
    if name == "compiled" and find_spec("numba") is None:
        raise UserError(
            "kernels='compiled' needs numba, which is not installed: pip install 'bayspike[fast]', or choose 'plain'."
        )
