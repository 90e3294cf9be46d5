"""The words by which a stack of layers is written down, on the command line, in configurations and in files.

A network is words joined by hyphens, from the input upwards, as in `16c5-2p-32c5s2-2p-128`:

    128       dense: every neuron sees all that is below
    128r      dense and recurrent: it also sees the layer's own last spikes
    16c5      convolution: 16 maps with kernels of 5 × 5, stride 1, padded by (5 − 1)/2 (rounded down) on every side, so
              that an odd kernel keeps height and width
    16c5s2    the same with stride 2
    16c5p0    the same without padding; `16c5s2p1`: stride 2, a padding of 1
    2p        pooling: the sum of the spikes of 2 × 2 neighbours of each map; rows and columns left over are dropped
    2m        pooling: their maximum, a spike where any of the four fires

Convolutions and poolings need inputs with a height and a width and come before the first dense layer, after which there
is none. A pooling has no weights, no neurons and no delay: it belongs to the layer above it.
"""

import re
from dataclasses import dataclass

from bayspike.errors import UserError, require

LARGEST = 2**20  # of any number in a word
WORDS = "128 (dense), 128r (recurrent), 16c5, 16c5s2 or 16c5p0 (convolutions), 2p or 2m (poolings)"
_WORD = re.compile(r"(\d{1,7})(r)?|(\d{1,7})c(\d{1,7})(?:s(\d{1,7}))?(?:p(\d{1,7}))?|(\d{1,7})([pm])")


@dataclass(frozen=True)
class Dense:
    """A layer of neurons that see everything below."""

    neurons: int
    recurrent: bool = False

    def __str__(self) -> str:
        return f"{self.neurons}{'r' if self.recurrent else ''}"


@dataclass(frozen=True)
class Conv:
    """Maps of neurons that share a kernel."""

    maps: int
    kernel: int
    stride: int = 1
    padding: int | None = None  # None: (kernel − 1)/2, rounded down

    @property
    def border(self) -> int:
        return (self.kernel - 1) // 2 if self.padding is None else self.padding

    def __str__(self) -> str:
        stride = "" if self.stride == 1 else f"s{self.stride}"
        return f"{self.maps}c{self.kernel}{stride}{'' if self.padding is None else f'p{self.padding}'}"


@dataclass(frozen=True)
class Pool:
    """Windows of size × size whose spikes are summed, or their maximum taken."""

    size: int
    largest: bool = False

    def __str__(self) -> str:
        return f"{self.size}{'m' if self.largest else 'p'}"


Word = Dense | Conv | Pool


def parse_stack(text: str) -> tuple[Word, ...]:
    """The words of a network; a mistake is one sentence that says where it is."""
    parts = text.strip().split("-")
    found: list[Word] = []
    for place, part in enumerate(parts, start=1):
        where = f"network {_short(text)!r}, word {place} ({_short(part)!r})"
        matched = _WORD.fullmatch(part.strip())
        if matched is None:
            raise UserError(f"{where} is none of {WORDS}.")
        neurons, own, maps, kernel, stride, padding, size, kind = matched.groups()
        for number in (neurons, maps, kernel, stride, size):
            require(number is None or int(number) > 0, f"{where}: sizes are whole numbers from 1 on.")
        for number in (neurons, maps, kernel, stride, padding, size):
            require(number is None or int(number) <= LARGEST, f"{where}: no number may be above {LARGEST:,}.")
        flat = any(isinstance(each, Dense) for each in found)
        if neurons is not None:
            found.append(Dense(int(neurons), own is not None))
            continue
        require(not flat, f"{where} comes after a dense layer, which has neither height nor width.")
        if kind is not None:
            found.append(Pool(int(size), kind == "m"))
        else:
            found.append(Conv(int(maps), int(kernel), int(stride or 1), None if padding is None else int(padding)))
            require(
                padding is None or int(padding) < int(kernel), f"{where}: the padding must be smaller than the kernel."
            )
    require(
        any(not isinstance(each, Pool) for each in found),
        f"network {_short(text)!r} has no layer of neurons: add one, for example {_short(text)}-128.",
    )
    return tuple(found)


def stack_text(words: tuple[Word, ...]) -> str:
    """The text that `parse_stack` reads as these words."""
    return "-".join(map(str, words))


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "…"
