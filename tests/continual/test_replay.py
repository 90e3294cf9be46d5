"""Mini-batches of old and new: what is presented how often, and which loss that makes."""

import pytest
import torch
from small_tasks import all_spikes, spike_samples
from torch import Tensor

from bayspike.continual.replay import Mixing, fetch, plan_task
from bayspike.errors import UserError
from bayspike.learning.fisher import example_gradients
from bayspike.spiking.network import NetworkConfig, build

MODES: list[Mixing] = ["balanced", "pooled", "none"]


def counts(sources: Tensor, indices: Tensor, source: int, size: int) -> list[int]:
    return torch.bincount(indices[sources == source], minlength=size).tolist()


@pytest.mark.parametrize("mixing", MODES)
@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize("stored", [(), (5,), (4, 0, 300), (0, 0)])
def test_an_epoch_presents_each_example_of_the_task_once(mixing: Mixing, epochs: int, stored: tuple[int, ...]) -> None:
    plan = plan_task(30, stored, batch=8, epochs=epochs, mixing=mixing, seed=1)
    assert counts(plan.sources, plan.indices, 0, 30) == [epochs] * 30
    picked = [plan.pick(position) for position in range(len(plan))]
    assert [len(sources) for sources, _ in picked[:-1]] == [8] * (len(plan) - 1)
    assert torch.equal(torch.cat([sources for sources, _ in picked]), plan.sources)
    assert torch.equal(torch.cat([indices for _, indices in picked]), plan.indices)
    real = [size for size in stored if size]
    expected = {"balanced": 30 * epochs * len(real), "pooled": epochs * sum(real), "none": 0}
    assert plan.replayed == expected[mixing]
    assert plan.replayed == int((plan.sources > 0).sum())


@pytest.mark.parametrize("batch", [6, 7, 2, 1])
def test_balanced_batches_share_equally(batch: int) -> None:
    """Exactly where the batch is a multiple of the sources, else to within one example, and the surplus goes round."""
    plan = plan_task(20, [3, 50], batch=batch, epochs=1, mixing="balanced", seed=0)
    for position in range(len(plan)):
        shares = torch.bincount(plan.pick(position)[0], minlength=3)
        assert int(shares.max() - shares.min()) <= (0 if batch == 6 and position < len(plan) - 1 else 1)
    assert torch.bincount(plan.sources).tolist() == [20, 20, 20]
    assert max(counts(plan.sources, plan.indices, 1, 3)) - min(counts(plan.sources, plan.indices, 1, 3)) <= 1
    assert set(counts(plan.sources, plan.indices, 2, 50)) == {0, 1}


def test_pooled_epochs_present_the_union_once_each() -> None:
    plan = plan_task(10, [4, 3], batch=4, epochs=3, mixing="pooled", seed=0)
    for epoch in range(3):
        here = slice(17 * epoch, 17 * epoch + 17)
        assert sorted(zip(plan.sources[here].tolist(), plan.indices[here].tolist(), strict=True)) == sorted(
            [(0, i) for i in range(10)] + [(1, i) for i in range(4)] + [(2, i) for i in range(3)]
        )
    assert plan.sources[:17].tolist() != sorted(plan.sources[:17].tolist())  # mixed, not one after the other


def test_a_plan_is_a_function_of_its_seed() -> None:
    plans = [plan_task(40, [7], batch=8, epochs=2, mixing="balanced", seed=seed) for seed in (5, 5, 6)]
    assert torch.equal(plans[0].indices, plans[1].indices)
    assert not torch.equal(plans[0].indices, plans[2].indices)


def test_fetch_keeps_spikes_and_labels_together() -> None:
    parts = [spike_samples(9, torch.arange(9), seed=1), spike_samples(4, 20 + torch.arange(4), seed=2)]
    sources, indices = torch.tensor([1, 0, 0, 1, 0]), torch.tensor([3, 8, 2, 0, 2])
    spikes, labels = fetch(parts, sources, indices, torch.Generator())
    assert sorted(labels.tolist()) == [2, 2, 8, 20, 23]
    everything = torch.cat([all_spikes(part) for part in parts], dim=1)
    places = [label if label < 20 else label - 20 + 9 for label in labels.tolist()]
    assert torch.equal(spikes, everything[:, places])


def mean_gradient(parts: list, mixing: Mixing) -> Tensor:  # type: ignore[type-arg]
    """The mean gradient over all mini-batches of a task, each the mean over its examples, at fixed weights."""
    network = build(NetworkConfig(6, (5,), 3), torch.float64)
    weights = [torch.randn(5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2]
    stored = [len(part) for part in parts[1:]]
    batch = {"balanced": 9, "pooled": 17, "none": 12}[mixing]
    plan = plan_task(len(parts[0]), stored, batch=batch, epochs=1, mixing=mixing, seed=0)
    batches = []
    for position in range(len(plan)):
        spikes, labels = fetch(parts, *plan.pick(position), torch.Generator())
        batches.append(example_gradients(network, weights, spikes, labels)[0].mean(dim=0))
    return torch.stack(batches).mean(dim=0)


def test_balanced_is_the_sum_of_mean_losses_and_pooled_is_not() -> None:
    """24 examples with coresets of 4 and 6: the coresets weigh as much as the data (divided by the three sources) in
    the one, by their size in the other. The reference gradient is that of each part alone."""
    parts = [spike_samples(size, torch.full((size,), k), seed=k) for k, size in enumerate((24, 4, 6))]
    alone = [mean_gradient([part], "none") for part in parts]
    balanced, pooled = mean_gradient(parts, "balanced"), mean_gradient(parts, "pooled")
    torch.testing.assert_close(balanced, sum(alone) / 3)
    torch.testing.assert_close(pooled, (24 * alone[0] + 4 * alone[1] + 6 * alone[2]) / 34)
    assert float((balanced - pooled).abs().max()) > 0.1 * float(balanced.abs().max())


def test_bad_arguments_are_named() -> None:
    with pytest.raises(UserError, match="replay must be one of balanced, pooled, none, but is 'later'"):
        plan_task(3, [], batch=1, epochs=1, mixing="later", seed=0)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="batch must lie in"):
        plan_task(3, [], batch=0, epochs=1, mixing="none", seed=0)
    with pytest.raises(UserError, match="epochs must lie in"):
        plan_task(3, [], batch=1, epochs=0, mixing="none", seed=0)
