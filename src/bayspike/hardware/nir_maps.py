"""Convolutions and poolings as nodes of NIR, and back.

Maps are `(channels, height, width)` in NIR. A pooling is a `SumPool2d`; before a dense layer, or the read-out, a
`Flatten` (its dimensions do not count a batch, as all shapes of NIR). NIR has no maximum of spikes.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayspike.errors import UserError, require
from bayspike.hardware.wiring import Wiring


class Arriving(NamedTuple):
    """What reaches the next synapses of a graph that is being read."""

    maps: tuple[int, int, int] | None  # height, width, channels as the layer below hands them on; None: flat
    planes: bool = True  # it is the input of the network
    pools: tuple[int, ...] = ()
    scale: float = 1.0  # of averages, which are sums but for it

    def pooled(self) -> tuple[int, int, int]:
        assert self.maps is not None
        return Wiring(*self.maps, pools=self.pools).pooled

    def dense_wiring(self) -> Wiring | None:
        """Of a dense layer: none, unless something was pooled or the input itself has channels to be turned."""
        if self.maps is None or not (self.pools or self.planes):
            return None
        return Wiring(*self.maps, planes=self.planes, pools=self.pools)


def pool_node(nir: Any, side: int, where: str) -> Any:
    require(
        side > 0,
        f"{where} pools by the maximum, for which NIR has no node; train with sums (2p) or strides instead.",
    )
    return nir.SumPool2d(np.array([side, side]), np.array([side, side]), np.array([0, 0]))


def conv_node(nir: Any, kernels: NDArray[np.float64], wiring: Wiring) -> Any:
    height, width, _ = wiring.pooled
    both = (wiring.stride, wiring.stride), (wiring.padding, wiring.padding)
    return nir.Conv2d((height, width), kernels, *both, (1, 1), 1, np.zeros(len(kernels)))


def read_pool(nir: Any, node: Any, name: str, arriving: Arriving) -> Arriving:
    """A pooling of square windows side by side."""
    require(arriving.maps is not None, f"node {name!r} pools what has no height and width.")
    sizes, strides = np.ravel(node.kernel_size), np.ravel(node.stride)
    side = int(sizes[0])
    plain = len(set(map(int, (*sizes, *strides)))) == 1 and not np.any(node.padding)
    require(plain, f"node {name!r} must pool square windows side by side, without padding.")
    require(0 < side <= 2**16, f"node {name!r} pools windows of {side}.")
    share = side**-2 if isinstance(node, nir.AvgPool2d) else 1.0
    return arriving._replace(pools=(*arriving.pools, side), scale=arriving.scale * share)


def read_conv(node: Any, name: str, arriving: Arriving) -> tuple[NDArray[np.float64], Wiring]:
    """Kernels `(maps, channels, down, across)` and how they are wired."""
    require(arriving.maps is not None, f"node {name!r} slides over what has no height and width.")
    assert arriving.maps is not None
    kernels = np.asarray(node.weight, np.float64) * arriving.scale
    fits = kernels.ndim == 4 and kernels.shape[2] == kernels.shape[3] and kernels.shape[1] == arriving.maps[2]
    require(fits, f"node {name!r} must have square kernels of {arriving.maps[2]} channels, not {kernels.shape}.")
    require(not np.any(node.bias), f"node {name!r} has a bias, which the neurons here do not; train without one.")
    if isinstance(node.padding, str):
        raise UserError(f"node {name!r} names its padding {node.padding!r}: give it as numbers.")
    stride, padding, dilation = (np.ravel(each) for each in (node.stride, node.padding, node.dilation))
    alike = all(len(set(map(int, each))) == 1 for each in (stride, padding, dilation))
    require(
        alike and int(dilation[0]) == 1 and int(node.groups) == 1,
        f"node {name!r} must have one stride, one padding, no dilation and one group.",
    )
    sizes = (int(kernels.shape[2]), int(stride[0]), int(padding[0]))
    return kernels, Wiring(*arriving.maps, arriving.planes, arriving.pools, *sizes)
