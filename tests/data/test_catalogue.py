import hashlib
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

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
    """Serves `content` by ranges; breaks off after `limit` bytes while `breaks` lasts."""

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
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        part = content[begin:]
        if self.state["breaks"]:
            self.state["breaks"] -= 1
            part = part[: self.state["limit"]]
        self.wfile.write(part)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    state = {"content": bytes(range(256)) * 400, "asked": [], "breaks": 0, "limit": 50_000}
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, state))
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    state["address"] = f"http://127.0.0.1:{httpd.server_address[1]}/file"
    yield state
    httpd.shutdown()
    httpd.server_close()


def remote(server, md5=None, addresses=None):
    right = hashlib.md5(server["content"]).hexdigest()
    return download.Remote("file.bin", addresses or (server["address"],), md5 or right)


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
    with pytest.raises(UserError, match=r"md5 is not 0000.*by hand"):
        download.fetch(remote(server, md5="0" * 32), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_stale_part_longer_than_the_file_does_not_stick(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(bytes(200_000))
    with pytest.raises(UserError, match="md5"):
        download.fetch(remote(server), tmp_path)
    assert download.fetch(remote(server), tmp_path).read_bytes() == server["content"]


def test_get_downloads_into_the_folder_where_load_looks(server, tmp_path, monkeypatch):
    entry = CATALOGUE["mnist"]
    small = catalogue.Entry(
        entry.load, entry.what, entry.size, entry.licence, entry.find, files=(remote(server),), folder="mnist"
    )
    monkeypatch.setitem(CATALOGUE, "mnist", small)
    assert get("mnist", root=tmp_path) == f"mnist was downloaded to {tmp_path / 'mnist'}."
    assert (tmp_path / "mnist" / "file.bin").read_bytes() == server["content"]


def test_every_checksum_is_an_md5():
    files = [file for entry in CATALOGUE.values() for file in entry.files]
    assert len(files) == 4 + 4 + 10
    assert all(len(file.md5) == 32 and int(file.md5, 16) >= 0 for file in files)
    assert len({file.md5 for file in files}) == len(files)


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
