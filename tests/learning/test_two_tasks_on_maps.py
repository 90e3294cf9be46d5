"""Every rule goes through two tasks on maps: what it carries over, and every step of the second task by its equation.

Equations are written down anew, with kernels' gradients put together example by example and place by place; that those
factors are the gradient is shown against autograd in `tests/spiking/test_convolution.py`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from bayspike.continual import Stream, StreamConfig, run_stream, split_by_class
from bayspike.continual.protocol import Hands
from bayspike.data.base import Dataset
from bayspike.learning.batch import init_states, posteriors, train_batch
from bayspike.learning.fisher import diagonal_fisher
from bayspike.predict.predictors import Committee, Point
from bayspike.rules import BGD, EWC, MESU, SGD, SI, STE, TACOS, BernoulliVI, GaussianVI, Laplace, Metaplastic, Rule
from bayspike.rules.base import first_precision
from bayspike.rules.bernoulli import SampledBinaryPotential
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import Network, NetworkConfig, build, step

F64 = torch.float64
TIME, SIDE, BATCH, EPOCHS = 8, 9, 16, 8
PAPER = {"lr": 3.0, "temperature": 1e-3, "prior_precision": 10.0}
RULES: dict[str, Rule] = {
    "sgd": SGD(lr=0.05),
    "ste": STE(lr=0.2),
    "metaplastic": Metaplastic(lr=0.2, metaplasticity=0.5),
    "bayes": GaussianVI(),
    "bayes, synapse, two samples": GaussianVI(sampling="synapse", samples=2),
    "bayes, paper's units": GaussianVI(**PAPER, sampling="synapse"),
    "bayes, carried": GaussianVI(**PAPER, carry=5.0),
    "bayes, by evidence": GaussianVI(**PAPER, carry=5.0, by_evidence=True, sampling="synapse"),
    "bayes, carried in natural units": GaussianVI(carry=20.0),
    "bayes, natural units by evidence": GaussianVI(carry=20.0, by_evidence=True, pull_every=3),
    "bayes, boundless": GaussianVI(remember=10_000.0),
    "bayes-binary": BernoulliVI(lr=1.0, temperature=1e-3),
    "bayes-binary, neuron": BernoulliVI(lr=1.0, temperature=1e-3, sampling="neuron"),
    "bayes-binary, carried": BernoulliVI(lr=1.0, temperature=1e-3, carry=5.0),
    "bayes-binary, natural units": BernoulliVI(lr=None, temperature=None, carry=3.0, sampling="neuron"),
    "ewc": EWC(lr=0.05, strength=1e-3),
    "ewc, online": EWC(lr=0.05, strength=1e-3, online=True, decay=0.5),
    "laplace": Laplace(lr=0.05, carry=5.0),
    "tacos": TACOS(lr=0.05),
    "tacos by traces": TACOS(lr=0.05, use_trace=True),
    "mesu": MESU(prior_std=0.3, samples=2),
    "bgd": BGD(prior_std=0.3, samples=2),
    "si": SI(lr=0.05),
}


def trains(seed: int, count: int = 128) -> tuple[np.ndarray, np.ndarray]:
    """Lying and standing bars, then lying and standing pairs of bars; both polarities, so two channels."""
    random, labels = np.random.default_rng(seed), np.arange(count) % 4
    rates = np.zeros((count, 2, SIDE, SIDE))
    for picture, label in zip(rates, labels, strict=True):
        place = random.integers(1, SIDE - 3)
        lit = picture if label % 2 == 0 else picture.transpose(0, 2, 1)
        lit[:, place if label < 2 else [place, place + 2], :] = 0.8
    fired = random.random((count, TIME, 2 * SIDE**2)) < rates.reshape(count, 1, -1)
    return fired.astype(np.uint8), labels


def two_tasks() -> Stream:
    return split_by_class(Dataset.from_arrays(*trains(0), test=trains(1), sample_shape=(2, SIDE, SIDE), kind="trains"))


class Course(NamedTuple):
    network: Network
    first: Any  # the states as the first task began
    ended: Any  # and as it ended, before the rule was told
    carried: Any  # as the second one began
    last: Any
    checked: list[str]  # which method was called, and was as its equation says, in the second task


def copied(state: Any) -> Any:
    return state._replace(**{k: v.clone() for k, v in state._asdict().items() if isinstance(v, Tensor)})


def course_of(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> Course:
    """Through both tasks in double precision; every step of the second one is held against its equation."""
    stream = two_tasks()
    config = NetworkConfig(
        2 * SIDE**2, (), 4, binary=rule.binary, layers="6c3-2p-8c3-2p-12", shape=(2, SIDE, SIDE), threshold=0.2,
        readout_scale=8.0,
    )  # fmt: skip
    network, batches = build(config, F64), len(stream.tasks[0].train) // BATCH * EPOCHS
    states: list[Any] = []  # before each mini-batch
    ended: list[Any] = []
    checked: list[str] = []
    kind: Any = type(rule)

    def train(network: Network, rule: Rule, given: Any, *rest: Any) -> Any:
        states.append([copied(each) for each in given])
        return train_batch(network, rule, given, *rest)

    def watch(name: str, equation: Callable[[Any, Any, Any], dict[str, Tensor]]) -> None:
        original = getattr(kind, name)

        def call(self: Any, state: Any, given: Any) -> Any:
            if len(states) <= batches:
                return original(self, state, given)
            expected = equation(self, copied(state), given)  # beforehand: buffers are used again
            after = original(self, state, given)
            for part, value in expected.items():
                torch.testing.assert_close(getattr(after, part), value, rtol=1e-9, atol=1e-11)
            checked.append(name)
            return after

        monkeypatch.setattr(kind, name, call)

    watch("update", EQUATIONS[kind])
    if kind is GaussianVI:
        watch("pull_back", gaussian_pull)
    end = kind.end_task

    def told(self: Any, state: Any, fisher: Tensor | None = None) -> Any:
        ended.append(copied(state))
        return end(self, state, fisher)

    monkeypatch.setattr(kind, "end_task", told)
    training = StreamConfig(epochs=EPOCHS, batch=BATCH, replay="none", coreset_share=0.0)
    done = run_stream(network, rule, stream, training, hands=Hands(init_states, train, diagonal_fisher))
    assert len(states) == 2 * batches
    return Course(network, states[0], ended[: len(network.layers)], states[batches], done.states, checked)


# --- what is carried over


def fisher_by_hand(network: Network, weights: list[Tensor]) -> list[Tensor]:
    """Σ over the examples of the first task of (Σ_t Σ_places gradient)², one example at a time."""
    samples = two_tasks().tasks[0].train
    spikes = samples.spikes(torch.arange(len(samples)), torch.Generator()).double()
    found = [torch.zeros_like(each) for each in weights]
    for example, label in enumerate(samples.labels.tolist()):
        states, totals = list(network.start(1)), [torch.zeros_like(each) for each in weights]
        for frame in spikes[:, example : example + 1]:
            arriving = frame
            for index, layer in enumerate(network.layers):
                done = step(layer, states[index], arriving, Rows(weights[index]))
                said = torch.softmax(layer.read(done.spikes) @ layer.readout.T, dim=1)
                said[0, label] -= 1
                delta = layer.error_at_neurons(said @ layer.readout, layer.neuron.post(done.potential))
                totals[index] += delta.view(layer.places, -1).T @ done.pre
                states[index], arriving = done.state, done.spikes
        for sum_of_squares, total in zip(found, totals, strict=True):
            sum_of_squares += total.square()
    return found


class Rows(NamedTuple):
    """A drive that knows nothing of maps."""

    matrix: Tensor

    def __call__(self, pre: Tensor) -> Tensor:
        return pre @ self.matrix.T


def carried_by_hand(rule: Any, first: Any, ended: Any, fisher: Tensor | None) -> dict[str, Tensor]:
    """A layer's state as the second task begins."""
    same = {name: part for name, part in ended._asdict().items() if isinstance(part, Tensor)}
    if isinstance(rule, GaussianVI) and rule.remember is None:
        return same | {"prior_mean": ended.mean, "prior_precision": ended.precision}
    if isinstance(rule, BernoulliVI):
        return same | {"prior_logits": ended.logits}
    if isinstance(rule, EWC):
        assert fisher is not None
        return same | {"importance": fisher, "pull": fisher * ended.weights}  # nothing was held before
    if isinstance(rule, Laplace):
        assert fisher is not None
        prior = first_precision(None, ended.weights.shape[1], 0.2, 0.1)
        return same | {"precision": prior + fisher, "anchor": ended.weights}
    if isinstance(rule, SI):
        importance = ended.path.clamp(min=0) / ((ended.weights - first.weights).square() + rule.damping)
        return same | {"path": 0 * ended.path, "importance": importance, "anchor": ended.weights}
    return same  # nobody tells these rules that a task has ended


# --- a step of the second task


def gradients(gradient: LocalGradient) -> Tensor:
    """Every example's gradient, a sum over its places, `(batch, neurons, fan-in)`."""
    pre = gradient.pre if gradient.patches is None else gradient.patches(gradient.pre)
    rows = (gradient.batch, gradient.places, -1)
    return torch.einsum("bpn,bpf->bnf", gradient.delta.reshape(rows), pre.reshape(rows))


def implicitly(free: Tensor, hold: Tensor | float, anchor: Tensor) -> Tensor:
    """Where w = free − hold·(w − anchor): the penalty's gradient is taken at the end of the step."""
    return (free + hold * anchor) / (1 + hold)


def kappa(rule: GaussianVI, prior_precision: Tensor) -> float:
    carry = 1.0 if rule.carry is None else rule.carry
    if not rule.by_evidence or carry == 1:
        return carry
    learnt = float(1 - prior_precision.min() / prior_precision.mean())  # of all kernels of the layer together
    return 1 + (carry - 1) * learnt / (learnt + 0.05)


def gaussian(rule: GaussianVI, s: Any, g: LocalGradient) -> dict[str, Tensor]:
    each, lr = gradients(g), rule.lr
    assert lr is not None
    crowd = 1.0 if rule.crowd is None else s.mean.shape[0] / rule.crowd
    pull = lr * rule.temperature / (rule.horizon or 1.0)  # type: ignore[operator]
    precision = (1 - pull) * s.precision + pull * s.prior_precision + lr * crowd * each.square().mean(0)
    carry = kappa(rule, s.prior_precision)
    if carry == 1:  # the letter's step
        step = each.mean(0) * lr + pull * s.prior_precision * (s.mean - s.prior_mean)
        return {"precision": precision, "mean": s.mean - step / precision}
    a = pull * carry * s.prior_precision / precision
    return {"precision": precision, "mean": implicitly(s.mean - lr / precision * each.mean(0), a, s.prior_mean)}


def gaussian_pull(rule: GaussianVI, s: Any, steps: int) -> dict[str, Tensor]:
    """m ← (m + a·m₀)/(1 + a) with a = n·ηρκ·p₀/p, after p has come so many steps closer to p₀."""
    pull = rule.lr * rule.temperature / (rule.horizon or 1.0)  # type: ignore[operator]
    precision = s.prior_precision + (1 - pull) ** steps * (s.precision - s.prior_precision)
    a = steps * pull * kappa(rule, s.prior_precision) * s.prior_precision / precision
    return {"precision": precision, "mean": (s.mean + a * s.prior_mean) / (1 + a)}


def bernoulli(rule: BernoulliVI, s: Any, g: LocalGradient) -> dict[str, Tensor]:
    carry, lr = 1.0 if rule.carry is None else rule.carry, rule.lr
    pull = lr * rule.temperature  # type: ignore[operator]
    pulled = (1 - pull) * s.logits + pull * s.prior_logits
    if carry != 1:
        pulled = implicitly(s.logits, pull * carry, s.prior_logits)
    if not isinstance(g.drive, SampledBinaryPotential):
        return {"logits": pulled - lr * gradients(g).mean(0) * g.drive.slope[0]}  # type: ignore[attr-defined]
    by_spread = gradients(g._replace(delta=g.delta * g.drive.noise_over_spread, pre=g.pre.square())).mean(0)
    return {"logits": pulled - lr * (gradients(g).mean(0) - by_spread * torch.tanh(s.logits))}


def ewc(rule: EWC, s: Any, g: LocalGradient) -> dict[str, Tensor]:
    anchor = s.pull / s.importance  # one task was learnt before
    anchor = torch.where(s.importance > 0, anchor, 0)
    free = s.weights - rule.lr * gradients(g).mean(0)
    return {"weights": implicitly(free, rule.lr * 2 * rule.strength * s.importance, anchor)}


def si(rule: SI, s: Any, g: LocalGradient) -> dict[str, Tensor]:
    slope = gradients(g).mean(0)
    weights = implicitly(s.weights - rule.lr * slope, rule.lr * 2 * rule.strength * s.importance, s.anchor)
    return {"weights": weights, "path": s.path - slope * (weights - s.weights)}


def laplace(rule: Laplace, s: Any, g: LocalGradient) -> dict[str, Tensor]:
    strength = rule.carry / (2 * 64 * EPOCHS * TIME)  # of the presentations of the task, all their steps
    free = s.weights - rule.lr * gradients(g).mean(0)
    return {"weights": implicitly(free, rule.lr * 2 * strength * s.precision, s.anchor)}


def plain(rule: Any, s: Any, g: LocalGradient) -> dict[str, Tensor]:
    return {s._fields[0]: s[0] - rule.lr * gradients(g).mean(0)}


def metaplastic(rule: Metaplastic, s: Any, g: LocalGradient) -> dict[str, Tensor]:
    slope = gradients(g).mean(0)
    back = 1 - torch.tanh(rule.metaplasticity * s.hidden) ** 2
    return {"hidden": s.hidden - rule.lr * torch.where(slope * s.hidden > 0, slope * back, slope)}


def tacos(rule: TACOS, s: Any, g: LocalGradient) -> dict[str, Tensor]:
    spikes = g.pre_spikes if g.gather is None else g.gather(g.pre_spikes)
    rows = g.post_spikes.reshape(g.delta.shape)
    error = gradients(g if rule.use_trace else g._replace(pre=spikes)).mean(0)
    change = rule.lr * error + rule.decay * (s.weights - s.reference) * rows.mean(0)[:, None]
    return {
        "weights": s.weights - torch.exp(-(s.metaplasticity * s.weights).abs()) * change,
        "reference": s.reference + rule.reference_rate * (s.weights - s.reference),
        "pre_rate": rule.rate_memory * s.pre_rate + (1 - rule.rate_memory) * spikes.mean(0),
    }


def by_draws(g: LocalGradient) -> tuple[Tensor, Tensor]:
    """∂C/∂μ and ∂C/∂σ over two draws of the kernels, each of which half of the rows saw."""
    first, second = (part.mean(0) for part in gradients(g).chunk(2))
    noise = g.drive.noise  # type: ignore[attr-defined]
    return (first + second) / 2, (first * noise[0] + second * noise[1]) / 2


def mesu(rule: MESU, s: Any, g: LocalGradient) -> dict[str, Tensor]:
    (by_mean, by_std), variance, prior = by_draws(g), s.std**2, rule.prior_std**2
    weight = BATCH / TIME
    std = s.std - weight * (variance * by_std / 2 - s.std * (prior - variance) / (2 * rule.remember * prior))
    mean = s.mean - weight * variance * (by_mean + s.mean / (rule.remember * prior))
    return {"mean": mean, "std": torch.maximum(std, 0.1 * s.std)}


def bgd(rule: BGD, s: Any, g: LocalGradient) -> dict[str, Tensor]:
    by_mean, by_std = (BATCH / TIME * part for part in by_draws(g))
    std = s.std * torch.sqrt(1 + (s.std * by_std / 2) ** 2) - s.std**2 * by_std / 2
    return {"mean": s.mean - rule.lr * s.std**2 * by_mean, "std": std}


EQUATIONS: dict[type, Callable[[Any, Any, LocalGradient], dict[str, Tensor]]] = {
    GaussianVI: gaussian, BernoulliVI: bernoulli, EWC: ewc, SI: si, Laplace: laplace, SGD: plain, STE: plain,
    Metaplastic: metaplastic, TACOS: tacos, MESU: mesu, BGD: bgd,
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_two_tasks_on_maps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = RULES[name]
    course = course_of(rule, monkeypatch)
    fisher: list[Any] = [None] * 3
    if rule.needs_fisher:
        fisher = fisher_by_hand(course.network, [each.weights for each in course.ended])
        assert all(float(each.sum()) > 0 for each in fisher)
    for first, ended, carried, each in zip(course.first, course.ended, course.carried, fisher, strict=True):
        for part, expected in carried_by_hand(rule, first, ended, each).items():
            torch.testing.assert_close(getattr(carried, part), expected, rtol=1e-9, atol=1e-12)

    assert course.checked.count("update") == 3 * TIME * 64 // BATCH * EPOCHS
    pulled = isinstance(rule, GaussianVI) and (rule.pull_every or (10 if rule.lr is None else 1)) > 1
    assert ("pull_back" in course.checked) == pulled

    learnt = posteriors(rule, course.last)
    for layer, posterior, before, last in zip(course.network.layers, learnt, course.carried, course.last, strict=True):
        assert tuple(posterior.mean().shape) == layer.shape
        assert not torch.equal(last[0], before[0])
    test = two_tasks().tasks[1].test
    spikes = test.spikes(torch.arange(len(test)), torch.Generator())
    drawn = Committee.draw(course.network, learnt, 5, generator=torch.Generator().manual_seed(0))
    predictor = Point.of(course.network, learnt) if rule.needs_fisher and name != "laplace" else drawn
    answers = predictor.predict(spikes).probabilities[-1].argmax(1)
    assert (answers == test.labels).double().mean() > 0.7  # of the second task, among all four classes
