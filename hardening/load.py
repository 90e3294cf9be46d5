"""More of everything: many tasks, many classes, long signals, long and many streams. Figures are ratios.

    python hardening/load.py

`memory` is how much more the second half of a piece of work takes at its peak than the first half; `cost` is how long a
step takes at the end against the beginning, in the processor's own time. Both must stay near one, however long the
work is.
"""

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from bayspike.continual.protocol import Progress, StreamConfig, run_stream
from bayspike.continual.replay import Plan
from bayspike.continual.tasks import Stream, Task
from bayspike.data.base import StaticSamples
from bayspike.learning.batch import BatchReport, posteriors
from bayspike.predict.predictors import Committee, predict_samples
from bayspike.rules import GaussianVI
from bayspike.runs import checkpoints
from bayspike.seeds import generator_for
from bayspike.spiking.network import NetworkConfig, build


class Load(NamedTuple):
    """One piece of work: what was done, and its two ratios (None where there is no such thing)."""

    what: str
    memory: float | None
    cost: float | None
    seconds: float


def resident() -> float:
    """Bytes in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return float(pages * resource.getpagesize())


class Meter:
    """Times every step and looks at the memory now and then; the first few warm up."""

    def __init__(self, skip: int = 10) -> None:
        self.left, self.times, self.memory = skip, list[float](), list[float]()
        self.begun = self.before = time.process_time()

    def tick(self) -> None:
        now = time.process_time()
        if self.left > 0:
            self.left -= 1
        else:
            self.times.append(now - self.before)
            if len(self.times) % 16 == 1:
                self.memory.append(resident())
        self.before = time.process_time()

    def load(self, what: str) -> Load:
        tenth, half = max(1, len(self.times) // 10), max(1, len(self.memory) // 2)
        cost = float(np.median(self.times[-tenth:]) / np.median(self.times[:tenth]))
        return Load(what, max(self.memory[half - 1 :]) / max(self.memory[:half]), cost, self.before - self.begun)


def samples(count: int, inputs: int, classes: int, steps: int, seed: int) -> StaticSamples:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(0, 256, (count, inputs), generator=generator, dtype=torch.uint8)
    return StaticSamples(values, torch.arange(count) % classes, steps)


def many_tasks(tasks: int) -> Load:
    """One learner through so many tasks without replay: a task must not cost more because others went before."""
    network = build(NetworkConfig(inputs=16, hidden=(8,), classes=2))
    rule = GaussianVI()
    stream = Stream(tuple(Task(str(k), samples(8, 16, 2, 4, k), samples(4, 16, 2, 4, k)) for k in range(tasks)), 2)
    meter = Meter()

    def on_batch(now: Progress, report: BatchReport, plan: Plan) -> None:
        meter.tick()

    run_stream(network, rule, stream, StreamConfig(batch=8, replay="none", coreset_share=0.0), None, None, on_batch)
    return meter.load(f"{tasks:,} tasks")


def many_checkpoints(count: int) -> Load:
    """So many checkpoints of one job: the folder is kept small, and the last takes no longer than the first."""
    tensors, meter = {"w": torch.zeros(64, 64)}, Meter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            checkpoints.save(Path(folder), f"step-000-{number:07d}", {"progress": {}}, tensors)
            checkpoints.prune(Path(folder))
            meter.tick()
        assert len(list(Path(folder).iterdir())) == 4
    return meter.load(f"{count:,} checkpoints")


def many_classes(classes: int) -> Load:
    """The same examples with so many classes and with a tenth of them; cost is per class."""
    begun = time.process_time()

    def one(number: int) -> float:
        network = build(NetworkConfig(inputs=64, hidden=(64,), classes=number))
        task = Task("all", samples(classes, 64, number, 6, 0), samples(classes, 64, number, 6, 1))
        before = time.process_time()
        done = run_stream(network, GaussianVI(), Stream((task,), number), StreamConfig(batch=50, replay="none"))
        committee = Committee.draw(network, posteriors(GaussianVI(), done.states), 2, generator=generator_for(0, "c"))
        predict_samples(committee, task.test, generator_for(0, "p"))
        return (time.process_time() - before) / number

    one(classes // 10)
    return Load(f"{classes:,} classes", None, one(classes) / one(classes // 10), time.process_time() - begun)


def long_signals(steps: int) -> Load:
    """A signal of so many time-steps; cost is against a tenth of it, per step."""
    begun = time.process_time()
    network = build(NetworkConfig(inputs=64, hidden=(64,), classes=4))

    def one(length: int) -> float:
        task = Task("all", samples(16, 64, 4, length, 0), samples(16, 64, 4, length, 1))
        before = time.process_time()
        done = run_stream(network, GaussianVI(), Stream((task,), 4), StreamConfig(batch=8, replay="none"))
        committee = Committee.draw(network, posteriors(GaussianVI(), done.states), 4, generator=generator_for(0, "c"))
        predict_samples(committee, task.test, generator_for(0, "p"))
        return (time.process_time() - before) / length

    one(steps // 10)
    small = one(steps // 10)
    return Load(f"T = {steps:,}", None, one(steps) / small, time.process_time() - begun)


def open_streams(steps: int, streams: int) -> Load:
    """Decisions while signals arrive, without an end."""
    network = build(NetworkConfig(inputs=100, hidden=(50,), classes=5))
    generator = torch.Generator().manual_seed(0)
    weights = [0.3 * torch.randn(4, *layer.shape, generator=generator) for layer in network.layers]
    blocks = (torch.rand(50, streams, 100, generator=generator) < 0.1).to(torch.uint8)
    watch, meter = Committee(network, weights).open(streams), Meter(skip=200)
    for number in range(steps):
        watch.push(blocks[number % 50])
        meter.tick()
    return meter.load(f"{streams} stream(s) open for {steps:,} steps")


def works(scale: float) -> list[Callable[[], Load]]:
    def of(full: int, least: int) -> int:
        return max(least, int(full * scale))

    return [
        lambda: many_tasks(of(2_000, 60)),
        lambda: many_checkpoints(of(2_000, 60)),
        lambda: many_classes(of(1_000, 100)),
        lambda: long_signals(of(2_000, 200)),
        lambda: open_streams(of(100_000, 2_000), 1),
        lambda: open_streams(of(20_000, 1_000), 64),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="1: the full numbers")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'what':38s} {'memory':>8s} {'cost':>8s} {'seconds':>8s}")
    for work in works(given.scale):
        done = work()
        shown = ["–" if each is None else f"{each:.3f}" for each in (done.memory, done.cost)]
        print(f"{done.what:38s} {shown[0]:>8s} {shown[1]:>8s} {done.seconds:8.1f}", flush=True)
        if given.json:
            print(json.dumps(done._asdict()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
