"""Pictures from anyone: PNG, JPEG, BMP, GIF and PGM, told by their first bytes, and nothing else.

The decoder is never asked to guess: a file of another kind (some of which would start other programs) is refused before
it is opened, and so is one with more bytes or pixels than are read.
"""

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayspike.errors import UserError, require
from bayspike.storage.files import read_limited

if TYPE_CHECKING:
    from PIL import Image

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".pgm")
LARGEST_PICTURE = 2**26  # bytes
MOST_PIXELS = 2**24
_KINDS = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"BM": "BMP",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"P2": "PPM",
    b"P5": "PPM",
}


def read_picture(
    source: Path | bytes, name: str | None = None, shape: tuple[int, ...] | None = None
) -> NDArray[np.uint8]:
    """The grey values `(height, width)` of a picture in a file or in memory; `name` is what errors call it.

    With `shape`, a picture of another height and width is refused before it is decoded.
    """
    name = name or (str(source) if isinstance(source, Path) else "the picture")
    data = read_limited(source, LARGEST_PICTURE, "a picture") if isinstance(source, Path) else source
    require(len(data) <= LARGEST_PICTURE, f"{name} is larger than the {LARGEST_PICTURE:,} bytes that are read.")
    kind = next((kind for magic, kind in _KINDS.items() if data.startswith(magic)), None)
    if kind is None:
        raise UserError(f"{name} cannot be read as a picture: it is neither PNG, JPEG, BMP, GIF nor PGM.")
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about sizes, which are bounded here, and odd metadata
            with Image.open(io.BytesIO(data), formats=[kind]) as picture:
                _check_size(picture, name, shape)
                return np.array(picture.convert("L"), dtype=np.uint8)
    except UserError:
        raise
    except Exception as error:  # decoders fail on damaged files in dozens of ways
        raise UserError(f"{name} cannot be read as a picture ({type(error).__name__}: {error}).") from error


def _check_size(picture: "Image.Image", name: str, shape: tuple[int, ...] | None) -> None:
    height, width = picture.height, picture.width
    if shape is not None:
        fits = (height, width) == shape
        require(fits, f"{name} has {height}×{width} pixels, but the network takes {shape[0]}×{shape[1]}.")
    require(
        0 < height * width <= MOST_PIXELS,
        f"{name} has {height}×{width} pixels, more than the {MOST_PIXELS:,} that are read.",
    )
