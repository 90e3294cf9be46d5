"""Other libraries' training step on the same layers: snnTorch, Norse and SpikingJelly, all frequentist.

    python benchmarks/peers.py [--json] [--network 784-400 2x34x34-16c5-2p-32c5-2p-128] [--threads 1] [--repeats 5]

A dense layer (batch 64) or a stack of convolutions (batch 32) of current-based leaky neurons, ten classes, noise of
which a twentieth of the inputs fires at every step; encoding is not counted. Two ways to learn:

- `online`  an update at every time-step, each layer from a fixed read-out of its own by autograd within the step;
- `bptt`    one update a mini-batch by back-propagation through time, from the last layer's read-out.

SpikingJelly's `bptt` is its multi-step mode, all time-steps of a layer at once; its neurons have no synaptic current.

`milliseconds` is the time of one time-step; `bayes_over_it` and `sgd_over_it` are the time of bayspike's step over it
(its Gaussian rule, an update of means and precisions at every step, and its SGD; compiled kernels where there are any
and numba is installed): below 1 bayspike is faster. Every candidate is timed in turn with bayspike's step in a process
of its own; figures are medians, with one thread of the processor's time.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time as clock
from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, cross_entropy

from bayspike.learning.batch import init_states, train_batch
from bayspike.rules import SGD, GaussianVI, Rule
from bayspike.spiking.network import NetworkConfig, build

LIBRARIES = ("snntorch", "norse", "spikingjelly")
TIME, CLASSES, RATE, SLOPE = 20, 10, 0.05, 4.0
SYNAPSE, MEMBRANE, THRESHOLD = 0.5, 0.9, 1.0
Cell = Callable[[Tensor, Any], tuple[Tensor, Any]]  # currents and state of a step to spikes and state


def shape_and_words(network: str) -> tuple[tuple[int, ...], list[str]]:
    first, *words = network.split("-")
    return tuple(int(side) for side in first.split("x")), words


def cell_of(library: str) -> tuple[Cell, Callable[[Any], Any]]:
    """A layer's neurons, and how their state is cut off from the past."""
    if library == "snntorch":
        import snntorch

        grad = snntorch.surrogate.sigmoid(slope=SLOPE)
        cells = snntorch.Synaptic(SYNAPSE, MEMBRANE, threshold=THRESHOLD, spike_grad=grad, reset_mechanism="zero")

        def step(current: Tensor, state: Any) -> tuple[Tensor, Any]:
            emitted, *kept = cells(current, *(state or cells.init_synaptic()))
            return emitted, tuple(kept)

        return step, lambda state: tuple(each.detach() for each in state)
    if library == "norse":
        from norse.torch import LIFCell, LIFParameters

        rates = {"tau_syn_inv": (1 - SYNAPSE) * 1000, "tau_mem_inv": (1 - MEMBRANE) * 1000}
        parameters = {name: torch.as_tensor(value) for name, value in rates.items()}
        norse_cell = LIFCell(LIFParameters(**parameters, v_th=torch.as_tensor(THRESHOLD)))  # type: ignore[arg-type]
        return norse_cell, lambda state: type(state)(*(each.detach() for each in state))
    from spikingjelly.activation_based import neuron, surrogate

    node = neuron.LIFNode(
        tau=1 / (1 - MEMBRANE), v_threshold=THRESHOLD, surrogate_function=surrogate.Sigmoid(SLOPE), detach_reset=True
    )

    def fire(current: Tensor, state: Any) -> tuple[Tensor, Any]:
        if state is None:
            node.reset()
        return node(current), True  # the state is the node's own

    def detach(state: Any) -> Any:
        node.detach()
        return state

    return fire, detach


class PeerLayer:
    """Synapses of torch, neurons of a library, and a fixed read-out."""

    def __init__(self, library: str, word: str, shape: tuple[int, ...]) -> None:
        self.pool = int(word[:-1]) if word.endswith("p") else 0
        self.shape = shape
        if self.pool:
            self.shape = (shape[0], shape[1] // self.pool, shape[2] // self.pool)
            return
        if "c" in word:
            maps, kernel = map(int, word.split("c"))
            self.synapses: torch.nn.Module = torch.nn.Conv2d(shape[0], maps, kernel, padding=kernel // 2, bias=False)
            self.shape = (maps, shape[1], shape[2])  # odd kernels with a border, as in bayspike
        else:
            self.synapses = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(prod(shape), int(word), bias=False))
            self.shape = (int(word),)
        self.step, self.detach = cell_of(library)
        self.readout = torch.randn(CLASSES, prod(self.shape)) * prod(self.shape) ** -0.5
        self.optimiser = torch.optim.SGD(self.synapses.parameters(), lr=0.1)
        self.state: Any = None


def peer(library: str, way: str, network: str, spikes: Tensor, labels: Tensor) -> Callable[[], None]:
    shape, words = shape_and_words(network)
    layers = []
    for word in words:
        layers.append(PeerLayer(library, word, shape))
        shape = layers[-1].shape
    frames = spikes.float().view(len(spikes), len(labels), *shape_and_words(network)[0])
    learning = [layer for layer in layers if not layer.pool]

    def train() -> None:
        for layer in learning:
            layer.state = None
        total = torch.zeros(())
        for arriving in frames:
            for layer in layers:
                if layer.pool:
                    arriving = avg_pool2d(arriving, layer.pool) * layer.pool**2
                    continue
                emitted, layer.state = layer.step(layer.synapses(arriving), layer.state)
                if way == "online":
                    layer.optimiser.zero_grad()
                    cross_entropy(emitted.flatten(1) @ layer.readout.T, labels).backward()
                    layer.optimiser.step()
                    layer.state, emitted = layer.detach(layer.state), emitted.detach()
                arriving = emitted
            if way == "bptt":
                total = total + cross_entropy(arriving.flatten(1) @ learning[-1].readout.T, labels)
        if way == "bptt":
            for layer in learning:
                layer.optimiser.zero_grad()
            (total / len(frames)).backward()
            for layer in learning:
                layer.optimiser.step()

    return train


def spikingjelly_at_once(network: str, spikes: Tensor, labels: Tensor) -> Callable[[], None]:
    """SpikingJelly's multi-step mode: a layer sees all time-steps in one call."""
    from spikingjelly.activation_based import neuron, surrogate

    shape, words = shape_and_words(network)
    frames, layers = spikes.float().view(-1, *shape), []
    for word in words:
        layers.append(PeerLayer("spikingjelly", word, shape))
        shape = layers[-1].shape
    learning = [layer for layer in layers if not layer.pool]
    nodes = [
        neuron.LIFNode(
            tau=1 / (1 - MEMBRANE), v_threshold=THRESHOLD, surrogate_function=surrogate.Sigmoid(SLOPE),
            detach_reset=True, step_mode="m",
        )
        for _ in learning
    ]  # fmt: skip

    def train() -> None:
        arriving, left = frames, iter(nodes)
        for layer in layers:
            if layer.pool:
                arriving = avg_pool2d(arriving, layer.pool) * layer.pool**2
                continue
            node = next(left)
            node.reset()
            currents = layer.synapses(arriving)
            arriving = node(currents.view(len(spikes), len(labels), *currents.shape[1:])).flatten(0, 1)
            layer.optimiser.zero_grad()
        logits = arriving.flatten(1) @ learning[-1].readout.T
        cross_entropy(logits, labels.repeat(len(spikes))).backward()
        for layer in learning:
            layer.optimiser.step()

    return train


def ours(rule: Rule, network: str, spikes: Tensor, labels: Tensor) -> Callable[[], None]:
    shape, words = shape_and_words(network)
    dense = len(words) == 1
    config = NetworkConfig(
        prod(shape), (int(words[0]),) if dense else (), CLASSES,
        layers="" if dense else "-".join(words), shape=() if dense else shape,
    )  # fmt: skip
    stack, generator = build(config), torch.Generator().manual_seed(0)
    states = [rule.end_task(state) for state in init_states(stack, rule, generator)]
    kernels = "plain" if importlib.util.find_spec("numba") is None else "compiled"

    def train() -> None:
        nonlocal states
        states, _ = train_batch(stack, rule, states, spikes, labels, generator, kernels=kernels)  # type: ignore[arg-type]

    return train


def child(library: str, way: str, network: str, threads: str, repeats: str) -> None:
    torch.set_num_threads(int(threads))
    torch.set_flush_denormal(True)  # for all sides
    torch.manual_seed(0)
    shape = shape_and_words(network)[0]
    batch = 64 if len(shape) == 1 else 32
    spikes = (torch.rand(TIME, batch, prod(shape)) < RATE).to(torch.uint8)
    labels = torch.arange(batch) % CLASSES
    bayes = GaussianVI(lr=100.0, temperature=1e-8, prior_precision=300.0)
    candidates = [ours(rule, network, spikes, labels) for rule in (bayes, SGD())]
    at_once = library == "spikingjelly" and way == "bptt"
    other = spikingjelly_at_once(network, spikes, labels) if at_once else peer(library, way, network, spikes, labels)
    candidates.append(other)
    now = clock.process_time if torch.get_num_threads() == 1 else clock.perf_counter
    taken: list[list[float]] = [[] for _ in candidates]
    for number in range(int(repeats) + 1):
        for seconds, candidate in zip(taken, candidates, strict=True):
            begun = now()
            candidate()
            if number:
                seconds.append((now() - begun) / TIME)
    gaussian, sgd, theirs = (statistics.median(seconds) for seconds in taken)
    found = {"milliseconds": round(1000 * theirs, 3), "bayes_milliseconds": round(1000 * gaussian, 3)}
    found |= {"bayes_over_it": round(gaussian / theirs, 3), "sgd_over_it": round(sgd / theirs, 3)}
    print(json.dumps(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--network", nargs="+", default=["784-400", "2x34x34-16c5-2p-32c5-2p-128"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(*given.child)
        return
    rows: list[dict[str, Any]] = []
    for network in given.network:
        for library in LIBRARIES:
            for way in ("online", "bptt"):
                row: dict[str, Any] = {"network": network, "library": library, "way": way, "threads": given.threads}
                if importlib.util.find_spec(library) is None:
                    rows.append({**row, "milliseconds": "not installed"})
                    continue
                command = [sys.executable, __file__, "--child", library, way, network, str(given.threads)]
                environment = os.environ | {"OMP_NUM_THREADS": str(given.threads)}
                done = subprocess.run([*command, str(given.repeats)], capture_output=True, text=True, env=environment)
                if done.returncode:
                    reason = done.stderr.strip().splitlines()[-1][:120]
                    rows.append({**row, "milliseconds": f"does not run: {reason}"})
                    continue
                rows.append({**row, **json.loads(done.stdout.splitlines()[-1])})
    if given.json:
        print(json.dumps({"rows": rows}))
        return
    for row in rows:
        print("  ".join(f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
