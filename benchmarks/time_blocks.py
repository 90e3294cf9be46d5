"""What holding the weights for k time-steps saves: time of a training step with `update_every=k` over that with 1.

    python benchmarks/time_blocks.py [--shape 784x400 2048x4096] [--every 1 2 5 10] [--rule bayes sgd] [--rounds 7]

Batch 64, T = 50, noise in which every input fires, one thread. All k take turns in one process, on states of their own;
the figures are medians over rounds of the ratio to k = 1 in the same round, in the processor's time, so that a busy
machine matters less. What a block costs in accuracy is in the docs (scaling).
"""

import argparse
import json
import os
import statistics
import time
from typing import Any

import torch

from bayspike.learning.batch import init_states, train_batch
from bayspike.rules import SGD, GaussianVI, Rule
from bayspike.spiking.network import NetworkConfig, build

BATCH, TIME, CLASSES = 64, 50, 10
PAPER = {"lr": 10.0, "temperature": 1e-8, "prior_precision": 300.0}
RULES: dict[str, Rule] = {
    "sgd": SGD(),
    "bayes": GaussianVI(**PAPER, pull_every=10),
    "bayes, pull at every step": GaussianVI(**PAPER, pull_every=1),
}


def measure(name: str, shape: tuple[int, int], every: list[int], rounds: int) -> dict[str, Any]:
    rule, network = (
        RULES[name],
        build(NetworkConfig(shape[0], (shape[1],), CLASSES, membrane_decay=0.5, synapse_decay=0.0)),
    )
    states = {k: init_states(network, rule, torch.Generator().manual_seed(0)) for k in every}
    seconds: dict[int, list[float]] = {k: [] for k in every}
    before = os.getloadavg()[0]
    for number in range(rounds + 1):
        generator = torch.Generator().manual_seed(number)
        spikes = torch.rand(TIME, BATCH, shape[0], generator=generator) < 0.2
        for k in every:
            draws = torch.Generator().manual_seed(number)
            begun = time.process_time()
            states[k], _ = train_batch(
                network, rule, states[k], spikes, torch.arange(BATCH) % CLASSES, draws, update_every=k
            )
            if number:  # the first is a warm-up
                seconds[k].append((time.process_time() - begun) / TIME)
    found = {}
    for k in every:
        ratios = [one / many for one, many in zip(seconds[every[0]], seconds[k], strict=True)]
        found[str(k)] = {
            "milliseconds_per_step": round(1000 * statistics.median(seconds[k]), 3),
            "speedup": round(statistics.median(ratios), 3),
        }
    return {"rule": name, "shape": list(shape), "every": found, "load": [before, os.getloadavg()[0]]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", nargs="+", default=["784x400", "2048x4096"])
    parser.add_argument("--every", nargs="+", type=int, default=[1, 2, 5, 10])
    parser.add_argument("--rule", nargs="+", choices=RULES, default=list(RULES))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for text in options.shape:
        shape = tuple(int(each) for each in text.split("x"))
        for rule in options.rule:
            found = measure(rule, shape, options.every, options.rounds)
            if options.json:
                print(json.dumps(found), flush=True)
                continue
            shown = ", ".join(
                f"k={k}: {each['milliseconds_per_step']:.2f} ms ({each['speedup']:.2f}×)"
                for k, each in found["every"].items()
            )
            print(f"{rule} {text}: {shown}; load {found['load'][0]:.1f} to {found['load'][1]:.1f}", flush=True)


if __name__ == "__main__":
    main()
