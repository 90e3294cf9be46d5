import zipfile

import numpy as np
import pytest
import torch
import writers

from bayspike.data.sets import dvs_gesture, mnist_dvs
from bayspike.errors import UserError


@pytest.fixture(autouse=True)
def no_other_places(monkeypatch, tmp_path, request):
    monkeypatch.setattr("bayspike.data.places.user_cache_path", lambda name: tmp_path / "cache")
    if "real_data" not in request.fixturenames:
        monkeypatch.delenv("BAYSPIKE_DATA", raising=False)


def write_mnist_dvs(folder, per_class=10):
    for digit in range(10):
        home = folder / f"grabbed_data{digit}" / "scale4"
        home.mkdir(parents=True)
        for number in range(1, per_class + 1):
            rows = writers.random_events(300, 128, seed=100 * digit + number, span=2_200_000)
            rows = [(t + 5_000, x, y, p) for t, x, y, p in rows]
            writers.aedat2(home / f"mnist_{digit}_scale04_{number:04}.aedat", rows)
        writers.aedat2(home / f"mnist_{digit}_scale08_0001.aedat", rows)  # another scale: not of the set


def expected_frames(seed):
    frames = np.zeros((80, 2, 26, 26), dtype=np.uint8)
    rows = writers.random_events(300, 128, seed=seed, span=2_200_000)
    for t, x, y, p in rows:
        since, column, row = t - rows[0][0], 127 - x - 48, 73 - y
        if since < 2_000_000 and 0 <= column < 26 and 0 <= row < 26:
            frames[since // 25_000, p, row, column] = 1
    return frames.tobytes()


@pytest.mark.parametrize("zipped", [False, True])
def test_mnist_dvs_is_cropped_binned_and_split_as_in_the_paper(zipped, tmp_path):
    write_mnist_dvs(tmp_path / "mnist_dvs")
    if zipped:
        for digit in range(10):
            folder = tmp_path / "mnist_dvs" / f"grabbed_data{digit}"
            with zipfile.ZipFile(folder.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED) as archive:
                for path in folder.rglob("*.aedat"):
                    archive.write(path, path.relative_to(folder.parent))
                    path.unlink()
    data = mnist_dvs.load(root=tmp_path)
    assert torch.bincount(data.train.labels).tolist() == [9] * 10
    assert torch.bincount(data.test.labels).tolist() == [1] * 10
    assert (data.train.time, data.train.inputs, data.sample_shape) == (80, 1352, (2, 26, 26))
    seen = set()
    for part in (data.train, data.test):
        spikes = part.spikes(torch.arange(len(part)), torch.Generator()).numpy().transpose(1, 0, 2)
        seen |= {(int(n), s.tobytes()) for n, s in zip(part.labels, spikes, strict=True)}
    assert seen == {(digit, expected_frames(100 * digit + number)) for digit in range(10) for number in range(1, 11)}


def test_mnist_dvs_missing_incomplete_or_damaged(tmp_path):
    with pytest.raises(UserError, match=r"grabbed_data0\.zip.*stand-in 'mnist_dvs_simulated'"):
        mnist_dvs.load(root=tmp_path)
    write_mnist_dvs(tmp_path / "mnist_dvs", per_class=1)
    with pytest.raises(UserError, match=r"not whole.*fewer than 2"):
        mnist_dvs.load(root=tmp_path)
    bad = tmp_path / "mnist_dvs" / "grabbed_data3.zip"
    bad.write_bytes(b"PK but no archive")
    with pytest.raises(UserError, match=r"grabbed_data3\.zip is damaged"):
        mnist_dvs.load(root=tmp_path)


@pytest.mark.data
def test_the_crop_holds_most_of_the_genuine_digit(real_data):
    path = real_data / "mnist_dvs" / "mnist_0_scale04_0001.aedat"
    frames = mnist_dvs._encode(path.read_bytes(), path, 80, 25_000, False)
    events = mnist_dvs.parse_aedat2(path.read_bytes(), path)
    inside = events.mirrored().crop(48, 48, 26, 26)
    assert len(inside) / len(events) > 0.8
    assert 1_000 < frames.sum() < len(inside)


def write_gestures(folder, *, form):
    """Users 15 (train) and 16 (test) in two lights, two gestures each, of 0.8 and 2.5 s."""
    for user in (15, 16):
        for light in ("lab", "natural"):
            rows = writers.random_events(4_000, 128, seed=user + len(light), span=6_000_000)
            cuts = [(3, 1_000_000, 1_800_000), (11, 2_000_000, 4_500_000)]
            if form == "aedat":
                folder.mkdir(parents=True, exist_ok=True)
                writers.aedat3(folder / f"user{user}_{light}.aedat", rows)
                lines = [f"{c},{a},{b}" for c, a, b in cuts]
                table = "\n".join(["class,startTime_usec,endTime_usec", *lines, ""])
                (folder / f"user{user}_{light}_labels.csv").write_text(table)
            else:
                part = "ibmGestureTrain" if user == 15 else "ibmGestureTest"
                home = folder / part / f"user{user}_{light}"
                home.mkdir(parents=True)
                for label, start, stop in cuts:
                    cut = [row for row in rows if start <= row[0] < stop]
                    writers.gesture_npy(home / f"{label - 1}.npy", cut)


@pytest.mark.parametrize("form", ["aedat", "npy"])
def test_dvs_gesture_partition_and_windows(form, tmp_path):
    write_gestures(tmp_path / "dvs_gesture", form=form)
    data = dvs_gesture.load(root=tmp_path)
    # the first gesture has room for one window of 500 ms, the second for three (of at most three)
    assert data.train.labels.tolist() == [2, 10, 10, 10]
    assert data.test.labels.tolist() == [2, 10]
    assert data.foreign.labels.tolist() == [2, 10]
    assert (data.train.time, data.test.time, data.foreign.time, data.train.inputs) == (50, 150, 150, 2048)
    rows = [r for r in writers.random_events(4_000, 128, seed=18, span=6_000_000) if 2_000_000 <= r[0] < 4_500_000]
    expected = np.zeros((50, 2, 32, 32), dtype=np.uint8)
    for t, x, y, p in rows:
        since = t - rows[0][0] - 500_000  # the second window
        if 0 <= since < 500_000:
            expected[since // 10_000, p, y // 4, x // 4] = 1
    assert np.array_equal(
        data.train.spikes(torch.tensor([2]), torch.Generator())[:, 0].numpy(), expected.reshape(50, -1)
    )
    swapped = dvs_gesture.load(root=tmp_path, foreign_light="lab")
    assert torch.equal(swapped.foreign.packed, data.test.packed)
    for none in ("none", None):  # as a call and as the command line say it
        assert dvs_gesture.load(root=tmp_path, foreign_light=none).foreign is None


def test_dvs_gesture_missing_or_wrong(tmp_path):
    with pytest.raises(UserError, match=r"by hand from.*stand-in 'gestures_simulated'"):
        dvs_gesture.load(root=tmp_path)
    write_gestures(tmp_path / "dvs_gesture", form="aedat")
    table = tmp_path / "dvs_gesture" / "user15_lab_labels.csv"
    for line, message in (
        ("12,1,2", "line 2 has class 12"),
        ("a,b,c", "line 2 is not"),
        ("1,9000000,9000001", "without events"),
    ):
        table.write_text(f"class,startTime_usec,endTime_usec\n{line}\n")
        with pytest.raises(UserError, match=message):
            dvs_gesture.load(root=tmp_path)
    table.unlink()
    with pytest.raises(UserError, match="cannot be read as a table"):
        dvs_gesture.load(root=tmp_path)
    with pytest.raises(UserError, match="foreign_light"):
        dvs_gesture.load(root=tmp_path, foreign_light="moon")
