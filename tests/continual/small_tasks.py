"""Data sets, networks and copies small enough for tests that run every rule many times."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from bayspike.continual import Progress, Stream, split_by_class
from bayspike.data.base import Dataset, Samples, SpikeSamples, StaticSamples
from bayspike.data.encoders import pack
from bayspike.rules import EWC, SGD, STE, TACOS, BernoulliVI, GaussianVI, Rule
from bayspike.spiking.network import Network, NetworkConfig, build

RULES: dict[str, Rule] = {
    "sgd": SGD(lr=0.1),
    "ste": STE(lr=0.1),
    "bayes": GaussianVI(lr=100.0, prior_precision=100.0, temperature=1e-4),
    "bayes, drawn at the synapses": GaussianVI(
        lr=100.0, prior_precision=100.0, temperature=1e-4, sampling="synapse", samples=2
    ),
    "bayes without boundaries": GaussianVI(lr=100.0, prior_precision=100.0, temperature=1e-4, horizon=3.0),
    "bayes-binary": BernoulliVI(lr=1.0, temperature=1e-3, samples=2),
    "bayes-binary, drawn at the neurons": BernoulliVI(lr=1.0, temperature=1e-3, sampling="neuron"),
    "ewc": EWC(lr=0.1, strength=1e-2),
    "online ewc": EWC(lr=0.1, strength=1e-2, online=True, decay=0.5),
    "binary ewc": EWC(lr=0.1, strength=1e-2, binary=True),
    "tacos": TACOS(lr=0.1, rate_threshold=0.01, decay=0.1),
}


def spike_samples(count: int, labels: Tensor, inputs: int = 6, time: int = 7, seed: int = 0) -> SpikeSamples:
    """Recorded spikes, the same at every call."""
    spikes = np.random.default_rng(seed).integers(0, 2, (count, time, inputs), dtype=np.uint8)
    return SpikeSamples(torch.from_numpy(pack(spikes)), labels, time, inputs)


def pictures(per_class: list[int], inputs: int = 8, time: int = 6, seed: int = 0) -> StaticSamples:
    """`per_class[c]` noisy pictures of class c, whose bright pixels are those with number ≡ c."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(len(per_class)).repeat_interleave(torch.tensor(per_class))
    bright = (torch.arange(inputs) % len(per_class)) == labels.unsqueeze(1)
    noise = torch.randint(0, 60, bright.shape, generator=generator)
    return StaticSamples((noise + 180 * bright).to(torch.uint8), labels, time)


def dataset(per_class: list[int] | None = None, inputs: int = 8, time: int = 6) -> Dataset:
    sizes = per_class or [10] * 4
    test = pictures([3] * len(sizes), inputs, time, seed=1)
    return Dataset("small", pictures(sizes, inputs, time), test, tuple(map(str, range(len(sizes)))), (inputs,))


def small_stream(per_class: list[int] | None = None) -> Stream:
    return split_by_class(dataset(per_class))


def small_network(rule: Rule, classes: int = 4, inputs: int = 8) -> Network:
    """Two layers with fast membranes and a low threshold, so that both are busy within six steps."""
    threshold = 0.5 if rule.binary else 0.05
    return build(
        NetworkConfig(
            inputs,
            (6, 5),
            classes,
            binary=rule.binary,
            synapse_decay=0.0,
            membrane_decay=0.5,
            threshold=threshold,
            slope=2.0,
        )
    )


def as_from_disk(progress: Progress) -> Progress:
    """A copy that shares no memory and has lost the buffers that no rule keeps for good."""
    states = [
        state._replace(**{name: part.clone() if isinstance(part, Tensor) else None for name, part in fields.items()})
        for state, fields in ((state, state._asdict()) for state in progress.states)
    ]
    return replace(progress, states=tuple(states), coresets=tuple(kept.clone() for kept in progress.coresets))


def all_spikes(samples: Samples, seed: int = 0) -> Tensor:
    return samples.spikes(torch.arange(len(samples)), torch.Generator().manual_seed(seed))
