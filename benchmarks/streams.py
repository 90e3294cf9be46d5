"""What an event of a stream costs, and that silent channels cost next to nothing.

    python benchmarks/streams.py [--json] [--channels 784 3136 12544] [--events 1 10 100] [--steps 200]

A committee of ten with 400 neurons decides at every time-step (`predictor.open()`), on one thread. A step brings the
given number of events, at random places of so many channels. `microseconds` is the time of a step, its decision
included; `microseconds_an_event` is what an event adds to a step without any.
"""

import argparse
import json
import statistics
import time
from itertools import product

import torch
from torch import Tensor

from bayspike.predict.predictors import Committee
from bayspike.spiking.network import NetworkConfig, build

NEURONS, MEMBERS = 400, 10


def seconds_a_step(committee: Committee, frames: Tensor) -> float:
    """The median over the steps of a stream; the first tenth is a warm-up."""
    watch, taken = committee.open(), []
    for frame in frames:
        begun = time.process_time()
        watch.push(frame)
        taken.append(time.process_time() - begun)
    return statistics.median(taken[len(taken) // 10 :])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--channels", nargs="+", type=int, default=[784, 3136, 12544])
    parser.add_argument("--events", nargs="+", type=int, default=[1, 10, 100])
    parser.add_argument("--steps", type=int, default=200)
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for channels, events in product(given.channels, given.events):
        random = torch.Generator().manual_seed(0)
        network = build(NetworkConfig(channels, (NEURONS,), 10))
        committee = Committee(network, [torch.randn(MEMBERS, NEURONS, channels, generator=random) * channels**-0.5])
        frames = torch.zeros(given.steps, 1, channels, dtype=torch.uint8)
        idle = seconds_a_step(committee, frames)
        for frame in frames:
            frame[0, torch.randperm(channels, generator=random)[:events]] = 1
        busy = seconds_a_step(committee, frames)
        rows.append(
            {
                "channels": channels,
                "events": events,
                "microseconds": round(1e6 * busy, 1),
                "microseconds_silent": round(1e6 * idle, 1),
                "microseconds_an_event": round(1e6 * (busy - idle) / events, 2),
            }
        )
    if given.json:
        print(json.dumps({"rows": rows}))
        return
    print("  ".join(f"{name:>21}" for name in rows[0]))
    for row in rows:
        print("  ".join(f"{value!s:>21}" for value in row.values()))


if __name__ == "__main__":
    main()
