"""Pictures from anyone as grey bytes `(height, width)`: PNG, JPEG, BMP, GIF and PGM, told by their first bytes.

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
MOST_PIXELS = 2**25
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
    source: Path | bytes,
    size: tuple[int, int] | None = None,
    *,
    name: str | None = None,
    resize: bool = False,
    invert: bool = False,
) -> NDArray[np.uint8]:
    """The grey values of a picture in a file or in memory, bright on dark; `name` is what errors call it.

    size: height and width it must have, or with `resize` is brought to; another is refused before it is decoded.
    invert: for dark on light.
    """
    name = name or (str(source) if isinstance(source, Path) else "the picture")
    data = read_limited(source, LARGEST_PICTURE, "a picture") if isinstance(source, Path) else source
    require(len(data) <= LARGEST_PICTURE, f"{name} is larger than the {LARGEST_PICTURE:,} bytes that are read.")
    kind = next((kind for magic, kind in _KINDS.items() if data.startswith(magic)), None)
    if kind is None:
        raise UserError(f"{name} cannot be read as a picture: it is neither PNG, JPEG, BMP, GIF nor PGM.")
    from PIL import Image, ImageOps

    wanted = None if resize else size
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about sizes, which are bounded here, and odd metadata
            with Image.open(io.BytesIO(data), formats=[kind]) as picture:
                _check_size(picture, name, wanted, turned=True)
                turned = ImageOps.exif_transpose(picture)
                _check_size(turned, name, wanted)
                grey = _grey(turned, invert)
                if size is not None and grey.size != (size[1], size[0]):
                    grey = grey.resize((size[1], size[0]), Image.Resampling.BILINEAR)
                values = np.array(grey, dtype=np.uint8)
    except UserError:
        raise
    except Exception as error:  # decoders fail on damaged files in dozens of ways
        raise UserError(f"{name} cannot be read as a picture ({type(error).__name__}: {error}).") from error
    return 255 - values if invert else values


def _check_size(picture: "Image.Image", name: str, size: tuple[int, int] | None, *, turned: bool = False) -> None:
    """With `turned`, one lying on its side will do: what the camera says of that is read with the pixels."""
    height, width = picture.height, picture.width
    if size is not None:
        require(
            (height, width) == size or (turned and (width, height) == size),
            f"{name} has {height}×{width} pixels, not {size[0]}×{size[1]}: add --resize.",
        )
    require(
        0 < height * width <= MOST_PIXELS,
        f"{name} has {height}×{width} pixels, more than the {MOST_PIXELS:,} that are read.",
    )


def _grey(picture: "Image.Image", invert: bool) -> "Image.Image":
    """One byte a pixel. Where a picture is transparent there is nothing: dark, or light in one to be inverted."""
    from PIL import Image

    if picture.mode.startswith("I"):  # sixteen bits
        return Image.fromarray((np.asarray(picture).astype(np.int64).clip(0, 2**16 - 1) >> 8).astype(np.uint8))
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        clear = picture.convert("RGBA")
        ground = Image.new("RGBA", clear.size, (255, 255, 255, 255) if invert else (0, 0, 0, 255))
        picture = Image.alpha_composite(ground, clear)
    return picture.convert("L")
