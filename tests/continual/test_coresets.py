"""Coresets: shares by class, uniform draws, and herding against brute force."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
import torch
from small_tasks import all_spikes, pictures, spike_samples

from bayspike.continual import draw_coreset
from bayspike.continual.coresets import POOL, Selection, _herd, _medoids
from bayspike.errors import UserError


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("selection", ["random", "herding", "medoids"])
def test_every_class_gives_its_share_and_at_least_one(selection: Selection) -> None:
    samples = pictures([40, 1, 13, 200])
    kept = draw_coreset(samples, 0.075, selection, seeded(0))
    assert torch.bincount(samples.labels[kept]).tolist() == [3, 1, 1, 15]  # 3, 0.075, 0.975 and 15 of each
    assert len(set(kept.tolist())) == len(kept)
    assert torch.equal(kept, kept.sort().values)
    assert torch.equal(kept, draw_coreset(samples, 0.075, selection, seeded(0)))
    assert not torch.equal(kept, draw_coreset(samples, 0.075, selection, seeded(1))) or selection == "herding"


@pytest.mark.parametrize("selection", ["random", "herding", "medoids", "reservoir"])
def test_nothing_and_everything(selection: Selection) -> None:
    samples = pictures([4, 3])
    none = draw_coreset(samples, 0.0, selection, seeded(0))
    assert none.dtype == torch.int64
    assert none.tolist() == []
    assert draw_coreset(samples, 1.0, selection, seeded(0)).tolist() == list(range(7))
    assert len(draw_coreset(samples, 1e-9, selection, seeded(0))) == (1 if selection == "reservoir" else 2)


@pytest.mark.parametrize("selection", ["random", "reservoir"])
def test_every_subset_is_equally_likely(selection: Selection) -> None:
    """Two of six of one class: 15 pairs, 3,000 draws, χ² of 14 degrees of freedom below its 99.9th percentile, 36.1."""
    samples = pictures([6])
    draws = Counter(tuple(draw_coreset(samples, 1 / 3, selection, seeded(seed)).tolist()) for seed in range(3000))
    assert set(draws) == set(combinations(range(6), 2))
    assert sum((count - 200) ** 2 / 200 for count in draws.values()) < 36.1


def test_a_reservoir_needs_no_classes() -> None:
    samples = pictures([90, 10])
    sizes = [len(draw_coreset(samples, 0.2, "reservoir", seeded(seed))) for seed in range(5)]
    rare = [int((samples.labels[draw_coreset(samples, 0.2, "reservoir", seeded(s))] == 1).sum()) for s in range(5)]
    assert sizes == [20] * 5
    assert len(set(rare)) > 1  # by chance, not by class


def brute_force_herding(features: np.ndarray, count: int) -> list[int]:
    """Try every remaining example at every place, and keep the one whose mean is closest."""
    target, chosen = features.mean(axis=0), []
    for _ in range(count):
        rest = [i for i in range(len(features)) if i not in chosen]
        chosen.append(min(rest, key=lambda i: np.linalg.norm(features[[*chosen, i]].mean(axis=0) - target)))
    return chosen


def test_herding_equals_brute_force() -> None:
    features = torch.rand(15, 4, generator=seeded(1), dtype=torch.float64)
    assert _herd(features, 9).tolist() == brute_force_herding(features.numpy(), 9)


def test_herding_of_recordings_equals_brute_force_in_every_class() -> None:
    samples = spike_samples(30, torch.arange(30) % 3, inputs=12, time=29)
    kept = draw_coreset(samples, 0.4, "herding", seeded(0))
    rates = all_spikes(samples).double().mean(dim=0).numpy()
    expected = []
    for label in range(3):
        members = np.flatnonzero(samples.labels.numpy() == label)
        expected += members[brute_force_herding(rates[members], 4)].tolist()
    assert kept.tolist() == sorted(expected)


def test_herding_looks_at_a_bounded_number_of_examples() -> None:
    samples = pictures([POOL + 200], inputs=2, time=2)
    assert len(draw_coreset(samples, 0.01, "herding", seeded(0))) == 12
    assert len(draw_coreset(samples, 1.0, "herding", seeded(0))) == POOL + 200


def test_medoids_come_near_the_best_choice_of_all() -> None:
    """All 455 triples of fifteen rows: greed must reach 1 − 1/e of the best sum of similarities (counted from −1)."""
    for seed in range(5):
        rows = torch.randn(15, 4, generator=seeded(seed), dtype=torch.float64).numpy()
        alike = np.array([[a @ b / np.sqrt(a @ a * (b @ b)) for b in rows] for a in rows])
        worth = {chosen: (alike[:, chosen].max(axis=1) + 1).sum() for chosen in combinations(range(15), 3)}
        greedy = tuple(sorted(_medoids(torch.from_numpy(rows), 3).tolist()))
        assert worth[greedy] >= (1 - 1 / np.e) * max(worth.values())
        assert worth[greedy] > np.quantile(list(worth.values()), 0.9)  # and chance does not come near it
        assert _medoids(torch.from_numpy(rows), 1).item() == alike.sum(axis=1).argmax()


def test_medoids_show_every_way_in_which_a_class_looks() -> None:
    """Ninety alike and ten of another kind: the mean is near the many, a second example kept is one of the few."""
    few = torch.tensor([0.0, 0.1, 1.0]) + 0.01 * torch.rand(10, 3, generator=seeded(0))
    many = torch.tensor([1.0, 0.2, 0.0]) + 0.01 * torch.rand(90, 3, generator=seeded(1))
    rows = torch.cat([many, few])
    assert sorted((_medoids(rows, 2) >= 90).tolist()) == [False, True]
    assert (_medoids(torch.zeros(5, 3), 2) >= 0).all()  # examples without a spike are as good as each other


def test_bad_arguments_are_named() -> None:
    with pytest.raises(UserError, match=r"coreset share must lie in \[0, 1\], but is nan"):
        draw_coreset(pictures([2]), float("nan"), "random", seeded(0))
    with pytest.raises(UserError, match="one of random, herding, medoids, reservoir, but is 'best'"):
        draw_coreset(pictures([2]), 0.5, "best", seeded(0))  # type: ignore[arg-type]
