"""What is drawn on the page or dropped onto it: pictures of strokes, files of pictures and recordings, silences."""

import numpy as np
import pytest
import torch
from small_live import SEVEN, TIME, camera_learner, digit

from bayspike.data.delays import Silence
from bayspike.errors import UserError
from bayspike.live.drawing import MOST_POINTS, picture_of_strokes
from bayspike.live.inputs import of_file
from bayspike.live.lessons import teach
from bayspike.live.moments import begin
from bayspike.live.playing import play
from bayspike.live.stream import steps_of


def test_a_drawing_is_scaled_and_centred_like_mnist():
    picture = picture_of_strokes(SEVEN, (28, 28))
    small = picture_of_strokes([[[0.1 + x / 4, 0.6 + y / 4] for x, y in stroke] for stroke in SEVEN], (28, 28))
    assert np.abs(picture.astype(int) - small).max() <= 1  # place and size on the pad do not matter
    rows, columns = np.nonzero(picture)
    assert 18 <= np.ptp(rows) + 1 <= 22  # the box of MNIST is 20 pixels high
    mass = picture / picture.sum()
    at = np.indices(picture.shape) + 0.5
    assert (mass * at[0]).sum() == pytest.approx(14, abs=0.15)
    assert (mass * at[1]).sum() == pytest.approx(14, abs=0.15)
    assert 0.05 < (picture > 127).mean() < 0.2
    assert np.ptp(columns) < np.ptp(rows)


def test_a_vertical_line_is_as_bright_as_its_distance_says():
    """By hand: a pixel whose centre is d from the line has clip(pen + 1/2 - d), with a pen of 1.15 pixels."""
    picture = picture_of_strokes([[[0.5, 0.2], [0.5, 0.8]]], (28, 28))
    expected = np.clip(1.15 + 0.5 - np.abs(np.arange(28) + 0.5 - 14), 0, 1)
    np.testing.assert_array_equal(picture[14], np.round(255 * expected))


@pytest.mark.parametrize(
    "strokes",
    [
        None, [], "x", [[]], [[[0.1]]], [[["a", "b"]]], [[[0.1, float("nan")]]], [[[9, 9]]],
        [[[0.1, 0.1]] * (MOST_POINTS + 1)],
    ],
    ids=lambda strokes: str(strokes)[:20],
)  # fmt: skip
def test_what_is_no_drawing_is_refused(strokes):
    with pytest.raises(UserError):
        picture_of_strokes(strokes, (28, 28))


def test_a_dot_is_a_drawing():
    assert 1 <= (picture_of_strokes([[[0.3, 0.3]]], (28, 28)) > 127).sum() < 20


def test_dropped_pictures(learner, tmp_path):
    from PIL import Image

    Image.fromarray(digit(4, 0)).save(tmp_path / "x.png")
    found, word = of_file(tmp_path / "x.png", "four.png", learner.state)
    np.testing.assert_array_equal(found.values, digit(4, 0))
    assert (found.name, word) == ("four.png", "")
    Image.fromarray(255 - np.kron(digit(4, 0), np.ones((3, 3), np.uint8))).save(tmp_path / "y.png")
    found, word = of_file(tmp_path / "y.png", "big.png", learner.state)
    assert "turned round" in word
    assert np.abs(found.values.astype(int) - digit(4, 0)).mean() < 12
    (tmp_path / "z.png").write_bytes(b"\x89PNG\r\n\x1a\nrubbish")
    with pytest.raises(UserError, match=r"^z\.png cannot be read as a picture"):
        of_file(tmp_path / "z.png", "z.png", learner.state)
    (tmp_path / "r.bin").write_bytes(b"12345")
    with pytest.raises(UserError, match="takes pictures"):
        of_file(tmp_path / "r.bin", "r.bin", learner.state)


def test_dropped_recordings(settings, tmp_path):
    """Two events of N-MNIST's format: x, y, then polarity and 23 bits of µs."""
    state = camera_learner().state
    (tmp_path / "r.bin").write_bytes(bytes([3, 4, 0x80, 0, 10]) + bytes([30, 5, 0x00, 0x80, 0]))
    found, _ = of_file(tmp_path / "r.bin", "r.bin", state)
    assert found.values.shape == (TIME, 2 * 34 * 34)
    assert found.values.sum() == 2
    assert found.values[0, 34 * 34 + 4 * 34 + 3] == 1
    seen = begin(state, "", settings)
    assert play(seen, found.spikes(state), settings).last.time == TIME
    taught = teach(seen, [found], ["two dots"], settings)
    assert taught.state.classes[-1] == "two dots"
    (tmp_path / "s.bin").write_bytes(bytes([3, 4, 0x80]))
    with pytest.raises(UserError, match=r"^s\.bin is cut short"):
        of_file(tmp_path / "s.bin", "s.bin", state)


def test_a_silence_ends_windows_but_never_floods():
    bins = [Silence(5), torch.ones(3), Silence(2), torch.ones(3), Silence(10**12)]
    found = [int(each.sum()) for each in steps_of(iter(bins), 4)]
    assert found == [3, 0, 0, 3, 0, 0, 0, 0]
