"""The learning rules written the usual way in PyTorch, and snnTorch on the same layer, for `training_step.py`.

The usual way is what one writes first: weights are drawn at the synapses, the loss of a time-step is differentiated
by autograd, and where a rule needs squared gradients of single examples they are materialised by `torch.func.vmap`.
Encoder, neuron, loss and update are those of the package (the reset is the one to zero).
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.nn.functional import cross_entropy

from bayspike.data.encoders import rate
from bayspike.spiking.network import Layer

LR, RHO, PRECISION, BINARY_LR = 1000.0, 1e-8, 3000.0, 1.0
Batch = Callable[[int], None]  # trains on one mini-batch of that many time-steps


def spike(distance: Tensor, slope: float) -> Tensor:
    """A step whose derivative is that of a sigmoid."""
    smooth = torch.sigmoid(slope * distance)
    return (distance > 0).to(distance.dtype) + smooth - smooth.detach()


class UsualWay:
    """One layer, trained on the same images again and again."""

    def __init__(self, rule: str, layer: Layer, images: Tensor, labels: Tensor, generator: torch.Generator) -> None:
        self.rule, self.layer, self.images, self.labels, self.generator = rule, layer, images, labels, generator
        self.weights = torch.randn(layer.shape, generator=generator) * layer.pre**-0.5
        if rule == "bayes":
            self.precision = torch.full(layer.shape, PRECISION)
            self.prior_mean, self.prior_precision = self.weights.clone(), self.precision.clone()
        if rule == "bayes-binary":
            self.prior = torch.zeros(layer.shape)

    def loss(self, weights: Tensor, pre: Tensor, refractory: Tensor, label: Tensor) -> Tensor:
        """Of one example or, averaged, of a batch."""
        return cross_entropy(self.spikes(weights, pre, refractory)[0] @ self.layer.readout.T, label)

    def spikes(self, weights: Tensor, pre: Tensor, refractory: Tensor) -> tuple[Tensor, Tensor]:
        neuron = self.layer.neuron
        potential = pre @ weights.T - refractory
        return spike(potential - neuron.threshold, neuron.slope / neuron.threshold), potential

    def train(self, time: int) -> None:
        filter_ = self.layer.neuron.filter
        state = filter_.start(len(self.images), self.layer.pre, torch.float32, torch.device("cpu"))
        refractory = torch.zeros(len(self.images), self.layer.neurons)
        for arriving in rate(self.images, time, self.generator):
            pre = state.trace
            drawn = self.update(pre, refractory)
            with torch.no_grad():
                emitted, potential = self.spikes(drawn, pre, refractory)
            refractory = filter_.membrane_decay * (refractory + emitted * potential)  # type: ignore[attr-defined]
            state = filter_.step(state, arriving.float())

    def update(self, pre: Tensor, refractory: Tensor) -> Tensor:
        """One update of the rule; returns the weights that were used."""
        if self.rule == "bayes":
            drawn = self.weights + torch.randn(self.layer.shape, generator=self.generator) / self.precision.sqrt()
            g = vmap(grad(self.loss), in_dims=(None, 0, 0, 0))(drawn, pre, refractory, self.labels)
            square, mean = g.square().mean(0), g.mean(0)
            self.precision = (1 - LR * RHO) * self.precision + LR * (square + RHO * self.prior_precision)
            pull = RHO * self.prior_precision * (self.prior_mean - self.weights)
            self.weights = self.weights - LR / self.precision * (mean - pull)
            return drawn
        if self.rule == "bayes-binary":
            uniform = torch.rand(self.layer.shape, generator=self.generator).clamp(1e-7, 1 - 1e-7)
            drawn = torch.tanh(self.weights + uniform.logit() / 2)
            factor = (1 - drawn**2) / (1 - torch.tanh(self.weights) ** 2).clamp_min(1e-12)
            slope = factor * self.gradient(drawn, pre, refractory)
            kept = (1 - BINARY_LR * RHO) * self.weights
            self.weights = kept - BINARY_LR * (slope - RHO * self.prior)
            return drawn
        drawn = torch.where(self.weights >= 0, 1.0, -1.0) if self.rule == "ste" else self.weights
        self.weights = self.weights - 0.1 * self.gradient(drawn, pre, refractory)
        return drawn

    def gradient(self, weights: Tensor, pre: Tensor, refractory: Tensor) -> Tensor:
        weights = weights.detach().requires_grad_()
        return torch.autograd.grad(self.loss(weights, pre, refractory, self.labels), weights)[0]


def snntorch_batch(kind: str, layer: Layer, images: Tensor, labels: Tensor, generator: torch.Generator) -> Batch:
    """snnTorch, frequentist: an update at every step, or (`snntorch_bptt`) one a mini-batch by gradients through time.

    The encoder is its own, or (`snntorch_fed`) the package's, which is faster.
    """
    import snntorch
    from snntorch import spikegen

    neuron, filter_ = layer.neuron, layer.neuron.filter
    synapses = torch.nn.Linear(layer.inputs, layer.neurons, bias=False)
    torch.nn.init.normal_(synapses.weight, std=layer.inputs**-0.5)
    cells = snntorch.Synaptic(
        alpha=filter_.synapse_decay,  # type: ignore[attr-defined]
        beta=filter_.membrane_decay,  # type: ignore[attr-defined]
        threshold=neuron.threshold,
        spike_grad=snntorch.surrogate.sigmoid(slope=neuron.slope),
        reset_mechanism="zero",
    )
    optimiser = torch.optim.SGD(synapses.parameters(), lr=0.1)
    online, brightness = kind != "snntorch_bptt", images / 256

    def encode(time: int) -> Tensor:
        return rate(images, time, generator) if kind == "snntorch_fed" else spikegen.rate(brightness, num_steps=time)

    def train(time: int) -> None:
        current, membrane = cells.init_synaptic()
        total = torch.zeros(())
        for arriving in encode(time):
            emitted, current, membrane = cells(synapses(arriving.float()), current, membrane)
            loss = cross_entropy(emitted @ layer.readout.T, labels)
            if online:
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                current, membrane = current.detach(), membrane.detach()
            else:
                total = total + loss
        if not online:
            optimiser.zero_grad()
            (total / time).backward()
            optimiser.step()

    return train
