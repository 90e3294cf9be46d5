"""Tiny data sets on disk, in the layouts of the real ones, so that every experiment can run anywhere."""

import struct
from pathlib import Path

import numpy as np
import pytest


def write_idx(path: Path, array: np.ndarray) -> None:
    header = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    path.write_bytes(header + array.astype(np.uint8).tobytes())


@pytest.fixture(scope="session")
def data_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MNIST with bars for digits, and N-MNIST with events on the same bars."""
    root = tmp_path_factory.mktemp("data")
    random = np.random.default_rng(0)
    (root / "mnist").mkdir()
    for part, count in (("train", 12), ("t10k", 4)):
        labels = np.tile(np.arange(10), count)
        images = random.integers(0, 30, (len(labels), 28, 28))
        for image, label in zip(images, labels, strict=True):
            image[:, 2 * label + 3 : 2 * label + 6] = 230
        write_idx(root / "mnist" / f"{part}-images-idx3-ubyte", images)
        write_idx(root / "mnist" / f"{part}-labels-idx1-ubyte", labels)
    for digit in range(10):
        folder = root / "nmnist" / "Train" / str(digit)
        folder.mkdir(parents=True)
        for number in range(8):
            t = np.sort(random.integers(0, 300_000, 400))
            x, y, p = random.integers(3 * digit, 3 * digit + 4, 400), random.integers(0, 34, 400), t % 2
            rows = zip(x.tolist(), y.tolist(), p.tolist(), t.tolist(), strict=True)
            body = b"".join(struct.pack(">BBBH", a, b, (c << 7) | (d >> 16), d & 0xFFFF) for a, b, c, d in rows)
            (folder / f"{number:05d}.bin").write_bytes(body)
    return root
