import gzip
import hashlib
import struct

import numpy as np
import pytest
import torch

from bayspike.data.catalogue import CATALOGUE
from bayspike.data.files.idx import read_idx
from bayspike.data.sets import mnist, two_moons
from bayspike.errors import UserError


@pytest.fixture(autouse=True)
def no_other_places(monkeypatch, tmp_path, request):
    """Only the folders a test names are searched."""
    monkeypatch.setattr("bayspike.data.places.user_cache_path", lambda name: tmp_path / "cache")
    if "real_data" not in request.fixturenames:
        monkeypatch.delenv("BAYSPIKE_DATA", raising=False)


def idx(array: np.ndarray) -> bytes:
    head = struct.pack(f">I{array.ndim}I", 0x0800 | array.ndim, *array.shape)
    return head + array.astype(np.uint8).tobytes()


def write_mnist(folder, *, zipped: bool, name: str = "mnist", seed: int = 0):
    random = np.random.default_rng(seed)
    (folder / name).mkdir(parents=True)
    parts = {}
    for part, count in (("train", 40), ("t10k", 20)):
        images, labels = random.integers(0, 256, (count, 28, 28)), np.arange(count) % 10
        parts[part] = images
        for file, array in ((f"{part}-images-idx3-ubyte", images), (f"{part}-labels-idx1-ubyte", labels)):
            data = idx(array)
            path = folder / name / (file + (".gz" if zipped else ""))
            path.write_bytes(gzip.compress(data) if zipped else data)
    return parts


@pytest.mark.parametrize("zipped", [True, False])
def test_mnist_from_idx_files(zipped, tmp_path):
    parts = write_mnist(tmp_path, zipped=zipped)
    data = mnist.load_mnist(root=tmp_path)
    assert torch.equal(data.train.values, torch.from_numpy(parts["train"].reshape(40, 784).astype(np.uint8)))
    assert data.test.labels.tolist() == [n % 10 for n in range(20)]
    assert (data.train.time, data.train.inputs, data.sample_shape) == (50, 784, (28, 28))


def test_without_fashion_mnist_the_foreign_inputs_are_shuffled_digits(tmp_path):
    parts = write_mnist(tmp_path, zipped=True)
    data = mnist.load_mnist(root=tmp_path, seed=3)
    assert "shuffled" in data.foreign_about
    assert not data.foreign_classes
    whole = parts["t10k"].reshape(20, 784)
    images = data.foreign.values.numpy()
    assert len(images) == 20
    # every one has the pixels of one test image, in an order of its own
    assert np.array_equal(np.sort(np.sort(images, axis=1), axis=0), np.sort(np.sort(whole, axis=1), axis=0))
    assert not any((image == whole).all(axis=1).any() for image in images)
    assert torch.equal(data.foreign.values, mnist.load_mnist(root=tmp_path, seed=3).foreign.values)
    with pytest.raises(UserError, match="foreign must be auto, fashion or noise, but is 'cats'"):
        mnist.load_mnist(root=tmp_path, foreign="cats")
    with pytest.raises(UserError, match="fashion_mnist"):
        mnist.load_mnist(root=tmp_path, foreign="fashion")


def test_mnist_takes_fashion_mnist_as_foreign_and_a_share_per_class(tmp_path):
    write_mnist(tmp_path, zipped=True)
    fashion = write_mnist(tmp_path, zipped=False, name="fashion_mnist", seed=1)
    data = mnist.load_mnist(root=tmp_path, per_class=3, seed=2)
    assert torch.bincount(data.train.labels).tolist() == [3] * 10
    for wrong in (0, -3):
        with pytest.raises(UserError, match=rf"per_class must lie in \[1, inf\), but is {wrong}"):
            mnist.load_mnist(root=tmp_path, per_class=wrong)
    assert np.array_equal(data.foreign.values.numpy(), fashion["t10k"].reshape(20, 784))
    garments = mnist.load_fashion_mnist(root=tmp_path)
    assert garments.classes[9] == "ankle boot"
    assert garments.foreign_about == "MNIST"
    assert np.array_equal(garments.foreign.values.numpy(), data.test.values.numpy())
    assert mnist.load_fashion_mnist(root=tmp_path, foreign="noise").foreign_about.startswith("test garments")


def test_missing_mnist_says_where_it_looked_and_what_to_do(tmp_path):
    with pytest.raises(UserError, match=rf"{tmp_path}.*bayspike data get mnist.*'digits'"):
        mnist.load_mnist(root=tmp_path)


def test_the_environment_variable_is_searched_where_no_folder_is_named(tmp_path, monkeypatch):
    here = write_mnist(tmp_path / "here", zipped=True, seed=1)
    there = write_mnist(tmp_path / "there", zipped=True, seed=2)
    monkeypatch.setenv("BAYSPIKE_DATA", str(tmp_path / "there"))
    first = mnist.load_mnist(root=tmp_path / "here").train.values
    assert np.array_equal(first.numpy(), here["train"].reshape(40, 784))
    second = mnist.load_mnist().train.values
    assert np.array_equal(second.numpy(), there["train"].reshape(40, 784))
    with pytest.raises(UserError, match="not found in"):
        mnist.load_mnist(root=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\0\0\x08", "header needs 16 bytes"),
        (struct.pack(">IIII", 0x0801, 1, 1, 1) + b"x", "byte 0 reads 0x00000801"),
        (struct.pack(">IIII", 0x0803, 2**31, 2**31, 2**31) + b"x", "cut short or too long"),
        (idx(np.zeros((2, 3, 3)))[:-1], "cut short or too long.*17 bytes follow from byte 16"),
        (idx(np.zeros((2, 3, 3))) + b"x", "cut short or too long"),
    ],
)
def test_damaged_idx_files_are_refused(data, message, tmp_path):
    path = tmp_path / "images"
    path.write_bytes(data)
    with pytest.raises(UserError, match=message):
        read_idx(path, 3)


def test_damaged_gzip_and_zip_bombs_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "images.gz"
    good = gzip.compress(idx(np.zeros((2, 3, 3))))
    path.write_bytes(good[:-9])
    with pytest.raises(UserError, match="cannot be unpacked"):
        read_idx(path, 3)
    monkeypatch.setattr("bayspike.data.files.idx._MAX_BYTES", 10)
    path.write_bytes(good)
    with pytest.raises(UserError, match="more than the 10 bytes"):
        read_idx(path, 3)


def test_labels_must_fit_the_images(tmp_path):
    images, labels = tmp_path / "images", tmp_path / "labels"
    images.write_bytes(idx(np.zeros((3, 28, 28))))
    labels.write_bytes(idx(np.array([1, 2])))
    with pytest.raises(UserError, match=r"3 images.*2 labels"):
        mnist.read_pair(images, labels)
    labels.write_bytes(idx(np.array([1, 2, 77])))
    with pytest.raises(UserError, match="label at byte 10 is 77"):
        mnist.read_pair(images, labels)


def test_digits_are_five_thousand_in_a_stratified_split():
    data = mnist.load_digits(seed=3)
    assert torch.bincount(data.train.labels).tolist() == [400] * 10
    assert torch.bincount(data.test.labels).tolist() == [100] * 10
    assert (data.train.inputs, data.train.time, data.sample_shape) == (784, 50, (28, 28))
    assert len(torch.cat([data.train.values, data.test.values]).unique(dim=0)) > 4990
    small = mnist.load_digits(source="sklearn", test_per_class=10)
    assert (small.train.inputs, len(small.test), int(small.train.values.max())) == (64, 100, 255)


@pytest.mark.data
@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_checksums_and_sizes_are_those_of_the_files(name, real_data):
    for file in CATALOGUE[name].files:
        path = real_data / name / file.name
        if not path.is_file():
            pytest.skip(f"{path} is not there")
        assert path.stat().st_size == file.size
        assert hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256


@pytest.mark.data
def test_digits_of_the_package_are_real_mnist_digits(real_data):
    data, mine = mnist.load_mnist(root=real_data), mnist.embedded_digits()
    known = {bytes(v.tobytes()): int(n) for v, n in zip(data.train.values.numpy(), data.train.labels, strict=True)}
    found = [known.get(bytes(v.tobytes())) for v in mine[0].numpy()]
    assert sum(a == b for a, b in zip(found, mine[1].tolist(), strict=True)) == 5000


def test_far_points_of_the_plane_are_foreign_to_two_moons():
    data = two_moons.load(seed=1)
    points, train = data.foreign.coordinates.numpy(), data.train.coordinates.numpy()
    nearest = np.sqrt(((points[:, None] - train[None]) ** 2).sum(-1)).min(axis=1)
    assert nearest.min() > 0.5
    assert len(points) > 500
    corners = {(-1.5, -1.0), (2.5, 1.5), (-1.5, 1.5), (2.5, -1.0)}
    assert corners <= {tuple(np.round(point, 3).tolist()) for point in points}


def test_two_moons_lie_on_two_half_circles():
    data = two_moons.load(seed=1)
    assert torch.bincount(data.train.labels).tolist() == [200, 200]
    points, labels = data.train.coordinates, data.train.labels
    centre = torch.where(labels[:, None] == 0, torch.tensor([0.0, 0.0]), torch.tensor([1.0, 0.5]))
    radius = (points - centre).norm(dim=1)
    # a point of a unit circle with isotropic noise of 0.1: the radius has mean 1 + 0.1^2 / 2 and deviation 0.1
    assert float(radius.mean()) == pytest.approx(1.005, abs=0.02)
    assert float(radius.std()) == pytest.approx(0.1, abs=0.015)
    assert not torch.equal(data.train.coordinates, data.test.coordinates)
    assert torch.equal(points, two_moons.load(seed=1).train.coordinates)
    spikes = data.train.spikes(torch.arange(8), torch.Generator().manual_seed(0))
    assert spikes.shape == (100, 8, 20)


def test_the_grid_covers_the_data_row_by_row():
    grid = two_moons.grid(30)
    assert len(grid) == 900
    image = grid.coordinates.reshape(30, 30, 2)
    assert torch.allclose(image[7, :, 1], image[7, :1, 1].expand(30))
    assert (image[0, :, 0].diff() > 0).all()
    assert (image[:, 0, 1].diff() > 0).all()
    points = two_moons.load().train.coordinates
    assert (points > grid.coordinates.min(0).values).all()
    assert (points < grid.coordinates.max(0).values).all()
