"""Tasks in, answers out: against the protocol beneath, and against what a hand computes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from small_learners import RULES, datasets, lively, pictures, small

from bayspike.continual import Stream, StreamConfig, Task, permuted, run_stream, split_by_class
from bayspike.continual.protocol import coreset_samples
from bayspike.data.base import Dataset, StaticSamples
from bayspike.errors import UserError
from bayspike.learner import BatchNote, Learner, TaskNote, network_of, posteriors_of
from bayspike.learner.tasks import hold_back
from bayspike.predict.predictors import Committee
from bayspike.rules import BernoulliVI, GaussianVI
from bayspike.seeds import generator_for
from bayspike.spiking.network import build


@pytest.mark.parametrize("name", RULES)
def test_it_is_the_protocol_beneath(name: str) -> None:
    """With nothing held back, three tasks end with the very bits of `run_stream`, which is tested on its own."""
    rule, dataset = RULES[name], datasets()["rate"]
    stream = split_by_class(dataset, [[0, 1], [2], [3]])
    settings = {"hidden": (6, 5), "rule": rule, "epochs": 2, "batch": 8, "coreset_share": 0.25, "held_back": 0.0}
    learner = lively(Learner.for_data(dataset, seed=7, **settings))
    for task in stream.tasks:
        learner.learn(task)
    config = StreamConfig(epochs=2, batch=8, coreset_share=0.25, coreset_selection="medoids", evidence="once", seed=7)
    done = run_stream(build(learner.state.recipe.network), rule, stream, config)
    for ours, theirs in zip(learner.state.states, done.states, strict=True):
        for part, other in zip(ours, theirs, strict=True):
            assert not isinstance(other, torch.Tensor) or torch.equal(part, other)
    for ours, theirs in zip(learner.state.stored, coreset_samples(stream, done.coresets), strict=True):
        assert torch.equal(ours.values, theirs.values)
        assert torch.equal(ours.labels, theirs.labels)
    assert (learner.state.presentations, learner.state.replayed) == (done.presentations, done.replayed)


def test_every_way_to_hand_over_a_task_is_the_same_task() -> None:
    x, words = pictures("ab", 12)
    labels = torch.tensor(["ab".index(word) for word in words])
    samples = StaticSamples(torch.from_numpy(x.reshape(-1, 8)), labels, 6)
    dataset = Dataset("mine", samples, samples, ("a", "b"), (2, 4))
    first = small(classes=["a", "b"]).learn(x, words)
    ways = {
        "pair": lambda it: it.learn((x, words)),
        "data set": lambda it: it.learn(dataset),
        "task": lambda it: it.learn(Task("mine", samples, samples)),
        "samples": lambda it: it.learn(samples),
        "samples and words": lambda it: it.learn(samples, words),
        "numbers with names": lambda it: it.learn(x, labels, names=["a", "b"]),
        "numbers as places": lambda it: it.learn(x, labels.numpy().astype(np.uint8)),
        "fractions": lambda it: it.learn(torch.from_numpy(x) / 255, words),
        "another shape": lambda it: it.learn(x.reshape(-1, 1, 2, 4).astype(np.int64), np.array(words)),
        "lists": lambda it: it.learn(x.tolist(), words),
        "scikit-learn's name": lambda it: it.partial_fit(x, words, classes=["a", "b"]),
    }
    for way, learn in ways.items():
        learner = learn(small(classes=["a", "b"]))
        assert torch.equal(learner.state.states[0].mean, first.state.states[0].mean), way
        assert learner.classes_ == ("a", "b")


def test_numbers_are_names_where_no_words_are_known() -> None:
    x, words = pictures("ab", 5)
    learner = small().learn(x, [{"a": 7, "b": 3}[word] for word in words])
    assert learner.classes_ == ("7", "3")
    learner.learn(x, [{"a": 3, "b": 11}[word] for word in words]).learn_one(x[0], 7)
    assert learner.classes_ == ("7", "3", "11")
    assert learner.state.seen == (6, 10, 5)
    assert small(classes=3).classes_ == ("0", "1", "2")


def test_a_new_class_moves_nothing_that_was_there() -> None:
    """Logits of the old classes, read from the members' probabilities: log-ratios, and the read-out itself."""
    learner = small(classes=["a", "b", "c"]).learn(*pictures("abc", 12))
    grown = Learner.of(replace(learner.state, classes=("a", "b", "c", "d", "e"), seen=(0,) * 5, seen_alone=(0,) * 5))
    old, new = network_of(learner.state), network_of(grown.state)
    spikes = torch.randint(0, 2, (6, 9, 8), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    weights = [each.mean() for each in posteriors_of(learner.state)]
    from bayspike.spiking.network import unroll

    fired, again = (unroll(net, spikes.float(), weights) for net in (old, new))
    assert fired[-1].sum() > 0
    for ours, theirs, before, after in zip(fired, again, old.layers, new.layers, strict=True):
        assert torch.equal(ours, theirs)
        assert torch.equal(after.readout[:3], before.readout)
        logits, more = before.logits(ours.transpose(1, 2)), after.logits(theirs.transpose(1, 2))
        assert torch.equal(more[:, :3], logits)
        assert more.shape[1] == 5
    generator = generator_for(0, "committee")
    ours = Committee.draw(old, posteriors_of(learner.state), 2, generator=generator).predict(spikes, keep_members="all")
    generator = generator_for(0, "committee")
    theirs = Committee.draw(new, posteriors_of(grown.state), 2, generator=generator).predict(spikes, keep_members="all")
    step = ours.members[:, 2].log(), theirs.members[:, 2].log()  # the first that depends on the input: no average yet
    torch.testing.assert_close(step[1][..., 1:3] - step[1][..., :1], step[0][..., 1:] - step[0][..., :1])


def test_later_classes_get_rows_whatever_way_they_came() -> None:
    one, other = small(classes=["a", "b"]), small(classes=["a", "b"])
    one.learn(*pictures("cde", 4))
    for word in "cde":
        other.learn_one(pictures(word, 1)[0][0], word)
    ours, theirs = network_of(one.state), network_of(other.state)
    assert all(torch.equal(a.readout, b.readout) for a, b in zip(ours.layers, theirs.layers, strict=True))
    assert ours.classes == 5


def test_examples_held_back_are_not_learnt() -> None:
    recipe = small(held_back=0.25).state.recipe
    labels = torch.tensor([0] * 8 + [1] * 41 + [2] * 3)
    aside, rest = hold_back(recipe, labels, 0)
    assert sorted([*aside.tolist(), *rest.tolist()]) == list(range(52))
    assert labels[aside].bincount().tolist() == [2, 10]
    assert not torch.equal(hold_back(recipe, labels, 1)[0], aside)
    none, everything = hold_back(replace(recipe, held_back=0.0), labels, 0)
    assert len(none) == 0
    assert len(everything) == 52
    learner = small(held_back=0.25).learn(*pictures("ab", 16))
    (held,), (stored,) = learner.state.held_back, learner.state.stored
    rows = {tuple(row) for row in held.values.tolist()}
    assert len(rows) == 8
    assert not rows & {tuple(row) for row in stored.values.tolist()}


def test_answers_are_those_of_the_committee() -> None:
    learner = small(classes=["a", "b", "c"], members=3).learn(*pictures("abc", 40))
    x, _ = pictures("abc", 5, seed=4)
    answers = learner.predict(x, confidence=0.6)
    samples = learner.state.recipe.encoding.samples(x, torch.zeros(15, dtype=torch.int64))
    spikes = samples.spikes(torch.arange(15), generator_for(0, "predict"))
    committee = Committee.draw(
        network_of(learner.state), posteriors_of(learner.state), 3, generator=generator_for(0, "committee")
    )
    done = committee.predict(spikes)
    assert torch.equal(answers.probabilities, done.probabilities[-1])
    assert torch.equal(answers.over_time, done.probabilities)
    assert answers.labels == tuple("abc"[place] for place in done.probabilities[-1].argmax(1).tolist())
    mean, members = done.members.double().mean(0), done.members.double()
    by_hand = -(mean * mean.log()).sum(1) + (members * members.log()).sum(2).mean(0)
    np.testing.assert_allclose(answers.disagreement, by_hand, atol=1e-6)
    assert torch.equal(answers.abstain, answers.foreign | (answers.confidence < 0.6))
    one = answers[3]
    assert (one.label, one.confidence) == (answers.labels[3], float(answers.confidence[3]))
    assert one.probabilities == dict(zip("abc", answers.probabilities[3].tolist(), strict=True))
    assert len(list(answers)) == len(answers) == 15
    watch = learner.watch(15, confidence=0.6)
    for step, frame in enumerate(spikes):
        now = watch.push(frame)
        torch.testing.assert_close(now.probabilities, answers.over_time[step], rtol=1e-4, atol=1e-5)
    assert watch.time == now.time == 6
    assert now.labels == answers.labels
    assert learner.watch().push(spikes[0, 0]).labels[0] in "abc"  # a single signal needs no batch


def test_foreign_inputs_are_told_at_about_the_rate_asked_for() -> None:
    """Three pictures each lit in its own pixels; garbage lights all alike."""
    learner = Learner((2, 4), hidden=(40,), time=20, batch=16, held_back=0.3).learn(*pictures("abc", 150))
    assert learner.state.calibration is not None
    assert learner.state.calibration.examples == 3 * 45
    own = learner.predict(pictures("abc", 100, seed=5)[0])
    assert float(own.foreign.double().mean()) < 0.12  # asked for: 0.05
    assert bool((own.abstain == own.foreign).all())
    grey = learner.predict(np.full((50, 2, 4), 110, dtype=np.uint8))
    assert float(grey.foreign.double().mean()) > 0.5
    assert small().learn(*pictures("ab", 10)).predict(pictures("ab")[0]).foreign.sum() == 0  # too few held back


def test_one_committee_serves_until_something_is_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    draw = Committee.draw

    def counting(*arguments: object, **more: object) -> Committee:
        drawn.append(1)
        return draw(*arguments, **more)  # type: ignore[arg-type]

    learner = small(held_back=0.0).learn(*pictures("ab"))
    monkeypatch.setattr(Committee, "draw", staticmethod(counting))
    x, _ = pictures("ab", 2)
    for _ in range(3):
        learner.predict(x)
        learner.predict_one(x[0])
        learner.watch()
    assert len(drawn) == 1
    learner.learn_one(x[0], "a")
    learner.predict_one(x[0])
    learner.predict_one(x[0])
    assert len(drawn) == 2


def test_a_temperature_is_fitted_where_asked_for_and_goes_when_it_learns(tmp_path: Path) -> None:
    learner = small(held_back=0.4).learn(*pictures("abc", 40))
    x, words = pictures("abc", 30, seed=6)
    before, sure = learner.evaluate(x, words), learner.predict(x)
    learner.fit_temperature()
    after, scaled = learner.evaluate(x, words), learner.predict(x)
    assert scaled.labels == sure.labels
    assert not torch.equal(scaled.confidence, sure.confidence)
    assert after.accuracy == before.accuracy
    again = Learner.load(learner.save(tmp_path / "a.bayspike"))
    assert torch.equal(again.predict(x).confidence, scaled.confidence)
    shown, learnt = again.state.presentations, 0
    while again.state.presentations == shown:  # those held back are not learnt
        assert again.state.calibration.temperature is not None
        again.learn_one(x[learnt], words[learnt])  # of a class it knows
        learnt += 1
    for each in (learner.learn(*pictures("d")), again):
        assert each.state.calibration is not None
        assert each.state.calibration.foreign is not None
        assert each.state.calibration.temperature is None
    with pytest.raises(UserError, match="no examples were held back"):
        small(held_back=0.0).learn(*pictures("ab")).fit_temperature()


def test_callbacks_are_told() -> None:
    batches: list[BatchNote] = []
    tasks: list[TaskNote] = []
    learner = small(classes=["a"], on_task=tasks.append, on_batch=batches.append)
    learner.learn(*pictures("ab", 20)).learn(*pictures("c", 10))
    assert [(note.task, note.batch) for note in batches[:8]] == [("{a,b}", k) for k in range(1, 9)]
    assert {note.batches for note in batches[:8]} == {8}  # 32 examples twice, 8 at a time; 8 were held back
    assert all(len(note.rates) == 2 and note.loss > 0 for note in batches)
    first, second = tasks
    assert first._replace(concerns=()) == TaskNote("{a,b}", 1, 40, ("b",), 4, 8, ())
    assert (second.number, second.new_classes, second.examples) == (2, ("c",), 10)


def test_a_learner_says_when_its_precision_had_no_time_to_settle() -> None:
    """1/(100 · 1e-8) updates, where two passes over 16 pictures in mini-batches of 8 at six steps are 24."""
    notes: list[TaskNote] = []
    x, words = pictures("ab")
    slow = small(GaussianVI(lr=100.0, prior_precision=100.0, temperature=1e-8), on_task=notes.append)
    slow.learn(x, words)
    (said,) = [each for each in notes[0].concerns if "hardly learnt" in each]
    assert "needs 1,000,000 updates to settle and had 24" in said
    small(GaussianVI(), on_task=notes.append).learn(x, words)
    assert not [each for each in notes[1].concerns if "hardly learnt" in each]


def test_a_failure_changes_nothing() -> None:
    learner = small().learn(*pictures("ab"))
    before = learner.state

    def stop(_: BatchNote) -> None:
        raise KeyboardInterrupt

    learner.on_batch = stop
    with pytest.raises(KeyboardInterrupt):
        learner.learn(*pictures("cd"))
    assert learner.state is before
    assert learner.classes_ == ("a", "b")
    learner.on_batch = None
    with pytest.raises(UserError, match="shape"):
        learner.partial_fit(np.zeros((2, 9)), ["q", "r"], classes=["q", "r"])
    assert learner.state is before


def test_what_was_learnt_stays_where_a_callback_fails() -> None:
    def stop(_: TaskNote) -> None:
        raise KeyboardInterrupt

    learner = small(on_task=stop)
    with pytest.raises(KeyboardInterrupt):
        learner.partial_fit(*pictures("ab"), classes=["a", "b", "c"])
    assert learner.classes_ == ("a", "b", "c")
    assert learner.state.tasks == ("{a,b}",)


def test_streams_of_other_kinds_are_learnt_and_kept(tmp_path: Path) -> None:
    """Permuted inputs have no bytes of their own to keep: their spikes are stored."""
    dataset = datasets()["rate"]
    learner = Learner.for_data(dataset, hidden=(6,), members=2, held_back=0.2)
    for task in permuted(dataset, 2).tasks:
        learner.learn(task)
    again = Learner.load(learner.save(tmp_path / "a.bayspike"))
    again.learn(dataset)
    learner.learn(dataset)
    assert torch.equal(again.state.states[0].mean, learner.state.states[0].mean)
    assert again.state.tasks == ("permutation 0", "permutation 1", "rate")


def test_a_repr_one_can_read() -> None:
    text = repr(small(classes=["cat", "dog"]).learn(*pictures("ab", 20)))
    assert text.startswith("Learner: 4 classes [cat, dog, a, b]")
    assert "8 → 8 → 7 neurons, 6 time-steps, GaussianVI, committee of 2" in text
    assert "1 tasks and 0 single examples, 40 in all" in text
    assert "not told yet (8 of 19 examples held back)" in text


def test_mistakes_are_one_sentence() -> None:
    x, words = pictures("ab", 3)
    learner = small(classes=["a", "b"])
    spiking = Learner(8, encoder="spikes", time=6, hidden=(4,))
    trains = np.zeros((2, 6, 8))
    stream = Stream((Task("t", datasets()["rate"].train, datasets()["rate"].test),), 4)
    for act, sentence in (
        (lambda: learner.learn(x), "examples with their labels"),
        (lambda: learner.learn(x, words[:-1]), "6 examples but 5 labels"),
        (lambda: learner.learn(x, [0.5] * 6), "words or whole numbers"),
        (lambda: learner.learn(x, [[1]] * 6), "one row"),
        (lambda: learner.learn(x, [-1] * 6), "must not be negative"),
        (lambda: learner.learn(x, [5] * 6), "the label 5 has no name"),
        (lambda: learner.learn(x[:, :1], words), "shape"),
        (lambda: learner.learn(x[:0], []), "no example|labels"),
        (lambda: learner.learn(replace(datasets()["rate"].train.subset(torch.arange(9)), time=9)), "over 9 time-steps"),
        (lambda: learner.learn("cat.png", ["cat"]), "must be numbers"),
        (lambda: learner.predict(np.zeros((2, 9))), "shape"),
        (lambda: learner.predict(x, confidence=2), "confidence must lie in"),
        (lambda: learner.evaluate(x, ["a", "b", "c"] * 2), "never seen the class c"),
        (lambda: learner.learn(stream.tasks[0]), "label [23] has no name"),
        (lambda: spiking.learn(trains + 2, ["a", "b"]), "zeros and ones only: bin finer"),
        (lambda: spiking.learn(trains[:, :5], ["a", "b"]), r"shape \(examples, 6, 8\)"),
        (lambda: Learner(0), "inputs must lie in"),
        (lambda: Learner(()), "inputs must be a number"),
        (lambda: Learner(4, classes="cat"), "list of names"),
        (lambda: Learner(4, classes=["a", "a"]), "stands twice"),
        (lambda: Learner(4, classes=-1), "names, or their number"),
        (lambda: Learner(4, time=0), "time must lie in"),
        (lambda: Learner(4, members=0), "members must lie in"),
        (lambda: Learner(4, held_back=0.9), "held_back must lie in"),
        (lambda: Learner(4, encoder="morse"), "encoder must be one of"),  # type: ignore[arg-type]
        (lambda: Learner.for_data(datasets()["rate"], time=3), "settled by the data set"),
        (
            lambda: Learner.of(replace(learner.state, recipe=replace(learner.state.recipe, rule=BernoulliVI()))),
            "BernoulliVI is a rule for binary synapses",
        ),
    ):  # fmt: skip
        with pytest.raises(UserError, match=sentence) as refusal:
            act()
        assert "\n" not in str(refusal.value)


def test_a_learner_that_gathers_otherwise_has_a_temperature_after_every_task(tmp_path: Path) -> None:
    x, labels = pictures("ab")
    plain, other = (small(gather=how).learn(x, labels) for how in ("mean", "logits"))
    assert plain.state.calibration.temperature is None
    assert other.state.calibration.temperature.examples == sum(len(part) for part in other.state.held_back)
    again = Learner.load(other.save(tmp_path / "other.bayspike"))
    assert again.state.recipe.gather == "logits"
    assert torch.equal(again.predict(x).probabilities, other.predict(x).probabilities)
    assert not torch.equal(plain.predict(x).probabilities, other.predict(x).probabilities)
    answers = again.predict(x)
    torch.testing.assert_close(answers.over_time[-1], answers.probabilities)  # both with the temperature
    kept = Learner.load(tmp_path / "other.bayspike").learn_one(x[0], labels[0])
    assert kept.state.calibration.temperature == other.state.calibration.temperature
    watch, spikes = other.watch(1), other.state.recipe.encoding.one(x[0]).spikes(torch.tensor([0]), torch.Generator())
    for step in spikes[:, 0]:
        watch.push(step)
    assert watch.time == len(spikes)


def test_what_is_foreign_may_go_by_how_differently_members_fire(tmp_path: Path) -> None:
    x, labels = pictures("ab", each=100)
    told = small(foreign_score="discord", held_back=0.2).learn(x, labels)
    again = Learner.load(told.save(tmp_path / "one.bayspike"))
    assert again.state.recipe.foreign_score == "discord"
    assert again.state.calibration is not None
    assert again.state.calibration.foreign is not None
    assert again.state.calibration.foreign.score == "discord"
    answers = again.predict(x)
    assert torch.equal(answers.foreign, told.predict(x).foreign)
    assert 0 < float(answers.foreign.double().mean()) < 0.2  # 5 % were asked for
    with pytest.raises(UserError, match="a committee of one has none"):
        small(foreign_score="discord", members=1)
    with pytest.raises(UserError, match="foreign_score must be one of"):
        small(foreign_score="distance")
