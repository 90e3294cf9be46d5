"""One layer on several processes against one, side by side, and what they send each other.

    python benchmarks/distributed.py [--shape 2048x4096] [--ranks 1 2] [--rule bayes sgd] [--rounds 5] [--json]

For every number of ranks the same mini-batches are learnt (batch 64, ten classes, noise in which every input fires, one
thread a rank), turn and turn about so that all see the same machine: a round has each once, and the figures are medians
over rounds of the ratio to one rank in the same round. One rank is the ordinary training step, not a group of one.

- `speedup`        the time of a step on one rank over that on N ranks;
- `bytes_per_step` spikes that each rank sends at one time-step;
- `all_reduce_bytes_per_step`  what each rank would send if the gradients were added up by a ring, as in data
  parallelism: 2·(N − 1)/N times the gradients of all weights (for `bayes` those of mean and precision).

- `processor_speedup`  the same with the processor's time of the busiest rank in place of the clock: what free cores
  would give if nobody had to wait for anybody; to be had on a busy machine too, where the clock says little.

`equal` compares the sums of all parts of the state after training with those of one rank (to 1e-9). `load` is the load
average of the machine before and after: above the number of free cores `speedup` means little.
"""

import argparse
import json
import os
import statistics
import time
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import distributed
from torch import multiprocessing as processes

from bayspike.learning.batch import init_states, train_batch
from bayspike.rules import SGD, GaussianVI, Rule
from bayspike.sharded.exchange import Group
from bayspike.sharded.training import SharedHands
from bayspike.spiking.network import NetworkConfig, build

BATCH, CLASSES = 64, 10
RULES: dict[str, Rule] = {
    "bayes": GaussianVI(lr=100.0, temperature=1e-8, prior_precision=300.0, pull_every=10),
    "sgd": SGD(),
}
GRADIENTS = {"bayes": 2, "sgd": 1}


def work(
    rank: int, ranks: int, port: int, rule_name: str, shape: tuple[int, int], steps: int, pipe: Connection
) -> None:
    """One rank: learns a mini-batch whenever it is asked to, and says how long that took."""
    torch.set_num_threads(1)
    rule, fan_in, neurons = RULES[rule_name], *shape
    network = build(NetworkConfig(fan_in, (neurons,), CLASSES, membrane_decay=0.5, synapse_decay=0.0))
    group = None
    if ranks > 1:
        address = f"tcp://127.0.0.1:{port}"
        distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=ranks)
        group = Group(rank, ranks)
        hands = SharedHands(group)
        states, train = hands.init(network, rule, torch.Generator().manual_seed(0)), hands.train
    else:
        states, train = init_states(network, rule, torch.Generator().manual_seed(0)), train_batch
    number = 0
    while (wish := pipe.recv()) != "end":
        if wish == "sum":
            pipe.send([part.double().sum().item() for part in states[0] if isinstance(part, torch.Tensor)])
            continue
        generator = torch.Generator().manual_seed(number)
        number += 1
        spikes = torch.rand(steps, BATCH, fan_in, generator=generator) < 0.2
        sent = group.sent if group else 0
        begun, worked = time.perf_counter(), time.process_time()
        states, _ = train(network, rule, states, spikes, torch.arange(BATCH) % CLASSES, generator)
        seconds = (time.perf_counter() - begun) / steps
        busy = (time.process_time() - worked) / steps
        pipe.send((seconds, (group.sent - sent) / steps if group else 0, busy))
    if ranks > 1:
        distributed.destroy_process_group()


class Crew:
    def __init__(self, ranks: int, port: int, rule: str, shape: tuple[int, int], steps: int) -> None:
        self.pipes, self.processes = [], []
        for rank in range(ranks):
            ours, theirs = processes.Pipe()
            made = processes.get_context("spawn").Process(
                target=work, args=(rank, ranks, port, rule, shape, steps, theirs), daemon=True
            )
            made.start()
            self.pipes.append(ours)
            self.processes.append(made)

    def ask(self, wish: str) -> list[Any]:
        for pipe in self.pipes:
            pipe.send(wish)
        return [] if wish == "end" else [pipe.recv() for pipe in self.pipes]


def measure(rule: str, shape: tuple[int, int], ranks: list[int], rounds: int, steps: int, port: int) -> dict[str, Any]:
    before = os.getloadavg()[0]
    crews = {n: Crew(n, port + place, rule, shape, steps) for place, n in enumerate(ranks)}
    for crew in crews.values():
        crew.ask("batch")  # warm-up
    seconds: dict[int, list[float]] = {n: [] for n in ranks}
    busy: dict[int, list[float]] = {n: [] for n in ranks}
    sent: dict[int, float] = {}
    for _ in range(rounds):
        for n, crew in crews.items():
            answers = crew.ask("batch")
            seconds[n].append(max(each[0] for each in answers))
            busy[n].append(max(each[2] for each in answers))
            sent[n] = max(each[1] for each in answers)
    sums = {n: [sum(each) for each in zip(*crew.ask("sum"), strict=True)] for n, crew in crews.items()}
    for crew in crews.values():
        crew.ask("end")
    weights = shape[0] * shape[1]
    found = {}
    for n in ranks:
        ratios = [one / many for one, many in zip(seconds[ranks[0]], seconds[n], strict=True)]
        by_processor = [one / many for one, many in zip(busy[ranks[0]], busy[n], strict=True)]
        found[str(n)] = {
            "milliseconds_per_step": round(1000 * statistics.median(seconds[n]), 2),
            "speedup": round(statistics.median(ratios), 3),
            "processor_milliseconds_per_step": round(1000 * statistics.median(busy[n]), 2),
            "processor_speedup": round(statistics.median(by_processor), 3),
            "bytes_per_step": round(sent[n]),
            "all_reduce_bytes_per_step": round(2 * (n - 1) / n * 4 * weights * GRADIENTS[rule]),
            "sums_equal": all(abs(a - b) <= 1e-9 * abs(a) for a, b in zip(sums[n], sums[ranks[0]], strict=True)),
        }
    return {"rule": rule, "shape": list(shape), "ranks": found, "load": [before, os.getloadavg()[0]]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", nargs="+", default=["2048x4096"])
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rule", nargs="+", choices=RULES, default=["bayes", "sgd"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--port", type=int, default=29_600)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for text in options.shape:
        shape = tuple(int(each) for each in text.split("x"))
        for rule in options.rule:
            found = measure(rule, shape, options.ranks, options.rounds, options.steps, options.port)
            options.port += len(options.ranks)
            if options.json:
                print(json.dumps(found), flush=True)
                continue
            print(f"{rule} {text}, load {found['load'][0]:.1f} to {found['load'][1]:.1f}")
            for n, each in found["ranks"].items():
                print(
                    f"  {n} ranks: {each['milliseconds_per_step']:8.2f} ms a step, {each['speedup']:.2f}×; "
                    f"processor {each['processor_milliseconds_per_step']:8.2f} ms, {each['processor_speedup']:.2f}×; "
                    f"{each['bytes_per_step']:>9,} bytes a rank and step "
                    f"(an all-reduce of gradients: {each['all_reduce_bytes_per_step']:,}), "
                    f"weights {'equal' if each['sums_equal'] else 'NOT equal'}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
