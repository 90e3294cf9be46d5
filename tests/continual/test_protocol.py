"""The protocol: what a run presents, keeps and measures, and that a run taken up again is the same run."""

from dataclasses import replace

import pytest
import torch
from small_tasks import RULES, as_from_disk, small_network, small_stream, spike_samples
from torch import Tensor

from bayspike.continual import (
    Evaluation,
    Progress,
    Scores,
    Stream,
    StreamConfig,
    Task,
    accuracy_matrix,
    coreset_only,
    joint,
    judge_with,
    memory_of,
    repeated,
    run_stream,
    score_matrix,
    summarise,
)
from bayspike.continual.protocol import anneal, coreset_samples, plan_for
from bayspike.errors import UserError
from bayspike.rules import EWC, SGD, TACOS, BernoulliVI, GaussianVI
from bayspike.rules.gaussian import GaussianState
from bayspike.rules.sgd import SGDState
from bayspike.spiking.local import LocalGradient

CONFIG = StreamConfig(batch=8, coreset_share=0.3, evaluations=2, anneal=0.5, seed=3)


class Stopped(Exception):
    pass


def assert_same(ours: Progress, theirs: Progress) -> None:
    for mine, other in zip(ours.states, theirs.states, strict=True):
        for name, part in mine._asdict().items():
            if isinstance(part, Tensor):
                assert torch.equal(part, getattr(other, name)), name
    assert all(torch.equal(a, b) for a, b in zip(ours.coresets, theirs.coresets, strict=True))
    assert replace(ours, states=(), coresets=()) == replace(theirs, states=(), coresets=())


@pytest.mark.parametrize("name", RULES)
def test_a_run_stopped_at_any_batch_ends_as_if_it_had_not(name: str) -> None:
    """Every bit: weights, priors, importances, coresets, presentations and evaluations."""
    rule, stream = RULES[name], repeated(small_stream(), [0, 1, 0])
    network = small_network(rule)
    evaluate = judge_with(network, ("committee",), members=2)
    halts: list[Progress] = []
    whole = run_stream(
        network, rule, stream, CONFIG, evaluate, on_batch=lambda progress, *_: halts.append(as_from_disk(progress))
    )
    parts = [[task.train, *coreset_samples(stream, whole.coresets[:k])] for k, task in enumerate(stream.tasks)]
    lengths = [len(plan_for(parts[k], CONFIG, k)) for k in range(3)]
    assert lengths == [3, 5, 8]  # 20 examples alone, with one coreset, with two
    assert len(halts) == sum(lengths)
    first = run_stream(network, rule, stream, replace(CONFIG, seed=4), evaluate)
    assert all(not torch.equal(a[0], b[0]) for a, b in zip(first.states, whole.states, strict=True))
    for halt in halts:
        assert_same(run_stream(network, rule, stream, CONFIG, evaluate, halt), whole)


def test_a_run_interrupted_by_an_exception_goes_on() -> None:
    rule, stream = RULES["bayes"], small_stream()
    network = small_network(rule)
    whole, kept = run_stream(network, rule, stream, CONFIG), []

    def interrupt(progress: Progress, *_: object) -> None:
        kept.append(as_from_disk(progress))
        if len(kept) == 4:  # within the second task
            raise Stopped

    with pytest.raises(Stopped):
        run_stream(network, rule, stream, CONFIG, on_batch=interrupt)
    assert (kept[-1].task, kept[-1].batch) == (1, 1)
    assert_same(run_stream(network, rule, stream, CONFIG, progress=kept[-1]), whole)


def test_the_seed_decides_everything() -> None:
    rule, stream = RULES["bayes"], small_stream()
    network = small_network(rule)
    runs = [run_stream(network, rule, stream, replace(CONFIG, seed=seed)) for seed in (1, 1, 2)]
    assert_same(runs[0], runs[1])
    assert not torch.equal(runs[0].states[0].mean, runs[2].states[0].mean)
    assert not torch.equal(runs[0].coresets[0], runs[2].coresets[0])


def test_presentations_are_counted() -> None:
    """Tasks of 20, 20 and 20 examples with coresets of 6: balanced shows 20 of each old one, pooled all 6 of each."""
    rule, stream = RULES["sgd"], repeated(small_stream(), [0, 1, 0])
    network = small_network(rule)
    expected = {"balanced": (120, 60), "pooled": (78, 18), "none": (60, 0)}
    for replay, (presentations, replayed) in expected.items():
        done = run_stream(network, rule, stream, replace(CONFIG, replay=replay))
        assert (done.presentations, done.replayed) == (presentations, replayed)
        twice = run_stream(network, rule, stream, replace(CONFIG, replay=replay, epochs=2))
        assert (twice.presentations, twice.replayed) == (2 * presentations, 2 * replayed)


def test_coresets_are_drawn_once_and_stay() -> None:
    seen: list[tuple[Tensor, ...]] = []
    stream = repeated(small_stream(), [0, 1, 0])
    done = run_stream(
        small_network(RULES["sgd"]),
        RULES["sgd"],
        stream,
        CONFIG,
        on_batch=lambda progress, *_: seen.append(tuple(kept.clone() for kept in progress.coresets)),
    )
    assert [len(kept) for kept in done.coresets] == [6, 6, 6]
    for before in seen:
        assert all(torch.equal(a, b) for a, b in zip(before, done.coresets, strict=False))
    assert (
        run_stream(small_network(RULES["sgd"]), RULES["sgd"], stream, replace(CONFIG, replay="none"))
        .coresets[0]
        .tolist()
        == []
    ), "nothing is stored that is never replayed"


def test_the_posterior_becomes_the_prior_between_tasks() -> None:
    """In the first batches of a task the prior is what the posterior was after the last batch of the one before."""
    after: dict[tuple[int, int], Progress] = {}
    for rule, posterior, prior in (
        (RULES["bayes"], ("mean", "precision"), ("prior_mean", "prior_precision")),
        (RULES["bayes-binary"], ("logits",), ("prior_logits",)),
    ):
        run_stream(
            small_network(rule),
            rule,
            small_stream(),
            replace(CONFIG, replay="none"),
            on_batch=lambda progress, *_: after.update({(progress.task, progress.batch): as_from_disk(progress)}),
        )
        for old, new in zip(after[0, 3].states, after[1, 1].states, strict=True):
            for ours, theirs in zip(posterior, prior, strict=True):
                assert torch.equal(getattr(old, ours), getattr(new, theirs))
                assert not torch.equal(getattr(new, ours), getattr(new, theirs))


def test_annealing_takes_its_share_off_the_learning_rate_within_each_task() -> None:
    used: list[float] = []

    class Watched(SGD):
        def update(self, state: SGDState, gradient: LocalGradient) -> SGDState:
            used.append(round(self.lr, 6))
            return super().update(state, gradient)

    rule = Watched(lr=1.0)
    run_stream(small_network(rule), rule, small_stream(), replace(CONFIG, replay="none", anneal=0.6))
    by_batch = used[:: 6 * 2]  # six time-steps of two layers
    assert by_batch == [1.0, 0.8, 0.6] * 2


def test_annealing_takes_as_much_off_the_rate_of_the_precision() -> None:
    rule = GaussianVI(lr=2.0, temperature=0.1, precision_lr=1.0)
    half, alike = anneal(rule, 0.5), anneal(replace(rule, precision_lr=None), 0.5)
    assert (half.lr, half.precision_lr, half.temperature) == (1.0, 0.5, 0.1)  # type: ignore[attr-defined]
    assert (alike.lr, alike.precision_lr) == (1.0, None)  # type: ignore[attr-defined]
    assert anneal(rule, 0.0) == rule


def test_evidence_is_not_annealed_in_natural_units() -> None:
    """The mean's step falls, η·(1 − share); a mini-batch late in a task adds as much to the precision as the first."""
    used: list[tuple[float, float]] = []

    class Watched(GaussianVI):
        def update(self, state: GaussianState, gradient: LocalGradient) -> GaussianState:
            used.append((round(self.rate, 6), round(self.precision_rate, 6)))
            return super().update(state, gradient)

    rule = Watched()
    run_stream(small_network(rule), rule, small_stream(), replace(CONFIG, replay="none", anneal=0.6))
    first = 8.0  # c·|B|/T, with each of the T steps an observation
    steps, evidence = zip(*used[:: 6 * 2], strict=True)
    assert steps == tuple(round(first * share, 6) for share in (1.0, 0.8, 0.6) * 2)
    assert set(evidence) == {round(first, 6)}


def flat(accuracy: float, ece: float = 0.0) -> Scores:
    return Scores(accuracy, ece, 0.0, 0.0, 0.0, 1)


def test_judging_moments() -> None:
    """Before all learning, then twice a task: 3, 5 and 8 batches are judged at half (rounded to even) and whole."""
    calls: list[int] = []

    def evaluate(posteriors, judges, seed):  # type: ignore[no-untyped-def]
        calls.append(seed)
        assert len(judges) == 2
        return {"flat": ((flat(0.5), flat(0.25)), flat(0.4))}

    stream = repeated(small_stream(), [0, 1, 0])
    done = run_stream(small_network(RULES["sgd"]), RULES["sgd"], stream, CONFIG, evaluate)
    assert [(e.task, e.batch) for e in done.evaluations] == [(0, 0), (0, 2), (0, 3), (1, 2), (1, 5), (2, 4), (2, 8)]
    assert len(set(calls)) == len(calls)
    assert accuracy_matrix(done.evaluations, "flat").tolist() == [[0.5, 0.25]] * 3


def hand_made() -> tuple[Stream, list[Evaluation]]:
    """Stages train the judges 0, 1, 0; the untrained network has 0.1 and 0.2."""
    stream = repeated(small_stream(), [0, 1, 0])
    rows = [(0, 0, 0.1, 0.2), (0, 2, 0.7, 0.0), (0, 3, 0.8, 0.3), (1, 5, 0.5, 0.9), (2, 8, 0.6, 0.4)]
    entries = [Evaluation(k, b, "flat", (flat(x, 1 - x), flat(y, 1 - y)), flat(0)) for k, b, x, y in rows]
    return stream, [*entries, Evaluation(2, 8, "other", (flat(0), flat(0)), flat(0))]


def test_measures_by_hand() -> None:
    stream, evaluations = hand_made()
    assert accuracy_matrix(evaluations, "flat").tolist() == [[0.8, 0.3], [0.5, 0.9], [0.6, 0.4]]
    torch.testing.assert_close(
        score_matrix(evaluations, "flat", "ece"), 1 - accuracy_matrix(evaluations, "flat"), check_dtype=True
    )
    summary = summarise(stream, evaluations, "flat")
    assert summary.average_accuracy == pytest.approx((0.6 + 0.4) / 2)
    assert summary.forgetting == pytest.approx(((0.8 - 0.6) + (0.9 - 0.4)) / 2)  # positive: forgotten
    assert summary.backward_transfer == pytest.approx(((0.6 - 0.8) + (0.4 - 0.9)) / 2)  # negative: harm
    assert summary.forward_transfer == pytest.approx(0.3 - 0.2, abs=1e-7)  # of the second alone, before it was trained
    assert summary.plasticity == pytest.approx((0.8 + 0.9) / 2)
    with pytest.raises(UserError, match="no evaluations by a predictor named 'third'"):
        summarise(stream, evaluations, "third")


def test_joint_training_has_an_average_and_no_forgetting() -> None:
    rule = RULES["sgd"]
    stream = joint(small_stream())
    network = small_network(rule)
    done = run_stream(network, rule, stream, CONFIG, judge_with(network, ("point",)))
    summary = summarise(stream, done.evaluations, "point")
    assert done.presentations == 40
    assert summary.average_accuracy == pytest.approx(sum(s.accuracy for s in done.evaluations[-1].tasks) / 2)
    assert summary.forgetting != summary.forgetting  # NaN
    assert summary.forward_transfer is None


def test_coreset_only_trains_on_the_very_coresets_of_the_run() -> None:
    rule, stream = RULES["sgd"], small_stream()
    network = small_network(rule)
    done = run_stream(network, rule, stream, CONFIG)
    stored = coreset_only(stream, CONFIG).tasks[0].train
    kept = [task.train.labels[indices] for task, indices in zip(stream.tasks, done.coresets, strict=True)]
    values = [task.train.subset(indices).values for task, indices in zip(stream.tasks, done.coresets, strict=True)]  # type: ignore[attr-defined]
    assert torch.equal(stored.labels, torch.cat(kept))
    assert torch.equal(torch.cat([part.values for part in stored.parts]), torch.cat(values))  # type: ignore[attr-defined]
    assert run_stream(network, rule, coreset_only(stream, CONFIG), replace(CONFIG, epochs=4)).presentations == 4 * 12
    with pytest.raises(UserError, match="task 'coresets' has no train samples"):
        coreset_only(stream, replace(CONFIG, coreset_share=0))


@pytest.mark.parametrize(
    ("rule", "matrices", "extra"),
    [
        (SGD(), 1, 0),
        (EWC(), 3, 0),  # weights, ΣF and ΣF·w, however many tasks
        (GaussianVI(), 4, 0),  # mean and precision, of posterior and prior
        (BernoulliVI(), 2, 0),
        (TACOS(), 3, (8 + 6) + (6 + 5)),  # and a rate for every neuron on both sides
    ],
)
def test_memory_in_bytes(rule: SGD, matrices: int, extra: int) -> None:
    weights = 6 * 8 + 5 * 6
    for order in ([0, 1], [0, 1, 0, 1]):
        stream = repeated(small_stream(), order)
        memory = memory_of(stream, run_stream(small_network(rule), rule, stream, CONFIG))
        assert memory.parameters == 4 * weights
        assert memory.rule == 4 * (matrices * weights + extra)
        assert memory.overhead == pytest.approx(matrices + extra / weights)
        assert memory.coresets == len(order) * 6 * 8  # six pictures of eight bytes from every task


def test_fisher_information_of_a_part_is_scaled_to_the_whole() -> None:
    """All examples alike, so any two of the twelve tell the sum over all."""
    one = spike_samples(1, torch.tensor([0]), inputs=8, time=6)
    same = one.subset(torch.zeros(12, dtype=torch.int64))
    stream = Stream((Task("same", same, same),), 4)
    rule = EWC(lr=0.01)
    network = small_network(rule)
    whole, part = (
        run_stream(network, rule, stream, replace(CONFIG, fisher_examples=count)).states for count in (None, 2)
    )
    assert float(whole[0].importance.max()) > 0
    for ours, theirs in zip(whole, part, strict=True):
        torch.testing.assert_close(ours.importance, theirs.importance)


def test_what_does_not_fit_is_refused() -> None:
    rule = RULES["sgd"]
    with pytest.raises(UserError, match="the stream has 8 inputs and 4 classes, but the network 8 and 5"):
        run_stream(small_network(rule, classes=5), rule, small_stream(), CONFIG)
    with pytest.raises(UserError, match="burn_in must leave some of the 6 time-steps"):
        run_stream(small_network(rule), rule, small_stream(), replace(CONFIG, burn_in=6))
    with pytest.raises(UserError, match=r"must be one of committee, ensemble, mean, point, .*, but is 'oracle'"):
        judge_with(small_network(rule), ("oracle",))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", 0),
        ("batch", 0),
        ("replay", "later"),
        ("coreset_share", 1.1),
        ("coreset_selection", "best"),
        ("evaluations", 0),
        ("fisher_examples", 0),
        ("burn_in", -1),
        ("anneal", 1.5),
    ],
)
def test_bad_settings_are_named(name: str, value: object) -> None:
    with pytest.raises(UserError, match=f"{name} must"):
        StreamConfig(**{name: value})  # type: ignore[arg-type]
