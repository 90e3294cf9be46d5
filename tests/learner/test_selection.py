"""Which examples of a task a learner stores: those that `draw_coreset` chooses, before and after a file."""

from pathlib import Path
from typing import get_args

import pytest
import torch
from small_learners import datasets, pictures, same, small

from bayspike.continual.coresets import Selection, draw_coreset
from bayspike.continual.protocol import StreamConfig
from bayspike.errors import UserError
from bayspike.learner import Learner
from bayspike.learner.tasks import hold_back
from bayspike.seeds import generator_for
from bayspike.storage.archive import read_sealed, write_sealed

SHARE = 0.25


@pytest.mark.parametrize("held_back", [0.0, 0.2])
@pytest.mark.parametrize("selection", get_args(Selection))
def test_stored_are_those_that_were_chosen(selection: Selection, held_back: float) -> None:
    """Of each of two tasks; examples held back are never among them."""
    learner = small(coreset_share=SHARE, coreset_selection=selection, held_back=held_back, seed=3)
    for number, words in enumerate(("ab", "cd")):
        x, labels = pictures(words, 12, seed=number)
        learner.learn(x, labels)
        places = torch.tensor([learner.classes_.index(word) for word in labels])
        samples = learner.state.recipe.encoding.samples(x, places)
        _, rest = hold_back(learner.state.recipe, places, number)
        learnt = samples.subset(rest)
        kept = draw_coreset(learnt, SHARE, selection, generator_for(3, "coreset", number))
        stored = learner.state.stored[number]
        assert torch.equal(stored.values, learnt.values[kept])
        assert torch.equal(stored.labels, learnt.labels[kept])
        if selection != "reservoir":
            assert stored.labels.bincount().tolist()[-2:] == [round(SHARE * len(rest) / 2)] * 2


def test_a_data_set_and_a_call_of_scikit_learn_s_name_are_chosen_from_alike() -> None:
    x, labels = pictures("ab", 12)
    settings = {"coreset_share": SHARE, "coreset_selection": "medoids", "held_back": 0.0}
    learner = small(**settings).partial_fit(x, labels)
    assert torch.equal(learner.state.stored[0].values, small(**settings).learn(x, labels).state.stored[0].values)
    dataset = datasets()["spikes"]
    of_data = Learner.for_data(dataset, hidden=(6,), members=2, **settings).learn(dataset)
    kept = draw_coreset(dataset.train, SHARE, "medoids", generator_for(0, "coreset", 0))
    assert torch.equal(of_data.state.stored[0].packed, dataset.train.packed[kept])


def test_a_file_keeps_how_examples_are_chosen(tmp_path: Path) -> None:
    for selection in ("random", "medoids"):
        learner = small(coreset_share=SHARE, coreset_selection=selection).learn(*pictures("ab", 12))
        tomorrow = Learner.load(learner.save(tmp_path / "a.bayspike"))
        assert tomorrow.state.recipe.training.coreset_selection == selection
        for each in (learner, tomorrow):
            each.learn(*pictures("cd", 12))
        assert same(learner.state, tomorrow.state)


def test_a_file_that_does_not_say_goes_on_at_random(tmp_path: Path) -> None:
    learner = small(coreset_share=SHARE, coreset_selection="random").learn(*pictures("ab", 12))
    about, tensors = read_sealed(learner.save(tmp_path / "a.bayspike"))
    assert about["training"].pop("coreset_selection") == "random"
    write_sealed(tmp_path / "old.bayspike", about, tensors)
    old = Learner.load(tmp_path / "old.bayspike")
    for each in (learner, old):
        each.learn(*pictures("cd", 12))
    assert same(learner.state, old.state)


def test_medoids_are_stored_where_nothing_is_said_and_the_protocol_draws_as_the_paper_does() -> None:
    assert small().state.recipe.training.coreset_selection == "medoids"
    assert StreamConfig().coreset_selection == "random"


def test_another_way_to_choose_is_refused() -> None:
    with pytest.raises(UserError, match="coreset_selection must be one of random, herding, medoids, reservoir"):
        small(coreset_selection="best")
