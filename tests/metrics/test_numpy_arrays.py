"""Arrays of numpy where tensors are expected: measures, committees and exports take them, with the same answers."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from bayspike import metrics
from bayspike.errors import UserError
from bayspike.hardware.export import export, verify
from bayspike.posteriors.distributions import Gaussian
from bayspike.predict.predictors import Committee
from bayspike.spiking.network import NetworkConfig, build

GENERATOR = torch.Generator().manual_seed(2)
MEMBERS = torch.randn(3, 40, 4, generator=GENERATOR, dtype=torch.float64).softmax(-1)
LABELS = torch.randint(4, (40,), generator=GENERATOR)
OWN, FOREIGN = MEMBERS[0], MEMBERS[1]


@pytest.mark.parametrize(
    ("measure", "given"),
    [
        (metrics.accuracy, (OWN, LABELS)),
        (metrics.nll, (OWN, LABELS)),
        (metrics.brier, (OWN, LABELS)),
        (metrics.ece, (OWN, LABELS)),
        (metrics.auroc, (OWN[:, 0], FOREIGN[:, 0])),
        (metrics.mutual_information, (MEMBERS,)),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_measures_are_the_same(measure: Callable[..., Tensor], given: tuple[Tensor, ...]) -> None:
    expected = measure(*given)
    assert torch.equal(measure(*(each.numpy() for each in given)), expected)
    backwards = [each.numpy()[::-1].copy()[::-1] for each in given]  # of negative strides, which torch does not know
    assert torch.equal(measure(*backwards), expected)


def test_foreign_inputs_are_told_as_well() -> None:
    arrays = OWN.numpy(), FOREIGN.numpy(), MEMBERS.numpy(), MEMBERS.flip(1).numpy()
    assert metrics.detect_foreign(*arrays) == metrics.detect_foreign(*map(torch.from_numpy, arrays))


def test_what_is_no_array_of_numbers_is_one_sentence() -> None:
    for act in (
        lambda: metrics.accuracy(OWN, ["cat", "dog"] * 20),
        lambda: metrics.accuracy([[0.5, 0.5], [1.0]], LABELS[:2]),
        lambda: metrics.auroc(["low"], ["high"]),
    ):
        with pytest.raises(UserError, match="must be one array of numbers"):
            act()


def test_committees_and_exports(tmp_path: Path) -> None:
    network = build(NetworkConfig(6, (5,), 2, threshold=0.1))
    posterior = Gaussian(torch.randn(5, 6, generator=GENERATOR), torch.full((5, 6), 10.0))
    committee = Committee.draw(network, [posterior], 2, generator=torch.Generator().manual_seed(0))
    spikes = torch.randint(0, 2, (8, 3, 6), generator=GENERATOR, dtype=torch.uint8)
    expected, found = committee.predict(spikes), committee.predict(spikes.numpy())
    assert expected.probabilities[-1].std() > 0
    assert torch.equal(found.probabilities, expected.probabilities)
    labels = torch.tensor([0, 1, 1])
    weights = committee.weights
    given = export(network, weights, tmp_path / "tensors", "fixed-point", spikes=spikes, labels=labels)
    same = export(network, weights, tmp_path / "arrays", "fixed-point", spikes=spikes.numpy(), labels=labels.numpy())
    assert given == same
    assert verify(tmp_path / "tensors").differing == 0
