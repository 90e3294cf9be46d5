"""Throughput of the event-file readers and of the encoders, on one core.

    python benchmarks/readers.py [--out readers.png]

Writes files of a million events of every format to a temporary folder, reads each a few times, and reports the
median in events a second of processor time (so that other work on the machine disturbs little); with `BAYSPIKE_DATA`
set, also the genuine N-MNIST recordings, read and binned. The first run of everything is a warm-up and is not counted.
"""

import argparse
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from bayspike.data import encoders
from bayspike.data.files.aedat import read_aedat2, read_aedat3
from bayspike.data.files.event_files import read_gesture_npy, read_nmnist
from bayspike.data.files.events import Events, binned
from bayspike.data.sets import nmnist

EVENTS = 1_000_000
RUNS = 7


def median_seconds(work: Callable[[], object], runs: int = RUNS) -> float:
    work()
    times = []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return float(np.median(times))


def write_files(folder: Path) -> dict[str, tuple[Path, Callable[[Path], Events]]]:
    """A file of `EVENTS` random events in each format."""
    random = np.random.default_rng(0)
    t = np.sort(random.integers(0, 8_000_000, EVENTS)).astype(np.uint32)
    x, y = random.integers(0, 34, (2, EVENTS)).astype(np.uint32)
    p = random.integers(0, 2, EVENTS).astype(np.uint32)

    aedat2 = np.stack([(y << 8) | (x << 1) | p, t], 1).astype(">u4")
    (folder / "2.aedat").write_bytes(b"#!AER-DAT2.0\r\n" + aedat2.tobytes())

    words = np.stack([(x << 17) | (y << 2) | (p << 1) | 1, t], 1).astype("<u4")
    with (folder / "3.aedat").open("wb") as stream:
        stream.write(b"#!AER-DAT3.1\r\n#!END-HEADER\r\n")
        for start in range(0, EVENTS, 1_000):
            part = words[start : start + 1_000]
            stream.write(struct.pack("<HHIIIIII", 1, 1, 8, 4, 0, len(part), len(part), len(part)) + part.tobytes())

    rows = np.stack([x, y, (p << 7) | (t >> 16), (t >> 8) & 255, t & 255], 1).astype(np.uint8)
    (folder / "n.bin").write_bytes(rows.tobytes())
    np.save(folder / "g.npy", np.stack([x, y, p, t / 1000], 1).astype(np.float64))
    return {
        "AEDAT 2.0": (folder / "2.aedat", read_aedat2),
        "AEDAT 3.1": (folder / "3.aedat", read_aedat3),
        "N-MNIST .bin": (folder / "n.bin", read_nmnist),
        "DVS-Gesture .npy": (folder / "g.npy", read_gesture_npy),
    }


def reader_rates() -> dict[str, float]:
    """Events a second of every reader, and of binning."""
    rates = {}
    with tempfile.TemporaryDirectory() as name:
        files = write_files(Path(name))
        for label, (path, read) in files.items():
            rates[label] = EVENTS / median_seconds(lambda path=path, read=read: read(path))
        events = read_nmnist(files["N-MNIST .bin"][0])
        rates["binning"] = EVENTS / median_seconds(lambda: binned(events, 50, 160_000))
    return rates


def encoder_times() -> dict[str, float]:
    """Nanoseconds per sample (one input at one time-step) of encoding 64 images over 50 steps."""
    values = torch.randint(0, 256, (64, 784), dtype=torch.uint8)
    generator = torch.Generator().manual_seed(0)
    samples = 50 * values.numel()
    byte = median_seconds(lambda: encoders.rate(values, 50, generator), 31)
    chance = values.float() / 256
    usual = median_seconds(lambda: torch.bernoulli(chance.expand(50, -1, -1), generator=generator))
    return {"rate encoder": byte / samples * 1e9, "torch.bernoulli": usual / samples * 1e9}


def draw(rates: dict[str, float], out: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 3.2), layout="constrained")
    ax = figure.subplots()
    names = list(rates)[::-1]
    bars = ax.barh(names, [rates[name] / 1e6 for name in names], color="#3fa7ff", height=0.62)
    ax.bar_label(bars, fmt="%.0f", padding=4)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set(xlabel="million events a second, one core", title="Reading and binning event files")
    ax.margins(x=0.1)
    figure.savefig(out, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write a figure of the readers' throughput here")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    rates = reader_rates()
    for name, rate in rates.items():
        print(f"{name:20} {rate / 1e6:8.1f} million events/s")
    for name, nanoseconds in encoder_times().items():
        print(f"{name:20} {nanoseconds:8.2f} ns a sample")
    if nmnist.find_folder(None):
        start = time.process_time()
        data = nmnist.load()
        count = len(data.train) + len(data.test)
        print(f"{'genuine N-MNIST':20} {time.process_time() - start:8.2f} s to read and bin {count:,} recordings")
    if out:
        draw(rates, out)


if __name__ == "__main__":
    main()
