"""What a run has less of than the paper, the number of images among it, in its own words."""

import pytest

from bayspike.experiments.registry import experiment
from bayspike.runs.plan.experiment import PaperData
from bayspike.runs.plan.reduced import fewer_images
from bayspike.runs.plan.resolve import Changes, resolve

MNIST = PaperData("mnist", (60_000, 10_000))


@pytest.mark.parametrize(
    ("train", "test", "sentence"),
    [
        (4000, 1000, ["4,000 training and 1,000 test images instead of 60,000 and 10,000."]),
        (30_000, 10_000, ["30,000 training images instead of 60,000."]),
        (60_000, 500, ["500 test images instead of 10,000."]),
        (60_000, 10_000, []),
    ],
)
def test_images_are_counted(train: int, test: int, sentence: list[str]) -> None:
    assert list(fewer_images({"train": train, "test": test}, MNIST)) == sentence
    assert list(fewer_images({"train": train, "test": test}, PaperData("dvs_gesture"))) == []
    assert list(fewer_images({"train": train, "test": test}, None)) == []


def test_another_data_set_is_named_even_by_the_largest_preset() -> None:
    assert resolve(experiment("digits"), "paper", Changes()).reduced == ("The data set is digits instead of mnist.",)
    assert resolve(experiment("split-mnist"), "paper", Changes()).reduced == ()


def test_sizes_of_data_whose_number_is_not_known_are_told_from_the_options() -> None:
    reduced = resolve(experiment("dvs-gestures"), "demo", Changes(simulated=True)).reduced
    assert "The data are simulated (gestures_simulated), not the recordings of the paper (dvs_gesture)." in reduced
    assert "660 training examples instead of all." in reduced


def test_what_is_asked_for_wins_over_what_suits_a_method_and_not_over_what_makes_it_one() -> None:
    """What is shown again counts once as evidence for a carried posterior, unless another count is asked for."""
    mnist = experiment("split-mnist")
    methods = ("bayes-carried", "finetune")
    plain = resolve(mnist, "paper", Changes(methods=methods))
    asked = ("training.evidence=always", "training.anneal=0.5", "training.replay=pooled")
    told = resolve(mnist, "paper", Changes(methods=methods, settings=asked))
    assert [each.training.anneal for each in plain.methods] == [0.98, 0.98]
    assert [each.training.evidence for each in plain.methods] == ["once", "always"]
    assert [each.training.anneal for each in told.methods] == [0.5, 0.5]
    assert [each.training.evidence for each in told.methods] == ["always", "always"]
    assert [each.training.replay for each in told.methods] == ["pooled", "none"]
