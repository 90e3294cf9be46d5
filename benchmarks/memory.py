"""How much memory training takes: against the number of time-steps, the mini-batch and the width of the layer.

    python benchmarks/memory.py [--json] [--few]

Each row is a process of its own that learns two mini-batches of noise by the Gaussian rule (784 inputs, ten classes);
`megabytes` is what that adds to the most memory the process has held, weights, prior and spikes included. The last two
columns are the same layer by snnTorch, frequentist: an update at every step, and back-propagation through time.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys

import torch
from rivals import Batch, snntorch_batch
from torch import Tensor
from training_step import forget_peak, ours, peak

from bayspike.spiking.network import Network, NetworkConfig, build

INPUTS = 784
# time-steps, mini-batch, neurons: one of them varied at a time
SETTINGS = [(10, 64, 400), (50, 64, 400), (200, 64, 400), (50, 16, 400), (50, 256, 400), (50, 64, 100), (50, 64, 1600)]
COLUMNS = {"plain": "plain", "compiled": "compiled", "snntorch_online": "snntorch", "snntorch_bptt": "snntorch_bptt"}


def child(name: str, time: int, batch: int, neurons: int) -> None:
    """Bytes that two mini-batches add."""
    torch.set_num_threads(1)
    random, labels = torch.Generator().manual_seed(0), torch.arange(batch) % 10
    images = torch.randint(0, 256, (batch, INPUTS), generator=random, dtype=torch.uint8)
    network = build(NetworkConfig(INPUTS, (neurons,), 10))
    key = ("bayes", "neuron, pull at every step")

    def candidate(network: Network, images: Tensor, labels: Tensor) -> Batch:
        if name in ("plain", "compiled"):
            return ours(key, network, images, labels, random, name)  # type: ignore[arg-type]
        return snntorch_batch(name, network.layers[0], images, labels, random)

    # what libraries and compilers take for themselves is not the training's
    candidate(build(NetworkConfig(8, (8,), 10)), images[:2, :8].contiguous(), labels[:2])(3)
    forget_peak()
    before = peak()
    train = candidate(network, images, labels)
    train(time)
    train(time)
    print(json.dumps(peak() - before))


def megabytes(name: str, setting: tuple[int, int, int]) -> object:
    needed = {"compiled": "numba", "snntorch": "snntorch", "snntorch_bptt": "snntorch"}.get(name)
    if needed and importlib.util.find_spec(needed) is None:
        return "not installed"
    command = [sys.executable, __file__, "--child", name, *map(str, setting)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return round(json.loads(done.stdout.splitlines()[-1]) / 2**20, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--few", action="store_true", help="two rows only")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child[0], *map(int, given.child[1:]))
        return
    rows = []
    for setting in SETTINGS[:2] if given.few else SETTINGS:
        facts = dict(zip(("time", "batch", "neurons"), setting, strict=True))
        rows.append({**facts, **{column: megabytes(name, setting) for column, name in COLUMNS.items()}})
    if given.json:
        print(json.dumps({"rows": rows}))
        return
    print("  ".join(f"{name:>15}" for name in rows[0]))
    for row in rows:
        print("  ".join(f"{value!s:>15}" for value in row.values()))


if __name__ == "__main__":
    main()
