"""The study of what a kept byte is worth: fair settings, images that nobody has learnt, and files that go on."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import memory_split_mnist as memory
import posterior
import pytest
import torch

from bayspike.continual import StreamConfig, split_by_class
from bayspike.continual.replay import plan_task
from bayspike.data.base import Dataset, StaticSamples
from bayspike.rules import BernoulliVI

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def numbered(per_class: int, seed: int) -> StaticSamples:
    """Pictures of ten classes, no two alike: the first two pixels are a number."""
    count = 10 * per_class
    values = torch.randint(0, 256, (count, 784), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
    values[:, 0], values[:, 1] = torch.arange(count) // 256, torch.arange(count) % 256
    return StaticSamples(values, torch.arange(count) % 10, 3)


def numbers(samples: Any) -> set[int]:
    return set((samples.values[:, 0].int() * 256 + samples.values[:, 1].int()).tolist())


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A set of 40 images a class in the place of MNIST and Fashion-MNIST."""

    def load(name: str, time: int) -> Dataset:
        classes = tuple(str(k) for k in range(10))
        return Dataset(name, numbered(40, len(name)), numbered(2, 1 + len(name)), classes, (1, 28, 28))

    for module in (memory, posterior):
        monkeypatch.setattr(module, "load", load)
        monkeypatch.setattr(module, "MEMBERS", 2)
        monkeypatch.setattr(module, "FOREIGN", 10)
    monkeypatch.setattr(memory, "HELD_BACK", 20)
    memory.small.cache_clear()
    memory.whole.cache_clear()
    yield
    memory.small.cache_clear()
    memory.whole.cache_clear()


def test_the_binary_learner_is_tried_as_it_comes() -> None:
    first = memory.settings("bayes-binary", 10)[0]
    assert isinstance(first, BernoulliVI)
    assert first.carry is None
    for stored in memory.SIZES:
        tried = [memory.plain(rule) for rule in memory.settings("bayes-binary", stored)]
        assert len(tried) == len({json.dumps(each) for each in tried}) == 5


def test_the_strength_of_ewc_falls_with_what_is_stored_and_every_learner_has_as_many_settings() -> None:
    grids = [memory.STRENGTHS[stored] for stored in memory.SIZES]
    middles = [grid[2] for grid in grids]
    assert middles == sorted(middles, reverse=True)
    assert middles[0] > middles[-1]
    for stored in memory.SIZES:
        assert {len(memory.settings(learner, stored)) for learner in memory.NUMBERS} == {5}


def test_neighbours_are_the_settings_beside_the_chosen_one() -> None:
    tried = memory.settings("ewc", 10)
    for place, expected in ((2, [3e-5, 3e-4]), (0, [3e-5]), (4, [3e-4])):
        assert [rule.strength for rule in memory.beside(tried, tried[place])] == expected
    rates = [rule.lr for rule in memory.settings("sgd", 10)]
    assert rates == sorted(rates)


def test_trials_of_before_are_still_known() -> None:
    lines = memory.lines(RESULTS / "memory-tuning.jsonl")
    for learner, value in (("sgd", {"lr": 0.12}), ("ewc", {"strength": 1e-4})):
        (rule,) = [
            memory.plain(each) for each in memory.settings(learner, 10) if value.items() <= memory.plain(each).items()
        ]
        assert rule in [line["rule"] for line in lines if line["learner"] == learner]


def test_stored_images_alone_are_shown_as_often_as_replay_shows_all(tiny: None) -> None:
    data, _ = memory.whole(None)
    stream, stored = split_by_class(data), 3
    sizes = [len(task.train) for task in stream.tasks]
    shown = [
        plan_task(size, [2 * stored] * k, batch=64, epochs=1, mixing="balanced", seed=0).presentations
        for k, size in enumerate(sizes)
    ]
    assert memory.epochs_of_stored(stream, 10 * stored) == round(sum(shown) / (10 * stored))


def test_images_that_are_held_back_are_not_learnt(tiny: None) -> None:
    data, _ = memory.whole(None)
    assert data.held_back is not None
    assert (len(data.train), len(data.held_back)) == (380, 20)
    assert not numbers(data.train) & numbers(data.held_back)
    assert data.held_back.labels.bincount().tolist() == [2] * 10
    fewer, _ = memory.whole(100)
    assert fewer.train.labels.bincount().tolist() == [10] * 10
    assert numbers(fewer.held_back) == numbers(data.held_back)


def test_nor_are_those_of_the_small_trials(tiny: None) -> None:
    plain, _ = posterior.parts(3, 20, 5, seed=0)
    data, _ = posterior.parts(3, 20, 5, seed=0, held_back=4)
    assert plain.held_back is None
    assert numbers(plain.train) == numbers(data.train)
    assert len(data.held_back) == 40
    assert not numbers(data.held_back) & (numbers(data.train) | numbers(data.test))


def line(learner: str, stored: int, found: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"learner": learner, "stored": stored, "bytes": {"rule": 10, "stored": stored}, "found": found, **more}


def measured(accuracy: float, information: float | None) -> dict[str, Any]:
    return {"accuracy": accuracy, "auroc_mutual_information": information, "auroc_entropy": 0.5, "ece": 0.1, "nll": 1.0}


def test_a_point_has_no_mutual_information_and_noise_is_not_the_learner() -> None:
    every = [
        line("ewc", 1, {"point": measured(0.7, None), "noise": measured(0.9, 0.9)}),
        line("bayes", 1, {"learnt": measured(0.8, 0.95), "zero": measured(0.1, None)}),
        line("bayes", 1, {"learnt": measured(0.6, 0.85), "zero": measured(0.1, None)}),
        line("bayes", 1, {"learnt": measured(0.2, 0.2)}, also="default"),
    ]
    assert memory.by_bytes(every, "ewc", "accuracy") == {11: [0.7]}
    assert memory.by_bytes(every, "ewc", "auroc_mutual_information") == {}
    assert memory.by_bytes(every, "ewc", "auroc_entropy") == {11: [0.5]}
    assert memory.by_bytes(every, "bayes", "auroc_mutual_information") == {11: [0.95, 0.85]}


def test_what_was_judged_is_drawn(tmp_path: Path) -> None:
    memory.draw(RESULTS / "memory-split-mnist.jsonl", tmp_path / "drawn.png")
    assert (tmp_path / "drawn.png").stat().st_size > 10_000


def test_the_setting_of_the_lowest_loss_is_judged(tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "RESULTS", tmp_path)
    losses = [3.0, 1.0, 2.0, 5.0, 4.0]
    tried = [
        {"learner": "ewc", "stored": 1, "seed": 0, "rule": memory.plain(rule), "found": {"point": {"nll": loss}}}
        for rule, loss in zip(memory.settings("ewc", 1), losses, strict=True)
    ]
    memory.tuning_of("fashion_mnist").write_text("".join(json.dumps(each) + "\n" for each in tried))
    assert memory.tuned("ewc", 1, "fashion_mnist") == memory.settings("ewc", 1)[1]
    with pytest.raises(SystemExit, match="has not been tuned"):  # each set of images has settings of its own
        memory.tuned("ewc", 1)
    memory.tuning_of("mnist").write_text("".join(json.dumps(each) + "\n" for each in tried))
    assert memory.tuned("ewc", 1) == memory.settings("ewc", 1)[1]
    with pytest.raises(SystemExit, match="has not been tuned"):
        memory.tuned("sgd", 1)
    asked: list[StreamConfig] = []
    learn = memory.run_stream

    def run_stream(network: Any, rule: Any, stream: Any, config: StreamConfig) -> Any:
        asked.append(config)
        return learn(network, rule, stream, memory.replace(config, kernels="plain"))

    monkeypatch.setattr(memory, "run_stream", run_stream)
    words = ["judge", "--learners", "ewc", "--stored", "1", "--train-examples", "100", "--kernels", "compiled"]
    for _ in range(2):
        monkeypatch.setattr(sys, "argv", ["memory_split_mnist.py", *words])
        memory.main()
    assert [config.kernels for config in asked] == ["compiled"]  # the second time there is nothing left to do
    (made,) = memory.lines(tmp_path / "memory-split-mnist-100.jsonl")
    assert (made["images"], made["held_back"]) == (100, 20)
    assert made["rule"] == tried[1]["rule"]
    assert set(made["found"]) == {"point", "noise"}
    assert "also" not in made
