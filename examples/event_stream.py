"""A live event stream: decisions while events still arrive, and abstention where the input is unsure or foreign.

The camera here is simulated: a hand that waves in one corner of 16×16 pixels. Replace `record` by your camera's events.

    python examples/event_stream.py
"""

import numpy as np
import torch

import bayspike
from bayspike.data.encoders import pack
from bayspike.data.files.events import Events, binned

SIDE, TIME, STEP = 16, 32, 1000  # pixels, time-steps, µs of a time-step
CORNERS = ("upper left", "upper right", "lower left", "lower right")
random = np.random.default_rng(0)


def record(kind: int) -> Events:
    """Simulated events of a hand waving in one corner; kind 4 is flicker all over, never trained on."""
    t = np.sort(random.integers(0, TIME * STEP, 500))
    across, down = random.normal(0, 2, (2, len(t))) if kind < 4 else random.uniform(-4, 12, (2, len(t)))
    across += 3 * np.sin(2 * np.pi * t / (8 * STEP))
    x = np.clip(4 + across + 8 * (kind % 2), 0, SIDE - 1).astype(np.int16)
    y = np.clip(4 + down + 8 * (kind // 2 % 2), 0, SIDE - 1).astype(np.int16)
    return Events(t, x, y, random.integers(0, 2, len(t), dtype=np.uint8), SIDE, SIDE)


def recordings(count: int) -> bayspike.SpikeSamples:
    labels = random.integers(0, 4, count)
    spikes = np.stack([binned(record(label), TIME, STEP, start=0) for label in labels])
    return bayspike.SpikeSamples(torch.from_numpy(pack(spikes)), torch.from_numpy(labels), TIME, spikes.shape[2])


# 1. Train on recordings.
generator = torch.Generator().manual_seed(0)
network = bayspike.build(bayspike.NetworkConfig(inputs=2 * SIDE * SIDE, hidden=(64,), classes=4))
train, held_out, rule = recordings(400), recordings(100), bayspike.GaussianVI()
states = bayspike.init_states(network, rule, generator)
for batch in torch.randperm(400, generator=generator).split(20):
    spikes, labels = train.spikes(batch, generator), train.labels[batch]
    states, _ = bayspike.train_batch(network, rule, states, spikes, labels, generator)

# 2. Draw a committee, and learn from held-out recordings how unsure it is, at each time-step, of what it knows.
posteriors = [rule.posterior(state) for state in states]
committee = bayspike.Committee.draw(network, posteriors, members=10, generator=generator)
own = committee.predict(held_out.spikes(torch.arange(100), generator), keep_members="all")
foreign = bayspike.calibrate_foreign(own.members, false_alarm=0.05, score="entropy")

# 3. Watch: push one time-step of spikes after the other.
for kind, title in ((2, "waving, lower left"), (4, "flicker, never trained on")):
    stream = committee.open(confidence=0.6, foreign=foreign)
    for spikes in torch.from_numpy(binned(record(kind), TIME, STEP, start=0)):
        now = stream.push(spikes.unsqueeze(0))
        if now.time % 8 == 0:
            says = "foreign" if now.foreign else "not sure" if now.abstain else CORNERS[int(now.label)]
            print(f"{title}, {now.time:2d} ms: {says} (confidence {now.confidence.item():.2f})")
