"""Strokes of a pen as a picture like those of MNIST: scaled into a box, centred by mass, soft at the edges.

Strokes are lists of points `(x, y)` in a unit square, y downwards. The picture is computed here and not by the
browser, so that the same strokes are the same bytes everywhere.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayspike.errors import UserError, require

MOST_STROKES, MOST_POINTS = 100, 4000
BOX, PEN = 20 / 28, 1.15 / 28  # of MNIST: side of the box, and half the width of a stroke, in sides of the picture
LARGEST_SCALE = 4.0  # a dot stays a dot


def picture_of_strokes(strokes: Any, shape: tuple[int, int]) -> NDArray[np.uint8]:
    """Grey bytes `(height, width)`, bright on dark."""
    lines = _checked(strokes)
    side = min(shape)
    points = np.concatenate(lines)
    low, high = points.min(axis=0), points.max(axis=0)
    room = (BOX - 2 * PEN) * side
    scale = min(room / max(float((high - low).max()), 1e-9), LARGEST_SCALE * side)
    centre = np.array([shape[1], shape[0]]) / 2
    placed = [(line - (low + high) / 2) * scale + centre for line in lines]
    light = _light(placed, shape, PEN * side)
    rows, columns = np.indices(shape) + 0.5
    mass = np.array([(light * columns).sum(), (light * rows).sum()]) / light.sum()
    light = _light([line + (centre - mass) for line in placed], shape, PEN * side)
    return np.round(255 * light).astype(np.uint8)


def _light(lines: Sequence[NDArray[np.float64]], shape: tuple[int, int], pen: float) -> NDArray[np.float64]:
    """From 0 to 1 by the distance of each pixel from the nearest piece of a stroke, over the width of a pixel."""
    rows, columns = np.indices(shape) + 0.5
    nearest = np.full(shape, np.inf)
    for line in lines:
        ends = line[1:] if len(line) > 1 else line
        for start, end in zip(line, ends, strict=False):
            along = end - start
            length = float(along @ along)
            share = 0.0 if length == 0 else ((columns - start[0]) * along[0] + (rows - start[1]) * along[1]) / length
            share = np.clip(share, 0, 1)
            across = (columns - start[0] - share * along[0]) ** 2 + (rows - start[1] - share * along[1]) ** 2
            np.minimum(nearest, across, out=nearest)
    light: NDArray[np.float64] = np.clip(pen + 0.5 - np.sqrt(nearest), 0, 1)
    return light


def _checked(strokes: Any) -> list[NDArray[np.float64]]:
    require(isinstance(strokes, list) and 0 < len(strokes) <= MOST_STROKES, "a drawing has 1 to 100 strokes.")
    lines = []
    try:
        for stroke in strokes:
            line = np.array(stroke, dtype=np.float64)
            require(line.ndim == 2 and line.shape[1] == 2 and len(line) > 0, "a stroke is a list of points (x, y).")
            require(bool(((line >= -1) & (line <= 2)).all()), "a point lies far off the pad.")
            lines.append(line)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError("a stroke is a list of points (x, y).") from error
    require(sum(map(len, lines)) <= MOST_POINTS, f"a drawing has at most {MOST_POINTS:,} points.")
    return lines
