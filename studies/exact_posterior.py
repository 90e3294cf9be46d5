"""How far is the learnt posterior from the exact one? A network small enough to sample.

    python studies/exact_posterior.py

Two-moons, 20 inputs → 4 spiking neurons, 80 weights, each point encoded once. The target is the one that the rule's
free energy has in natural units with each example counted once,

    p(w) ∝ N(w | 0, 1/p₀) · exp(−Σ_examples mean_t loss_t(w)).

Spikes are steps, so the loss has no gradient that HMC could follow; elliptical slice sampling (Murray, Adams & MacKay,
AISTATS 2010) needs none, has no step size to tune and is exact for a normal prior. Chains run side by side from draws
of the prior; R̂ (Gelman et al., split chains) says whether they agree. Beside it: `GaussianVI`, learnt by the surrogate
gradient; and the exact posterior's own marginals drawn independently, which is what mean field takes away by itself.
"""

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bayspike.data.sets import two_moons
from bayspike.learning.batch import init_states, train_batch
from bayspike.predict.predictors import Committee
from bayspike.rules import GaussianVI
from bayspike.seeds import generator_for
from bayspike.spiking.network import Network, NetworkConfig, build

POINTS, STEPS, NEURONS = 30, 20, 4  # points a class
PRIOR = 2.0  # p₀: about two of the twenty inputs fire in a step


def probabilities(network: Network, weights: Tensor, spikes: Tensor) -> Tensor:
    """Softmax of the read-out at every step, `(time, batch, chains, classes)`, for weights `(chains, neurons, inputs)`.

    Written out for one layer with a membrane alone, so that thousands of small networks run side by side; `main` holds
    it to the library's own predictor.
    """
    neuron, decay = network.layers[0].neuron, network.layers[0].neuron.filter.membrane_decay
    currents = (spikes @ weights.flatten(0, 1).T) * neuron.filter.gain
    fired = torch.zeros_like(currents)
    potential = torch.zeros_like(currents[0])
    for t in range(1, len(spikes)):  # what arrives at t − 1 is felt at t
        potential.mul_(decay).add_(currents[t - 1])
        torch.gt(potential, neuron.threshold, out=fired[t])
        potential.addcmul_(potential, fired[t], value=-1)
    spread = fired.unflatten(2, weights.shape[:2]) @ network.layers[0].readout.T
    return torch.softmax(spread, dim=-1)


def log_likelihood(network: Network, weights: Tensor, spikes: Tensor, labels: Tensor) -> Tensor:
    """−Σ over examples of the loss averaged over the steps, one for each chain."""
    found = probabilities(network, weights, spikes)
    chosen = found[:, torch.arange(len(labels)), :, labels]  # (batch, time, chains)
    return chosen.clamp_min(1e-30).log().mean(dim=1).sum(dim=0)


def elliptical_slices(
    network: Network, spikes: Tensor, labels: Tensor, chains: int, steps: int, keep_every: int, generator: Any
) -> Tensor:
    """Samples `(kept, chains, neurons, inputs)`; the first half is left to the chains to find their way."""
    width = 1 / math.sqrt(PRIOR)
    shape = (chains, NEURONS, network.inputs)
    now = torch.randn(shape, generator=generator) * width
    height = log_likelihood(network, now, spikes, labels)
    kept = []
    for index in range(steps):
        ellipse = torch.randn(shape, generator=generator) * width
        level = height + torch.rand(chains, generator=generator).log()
        angle = torch.rand(chains, generator=generator) * 2 * math.pi
        low, high = angle - 2 * math.pi, angle.clone()
        pending = torch.ones(chains, dtype=torch.bool)
        while bool(pending.any()):
            cosine, sine = angle.cos()[:, None, None], angle.sin()[:, None, None]
            tried = now * cosine + ellipse * sine
            found = log_likelihood(network, tried[pending], spikes, labels)
            good = torch.zeros_like(pending)
            good[pending] = found > level[pending]
            now = torch.where(good[:, None, None], tried, now)
            height[good] = found[good[pending]]
            pending &= ~good
            low, high = torch.where(angle < 0, angle, low), torch.where(angle >= 0, angle, high)
            angle = torch.where(pending, low + torch.rand(chains, generator=generator) * (high - low), angle)
        if index >= steps // 2 and index % keep_every == 0:
            kept.append(now.clone())
    return torch.stack(kept)


def r_hat(samples: Tensor) -> Tensor:
    """Split R̂ of every weight."""
    halves = torch.cat(samples[: len(samples) // 2 * 2].chunk(2), dim=1).double()  # (kept, chains, …)
    within = halves.var(dim=0).mean(dim=0)
    between = halves.mean(dim=0).var(dim=0)
    return (1 + between / within - 1 / len(halves)).sqrt()


def learn(network: Network, spikes: Tensor, labels: Tensor, epochs: int, seed: int) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of `GaussianVI`, averaged over the last half of the epochs."""
    rule = GaussianVI(
        remember=float(len(labels)), observations=1.0, crowd=float(NEURONS), prior_precision=PRIOR, samples=8,
        sampling="synapse", pull_every=1,
    )  # fmt: skip
    generator = generator_for(seed, "learn")
    states = init_states(network, rule, generator)
    means, variances = [], []
    for epoch in range(epochs):
        for part in torch.randperm(len(labels), generator=generator).chunk(2):
            states, _ = train_batch(network, rule, states, spikes[:, part], labels[part], generator)
        if epoch >= epochs // 2:
            means.append(states[0].mean.clone())
            variances.append(1 / states[0].precision)
    return torch.stack(means).mean(dim=0), torch.stack(variances).mean(dim=0).sqrt()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=32)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--epochs", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("docs/results/exact-posterior.jsonl"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    done = [json.loads(line)["seed"] for line in options.out.read_text().splitlines()] if options.out.exists() else []
    for seed in range(options.seeds):
        if seed in done:
            continue
        line = json.dumps(compare(options.chains, options.steps, options.epochs, seed))
        print(line, flush=True)
        with options.out.open("a") as stream:
            stream.write(line + "\n")


def check(network: Network, spikes: Tensor) -> None:
    """The network written out here answers as the library's."""
    weights = torch.randn(3, NEURONS, network.inputs, generator=generator_for(0, "check"))
    theirs = Committee(network, [weights]).predict(spikes).probabilities[-1]
    ours = probabilities(network, weights, spikes)[1:].mean(dim=(0, 2))
    assert torch.allclose(ours, theirs, atol=1e-6), "the network written out here is not the library's"


def compare(chains: int, steps: int, epochs: int, seed: int) -> dict[str, Any]:
    data = two_moons.load(time=STEPS, per_class=POINTS, seed=seed)
    network = build(
        NetworkConfig(20, (NEURONS,), 2, synapse_decay=0.0, membrane_decay=0.5, readout_scale=8.0, seed=seed)
    )
    spikes, labels = _encoded(data.train, seed)
    check(network, spikes)
    begin = time.perf_counter()
    samples = elliptical_slices(network, spikes, labels, chains, steps, 20, generator_for(seed, "chains"))
    exact_seconds, begin = time.perf_counter() - begin, time.perf_counter()
    mean, deviation = learn(network, spikes, labels, epochs, seed)
    seconds = time.perf_counter() - begin
    flat = samples.flatten(0, 1)
    exact_mean, exact_deviation = flat.mean(dim=0), flat.std(dim=0)
    generator = generator_for(seed, "draws")
    count = 256
    chosen = flat[torch.randperm(len(flat), generator=generator)[:count]]
    shuffled = torch.stack(
        [flat.flatten(1)[torch.randint(len(flat), (count,), generator=generator), each] for each in range(mean.numel())]
    ).T.reshape(count, *mean.shape)
    drawn = mean + deviation * torch.randn(count, *mean.shape, generator=generator)
    plane = two_moons.grid(40, time=STEPS)
    asked, _ = _encoded(plane, seed)
    far = torch.cdist(plane.coordinates, data.train.coordinates).amin(dim=1) > two_moons.FAR  # type: ignore[attr-defined]
    maps = {
        name: probabilities(network, weights, asked)[1:].mean(dim=(0, 2))
        for name, weights in (("exact", chosen), ("independent", shuffled), ("learnt", drawn), ("mean", mean[None]))
    }
    ratio = deviation / exact_deviation
    test, test_labels = _encoded(data.test, seed)
    return {
        "seed": seed,
        "weights": mean.numel(),
        "samples": len(flat),
        "r_hat_worst": float(r_hat(samples).max()),
        "seconds": {"exact": round(exact_seconds, 1), "learnt": round(seconds, 1)},
        "deviation_ratio": {q: float(ratio.flatten().quantile(q / 100)) for q in (5, 50, 95)},
        "deviation_correlation": _correlation(deviation.log(), exact_deviation.log()),
        "prior_over_exact_deviation": float((1 / math.sqrt(PRIOR) / exact_deviation).median()),
        "mean_correlation": _correlation(mean, exact_mean),
        "mean_off_in_deviations": float(((mean - exact_mean) / exact_deviation).square().mean().sqrt()),
        "map_difference": {n: float((p - maps["exact"]).abs().mean()) for n, p in maps.items()},
        "confidence_near": {n: float(p.amax(dim=1)[~far].mean()) for n, p in maps.items()},
        "confidence_far": {n: float(p.amax(dim=1)[far].mean()) for n, p in maps.items()},
        "test_loss": {
            name: float(-log_likelihood(network, w, test, test_labels).mean() / len(test_labels))
            for name, w in (("exact", chosen), ("independent", shuffled), ("learnt", drawn), ("mean", mean[None]))
        },
    }


def _encoded(samples: Any, seed: int) -> tuple[Tensor, Tensor]:
    """Spikes `(time, batch, inputs)`, drawn once, and labels."""
    return samples.spikes(torch.arange(len(samples)), generator_for(seed, "encode")).float(), samples.labels


def _correlation(a: Tensor, b: Tensor) -> float:
    return float(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1])


if __name__ == "__main__":
    main()
