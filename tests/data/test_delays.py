"""Inputs at several ages: against a loop over every channel, and a stream against the whole."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import writers
from hypothesis import given, settings
from hypothesis import strategies as st

from bayspike.data import SpikeSamples, merge
from bayspike.data.delays import DelayedSamples, Silence, at_ages, check_delays, delayed, delayed_bins, shape_now
from bayspike.data.encoders import pack
from bayspike.data.inputs import bins_of_lines, spikes_of_file
from bayspike.data.sets import dvs_gesture, nmnist
from bayspike.errors import UserError


def by_hand(spikes: torch.Tensor, delays: tuple[int, ...], lead: int) -> torch.Tensor:
    """Channel (k, i) at t is input i at t − d_k, one number at a time; before the first step there was nothing."""
    time, inputs = spikes.shape
    out = torch.zeros(time - lead, len(delays) * inputs, dtype=spikes.dtype)
    for t in range(time - lead):
        for k, delay in enumerate(delays):
            for i in range(inputs):
                then = t + lead - delay
                out[t, k * inputs + i] = spikes[then, i] if then >= 0 else 0
    return out


@pytest.mark.parametrize("delays", [(0,), (0, 2, 3), (1, 4), (0, 9), (12,)])
@pytest.mark.parametrize("lead", [0, 3, 8])
def test_every_channel_is_an_input_of_some_age(delays: tuple[int, ...], lead: int) -> None:
    spikes = (torch.rand(9, 3, generator=torch.Generator().manual_seed(1)) < 0.5).to(torch.uint8)
    assert torch.equal(delayed(spikes, delays, lead), by_hand(spikes, delays, lead))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.just(0), st.integers(1, 7)), min_size=1, max_size=30),
    st.sampled_from([(0,), (0, 1), (0, 2, 5), (3,), (0, 11)]),
)
def test_a_stream_sees_what_the_whole_signal_would_show(pattern: list[int], delays: tuple[int, ...]) -> None:
    """Numbers are inputs that fire (as bits), 0 a silent bin; silent ones come as one `Silence`."""
    frames = [torch.tensor([value >> k & 1 for k in range(3)], dtype=torch.uint8) for value in pattern]
    whole = delayed(torch.stack(frames), delays)
    bins: list[torch.Tensor | Silence] = []
    for frame in frames:
        if frame.any():
            bins.append(frame)
        elif bins and isinstance(bins[-1], Silence):
            bins[-1] = Silence(bins[-1].bins + 1)
        else:
            bins.append(Silence(1))
    seen: list[torch.Tensor] = []
    for each in delayed_bins(bins, delays):
        if isinstance(each, Silence):
            seen += [torch.zeros(whole.shape[1], dtype=torch.uint8)] * each.bins
        else:
            seen.append(each)
    assert torch.equal(torch.stack(seen), whole)


def test_a_long_silence_stays_one_item_once_the_past_has_gone_by() -> None:
    spike = torch.ones(1, dtype=torch.uint8)
    found = list(delayed_bins([spike, Silence(10**9), spike], (0, 2)))
    assert [each.tolist() if isinstance(each, torch.Tensor) else each for each in found] == [
        [1, 0], [0, 0], [0, 1], Silence(10**9 - 2), [1, 0],
    ]  # fmt: skip


def recorded(count: int = 6, time: int = 7, inputs: int = 10, seed: int = 0) -> tuple[SpikeSamples, torch.Tensor]:
    spikes = (np.random.default_rng(seed).random((count, time, inputs)) < 0.3).astype(np.uint8)
    return SpikeSamples(torch.from_numpy(pack(spikes)), torch.arange(count) % 3, time, inputs), torch.from_numpy(spikes)


def test_samples_keep_what_the_camera_said_and_no_more() -> None:
    samples, spikes = recorded()
    aged = at_ages(samples, (0, 1, 3), lead=2)
    assert isinstance(aged, DelayedSamples)
    assert (aged.time, aged.inputs, len(aged), aged.bytes_per_sample) == (5, 30, 6, samples.bytes_per_sample)
    chosen = torch.tensor([4, 1])
    seen = aged.spikes(chosen, torch.Generator())
    for place, index in enumerate(chosen.tolist()):
        assert torch.equal(seen[:, place], by_hand(spikes[index], (0, 1, 3), 2))
    assert torch.equal(aged.subset(chosen).spikes(torch.arange(2), torch.Generator()), seen)
    joined = merge([aged.subset(torch.tensor([4])), aged.subset(torch.tensor([1]))])
    assert torch.equal(joined.spikes(torch.arange(2), torch.Generator()), seen)
    assert torch.equal(joined.labels, samples.labels[chosen])
    assert at_ages(samples, (0,)) is samples
    with pytest.raises(UserError, match="same delays"):
        merge([aged, DelayedSamples(samples, (0, 1, 4), 2)])


@pytest.mark.parametrize("bad", [(), (0, 0), (3, 1), (-1,), (0, 1001), (0, 2.5), (True,), "abc", None, [0, "1"], {}])
def test_delays_that_are_none_are_one_sentence(bad: Any) -> None:
    with pytest.raises(UserError, match="delays must be whole numbers"):
        check_delays(bad)


def test_a_file_that_says_nonsense_of_its_delays_is_refused() -> None:
    about = {"name": "nmnist", "time": 30, "inputs": 2312, "sample_shape": [2, 34, 34], "view": {"delays": [3, -1]}}
    with pytest.raises(UserError, match="delays must be whole numbers"):
        list(bins_of_lines(["5 1 1 1"], about))


def test_the_newest_planes_are_what_a_camera_shows() -> None:
    assert shape_now((6, 34, 34), {"delays": [0, 7, 13]}) == (2, 34, 34)
    assert shape_now((4, 32, 32), {"delays": [0, 5, 10, 15]}) == (1, 32, 32)
    assert shape_now((28, 28), {}) == (28, 28)


def test_one_number_is_a_delay() -> None:
    assert check_delays(4) == (4,)


def test_a_recording_and_its_lines_are_seen_as_the_data_set_was(tmp_path: Path) -> None:
    """File, stream of lines and loader agree in every bin, though each has code of its own."""
    for part, count in (("Train", 6), ("Test", 0)):
        for digit in range(10):
            folder = tmp_path / "nmnist" / part / str(digit)
            folder.mkdir(parents=True)
            for k in range(count):
                rows = writers.random_events(60, 34, seed=10 * k + digit)
                writers.nmnist(folder / f"{k:05d}.bin", [(0, 1, 1, 1), *rows])
    data = nmnist.load(root=tmp_path, time=30, delays=(0, 4, 9))
    assert data.sample_shape == (6, 34, 34)
    about = {"name": "nmnist", "time": 30, "inputs": data.train.inputs, "sample_shape": [6, 34, 34], "view": data.view}
    plain = nmnist.load(root=tmp_path, time=30)
    assert torch.equal(plain.test.labels, data.test.labels)
    raw = plain.test.spikes(torch.tensor([0]), torch.Generator())[:, 0]
    expected = data.test.spikes(torch.tensor([0]), torch.Generator())[:, 0]
    assert torch.equal(expected, by_hand(raw, (0, 4, 9), 0))
    for path in (tmp_path / "nmnist" / "Train").rglob("*.bin"):
        seen = spikes_of_file(path, about, torch.Generator())
        if torch.equal(seen[:, :2312], raw):
            assert torch.equal(seen, expected)
            break
    else:
        pytest.fail("the recording was not found")
    found = raw.nonzero().tolist()
    lines = io.StringIO("".join(f"{t * 10_000} {c % 34} {c % 1156 // 34} {c // 1156}\n" for t, c in found))
    stream: list[torch.Tensor] = []
    for each in bins_of_lines(lines, about):
        if isinstance(each, Silence):
            stream += [torch.zeros(data.train.inputs, dtype=torch.uint8)] * each.bins
        else:
            stream.append(each)
    assert torch.equal(torch.stack(stream), expected[: len(stream)])


def test_a_piece_from_within_a_gesture_has_a_past(tmp_path: Path) -> None:
    """One event every 10 ms in a pixel of its own: which pixel was lit says when."""
    rows = [(10_000 * k, k % 32 * 4, k // 32 * 4, 1) for k in range(100)]
    for user in (1, 16):
        home = tmp_path / "dvs_gesture" / "ibmGestureTrain" / f"user{user:02d}_lab"
        home.mkdir(parents=True)
        writers.gesture_npy(home / "3.npy", rows)
    data = dvs_gesture.load(
        root=tmp_path, time=20, test_time=30, windows=5, stride=15, delays=(0, 7), foreign_light="none"
    )
    assert data.sample_shape == (2, 32, 32)
    assert (data.train.time, data.test.time, len(data.train), data.view["delays"]) == (20, 30, 5, [0, 7])
    seen = data.train.spikes(torch.arange(5), torch.Generator())
    for piece in range(5):
        for t in range(20):
            now, then = 15 * piece + t, 15 * piece + t - 7
            lit = [now] if now < 100 else []
            expected = lit + ([1024 + then] if 0 <= then < 100 else [])
            assert seen[t, piece].nonzero().flatten().tolist() == expected
    first = data.test.spikes(torch.tensor([0]), torch.Generator())[:, 0]
    assert first[6].nonzero().flatten().tolist() == [6]
    assert first[7].nonzero().flatten().tolist() == [7, 1024]
    with pytest.raises(UserError, match="stride"):
        dvs_gesture.load(root=tmp_path, stride=0)
