"""One picture as grey bytes `(height, width)`: a few plain formats, nothing unpacked before its size is known."""

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bayspike.data.files.events import read_bytes
from bayspike.errors import UserError, require

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".pgm")
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "PPM")
LARGEST_FILE = 2**26  # bytes
MOST_PIXELS = 2**26


def read_picture(
    path: Path, size: tuple[int, int] | None = None, *, resize: bool = False, invert: bool = False
) -> NDArray[np.uint8]:
    """The picture in a file; see `parse_picture`."""
    return parse_picture(read_bytes(path, LARGEST_FILE), str(path), size, resize=resize, invert=invert)


def parse_picture(
    data: bytes, name: str, size: tuple[int, int] | None = None, *, resize: bool = False, invert: bool = False
) -> NDArray[np.uint8]:
    """Bytes of a file to grey bytes, bright on dark; `name` is what errors call it.

    size: height and width it must have, or with `resize` is brought to. invert: for dark on light.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    require(len(data) <= LARGEST_FILE, f"{name} is larger than the {LARGEST_FILE:,} bytes that are read.")
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as picture:
            pixels = picture.width * picture.height
            require(
                pixels <= MOST_PIXELS, f"{name} has {pixels:,} pixels, more than the {MOST_PIXELS:,} that are read."
            )
            turned = ImageOps.exif_transpose(picture)
            if size is not None and not resize:
                require(
                    (turned.height, turned.width) == size,
                    f"{name} has {turned.height}×{turned.width} pixels, not {size[0]}×{size[1]}: add --resize.",
                )
            grey = _grey(turned, invert)
            if size is not None and grey.size != (size[1], size[0]):
                grey = grey.resize((size[1], size[0]), Image.Resampling.BILINEAR)
            values = np.array(grey, dtype=np.uint8)
    except UserError:
        raise
    except UnidentifiedImageError as error:
        raise UserError(f"{name} cannot be read as a picture (PNG, JPEG, BMP, GIF or PGM).") from error
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise UserError(f"{name} cannot be read as a picture ({error}).") from error
    return 255 - values if invert else values


def _grey(picture: "Image.Image", invert: bool) -> "Image.Image":  # type: ignore[name-defined]  # noqa: F821
    """One byte a pixel. Where a picture is transparent there is nothing: dark, or light in one to be inverted."""
    from PIL import Image

    if picture.mode.startswith("I"):  # sixteen bits
        return Image.fromarray((np.asarray(picture).astype(np.int64).clip(0, 2**16 - 1) >> 8).astype(np.uint8))
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        clear = picture.convert("RGBA")
        ground = Image.new("RGBA", clear.size, (255, 255, 255, 255) if invert else (0, 0, 0, 255))
        picture = Image.alpha_composite(ground, clear)
    return picture.convert("L")
