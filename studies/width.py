"""Why does evidence have to count for more in a wide layer? The curvature along the steps that a layer takes.

    BAYSPIKE_DATA=… python studies/width.py --widths 50 100 400 1600 --seeds 3

The precision of `GaussianVI` is mean field: it takes the curvature along a step s for Σ s²·mean(g²), as if no two
synapses ever pulled together. Of the examples themselves it is mean((g·s)²). Their ratio is measured here, s being what
a mini-batch moved the means by and g the gradients of 64 images that were not learnt, behind the same order of the
pixels; the network is on its way through three orders of 3,000 images, as in `studies/permuted_mnist.py widths`.
A line for each width and seed goes to `docs/results/width.jsonl`; those that it has are not repeated.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import posterior as trials  # the study beside this one
import torch
from torch import Tensor

from bayspike.continual import Progress, StreamConfig, permuted, run_stream
from bayspike.learning.fisher import example_gradients
from bayspike.rules import GaussianVI
from bayspike.seeds import generator_for
from bayspike.spiking.network import Network, NetworkConfig, build

OUT = Path("docs/results/width.jsonl")
TASKS, IMAGES, EVERY, JUDGED = 3, 3000, 10, 64


def curvatures(gradients: Tensor, step: Tensor) -> tuple[float, float]:
    """mean((g·s)²), and what is left of it where synapses are taken one by one, Σ s²·mean(g²)."""
    together = torch.tensordot(gradients, step, dims=2).square().mean()
    apart = (gradients.square().mean(dim=0) * step.square()).sum()
    return float(together), float(apart)


def measure(width: int, seed: int) -> list[tuple[float, float]]:
    """Both curvatures along every tenth step of a stream, in its order."""
    data, _ = trials.parts(20, IMAGES // 10, 100, seed)
    stream = permuted(data, TASKS, seed=seed)
    network: Network = build(
        NetworkConfig(784, (width,), 10, synapse_decay=0.0, membrane_decay=0.5, readout_scale=24.0, seed=seed)
    )
    rule, found, before = GaussianVI(remember=2_000_000.0), list[tuple[float, float]](), dict[str, Tensor]()
    drawn = generator_for(seed, "judged")

    def look(now: Progress, *_: Any) -> None:
        mean = now.states[0].mean
        if now.batch % EVERY == EVERY - 1:
            before["mean"] = mean.clone()
        elif now.batch % EVERY == 0 and before:
            others = stream.tasks[now.task].test
            chosen = torch.randperm(len(others), generator=drawn)[:JUDGED]
            gradients = example_gradients(network, [mean], others.spikes(chosen, drawn), others.labels[chosen])[0]
            found.append(curvatures(gradients, mean - before.pop("mean")))

    run_stream(network, rule, stream, StreamConfig(replay="none", coreset_share=0.0, seed=seed), on_batch=look)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--widths", nargs="+", type=int, default=[50, 100, 400, 1600])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = [json.loads(line) for line in OUT.read_text().splitlines()] if OUT.exists() else []
    for width in options.widths:
        for seed in range(options.seeds):
            if any((line["width"], line["seed"]) == (width, seed) for line in lines):
                continue
            found = measure(width, seed)
            together, apart = (sum(column) for column in zip(*found, strict=True))
            lines.append({"width": width, "seed": seed, "moments": len(found), "ratio": together / apart})
            with OUT.open("a") as stream:
                stream.write(json.dumps(lines[-1]) + "\n")
        ratios = torch.tensor([line["ratio"] for line in lines if line["width"] == width])
        spread = f" ± {float(ratios.std()):.0f}" if len(ratios) > 1 else ""
        print(f"{width} neurons: {float(ratios.mean()):.0f}{spread} times, {float(ratios.mean()) / width:.2f} a neuron")


if __name__ == "__main__":
    main()
