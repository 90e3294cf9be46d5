"""The same seed and the same examples give the same learner, whatever happens in between."""

from pathlib import Path

import pytest
import torch
from small_learners import RULES, pictures, same, small

from bayspike.learner import Learner
from bayspike.rules import Rule


def story(rule: Rule, between, tmp_path: Path) -> Learner:  # type: ignore[no-untyped-def]
    """Tasks, single examples and new classes; `between` is done after each step."""
    learner = small(rule, seed=3)
    steps = [
        lambda it: it.learn(*pictures("ab", 12)),
        lambda it: it.learn_one(pictures("a", 1, seed=1)[0][0], "a"),
        lambda it: it.learn_one(pictures("c", 1, seed=2)[0][0], "c"),
        lambda it: it.learn(*pictures("cda", 11, seed=3)),
        lambda it: it.learn(*pictures("e", 7, seed=4)),
        lambda it: it.learn_one(pictures("b", 1, seed=5)[0][0], "b"),
    ]
    for number, step in enumerate(steps):
        step(learner)
        learner = between(learner, tmp_path / f"{number}.bayspike") or learner
    return learner


def reload(learner: Learner, path: Path) -> Learner:
    return Learner.load(learner.save(path))


def ask(learner: Learner, path: Path) -> None:
    """Predicting, watching, saving and other people's random numbers leave no trace."""
    torch.rand(3)
    learner.predict(pictures("abcdef", 2)[0])
    learner.watch(3).push(torch.ones(3, 8, dtype=torch.uint8))
    learner.save(path)
    torch.manual_seed(len(learner.classes_))


@pytest.mark.parametrize("name", RULES)
def test_saved_and_loaded_after_every_step_it_is_the_same(name: str, tmp_path: Path) -> None:
    plain = story(RULES[name], lambda *_: None, tmp_path)
    x, _ = pictures("abcde", 6, seed=9)
    told = plain.predict(x)
    for between in (reload, ask):
        other = story(RULES[name], between, tmp_path)
        assert same(plain.state, other.state)
        answers = other.predict(x)
        assert answers.labels == told.labels
        for part in ("probabilities", "confidence", "disagreement", "foreign", "over_time"):
            assert torch.equal(getattr(answers, part), getattr(told, part)), part


def test_another_seed_is_another_learner(tmp_path: Path) -> None:
    ours, theirs = small(seed=1).learn(*pictures("ab")), small(seed=2).learn(*pictures("ab"))
    assert not torch.equal(ours.state.states[0].mean, theirs.state.states[0].mean)


def test_learning_leaves_the_state_it_started_from_alone() -> None:
    learner = small().learn(*pictures("ab"))
    before = learner.state
    kept = [part.clone() for part in before.states[0] if isinstance(part, torch.Tensor)]
    learner.learn(*pictures("cd")).learn_one(pictures("a", 1)[0][0], "a")
    now = [part for part in before.states[0] if isinstance(part, torch.Tensor)]
    assert all(map(torch.equal, kept, now))
    assert len(before.stored) == 1
    assert before.classes == ("a", "b")
