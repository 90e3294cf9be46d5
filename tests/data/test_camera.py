"""The simulated camera against light whose events can be counted on paper."""

import math

import numpy as np
import pytest
import torch

from bayspike.data.simulated.camera import Camera, record, recorded_events, recorded_spikes
from bayspike.errors import UserError

IDEAL = Camera(on_threshold=0.25, off_threshold=0.25, mismatch=0, refractory=0, response=0)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def fire_counts(camera, frames, step=1_000, seed=0):
    """Number of ON and of OFF events of every pixel."""
    pixels = frames[0].numel()
    counts = np.zeros((2, pixels), dtype=int)
    for on, off in record(camera, frames, step, generator(seed)):
        counts[0] += np.bincount(on.numpy(), minlength=pixels)
        counts[1] += np.bincount(off.numpy(), minlength=pixels)
    return counts


def ramp(slope, steps, pixels=200):
    return [torch.full((1, pixels), slope * n) for n in range(steps + 1)]


def test_a_rise_of_ten_thresholds_gives_ten_events():
    on, off = fire_counts(IDEAL, ramp(0.01, 250))  # a rise of 2.5 in all
    assert off.sum() == 0
    # pixels start anywhere within half a threshold of the light, so the count is floor(10 + u), |u| <= 1/2
    assert set(on.tolist()) == {9, 10}
    assert on.mean() == pytest.approx(9.5, abs=0.15)


def test_falling_light_fires_off_at_its_own_threshold():
    camera = Camera(on_threshold=0.25, off_threshold=0.5, mismatch=0, refractory=0, response=0)
    on, off = fire_counts(camera, ramp(-0.01, 500))
    assert on.sum() == 0
    assert off.mean() == pytest.approx(5.0 / 0.5 - 0.5, abs=0.15)  # floor(10 + u), |u| <= 1/4


def test_constant_light_is_silent_and_the_background_rate_is_as_set():
    still = [torch.zeros(1, 1_000)] * 1_001
    assert fire_counts(IDEAL, still).sum() == 0
    camera = Camera(mismatch=0, refractory=0, background=3.0)
    events = fire_counts(camera, still).sum()  # 1,000 pixels, 1 s, 3 Hz
    assert abs(events - 3_000) < 5 * math.sqrt(3_000)


def test_a_jump_is_one_event_and_what_is_left_of_it_is_remembered():
    camera = Camera(on_threshold=1.0, off_threshold=1.0, mismatch=0, refractory=0, response=0)
    frames = [torch.zeros(1, 100), *[torch.full((1, 100), 3.5)] * 5]
    on, off = fire_counts(camera, frames)
    assert on.tolist() == [1] * 100
    assert off.sum() == 0


def test_the_refractory_time_bounds_the_rate():
    camera = Camera(on_threshold=0.01, off_threshold=0.01, mismatch=0, refractory=5_000, response=0)
    on, _ = fire_counts(camera, ramp(0.1, 100))  # ten thresholds a millisecond, for 100 ms
    assert on.tolist() == [20] * 200


def test_the_low_pass_follows_a_step_with_its_time_constant():
    camera = Camera(on_threshold=0.1, off_threshold=0.1, mismatch=0, refractory=0, response=10_000, light=2.0)
    frames = [torch.zeros(1, 400), *[torch.ones(1, 400)] * 400]
    seen = np.zeros(400)
    for number, (on, _) in enumerate(record(camera, frames, 100, generator())):
        seen[number] = len(on)
    # the level is 1 - exp(-t / 5 ms), and every pixel has told of it to within a threshold
    for milliseconds in (2, 5, 10, 20):
        told = seen[: milliseconds * 10].sum() / 400 * 0.1
        assert told == pytest.approx(1 - math.exp(-milliseconds / 5), abs=0.06)


def test_noise_fires_more_in_dim_light():
    still = [torch.zeros(1, 500)] * 200
    bright, dim = (fire_counts(Camera(mismatch=0, noise=0.1, light=light), still).sum() for light in (1.0, 0.1))
    assert bright < dim
    assert dim > 100


def test_mismatch_spreads_the_rates_of_pixels():
    camera = Camera(on_threshold=0.25, off_threshold=0.25, mismatch=0.025, refractory=0, response=0)
    on, _ = fire_counts(camera, ramp(0.02, 2_000, pixels=2_000))  # 40 / threshold events
    assert on.std() / on.mean() == pytest.approx(0.025 / 0.25, rel=0.1)


def test_events_and_spikes_of_one_recording_agree():
    frames = [torch.sin(torch.arange(12).float() + 0.02 * n).unsqueeze(0) for n in range(201)]
    camera = Camera(on_threshold=0.1, off_threshold=0.1)
    events = recorded_events(camera, frames, 1_000, 4, 3, generator(1))
    assert len(events) > 100
    assert (np.diff(events.t) >= 0).all()
    spikes = recorded_spikes(camera, frames, 1_000, 1, 12, 20, 10, torch.Generator().manual_seed(1))
    assert spikes.shape == (1, 20, 24)
    same = np.zeros((20, 2, 12), dtype=np.uint8)
    again = list(record(camera, frames, 1_000, generator(1)))
    for number, (on, off) in enumerate(again):
        same[number // 10, 1, on] = 1
        same[number // 10, 0, off] = 1
    assert np.array_equal(spikes.reshape(20, 2, 12), same)


@pytest.mark.parametrize("wrong", [{"on_threshold": 0}, {"light": 0}, {"noise": -1}, {"refractory": float("nan")}])
def test_impossible_cameras_are_refused(wrong):
    with pytest.raises(UserError):
        Camera(**wrong)
