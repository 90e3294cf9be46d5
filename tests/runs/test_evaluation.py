"""A predictor judged on a data set with foreign inputs, against scikit-learn."""

from dataclasses import replace

import numpy as np
import torch
from sklearn.metrics import accuracy_score, roc_auc_score

from bayspike.data.base import Dataset, StaticSamples
from bayspike.predict.predictors import Committee, predict_samples
from bayspike.predict.temperature import fit_temperature
from bayspike.runs.outcome.evaluation import Wanted, evaluate
from bayspike.seeds import generator_for
from bayspike.spiking.network import NetworkConfig, build


def setting() -> tuple[Committee, Dataset]:
    generator = torch.Generator().manual_seed(0)
    network = build(NetworkConfig(inputs=12, hidden=(10,), classes=3))
    weights = [0.5 * torch.randn(4, *layer.shape, generator=generator) for layer in network.layers]

    def samples(count: int, brightest: int) -> StaticSamples:
        values = torch.randint(0, brightest, (count, 12), dtype=torch.uint8, generator=generator)
        return StaticSamples(values, torch.randint(3, (count,), generator=generator), 12)

    own = samples(80, 256)
    return Committee(network, weights), Dataset(
        name="made up", train=own, test=own, classes=("a", "b", "c"), sample_shape=(12,), foreign=samples(40, 60)
    )


def test_areas_are_those_of_scikit_learn() -> None:
    committee, dataset = setting()
    found = evaluate(committee, dataset, Wanted(foreign=True), seed=3)
    own = predict_samples(committee, dataset.test, generator_for(3, "final"))
    assert dataset.foreign is not None
    other = predict_samples(committee, dataset.foreign, generator_for(3, "foreign"))

    def scores(members: torch.Tensor) -> np.ndarray:
        m = members.double().numpy()
        mean = m.mean(0)
        return (m * np.log(m)).sum(-1).mean(0) - (mean * np.log(mean)).sum(-1)

    assert own.members is not None
    assert other.members is not None
    strange = np.concatenate([scores(own.members), scores(other.members)])
    assert found.auroc is not None
    assert np.isclose(found.auroc["mutual_information"], roc_auc_score([0] * 80 + [1] * 40, strange))
    assert found.scores.accuracy == accuracy_score(dataset.test.labels, own.probabilities[-1].argmax(-1))
    assert (found.scores.examples, found.calibrated_on, found.sets, found.scaled) == (80, 0, None, None)


def test_halves_are_only_made_where_something_is_fitted() -> None:
    committee, dataset = setting()
    found = evaluate(committee, dataset, Wanted(coverage=0.8), seed=3)
    assert (found.scores.examples, found.calibrated_on) == (40, 40)
    assert found.sets is not None
    assert found.sets.checkpoints == 8  # 41 examples at 0.2
    assert found.temperature is None
    assert set(found.as_json()) == {*found.scores._fields, "sets"}


def test_a_temperature_comes_from_what_was_held_back_and_leaves_the_test_part_whole() -> None:
    committee, dataset = setting()
    kept = dataset.test.subset(torch.arange(30))
    found = evaluate(committee, replace(dataset, held_back=kept), Wanted(temperature=True), seed=3)
    assert (found.scores.examples, found.calibrated_on) == (80, 0)
    done = predict_samples(committee, kept, generator_for(3, "held back"))
    assert found.temperature == fit_temperature(done.probabilities, kept.labels)
    assert found.temperature.examples == 30
    assert found.scaled is not None
    assert found.scaled.accuracy == found.scores.accuracy
