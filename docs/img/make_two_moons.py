"""Draw docs/img/two_moons.png: how sure a frequentist and two Bayesian spiking networks are over the plane.

    python docs/img/make_two_moons.py

The paper's two-moons data (400 points, population code), one layer of 256 neurons, 30 epochs, T = 50: a minute or two
on one core. The command `bayspike run two-moons --preset paper` is the paper's full protocol.
"""

from pathlib import Path

import torch

from bayspike import SGD, Committee, GaussianVI, NetworkConfig, Point, StreamConfig, build, predict_samples, run_stream
from bayspike.continual import Stream, Task
from bayspike.data.sets.two_moons import CODE, grid, load
from bayspike.figures import confidence_maps

SIDE, TIME = 40, 50

data = load(time=TIME)
stream = Stream((Task("moons", data.train, data.test),), classes=2)
network = build(NetworkConfig(data.train.inputs, (256,), 2))
rules = {
    "frequentist": SGD(lr=0.1),
    "Bayesian, ρ = 1e-5": GaussianVI(lr=300.0, prior_precision=300.0, temperature=1e-5),
    "Bayesian, ρ = 3e-5": GaussianVI(lr=300.0, prior_precision=300.0, temperature=3e-5),
}
maps = {}
for name, rule in rules.items():
    done = run_stream(network, rule, stream, StreamConfig(epochs=30, replay="none"))
    learnt = [rule.posterior(state) for state in done.states]
    generator = torch.Generator().manual_seed(1)
    bayesian = isinstance(rule, GaussianVI)
    predictor = Committee.draw(network, learnt, 20, generator=generator) if bayesian else Point.of(network, learnt)
    at_home = predict_samples(predictor, data.test, generator, over_time=False).probabilities[-1]
    everywhere = predict_samples(predictor, grid(SIDE, time=TIME), generator, over_time=False).probabilities[-1]
    maps[name] = everywhere[:, 1].reshape(SIDE, SIDE).numpy()
    correct = (at_home.argmax(1) == data.test.labels).double().mean().item()
    print(
        f"{name}: test accuracy {correct:.3f}, mean confidence {at_home.amax(1).mean().item():.3f} on test points, "
        f"{everywhere.amax(1).mean().item():.3f} over the plane"
    )
extent = (CODE.low[0], CODE.high[0], CODE.low[1], CODE.high[1])
points, labels = data.train.coordinates, data.train.labels
folder = Path(__file__).parent
figure = confidence_maps(folder, {"real-valued synapses": maps}, points, labels, extent, name="two_moons")
for path in (figure.csv, figure.svg, figure.text):  # here the picture is enough
    path.unlink()
print(figure.png)
