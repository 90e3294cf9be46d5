"""Why are foreign images noticed less, the more orders of the pixels a learner has been through?

    BAYSPIKE_DATA=… python studies/foreign_after_tasks.py

MNIST has pixels that hardly any digit lights. Their synapses stay as uncertain as the prior, and Fashion-MNIST lights
them: there members disagree. A permutation of *all* pixels moves digits onto them. So the same stream is learnt twice,
once with all pixels permuted and once with those alone that digits use, the rest staying as dark as they are. Fashion-
MNIST is told from validation digits of the first task after every task, by mutual information and by entropy, with the
controls of the posterior (see `bayspike evaluate --controls`) after the first and the last. One JSON line a task; a
stream whose last task the file already has is not learnt again.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import posterior as trials  # the study beside this one
import torch

from bayspike.continual import StreamConfig, run_stream
from bayspike.continual.tasks import Remapped, Stream, Task, permuted
from bayspike.data import Dataset
from bayspike.learning.batch import posteriors
from bayspike.predict.controls import judge_controls
from bayspike.rules import GaussianVI
from bayspike.spiking.network import NetworkConfig, build

USED = 0.01


def among_used(data: Dataset, count: int, seed: int) -> Stream:
    """As `permuted`, but only the pixels that at least `USED` of the training digits light change places."""
    generator, every = torch.Generator().manual_seed(seed), torch.arange(len(data.train))
    lit = sum((data.train.spikes(part, generator).amax(dim=0) > 0).sum(dim=0) for part in every.split(500))
    used, sources = (lit >= USED * len(every)).nonzero().flatten(), [torch.arange(data.train.inputs)]
    for _ in range(count - 1):
        source = sources[0].clone()
        source[used] = used[torch.randperm(len(used), generator=generator)]
        sources.append(source)
    tasks = [
        Task(f"order {k}", Remapped(data.train, source), Remapped(data.test, source))
        for k, source in enumerate(sources)
    ]
    return Stream(tuple(tasks), len(data.classes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--prior-std", type=float, default=None)
    parser.add_argument("--streams", nargs="+", default=["all", "used"], choices=["all", "used"])
    parser.add_argument("--out", type=Path, default=Path("docs/results/foreign-after-tasks.jsonl"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    known = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    for seed in range(options.seeds):
        data, fashion = trials.parts(20, options.images // 10, 100, seed)
        foreign = fashion.test.subset(torch.arange(trials.FOREIGN))
        held_out = data.train.subset(torch.arange(0, len(data.train), max(1, len(data.train) // 500)))
        for which in options.streams:
            sizes = {"width": options.width, "images": options.images, "prior_std": options.prior_std}
            last = {"permuted": which, "seed": seed, "tasks": options.tasks, **sizes}
            if any(last.items() <= line.items() for line in known):
                continue
            make = permuted if which == "all" else among_used
            stream = make(data, options.tasks, seed=seed)
            decays = {"synapse_decay": 0.0, "membrane_decay": 0.5}
            network = build(NetworkConfig(784, (options.width,), 10, readout_scale=24.0, seed=seed, **decays))
            rule, now = GaussianVI(remember=2_000_000.0, prior_std=options.prior_std), None
            for k in range(options.tasks):
                learning = StreamConfig(replay="none", coreset_share=0.0, seed=seed)
                now = run_stream(network, rule, Stream(stream.tasks[: k + 1], 10), learning, progress=now)
                learnt = posteriors(rule, now.states)
                found = judge_controls(network, learnt, data.test, foreign, held_out, members=10, seed=seed)
                wanted = found if k in (0, options.tasks - 1) else {"learnt": found["learnt"]}
                line: dict[str, Any] = {"permuted": which, "seed": seed, "tasks": k + 1, **sizes}
                line |= {"found": {name: each._asdict() for name, each in wanted.items()}}
                print(json.dumps(line), flush=True)
                with options.out.open("a") as out:
                    out.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
