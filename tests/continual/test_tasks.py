"""Task streams: which samples each task shows, in which order, and what is refused."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from scipy import ndimage
from small_tasks import all_spikes, dataset, pictures, small_stream, spike_samples

from bayspike.continual import Stream, Task, drifting, joint, permuted, repeated, rotated, split_by_class
from bayspike.continual.tasks import Concatenated, rotation_source
from bayspike.data.base import Dataset, StaticSamples
from bayspike.data.catalogue import load
from bayspike.errors import UserError


def test_split_puts_every_sample_of_a_class_into_its_task() -> None:
    data = dataset([5, 6, 7, 8, 9])
    stream = split_by_class(data)
    assert [task.name for task in stream.tasks] == ["{0,1}", "{2,3}", "{4}"]
    counts = [torch.bincount(task.train.labels, minlength=5).tolist() for task in stream.tasks]
    assert counts == [[5, 6, 0, 0, 0], [0, 0, 7, 8, 0], [0, 0, 0, 0, 9]]
    assert [sorted(set(task.test.labels.tolist())) for task in stream.tasks] == [[0, 1], [2, 3], [4]]
    assert stream.judges == stream.tasks


def test_any_grouping_and_order_even_with_classes_left_out() -> None:
    stream = split_by_class(dataset([5, 6, 7, 8]), [[3], [2, 0]])
    assert [sorted(set(task.train.labels.tolist())) for task in stream.tasks] == [[3], [0, 2]]
    assert stream.classes == 4


def test_groups_may_be_names_or_an_array() -> None:
    data = replace(dataset([5, 6, 7, 8]), classes=("ant", "bee", "cow", "doe"))
    named = split_by_class(data, [["doe"], ["cow", "ant"]])
    assert [task.name for task in named.tasks] == ["{doe}", "{cow,ant}"]
    assert [sorted(set(task.train.labels.tolist())) for task in named.tasks] == [[3], [0, 2]]
    for groups in (np.array([[3, 1], [0, 2]]), np.array([["doe", "bee"], ["ant", "cow"]])):
        tasks = split_by_class(data, groups).tasks  # type: ignore[arg-type]
        assert [task.name for task in tasks] == ["{doe,bee}", "{ant,cow}"]
        assert [sorted(set(task.test.labels.tolist())) for task in tasks] == [[1, 3], [0, 2]]


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ([[0, 7]], "class 7 does not exist: the data set has 0 … 3"),
        ([[0, 1], [1, 2]], "class 1 stands in two groups; use `repeated`"),
        ([[0], []], "task '{}' has no train samples"),
        ([], "a stream needs at least one task"),
        ([["0"], ["4"]], "class '4' does not exist: they are 0, 1, 2, 3"),
        ([["0"], [0]], "class 0 stands in two groups"),
        ([[0.5]], "a class that is no name must be a whole number, but is 0.5"),
        ([0, 1], r"a group must be a list of classes, as in .*, but is 0\."),
        (["01"], "a group must be a list of classes, as in .*, but is '01'"),
    ],
)
def test_groups_that_make_no_sense_are_refused(groups: list[Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        split_by_class(dataset(), groups)


def test_a_repeated_task_is_judged_once() -> None:
    stream = repeated(small_stream(), [1, 0, 1, 1])
    assert [task.name for task in stream.tasks] == ["{2,3}", "{0,1}", "{2,3}", "{2,3}"]
    assert [task.name for task in stream.judges] == ["{2,3}", "{0,1}"]
    assert stream.stage_judges == (0, 1, 0, 0)
    with pytest.raises(UserError, match=r"order must name tasks 0 … 1, but is \[2\]"):
        repeated(small_stream(), [2])


def test_permuted_tasks_show_the_same_pictures_through_other_channels() -> None:
    data = dataset()
    stream = permuted(data, 4, seed=3)
    first = all_spikes(data.train)
    assert torch.equal(all_spikes(stream.tasks[0].train), first)
    seen = []
    for task in stream.tasks:
        # how often each channel fires, over all time-steps and samples, names the channel
        order = [
            next(j for j in range(8) if torch.equal(all_spikes(task.train)[:, :, i], first[:, :, j])) for i in range(8)
        ]
        assert sorted(order) == list(range(8))
        assert torch.equal(all_spikes(task.test), all_spikes(data.test)[:, :, order])  # train and test alike
        seen.append(tuple(order))
    assert len(set(seen)) == 4
    again, other = permuted(data, 4, seed=3), permuted(data, 4, seed=4)
    assert torch.equal(all_spikes(again.tasks[2].train), all_spikes(stream.tasks[2].train))
    assert not torch.equal(all_spikes(other.tasks[2].train), all_spikes(stream.tasks[2].train))


@pytest.mark.parametrize(("share", "moved"), [(0.0, 0), (0.25, 5), (1.0, 20)])
def test_drift_moves_its_share_of_the_inputs_at_a_time(share: float, moved: int) -> None:
    stream = drifting(dataset(inputs=20), 5, share)
    sources = [task.train.source for task in stream.tasks]  # type: ignore[attr-defined]
    assert sources[0].tolist() == list(range(20))
    for before, after in pairwise(sources):
        assert sorted(after.tolist()) == list(range(20))
        assert int((before != after).sum()) == moved


def test_a_quarter_turn_is_clockwise_and_exact() -> None:
    picture = np.arange(2 * 5 * 5).reshape(2, 5, 5)
    turned = picture.reshape(-1)[rotation_source((2, 5, 5), 90).numpy()].reshape(2, 5, 5)
    np.testing.assert_array_equal(turned, np.rot90(picture, k=-1, axes=(1, 2)))


@pytest.mark.parametrize("angle", [0, 13, 57.5, 200, -31])
def test_rotation_agrees_with_scipy(angle: float) -> None:
    picture = np.random.default_rng(0).integers(1, 255, (9, 12)).astype(np.uint8)
    source = rotation_source((9, 12), angle).numpy()
    ours = np.where(source >= 0, picture.reshape(-1)[source], 0).reshape(9, 12)
    turn = np.deg2rad(angle)
    matrix = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    centre = np.array([4.0, 5.5])
    # scipy calls a point outside as soon as it is beyond the centre of the border pixel, so pad by one silent pixel
    padded = np.pad(picture, 1)
    theirs = ndimage.affine_transform(padded, matrix, centre + 1 - matrix @ (centre + 1), order=0)[1:-1, 1:-1]
    np.testing.assert_array_equal(ours, theirs)


def test_rotated_stream_turns_train_and_test() -> None:
    values = torch.zeros(2, 9, dtype=torch.uint8)
    values[:, 0] = 255  # top left
    samples = StaticSamples(values, torch.tensor([0, 1]), 30)
    stream = rotated(Dataset("corner", samples, samples, ("a", "b"), (3, 3)), [0, 90, 45])
    for part in ("train", "test"):
        rates = [all_spikes(getattr(task, part)).float().mean(dim=(0, 1)) for task in stream.tasks]
        assert [int(rate.argmax()) for rate in rates] == [0, 2, 1]  # top left, top right, top middle
    with pytest.raises(UserError, match="has no picture plane to rotate"):
        rotated(dataset(), [0, 90])


def test_streams_come_from_any_data_set() -> None:
    moons = load("two_moons", time=5)
    for stream in (split_by_class(moons, [[1], [0]]), permuted(moons, 2), drifting(moons, 2, 0.5)):
        assert all_spikes(stream.tasks[1].train).shape == (5, len(stream.tasks[1].train), moons.train.inputs)


def mixed() -> Concatenated:
    """Pictures and recordings together; the parts have 2, 0, 4 and 3 samples."""
    still = pictures([1, 1], inputs=6, time=7)
    nothing = still.subset(torch.tensor([], dtype=torch.int64))
    early, late = spike_samples(4, torch.tensor([2, 2, 3, 3])), spike_samples(3, torch.tensor([4, 5, 6]), seed=9)
    return Concatenated((still, nothing, early, late))


def test_samples_of_any_kinds_are_joined_in_order() -> None:
    joined = mixed()
    assert len(joined) == 9
    assert joined.labels.tolist() == [0, 1, 2, 2, 3, 3, 4, 5, 6]
    recorded = all_spikes(joined)[:, 2:]
    assert torch.equal(recorded[:, :4], all_spikes(joined.parts[2]))
    assert torch.equal(recorded[:, 4:], all_spikes(joined.parts[3]))
    assert joined.bytes_per_sample == 7  # a recording: 7 steps of one byte


def test_a_subset_of_joined_samples_keeps_the_order_asked_for() -> None:
    joined = mixed()
    wanted = torch.tensor([8, 3, 6, 2, 8, 5])
    part = joined.subset(wanted)
    assert part.labels.tolist() == [6, 2, 4, 2, 6, 3]
    assert torch.equal(all_spikes(part), all_spikes(joined)[:, wanted])
    again = part.subset(torch.tensor([5, 0, 1]))
    assert again.labels.tolist() == [3, 6, 2]
    assert torch.equal(all_spikes(again), all_spikes(joined)[:, [5, 8, 3]])
    empty = joined.subset(torch.tensor([], dtype=torch.int64))
    assert len(empty) == 0
    assert (empty.time, empty.inputs) == (7, 6)
    with pytest.raises(UserError, match="cannot be joined"):
        Concatenated((pictures([1], inputs=6), pictures([1], inputs=5)))


def test_joint_training_shows_every_task_once() -> None:
    stream = repeated(small_stream([5, 6, 7, 8]), [0, 1, 0])
    everything = joint(stream)
    assert torch.bincount(everything.tasks[0].train.labels).tolist() == [5, 6, 7, 8]
    assert everything.judges == stream.judges
    assert everything.stage_judges is None


def test_a_label_outside_the_readout_is_refused() -> None:
    task = Task("odd", pictures([2, 2, 2]), pictures([1, 1]))
    with pytest.raises(
        UserError, match="task 'odd' has labels from 0 to 2 in its train part, but the read-out has the classes 0 … 1"
    ):
        Stream((task,), 2)
    with pytest.raises(UserError, match="in its test part"):
        Stream((Task("odd", task.test, task.train),), 2)
    with pytest.raises(UserError, match="some are negative"):
        StaticSamples(torch.zeros(1, 8, dtype=torch.uint8), torch.tensor([-1]), 6)


def test_streams_that_cannot_be_learnt_are_refused() -> None:
    task = small_stream().tasks[0]
    with pytest.raises(UserError, match="at least one task"):
        Stream((), 4)
    with pytest.raises(UserError, match="all tasks must train with one"):
        Stream((task, Task("longer", pictures([1], time=9), pictures([1], time=9))), 4)
    for function in (permuted, drifting):
        with pytest.raises(UserError, match="count must lie in"):
            function(dataset(), 0)
    with pytest.raises(UserError, match="share must lie in"):
        drifting(dataset(), 2, 1.5)
