import numpy as np
import pytest
import torch

from bayspike.data.base import (
    CoordinateSamples,
    Samples,
    SpikeSamples,
    StaticSamples,
    merge,
    stratified_split,
)
from bayspike.data.encoders import PopulationCode
from bayspike.errors import UserError

LABELS = torch.tensor([0, 1, 0, 1, 2])


def static(encoder="rate"):
    values = torch.arange(5 * 6, dtype=torch.uint8).reshape(5, 6) * 8
    return StaticSamples(values, LABELS, 9, encoder)


def points():
    return CoordinateSamples(torch.rand(5, 2), LABELS, 9, PopulationCode((0.0, 0.0), (1.0, 1.0)))


def recorded(inputs=11):
    spikes = np.random.default_rng(0).integers(0, 2, (5, 9, inputs), dtype=np.uint8)
    packed = torch.from_numpy(np.packbits(spikes, axis=-1))
    return SpikeSamples(packed, LABELS, 9, inputs), spikes


@pytest.mark.parametrize("make", [static, points, lambda: recorded()[0]])
def test_every_kind_keeps_the_protocol(make):
    samples = make()
    assert isinstance(samples, Samples)
    chosen = torch.tensor([4, 0, 1])
    spikes = samples.spikes(chosen, torch.Generator().manual_seed(1))
    assert spikes.shape == (9, 3, samples.inputs)
    assert spikes.dtype == torch.uint8
    part = samples.subset(chosen)
    assert len(part) == 3
    assert part.labels.tolist() == [2, 0, 1]
    again = part.spikes(torch.arange(3), torch.Generator().manual_seed(1))
    assert torch.equal(again, spikes)


def test_bytes_per_sample_is_what_is_stored():
    assert static().bytes_per_sample == 6
    assert points().bytes_per_sample == 8
    samples, _ = recorded(11)
    assert samples.bytes_per_sample * len(samples) == samples.packed.numel()


def test_recorded_spikes_come_back_time_major():
    samples, spikes = recorded()
    out = samples.spikes(torch.tensor([3, 1]), torch.Generator()).numpy()
    assert np.array_equal(out, spikes[[3, 1]].transpose(1, 0, 2))


def test_merge_is_concatenation():
    samples, spikes = recorded()
    both = merge([samples.subset(torch.tensor([4])), samples.subset(torch.tensor([2, 0]))])
    assert both.labels.tolist() == [2, 0, 0]
    out = both.spikes(torch.arange(3), torch.Generator()).numpy()
    assert np.array_equal(out, spikes[[4, 2, 0]].transpose(1, 0, 2))
    assert merge([static(), static()]).labels.tolist() == LABELS.tolist() * 2
    assert len(merge([points(), points()])) == 10


def test_merge_refuses_what_does_not_fit():
    with pytest.raises(UserError, match="one kind"):
        merge([static(), recorded(6)[0]])
    with pytest.raises(UserError, match="one kind"):
        merge([recorded(6)[0], recorded(7)[0]])
    with pytest.raises(UserError, match="encoder"):
        merge([static(), static("latency")])
    with pytest.raises(UserError, match="nothing"):
        merge([])


def test_wrong_shapes_are_refused():
    with pytest.raises(UserError, match="labels"):
        StaticSamples(torch.zeros(3, 4, dtype=torch.uint8), LABELS, 5)
    with pytest.raises(UserError, match="uint8"):
        StaticSamples(torch.zeros(5, 4), LABELS, 5)
    with pytest.raises(UserError, match="encoder"):
        StaticSamples(torch.zeros(5, 4, dtype=torch.uint8), LABELS, 5, "loud")
    with pytest.raises(UserError, match="packed"):
        SpikeSamples(torch.zeros(5, 4, 2, dtype=torch.uint8), LABELS, 4, 17)
    with pytest.raises(UserError, match="finite"):
        CoordinateSamples(torch.full((5, 1), float("nan")), LABELS, 4, PopulationCode((0.0,), (1.0,)))


@pytest.mark.parametrize("share", [3, 0.3])
def test_stratified_split_is_a_partition_fixed_by_the_seed(share):
    labels = torch.arange(100) % 10
    train, test = stratified_split(labels, share, seed=5)
    assert sorted(torch.cat([train, test]).tolist()) == list(range(100))
    assert torch.bincount(labels[test]).tolist() == [3] * 10
    assert torch.equal(test, stratified_split(labels, share, seed=5)[1])
    assert not torch.equal(test, stratified_split(labels, share, seed=6)[1])
    with pytest.raises(UserError, match="none to train on"):
        stratified_split(labels, 10, seed=0)
