"""Neurons shared by several ranks learn what one process learns: the same draws, the same spikes, the same weights."""

import pytest
import torch
from in_threads import in_ranks
from torch import Tensor

from bayspike.continual.methods import build_rule
from bayspike.errors import UserError
from bayspike.learning.batch import init_states, train_batch
from bayspike.learning.fisher import diagonal_fisher
from bayspike.posteriors.draws import OfRows, Rows, normal, normal_matrix, uniform
from bayspike.rules import BGD, EWC, MESU, SGD, SI, STE, TACOS, BernoulliVI, GaussianVI
from bayspike.rules.base import Pace, Rule
from bayspike.sharded.exchange import Alone, share_rows
from bayspike.sharded.training import SharedHands
from bayspike.spiking.network import Network, NetworkConfig, build

PAPER = {"lr": 100.0, "temperature": 1e-6, "prior_precision": 300.0}
LATER = Pace(6, 12, examples=100.0, stored=1.0, share=0.1, first=False)
RULES: dict[str, Rule] = {
    "sgd": SGD(),
    "ste": STE(),
    "ewc": EWC(),
    "si": SI(),
    "tacos": TACOS(increment=0.5, rate_threshold=0.01),
    "gaussian": GaussianVI(**PAPER),
    "gaussian, rare pull": GaussianVI(**PAPER, pull_every=5),
    "gaussian, synapses": GaussianVI(**PAPER, sampling="synapse"),
    "gaussian, natural units": GaussianVI(),
    "gaussian, carried": GaussianVI().at(LATER),
    "gaussian, no boundaries": GaussianVI(remember=1e4),
    "bernoulli, neurons": BernoulliVI(lr=0.3, sampling="neuron"),
    "bernoulli, synapses": BernoulliVI(lr=0.3),
    "mesu": MESU(),
    "bgd": BGD(),
}


def network_for(rule: Rule, *, recurrent: bool = False) -> Network:
    constants = {"synapse_decay": 0.0, "membrane_decay": 0.5, "threshold": 0.05, "slope": 0.2}
    config = NetworkConfig(30, (50, 37), 4, binary=rule.binary, recurrent=recurrent, **constants)
    return build(config, torch.float64)  # else a rounding may flip a spike, and all that follows


def batch(number: int, *, silent: bool) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(100 + number)
    spikes = torch.rand(12, 6, 30, generator=generator) < 0.3
    if silent:
        spikes[:, :, 5:20] = False
    return spikes, torch.arange(6) % 4


def learn(hands, network: Network, rule: Rule, *, silent: bool) -> list[dict[str, Tensor]]:
    """Three mini-batches, the end of a task, three more; the parts of every layer's state."""
    if isinstance(hands, SharedHands):
        states, train, fisher = hands.init(network, rule, torch.Generator().manual_seed(0)), hands.train, hands.fisher
    else:
        states, train, fisher = (
            init_states(network, rule, torch.Generator().manual_seed(0)),
            train_batch,
            diagonal_fisher,
        )
    reports = []
    for number in range(6):
        generator = torch.Generator().manual_seed(number)
        states, report = train(network, rule, states, *batch(number, silent=silent), generator)
        reports.append({f"report {name}": each for name, each in report._asdict().items()})
        if number == 2:
            importances = [None] * len(states)
            if rule.needs_fisher:
                modes = [rule.posterior(state).mode() for state in states]
                importances = fisher(network, modes, Few(), torch.Generator().manual_seed(9))
            states = [rule.end_task(state, each) for state, each in zip(states, importances, strict=True)]
    found = [{k: v for k, v in state._asdict().items() if isinstance(v, Tensor)} for state in states]
    return [*found, *reports]


class Few:
    """Some examples whose spikes are drawn anew."""

    labels = torch.arange(5) % 4

    def __len__(self) -> int:
        return 5

    def spikes(self, indices: Tensor, generator: torch.Generator) -> Tensor:
        return torch.rand(12, len(indices), 30, generator=generator) < 0.3


def joined(parts: list[list[dict[str, Tensor]]], expected: list[dict[str, Tensor]]) -> list[dict[str, Tensor]]:
    """Rows put together; what every rank has whole is that of the first."""
    found = []
    for place, whole in enumerate(expected):
        layer = {}
        for name, tensor in whole.items():
            own = [part[place][name] for part in parts]
            layer[name] = own[0] if own[0].shape == tensor.shape else torch.cat(own)
        found.append(layer)
    return found


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("name", sorted(RULES))
def test_any_number_of_ranks_learns_what_one_process_learns(name: str, ranks: int, silent: bool) -> None:
    rule = RULES[name]
    network = network_for(rule)
    expected = learn(None, network, rule, silent=silent)
    found = joined(in_ranks(ranks, lambda x: learn(SharedHands(x), network, rule, silent=silent)), expected)
    assert float(expected[-1]["report rates"].min()) > 0.01  # else there would be nothing to compare
    for ours, theirs in zip(found, expected, strict=True):
        for part in theirs:
            torch.testing.assert_close(ours[part], theirs[part], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["sgd", "tacos", "gaussian"])
def test_recurrent_layers_see_the_spikes_of_all_ranks(name: str) -> None:
    rule = RULES[name]
    network = network_for(rule, recurrent=True)
    expected = learn(None, network, rule, silent=False)
    found = joined(in_ranks(2, lambda x: learn(SharedHands(x), network, rule, silent=False)), expected)
    for ours, theirs in zip(found, expected, strict=True):
        for part in theirs:
            torch.testing.assert_close(ours[part], theirs[part], rtol=1e-6, atol=1e-8)


def test_draws_of_some_rows_are_those_rows_of_all_draws() -> None:
    like = torch.zeros(1)
    for draw in (normal, uniform):
        whole = draw((5, 40, 7), like, torch.Generator().manual_seed(3))
        some = draw((5, 11, 7), like, OfRows(torch.Generator().manual_seed(3), Rows(8, 19, 40)))
        assert torch.equal(some, whole[:, 8:19])


@pytest.mark.parametrize("shape", [(3, 5), (700, 1501), (2048, 1024), (2100, 1031)])
def test_first_weights_of_some_rows_are_those_rows_of_all(shape: tuple[int, int]) -> None:
    """Drawn piece by piece, which relies on how torch draws normal numbers: in groups of sixteen."""
    whole = normal_matrix(shape, torch.Generator().manual_seed(1))
    for rows in share_rows(shape[0], 3):
        source = torch.Generator().manual_seed(1)
        assert torch.equal(normal_matrix((rows.size, shape[1]), OfRows(source, rows)), whole[rows.start : rows.stop])


@pytest.mark.parametrize(("total", "ranks"), [(400, 2), (400, 3), (37, 3), (5, 5), (4096, 7)])
def test_shares_are_whole_and_even(total: int, ranks: int) -> None:
    shares = share_rows(total, ranks)
    assert [each.start for each in shares] == [0, *[each.stop for each in shares[:-1]]]
    assert shares[-1].stop == total
    sizes = [each.size for each in shares]
    assert min(sizes) > 0
    assert max(sizes) - min(sizes) <= 16 + 15


def test_what_cannot_be_shared_is_one_sentence() -> None:
    with pytest.raises(UserError, match="start fewer"):
        share_rows(3, 4)
    with pytest.raises(UserError, match="leave out torchrun"):
        SharedHands(Alone()).init(network_for(SGD()), GaussianVI(flat=True), torch.Generator())


@pytest.mark.parametrize(("words", "layer"), [("3c3-8", 0), ("2p-8-7", 0), ("9c3-2m-8r", 0)])
def test_maps_are_refused_in_one_sentence(words: str, layer: int) -> None:
    network = build(NetworkConfig(64, (), 4, layers=words, shape=(8, 8)))
    with pytest.raises(UserError, match=rf"convolutions and poolings, as of layer {layer}, .* leave out torchrun"):
        SharedHands(Alone()).init(network, SGD(), torch.Generator())
    spikes, labels = torch.zeros(3, 2, 64), torch.zeros(2, dtype=torch.int64)
    states = init_states(network, SGD(), torch.Generator())
    with pytest.raises(UserError, match="leave out torchrun"):
        SharedHands(Alone()).train(network, SGD(), states, spikes, labels, torch.Generator())


def test_every_method_can_be_shared() -> None:
    from bayspike.continual.methods import METHODS

    for name in METHODS:
        rule = build_rule(name, {})
        if not getattr(rule, "flat", False):
            assert len(SharedHands(Alone()).init(network_for(rule), rule, torch.Generator())) == 2


def test_only_own_rows_are_held() -> None:
    network = network_for(SGD())
    held = in_ranks(2, lambda x: SharedHands(x).init(network, GaussianVI(**PAPER), torch.Generator().manual_seed(0)))
    for layer, (first, second) in zip(network.layers, zip(*held, strict=True), strict=True):
        for part in ("mean", "precision", "prior_mean", "prior_precision"):
            sizes = [len(getattr(each, part)) for each in (first, second)]
            assert sum(sizes) == layer.neurons
            assert max(sizes) < layer.neurons
