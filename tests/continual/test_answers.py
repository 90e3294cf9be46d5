"""Stored examples with the learner's answers: what is kept, what is replayed against it, and that nothing is lost."""

from pathlib import Path
from typing import Any

import pytest
import torch
from small_tasks import RULES, as_from_disk, small_network, small_stream
from torch import Tensor

from bayspike.continual import Progress, StreamConfig, memory_of, protocol, run_stream
from bayspike.continual.answers import said_of, targets_of
from bayspike.continual.protocol import Hands
from bayspike.data.augment import Augment
from bayspike.errors import UserError
from bayspike.learning.batch import init_states, posteriors, train_batch
from bayspike.predict.predictors import Point, predict_samples
from bayspike.runs import checkpoints
from bayspike.seeds import generator_for

CONFIG = StreamConfig(batch=8, coreset_share=0.3, seed=3, stored_as="answers")


def test_targets_stand_in_the_order_in_which_examples_are_fetched() -> None:
    """Fetched are first those of the task, then the first stored set, then the second; worked out by hand."""
    sources, indices = torch.tensor([2, 0, 1, 0, 2]), torch.tensor([1, 7, 0, 4, 0])
    labels = torch.tensor([2, 2, 0, 1, 1])
    answers = [
        torch.tensor([[200, 50, 0]], dtype=torch.uint8),
        torch.tensor([[0, 255, 0], [0, 0, 0]], dtype=torch.uint8),
    ]
    found = targets_of(labels, sources, indices, answers, 3, torch.float64)
    wanted = [[0, 0, 1], [0, 0, 1], [0.8, 0.2, 0], [0, 1, 0], [0, 1, 0]]  # number 1 of the second was rounded away
    assert torch.allclose(found, torch.tensor(wanted, dtype=torch.float64))


def test_classes_that_were_not_known_then_get_nothing() -> None:
    answers = [torch.tensor([[51, 204]], dtype=torch.uint8)]
    found = targets_of(torch.tensor([1]), torch.tensor([1]), torch.tensor([0]), answers, 4, torch.float64)
    assert torch.allclose(found, torch.tensor([[0.2, 0.8, 0.0, 0.0]], dtype=torch.float64))


def test_the_answer_of_a_point_is_what_it_predicts() -> None:
    rule, stream = RULES["sgd"], small_stream()
    network = small_network(rule)
    learnt = posteriors(rule, run_stream(network, rule, stream, StreamConfig(batch=8)).states)
    samples = stream.tasks[0].train
    said = said_of(samples, network, learnt, 5)
    predicted = predict_samples(Point.of(network, learnt), samples, generator_for(5, "encode")).probabilities[-1]
    assert said.dtype == torch.uint8
    assert torch.allclose(said / 255, predicted, atol=0.5 / 255 + 1e-6)


@pytest.mark.parametrize("name", ["sgd", "bayes", "bayes-binary", "ewc"])
def test_replayed_examples_are_learnt_against_their_answers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, stream = RULES[name], small_stream()
    network = small_network(rule)
    shown: list[Tensor] = []

    def spy(network: Any, rule: Any, states: Any, spikes: Tensor, labels: Tensor, *more: Any) -> Any:
        shown.append(labels)
        return train_batch(network, rule, states, spikes, labels, *more)

    config = StreamConfig(batch=8, coreset_share=0.3, seed=3)
    with pytest.raises(UserError, match="whole network"):
        run_stream(network, rule, stream, CONFIG, hands=Hands(train=spy))
    assert all(labels.ndim == 1 for labels in shown)  # nothing is stored in the first task
    done = run_stream(network, rule, stream, CONFIG)
    assert [each.shape for each in done.answers] == [(6, 4), (6, 4)]
    plain = run_stream(network, rule, stream, config)
    assert not plain.answers
    assert any(
        not torch.equal(mine[0], other[0]) for mine, other in zip(done.states, plain.states, strict=True)
    )  # the second task was learnt in another way
    shown.clear()
    watched = Hands(train=spy)
    monkeypatch.setattr(protocol, "ALONE", watched)  # as if the spy were the one process there is
    run_stream(network, rule, stream, CONFIG, hands=watched)
    told = done.answers[0] / done.answers[0].sum(dim=1, keepdim=True)
    for targets in shown[3:]:  # of the second task: first its own, then as many stored ones
        own, stored = targets.split(4)
        assert torch.equal(own.sort(dim=1).values, torch.tensor([0.0, 0, 0, 1]).expand(4, 4))
        assert all(any(torch.allclose(row, each) for each in told) for row in stored)
        assert not torch.equal(stored.amax(dim=1), torch.ones(4))  # and no labels in disguise


def test_shares_of_classes_that_are_labels_are_learnt_as_labels() -> None:
    rule = RULES["bayes"]
    network, labels = small_network(rule), torch.tensor([0, 1, 2, 3, 1])
    spikes = (torch.rand(6, 5, 8, generator=torch.Generator().manual_seed(0)) < 0.4).float()
    learnt = []
    for told in (labels, torch.nn.functional.one_hot(labels, 4).float()):
        states = init_states(network, rule, torch.Generator().manual_seed(1))
        learnt.append(train_batch(network, rule, states, spikes, told, torch.Generator().manual_seed(2)))
    for mine, other in zip(learnt[0][0], learnt[1][0], strict=True):
        assert torch.equal(mine.mean, other.mean)
        assert torch.equal(mine.precision, other.precision)
    assert torch.equal(learnt[0][1].loss, learnt[1][1].loss)
    states = init_states(network, rule, torch.Generator())
    with pytest.raises(UserError, match="a share of each of the 4 classes"):
        train_batch(network, rule, states, spikes, torch.ones(5, 3), torch.Generator())


def test_a_run_taken_up_again_has_its_answers(tmp_path: Path) -> None:
    rule, stream = RULES["bayes"], small_stream()
    network = small_network(rule)
    halts: list[Progress] = []
    whole = run_stream(network, rule, stream, CONFIG, on_batch=lambda now, *_: halts.append(as_from_disk(now)))
    halt = next(each for each in halts if each.task == 1)
    header, tensors = checkpoints.pack_progress(halt)
    checkpoints.save(tmp_path, "step-001-0000001", {"progress": header}, tensors)
    found = checkpoints.load(tmp_path / "step-001-0000001.json")
    again = run_stream(
        network, rule, stream, CONFIG, progress=checkpoints.unpack_progress(found, network, rule, tmp_path)
    )
    for mine, other in zip(whole.states, again.states, strict=True):
        assert torch.equal(mine.mean, other.mean)
    assert all(torch.equal(a, b) for a, b in zip(whole.answers, again.answers, strict=True))
    tensors["answers.0"] = tensors["answers.0"][:-1].clone()
    checkpoints.save(tmp_path, "step-001-0000002", {"progress": header}, tensors)
    with pytest.raises(UserError, match="an answer to each of its stored examples"):
        checkpoints.unpack_progress(
            checkpoints.load(tmp_path / "step-001-0000002.json"), network, rule, tmp_path
        )  # an answer is missing


def test_answers_are_counted_as_memory() -> None:
    rule, stream = RULES["sgd"], small_stream()
    network = small_network(rule)
    with_them = memory_of(stream, run_stream(network, rule, stream, CONFIG)).coresets
    without = memory_of(stream, run_stream(network, rule, stream, StreamConfig(batch=8, coreset_share=0.3))).coresets
    assert with_them == without + 12 * 4


def test_stored_examples_alone_are_shifted() -> None:
    """A change that silences everything leaves a task without stored examples as it was, and not the next."""
    rule, stream = RULES["sgd"], small_stream()
    network = small_network(rule)

    class Silent(Augment):
        def __call__(self, spikes: Tensor, generator: torch.Generator) -> Tensor:
            return torch.zeros_like(spikes)

    seen: list[Tensor] = []

    def spy(network: Any, rule: Any, states: Any, spikes: Tensor, *more: Any) -> Any:
        seen.append(spikes.sum(dim=(0, 2)))
        return train_batch(network, rule, states, spikes, *more)

    config = StreamConfig(batch=8, coreset_share=0.3, augment_stored=Silent((8,)))
    run_stream(network, rule, stream, config, hands=Hands(train=spy))
    first, second = seen[:3], seen[3:]
    assert all(bool((each > 0).all()) for each in first)
    assert all(bool((each[:4] > 0).all()) and not each[4:].any() for each in second)
