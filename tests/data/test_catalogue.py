import contextlib
import hashlib
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import torch
from matplotlib.image import imread

from bayspike.data import catalogue, download
from bayspike.data.base import Dataset, SpikeSamples
from bayspike.data.catalogue import CATALOGUE, get, load, show, status
from bayspike.data.show import draw
from bayspike.errors import UserError


@pytest.fixture(autouse=True)
def no_other_places(monkeypatch, tmp_path):
    monkeypatch.setattr("bayspike.data.places.user_cache_path", lambda name: tmp_path / "cache")
    monkeypatch.delenv("BAYSPIKE_DATA", raising=False)


def test_the_eleven_data_sets_are_listed_with_what_a_person_needs(tmp_path):
    lines = status(tmp_path)
    names = ["two_moons", "digits", "mnist", "fashion_mnist", "nmnist", "poker_dvs"]
    names += ["mnist_dvs", "mnist_dvs_simulated", "dvs_gesture", "gestures_simulated", "folder"]
    assert [line.name for line in lines] == names
    for line in lines:
        assert line.what
        assert line.size
        assert line.licence
        assert line.simulated == ("simulated" in line.name)
        assert line.simulated <= ("simulated" in line.what)
    assert {line.name for line in lines if line.ready} == {
        "two_moons",
        "digits",
        "mnist_dvs_simulated",
        "gestures_simulated",
    }
    by_hand = next(line for line in lines if line.name == "dvs_gesture")
    assert "by hand" in by_hand.state


def test_one_damaged_set_does_not_hide_the_others(tmp_path):
    (tmp_path / "mnist_dvs").mkdir()
    (tmp_path / "mnist_dvs" / "grabbed_data0.zip").write_bytes(b"no archive")
    states = {line.name: line for line in status(tmp_path)}
    assert not states["mnist_dvs"].ready
    assert "damaged" in states["mnist_dvs"].state
    assert states["digits"].ready


def test_load_refuses_unknown_names_and_options():
    with pytest.raises(UserError, match="no data set 'imagenet': choose one of two_moons"):
        load("imagenet")
    with pytest.raises(UserError, match="no option 'colour': its options are per_class, noise"):
        load("two_moons", colour=1)


def test_load_passes_time_and_options_on():
    data = load("two_moons", time=7, per_class=5, seed=2)
    assert (data.train.time, len(data.train)) == (7, 10)


@pytest.mark.parametrize("name", ["dvs_gesture", "nmnist", "poker_dvs"])
def test_get_says_what_to_fetch_by_hand_and_where_to_put_it(name, tmp_path):
    with pytest.raises(UserError, match=rf"cannot be downloaded.*by hand.* at {tmp_path / name}\."):
        get(name, root=tmp_path)


def test_get_has_nothing_to_do_for_what_is_installed():
    assert get("digits") == "digits is ready: needs no files."


class Server(BaseHTTPRequestHandler):
    """Serves `content` by ranges; breaks off after `limit` bytes while `breaks` lasts, or never ends."""

    def __init__(self, state, *args):
        self.state = state
        super().__init__(*args)

    def do_GET(self):
        begin = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        self.state["asked"].append(begin)
        content = self.state["content"]
        if begin >= len(content):
            self.send_response(416)
            self.end_headers()
            return
        self.send_response(206 if begin else 200)
        length = self.state["length"]
        if length is not None:
            self.send_header("Content-Length", length.format(len(content) - begin))
        self.end_headers()
        part = content[begin:]
        if self.state["breaks"]:
            self.state["breaks"] -= 1
            part = part[: self.state["limit"]]
        with contextlib.suppress(ConnectionError):
            self.state["sent"] += self.wfile.write(part)
            while self.state["endless"]:
                self.state["sent"] += self.wfile.write(bytes(2**16))

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    state = {"content": bytes(range(256)) * 400, "asked": [], "breaks": 0, "limit": 50_000}
    state |= {"length": "{}", "endless": False, "sent": 0}
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, state))
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    state["address"] = f"http://127.0.0.1:{httpd.server_address[1]}/file"
    yield state
    httpd.shutdown()
    httpd.server_close()


def remote(server, sha256=None, addresses=None, size=None):
    right = hashlib.sha256(server["content"]).hexdigest()
    return download.Remote(
        "file.bin", addresses or (server["address"],), sha256 or right, size or len(server["content"])
    )


def test_a_download_is_checked_and_not_repeated(server, tmp_path):
    path = download.fetch(remote(server), tmp_path)
    assert path.read_bytes() == server["content"]
    download.fetch(remote(server), tmp_path)
    assert server["asked"] == [0]
    assert [p.name for p in tmp_path.iterdir()] == ["file.bin"]


def test_a_broken_download_is_resumed_where_it_broke_off(server, tmp_path):
    server["breaks"] = 1
    with pytest.raises(UserError, match=r"could not be downloaded"):
        download.fetch(remote(server), tmp_path)
    assert not (tmp_path / "file.bin").exists()
    assert (tmp_path / "file.bin.part").stat().st_size == 50_000
    path = download.fetch(remote(server), tmp_path)
    assert server["asked"] == [0, 50_000]
    assert path.read_bytes() == server["content"]


def test_the_next_mirror_takes_over(server, tmp_path):
    dead = "http://127.0.0.1:9/file"
    path = download.fetch(remote(server, addresses=(dead, server["address"])), tmp_path)
    assert path.read_bytes() == server["content"]


def test_a_wrong_checksum_leaves_nothing_behind(server, tmp_path):
    with pytest.raises(UserError, match=r"SHA-256 is not 0000.*by hand"):
        download.fetch(remote(server, sha256="0" * 64), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_stale_part_longer_than_the_file_does_not_stick(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(bytes(200_000))
    assert download.fetch(remote(server), tmp_path).read_bytes() == server["content"]


def test_a_part_beyond_the_end_of_the_file_there_does_not_stick(server, tmp_path):
    right = remote(server)
    (tmp_path / "file.bin.part").write_bytes(server["content"][:60_000])
    server["content"], whole = server["content"][:50_000], server["content"]
    with pytest.raises(UserError, match="416"):
        download.fetch(right, tmp_path)
    server["content"] = whole
    assert download.fetch(right, tmp_path).read_bytes() == whole


@pytest.mark.parametrize("length", [None, "many", "-5", "²", ""])
def test_a_length_that_is_missing_or_no_number_is_not_needed(server, tmp_path, length):
    server["length"] = length
    assert download.fetch(remote(server), tmp_path).read_bytes() == server["content"]


@pytest.mark.parametrize("length", [None, "many"])
def test_a_stream_without_end_is_cut_off(server, tmp_path, length):
    server.update(length=length, endless=True)
    with pytest.raises(UserError, match="more than the 102,400 bytes"):
        download.fetch(remote(server), tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert server["sent"] < 50_000_000  # what the kernel buffers, and no more


@pytest.mark.parametrize("length", [None, "many"])
def test_a_stream_of_unknown_length_that_breaks_off_is_resumed(server, tmp_path, length):
    server.update(length=length, breaks=1)
    with pytest.raises(UserError, match="broke off after 50,000 of 102,400 bytes"):
        download.fetch(remote(server), tmp_path)
    assert download.fetch(remote(server), tmp_path).read_bytes() == server["content"]
    assert server["asked"] == [0, 50_000]


@pytest.mark.parametrize("size", [1_000, 1_000_000])
def test_a_file_of_another_size_is_not_read(server, tmp_path, size):
    with pytest.raises(UserError, match=f"has 102,400 bytes, not {size:,}"):
        download.fetch(remote(server, size=size), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_has_only_an_md5_is_fetched_by_hand(server, tmp_path):
    md5 = hashlib.md5(server["content"]).hexdigest()
    weak = download.Remote("file.bin", (server["address"],), md5=md5)
    with pytest.raises(UserError, match=rf"by hand into {tmp_path}: {server['address']} \(md5 {md5}\)\.$"):
        download.fetch(weak, tmp_path)
    assert server["asked"] == []
    (tmp_path / "file.bin").write_bytes(server["content"])
    assert download.fetch(weak, tmp_path) == tmp_path / "file.bin"


def test_get_names_every_file_of_mnist_dvs_that_is_to_be_fetched_by_hand(tmp_path):
    with pytest.raises(UserError, match=rf"by hand into {tmp_path / 'mnist_dvs'}: http.*grabbed_data0.*grabbed_data9"):
        get("mnist_dvs", root=tmp_path)
    assert "by hand" in next(line.state for line in status(tmp_path) if line.name == "mnist_dvs")


def test_get_downloads_into_the_folder_where_load_looks(server, tmp_path, monkeypatch):
    entry = CATALOGUE["mnist"]
    small = catalogue.Entry(
        entry.load, entry.what, entry.size, entry.licence, entry.find, files=(remote(server),), folder="mnist"
    )
    monkeypatch.setitem(CATALOGUE, "mnist", small)
    assert get("mnist", root=tmp_path) == f"mnist was downloaded to {tmp_path / 'mnist'}."
    assert (tmp_path / "mnist" / "file.bin").read_bytes() == server["content"]


def test_every_file_has_a_checksum_and_what_is_downloaded_a_size():
    files = [file for entry in CATALOGUE.values() for file in entry.files]
    assert len(files) == 4 + 4 + 10
    for file in files:
        assert len(file.sha256 or file.md5) == (64 if file.sha256 else 32)
        assert int(file.sha256 or file.md5, 16) >= 0
        assert bool(file.sha256) == (file.size > 0)
    assert len({file.sha256 or file.md5 for file in files}) == len(files)


def test_pictures_of_points_images_and_events(tmp_path):
    assert imread(show("two_moons", tmp_path / "moons.png", time=20)).shape[2] == 4
    shown = show("digits", tmp_path / "deep" / "digits", source="sklearn", time=10)
    assert shown == tmp_path / "deep" / "digits.png"
    packed = torch.randint(0, 256, (4, 12, 9), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    samples = SpikeSamples(packed, torch.tensor([0, 1, 0, 1]), 12, 72)
    data = Dataset("toy", samples, samples, ("left", "right"), (2, 6, 6), simulated=True)
    picture = imread(draw(data, tmp_path / "toy.png"))
    assert picture[..., :3].std() > 0.1  # something is drawn
    assert sorted(p.name for p in tmp_path.iterdir()) == ["deep", "moons.png", "toy.png"]
    with pytest.raises(UserError, match="cannot be written"):
        draw(data, tmp_path / "toy.docx")


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("digits", {"test_per_class": "x"}, "The option test_per_class of the data set 'digits' must be"),
        ("digits", {"test_per_class": 0}, "test_per_class must"),
        ("digits", {"test_per_class": 1.5}, "The option test_per_class"),
        ("digits", {"source": 3}, "The option source"),
        ("two_moons", {"noise": "x"}, "The option noise"),
        ("two_moons", {"noise": -1}, "noise must"),
        ("two_moons", {"per_class": None}, "The option per_class"),
        ("gestures_simulated", {"users": "many"}, "The option users"),
    ],
)
def test_options_are_of_the_kind_their_loader_takes(name, options, sentence):
    with pytest.raises(UserError, match=sentence) as refusal:
        catalogue.load(name, **options)
    assert "\n" not in str(refusal.value)


def test_a_word_is_no_truth(tmp_path):
    """`invert=no` was taken for true, as any word is."""
    with pytest.raises(UserError, match="The option invert of the data set 'folder' must be true or false"):
        catalogue.load("folder", root=tmp_path, invert="no")


def test_none_numpy_and_plain_strings_are_taken(tmp_path):
    assert catalogue.load("digits", foreign=None, time=2).foreign is None
    assert len(catalogue.load("digits", test_per_class=np.int64(3), time=2).test) == 30
    assert {each.name for each in catalogue.status(str(tmp_path))} == set(catalogue.CATALOGUE)
    assert catalogue.show("two_moons", str(tmp_path / "moons.png"), time=3) == tmp_path / "moons.png"
