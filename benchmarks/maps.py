"""What one time-step of training costs on a stack of convolutions and poolings: `training_step.py --network`.

The stack is trained on noise in which a share of the inputs fires at every step, the worst case: no place is silent.
For each rule the time of a step is set

- `over_products`  over that of the products it cannot avoid, each into memory that is there already: of patches with
  the weights (twice where potentials are drawn at the neurons), of errors with patches (for every example apart where
  squared gradients are wanted, once for all else), and the read-out's two;
- `over_snntorch`  over that of snnTorch's frequentist online step: torch's own convolutions, a local read-out and loss
  for each layer, autograd within the step, an update at every step.

Each candidate runs in a process of its own, in turn with the products; figures are medians.
"""

import json
import os
import statistics
import subprocess
import sys
import time as clock
from collections.abc import Callable, Iterator
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, cross_entropy, max_pool2d

from bayspike.learning.batch import init_states, train_batch
from bayspike.rules import SGD, GaussianVI, Rule
from bayspike.spiking.convolution import Convolution
from bayspike.spiking.layers import Layer
from bayspike.spiking.network import Network, NetworkConfig, build

BATCH, TIME, RATE = 32, 20, 0.05
PAPER = {"lr": 100.0, "temperature": 1e-8, "prior_precision": 300.0, "pull_every": TIME}
RULES: dict[tuple[str, str], Rule] = {
    ("sgd", "-"): SGD(),
    ("bayes", "neuron"): GaussianVI(**PAPER),  # type: ignore[arg-type]
    ("bayes", "synapse"): GaussianVI(**PAPER, sampling="synapse"),  # type: ignore[arg-type]
}


def network_of(words: str, shape: tuple[int, ...]) -> Network:
    constants = {"threshold": 0.25, "synapse_decay": 0.8, "membrane_decay": 0.8, "readout_scale": 24.0}
    return build(NetworkConfig(prod(shape), (), 10, layers=words, shape=shape, **constants))  # type: ignore[arg-type]


def products(network: Network, key: tuple[str, str]) -> Callable[[], None]:
    """All products of one time-step and nothing else."""
    forward = 2 if key[1] == "neuron" else 1
    steps: list[Callable[[], Any]] = []
    for layer in network.layers:
        rows, (neurons, fan_in) = BATCH * layer.places, layer.shape
        pre, delta, weights = torch.rand(rows, fan_in), torch.randn(rows, neurons) * 1e-3, torch.randn(neurons, fan_in)
        out, sums = torch.empty(rows, neurons), torch.zeros(neurons, fan_in)
        steps += [lambda pre=pre, weights=weights, out=out: torch.mm(pre, weights.T, out=out)] * forward
        if key[0] == "bayes" and layer.places > 1:
            apart = delta.view(BATCH, layer.places, neurons).transpose(1, 2), pre.view(BATCH, layer.places, fan_in)
            each = torch.empty(BATCH, neurons, fan_in)
            steps.append(lambda apart=apart, each=each: torch.bmm(*apart, out=each))
        else:
            steps += [lambda sums=sums, delta=delta, pre=pre: sums.addmm_(delta.T, pre)] * (1 + (key[0] == "bayes"))
        seen, errors = torch.rand(BATCH, layer.seen), torch.rand(BATCH, len(layer.readout))
        logits, back = torch.empty_like(errors), torch.empty_like(seen)
        steps.append(lambda seen=seen, layer=layer, logits=logits: torch.mm(seen, layer.readout.T, out=logits))
        steps.append(lambda errors=errors, layer=layer, back=back: torch.mm(errors, layer.readout, out=back))

    def multiply() -> None:
        for each_step in steps:
            each_step()

    return multiply


def ours(network: Network, key: tuple[str, str], spikes: Tensor, labels: Tensor) -> Callable[[int], None]:
    rule, generator = RULES[key], torch.Generator().manual_seed(0)
    states = [rule.end_task(state) for state in init_states(network, rule, generator)]

    def train(time: int) -> None:
        nonlocal states
        states, _ = train_batch(network, rule, states, spikes[:time], labels, generator)

    return train


class SnnTorchLayer:
    """A convolution or a dense layer of snnTorch's neurons with a fixed read-out, updated at every step."""

    def __init__(self, layer: Layer) -> None:
        import snntorch

        neuron, filter_ = layer.neuron, layer.neuron.filter
        self.layer, self.synapses = layer, _synapses(layer)
        torch.nn.init.normal_(self.synapses.weight, std=layer.pre**-0.5)
        self.cells = snntorch.Synaptic(
            alpha=filter_.synapse_decay,  # type: ignore[attr-defined]
            beta=filter_.membrane_decay,  # type: ignore[attr-defined]
            threshold=neuron.threshold,
            spike_grad=snntorch.surrogate.sigmoid(slope=neuron.slope),
            reset_mechanism="zero",
        )
        self.optimiser = torch.optim.SGD(self.synapses.parameters(), lr=0.1)
        self.state: tuple[Tensor, Tensor] = self.cells.init_synaptic()

    def step(self, arriving: Tensor, labels: Tensor) -> Tensor:
        for pool in () if self.layer.inlet is None else self.layer.inlet.pools:
            pooled = max_pool2d if pool.largest else avg_pool2d
            arriving = pooled(arriving, pool.size) * (1 if pool.largest else pool.size**2)
        if not isinstance(self.layer, Convolution):
            arriving = arriving.flatten(1)
        emitted, current, membrane = self.cells(self.synapses(arriving), *self.state)
        seen = emitted
        if isinstance(self.layer, Convolution):
            seen = avg_pool2d(emitted, self.layer.window) * self.layer.window**2 if self.layer.window > 1 else emitted
        loss = cross_entropy(seen.flatten(1) @ self.layer.readout.T, labels)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.state = current.detach(), membrane.detach()
        return emitted.detach()


def _synapses(layer: Layer) -> torch.nn.Module:
    if isinstance(layer, Convolution):
        word, below = layer.kernel, layer.below.channels
        return torch.nn.Conv2d(below, word.maps, word.kernel, word.stride, word.border, bias=False)
    return torch.nn.Linear(layer.pre, layer.neurons, bias=False)


def snntorch_stack(network: Network, shape: tuple[int, ...], spikes: Tensor, labels: Tensor) -> Callable[[int], None]:
    stack = [SnnTorchLayer(layer) for layer in network.layers]
    maps = spikes.float().view(len(spikes), BATCH, *(shape if len(shape) == 3 else (1, *shape)))

    def train(time: int) -> None:
        for each in stack:
            each.state = each.cells.init_synaptic()
        for arriving in maps[:time]:
            for each in stack:
                arriving = each.step(arriving, labels)

    return train


def measure(name: str, key: tuple[str, str], words: str, shape: tuple[int, ...], repeats: int) -> dict[str, float]:
    """In this process: memory first, then time, in turn with the products."""
    from training_step import forget_peak, peak

    network, generator = network_of(words, shape), torch.Generator().manual_seed(0)
    spikes = (torch.rand(4 * TIME, BATCH, prod(shape), generator=generator) < RATE).to(torch.uint8)
    labels = torch.arange(BATCH) % 10
    torch.mm(torch.rand(64, 64), torch.rand(64, 64))
    forget_peak()
    before = peak()
    train = ours(network, key, spikes, labels) if name == "ours" else snntorch_stack(network, shape, spikes, labels)
    train(TIME)
    found: dict[str, float] = {"memory_bytes": peak() - before}
    if name == "ours":
        train(4 * TIME)
        found["memory_4t_bytes"] = peak() - before
    multiply = products(network, key)
    now = clock.process_time if torch.get_num_threads() == 1 else clock.perf_counter
    seconds, ratios = [], []
    for _ in range(repeats + 1):
        begin = now()
        train(TIME)
        middle = now()
        for _ in range(TIME):
            multiply()
        seconds.append((middle - begin) / TIME)
        ratios.append((middle - begin) / (now() - middle))
    return found | {"seconds": statistics.median(seconds[1:]), "over_products": statistics.median(ratios[1:])}


def rows_for(
    words: str, shape: tuple[int, ...], threads: int, repeats: int, names: list[str]
) -> Iterator[dict[str, Any]]:
    """One row for each rule; all costs in units of the products of SGD, which every child times beside its own."""

    def run(name: str, key: tuple[str, str]) -> dict[str, float]:
        arguments = [name, *key, words, "x".join(map(str, shape)), str(threads), str(repeats)]
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        command = [sys.executable, str(Path(__file__)), *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
        result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return result

    try:
        import snntorch  # noqa: F401

        rival: float | None = None
    except ImportError:
        rival = 0.0
    for key in RULES:
        if key[0] not in names:
            continue
        mine = run("ours", key)
        # in units of this rule's products, like our own time
        rival = rival if rival == 0.0 else run("snntorch", key)["over_products"]
        yield {
            "rule": key[0],
            "sampling": key[1],
            "network": words,
            "threads": threads,
            "milliseconds": round(1000 * mine["seconds"], 2),
            "over_products": round(mine["over_products"], 3),
            "over_snntorch": round(mine["over_products"] / rival, 3) if rival else "not installed",
            "memory_bytes": int(mine["memory_bytes"]),
            "memory_4t_bytes": int(mine["memory_4t_bytes"]),
        }


if __name__ == "__main__":
    candidate, rule, sampling, stack_words, size, thread_count, rounds = sys.argv[1:]
    torch.set_num_threads(int(thread_count))
    torch.set_flush_denormal(True)
    sides = tuple(int(side) for side in size.split("x"))
    print(json.dumps(measure(candidate, (rule, sampling), stack_words, sides, int(rounds))))
