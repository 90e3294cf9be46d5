"""Who is let in, what may be sent, who holds the pen. Real requests to a real server on this machine."""

import socket
from pathlib import Path
from typing import Any

import pytest
from small_live import ONE, SEVEN, TIME, camera_learner, served

pytest.importorskip("starlette", reason="needs the extra `live`")
pytest.importorskip("uvicorn", reason="needs the extra `live`")
websockets = pytest.importorskip("websockets", reason="needs the extra `live`")

from plain_page import CLIENT, Page, ask, page  # noqa: E402

from bayspike.errors import UserError  # noqa: E402
from bayspike.learner import Learner  # noqa: E402
from bayspike.live import server as server_module  # noqa: E402
from bayspike.live.moments import Settings, begin  # noqa: E402
from bayspike.live.running import Running, Sources  # noqa: E402
from bayspike.live.stream import listen_on  # noqa: E402


@pytest.fixture(scope="module")
def running(moment):
    with served(moment) as (found, _):
        yield found


def test_only_the_token_opens_the_page(running):
    status, text, headers = ask(running, "")
    assert status == 200
    assert "bayspike live" in text
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "<script>" not in text
    assert " style=" not in text
    assert " onclick" not in text
    assert (headers["referrer-policy"], headers["x-content-type-options"]) == ("no-referrer", "nosniff")
    for path in (
        "/",
        "/index.html",
        "/static/live.js",
        f"/{running.token[:-1]}/",
        f"/{running.token}x/",
        f"/{running.token}",
    ):
        status, text, headers = ask(running, path)
        assert status == 403, path
        assert "token" in text
        assert headers["content-security-policy"] == policy


def test_a_foreign_host_is_refused(running):
    """A name that somebody made to point here: its page could read everything, were it answered."""
    for host in (f"evil.example:{running.port}", "127.0.0.1", "127.0.0.1:1", ""):
        status, text, _ = ask(running, "", Host=host)
        assert status in (400, 403), host
        assert "bayspike live" not in text
    assert ask(running, "", Host=f"localhost:{running.port}")[0] == 200


def test_a_foreign_origin_is_refused(running):
    own = f"http://127.0.0.1:{running.port}"
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{running.port}", "http://127.0.0.1:1"):
        assert ask(running, "", Origin=origin)[0] == 403
        assert ask(running, "drop?name=a.png", "POST", b"x", Origin=origin)[0] == 403
        with pytest.raises(websockets.exceptions.InvalidStatus):
            Page(running, origin=origin)
    with pytest.raises(websockets.exceptions.InvalidStatus):
        Page(running, origin=None)
    assert ask(running, "drop?name=a.png", "POST", b"x")[0] == 403  # whatever changes something must say where from
    assert ask(running, "", Origin=own)[0] == 200


def test_a_socket_needs_token_and_name(running):
    base = f"ws://127.0.0.1:{running.port}"
    for address in (
        f"{base}/ws?client={CLIENT}",
        f"{base}/wrong/ws?client={CLIENT}",
        f"{base}/{running.token}/ws?client=<b>",
    ):
        with pytest.raises(websockets.exceptions.InvalidStatus):
            Page(running, address=address)


def test_no_other_file_is_served(running):
    for path in ("static/nothing.js", "static/../server.py", "static/%2e%2e/server.py", "static/__init__.py", "other"):
        status, text, _ = ask(running, path)
        assert status in (403, 404)
        assert "import" not in text
    for name in server_module.page_files():
        assert ask(running, f"static/{name}")[0] == 200


def test_one_page_writes_and_the_other_watches(running):
    with page(running) as first, page(running, "other-page-00") as second:
        second.send(do="draw", strokes=ONE)
        assert "Another page has the pen" in second.hear("note")["text"]
        first.send(do="draw", strokes=ONE)
        for each in (first, second):
            each.hear("input", name="the drawing")
            assert each.hear("step", time=3)["verdict"] in ("waiting", "commits")
        status, text, _ = drop(running, "x.png", b"x", client="other-page-00")
        assert (status, "pen" in text) == (409, True)
        second.send(do="take")
        assert second.hear("pen", yours=True)
        assert first.hear("pen", yours=False)
        first.send(do="stop")
        assert "Another page has the pen" in first.hear("note")["text"]
    with page(running, "third-page-00") as third:  # nobody is left
        third.send(do="stop")
        third.send(do="nothing")
        assert "nothing called" in third.hear("note")["text"]


def drop(running: Any, name: str, body: bytes, client: str = CLIENT) -> tuple[int, str, Any]:
    origin = f"http://127.0.0.1:{running.port}"
    return ask(running, f"drop?name={name}", "POST", body, Origin=origin, X_Client=client)


def test_what_cannot_be_read_is_one_sentence(running, model, monkeypatch):
    whole = Path(model).read_bytes()
    with page(running) as writer:
        for name, body, sentence in [
            ("bad.png", b"\x89PNG\r\n\x1a\nrubbish", "bad.png cannot be read as a picture"),
            ("bad.npy", b"rubbish", "takes pictures"),
            ("cut.bayspike", whole[:-7], "cut.bayspike is damaged or cut off"),
            ("no.bayspike", b"rubbish", "no.bayspike is not a file of this kind"),
            ("code.py", b"print(1)", "of no kind that is read"),
            ("%3Cimg%20src=x%3E.png", b"x", "characters that are not taken"),
            ("..%2F..%2Fetc%2Fpasswd", b"x", "of no kind that is read"),
            ("empty.png", b"", "is empty"),
        ]:
            status, text, headers = drop(running, name, body)
            assert status in (411, 422), name
            assert sentence in text, name
            assert "/tmp" not in text
            assert headers["content-type"].startswith("text/plain")
        monkeypatch.setattr(server_module, "LARGEST_DROP", 1000)
        status, text, _ = drop(running, "large.png", bytes(5000))
        assert (status, "larger than the 1,000 bytes" in text) == (422, True)
        writer.send(do="stop")
        assert writer.socket.ping() is not None  # it lives


def test_an_upload_that_never_ends_is_given_up(running, monkeypatch):
    monkeypatch.setattr(server_module, "PATIENCE", 0.3)
    with page(running), socket.create_connection(("127.0.0.1", running.port), timeout=20) as slow:
        host = f"127.0.0.1:{running.port}"
        head = f"POST /{running.token}/drop?name=a.png HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n"
        slow.sendall(f"{head}X-Client: {CLIENT}\r\nContent-Length: 100\r\n\r\nabc".encode())
        assert b"408" in slow.recv(1000)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", '{"do": 7}', '{"do": "draw"}', '{"do": "teach"}', '{"do": "add", "word": "a\\nb"}',
             '{"do": "pace", "value": "x"}', '{"do": "pace", "value": 1e9}', '{"do": "confidence", "value": true}',
             '{"do": "remove", "place": -1}', '{"do": "neuron", "layer": 9}', '{"do": "undo"}', "[" * 5000]
)  # fmt: skip
def test_a_strange_wish_is_one_sentence(running, text):
    with page(running) as writer:
        writer.socket.send(text)
        said = writer.hear("note")
        assert said["kind"] == "problem"
        assert said["text"].endswith(".")
        assert "went wrong" not in said["text"]


def test_teach_undo_save_load_over_the_wire(moment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with served(moment) as (running, _), page(running) as writer:
        writer.send(do="pace", value=200)
        writer.send(do="draw", strokes=SEVEN)
        before = writer.hear("step", time=TIME)["probabilities"]
        writer.send(do="add", word="seven")
        writer.send(do="add", word="seven")
        assert "in the lesson already" in writer.hear("note")["text"]
        assert [each["word"] for each in writer.state["tray"]] == ["seven"]
        writer.send(do="teach")
        assert writer.hear("lesson")["lesson"]["phase"] == "learning"
        writer.until(lambda state: state["lesson"] is None and len(state["history"]) == 2)
        assert writer.state["learner"]["classes"] == ["0", "1", "2", "3", "seven"]
        assert (writer.state["tray"], writer.state["kept"]) == ([], False)
        writer.send(do="again")
        assert writer.hear("step", time=TIME)["probabilities"][4] > 0.3
        status, _, headers = ask(running, "learner.bayspike")
        assert (status, "attachment" in headers["content-disposition"]) == (200, True)
        writer.send(do="save")
        assert "live.bayspike" in writer.hear("note")["text"]
        assert Learner.load("live.bayspike").classes_[-1] == "seven"
        writer.send(do="undo")
        writer.until(lambda state: len(state["history"]) == 1)
        assert Learner.load("live.bayspike").classes_ == ("0", "1", "2", "3")  # the file is what the page shows
        writer.send(do="again")
        assert writer.hear("step", time=TIME)["probabilities"] == before  # bit for bit
        writer.send(do="sample")
        told = writer.hear("input")
        assert (told["judged"], told["teachable"], told["truth"] in "0123") == (True, False, True)
        writer.send(do="teach", word="8")
        assert "judge" in writer.hear("note", kind="problem")["text"]
    assert running.kept is None  # all was kept already


def test_a_named_file_is_written_after_every_lesson_and_loading_keeps_what_was_learnt(
    moment, model, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "own.bayspike"
    with served(moment, save=own) as (running, _), page(running) as writer:
        writer.send(do="pace", value=200)
        writer.send(do="draw", strokes=SEVEN)
        writer.send(do="teach", word="7")
        writer.until(lambda state: state.get("lesson") is None and len(state.get("history", [])) == 2)
        assert Learner.load(own).classes_[-1] == "7"
        assert drop(running, "other.bayspike", Path(model).read_bytes())[0] == 200
        writer.until(lambda state: len(state["history"]) == 3)
        writer.send(do="draw", strokes=ONE)
        writer.send(do="teach", word="eins")
        writer.until(lambda state: state["lesson"] is None and len(state["history"]) == 4)
        assert Learner.load(own).classes_[-1] == "7"  # another learner does not get into its file
        writer.send(do="undo")
        writer.send(do="undo")
        writer.until(lambda state: len(state["history"]) == 2)
        assert writer.state["file"] == str(own)
        assert writer.state["learner"]["classes"][-1] == "7"
    assert Learner.load(own).classes_[-1] == "7"


def test_ending_in_the_middle_of_a_lesson_keeps_it(moment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with served(moment) as (running, _), page(running) as writer:
        writer.send(do="draw", strokes=SEVEN)
        writer.send(do="teach", word="7")
        writer.hear("state")
        running.stop()
    assert Learner.load(running.kept).classes_[-1] == "7"


def test_a_disk_that_is_full_at_the_end_loses_nothing(moment, tmp_path, monkeypatch, capsys):
    (tmp_path / "rescue").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "rescue"))
    gone = tmp_path / "file" / "own.bayspike"
    (tmp_path / "file").write_bytes(b"where the folder should be")
    with served(moment, save=gone) as (running, _), page(running) as writer:
        writer.send(do="draw", strokes=SEVEN)
        writer.send(do="teach", word="7")
        assert "cannot be written" in writer.hear("note", kind="problem")["text"]
        writer.until(lambda state: state.get("lesson") is None and len(state.get("history", [])) == 2)
        assert writer.state["kept"] is False
    assert running.kept.parent == tmp_path / "rescue"
    assert Learner.load(running.kept).classes_[-1] == "7"
    assert "cannot be written" in capsys.readouterr().err


def test_events_from_a_socket_are_watched_in_windows(tmp_path):
    camera = begin(camera_learner().state, "", Settings())
    step = 300_000 // TIME  # µs: the view of N-MNIST
    left = [f"{t * step + 1} {x} {y} 1\n" for t in range(TIME + 1) for x in range(0, 17, 2) for y in range(0, 34, 2)]
    with (
        served(camera, sources=Sources(listening=listen_on(0))) as (running, _),
        page(running) as watcher,
    ):
        port = running._sources.listening.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as sender:
            sender.sendall("".join(left).encode())
            watcher.hear("input", name="the stream")
            last = watcher.hear("step", time=TIME)
            assert last["probabilities"][0] > 0.5
        assert "have ended" in watcher.hear("note")["text"]
        with socket.create_connection(("127.0.0.1", port)) as sender:
            sender.sendall(b"0 1 2 1\nrubbish\n")
        assert "line 2 is not" in watcher.hear("note", kind="problem")["text"]
        watcher.send(do="stop")
    with pytest.raises(UserError, match="cannot be listened on"), socket.create_server(("127.0.0.1", 0)) as taken:
        listen_on(taken.getsockname()[1])


def test_a_learner_of_pictures_takes_no_events(moment):
    from bayspike.live.recording import Recorder
    from bayspike.live.session import Session

    with pytest.raises(UserError, match="takes pictures, not events"):
        Running(Session(moment, Settings(), Recorder(None)), sources=Sources(stdin=True))
    with pytest.raises(UserError, match="cannot be used"), socket.create_server(("127.0.0.1", 0)) as taken:
        Running(Session(moment, Settings(), Recorder(None)), taken.getsockname()[1])
