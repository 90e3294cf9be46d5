"""Weights of maps in the order of other tools: NIR and Lava put channels first, the networks here put them last."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayspike.hardware.wiring import Wiring


def to_kernels(rows: NDArray[Any], wiring: Wiring) -> NDArray[Any]:
    """Rows `(maps, fan-in)` as kernels `(maps, channels, down, across)`."""
    return np.ascontiguousarray(rows.reshape(len(rows), wiring.kernel, wiring.kernel, -1).transpose(0, 3, 1, 2))


def from_kernels(kernels: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(kernels.transpose(0, 2, 3, 1).reshape(len(kernels), -1))


def columns_first(matrix: NDArray[Any], maps: tuple[int, int, int] | None) -> NDArray[Any]:
    """Columns in the order (down, across, channel) put into that of (channel, down, across); None: of no maps."""
    if maps is None:
        return matrix
    order = np.arange(matrix.shape[-1]).reshape(maps).transpose(2, 0, 1).reshape(-1)
    return np.ascontiguousarray(matrix[..., order])


def columns_last(matrix: NDArray[Any], maps: tuple[int, int, int] | None) -> NDArray[Any]:
    """The inverse."""
    if maps is None:
        return matrix
    height, width, channels = maps
    order = np.arange(matrix.shape[-1]).reshape(channels, height, width).transpose(1, 2, 0).reshape(-1)
    return np.ascontiguousarray(matrix[..., order])


def maps_of(wiring: Wiring | None, rows: int) -> tuple[int, int, int] | None:
    """Height, width and channels of what a layer with so many rows of weights hands on; None: it is dense."""
    return None if wiring is None or not wiring.kernel else (*wiring.maps, rows)
