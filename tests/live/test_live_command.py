"""`bayspike live` as it is typed: the address it prints, Ctrl-C, recordings, mistakes."""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from small_live import SEVEN, camera_learner

from bayspike.cli import main
from bayspike.learner import Learner

pytest.importorskip("starlette", reason="needs the extra `live`")
pytest.importorskip("uvicorn", reason="needs the extra `live`")
pytest.importorskip("websockets", reason="needs the extra `live`")

from plain_page import page


class Address:
    """What `page` needs to know of a server in another process."""

    def __init__(self, text: str) -> None:
        found = re.search(r"http://127\.0\.0\.1:(\d+)/([\w-]+)/", text)
        assert found is not None, text
        self.whole, self.port, self.token = found.group(), int(found.group(1)), found.group(2)


class Started:
    def __init__(self, folder: Path, *arguments: str, stdin: int | None = subprocess.DEVNULL) -> None:
        command = [sys.executable, "-m", "bayspike", "live", *arguments, "--no-browser"]
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        lines: list[str] = []
        assert self.process.stdout is not None
        while not lines or "http://" not in lines[-1]:
            line = self.process.stdout.readline()
            assert line, "".join(lines)
            lines.append(line)
        self.address = Address(lines[-1])

    def interrupt(self) -> str:
        self.process.send_signal(signal.SIGINT)
        said, _ = self.process.communicate(timeout=60)
        return said


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT to send")
def test_ctrl_c_keeps_what_was_learnt_and_a_recording_replays(model, tmp_path, capsys):
    own = Path(shutil.copy(model, tmp_path / "own.bayspike"))
    before = own.read_bytes()
    started = Started(tmp_path, "own.bayspike", "--record", "monday.jsonl")
    with urllib.request.urlopen(started.address.whole, timeout=20) as answer:
        assert b"bayspike live" in answer.read()
    with page(started.address) as writer:
        writer.send(do="pace", value=200)
        writer.send(do="draw", strokes=SEVEN)
        writer.send(do="teach", word="7")
        writer.until(lambda state: state.get("lesson") is None and len(state.get("history", [])) == 2)
        shown = writer.state["learner"]["classes"]
    said = started.interrupt()
    assert started.process.returncode == 0
    assert "own-live.bayspike" in said
    assert own.read_bytes() == before
    assert Learner.load(tmp_path / "own-live.bayspike").classes_ == tuple(shown) == ("0", "1", "2", "3", "7")
    assert main(["live", "--replay", str(tmp_path / "monday.jsonl")]) == 0
    assert "1 lessons and 0 other things were done again: every bit is the same" in capsys.readouterr().out


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT to send")
def test_events_from_standard_input(tmp_path):
    camera_learner().save(tmp_path / "camera.bayspike")
    started = Started(tmp_path, "camera.bayspike", "--stdin", stdin=subprocess.PIPE)
    with page(started.address) as watcher:
        assert started.process.stdin is not None
        for t in range(6):
            started.process.stdin.write(
                "".join(f"{t * 25_000 + 1} {x} {y} 1\n" for x in range(20, 34) for y in range(34))
            )
        started.process.stdin.flush()
        watcher.hear("input", name="the stream")
        assert watcher.hear("step", time=5)["probabilities"][1] > 0.5
    said = started.interrupt()
    assert started.process.returncode == 0
    assert "nothing new to keep" in said


def test_mistakes_are_one_sentence(model, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.png").write_bytes(b"x")
    (tmp_path / "taken.jsonl").write_bytes(b"x")
    (tmp_path / "other.bayspike").write_bytes(Path(model).read_bytes())
    for arguments, sentence in [
        (["nothing.bayspike"], "does not exist"),
        (["a.png"], "is not a learner's file"),
        (["."], "holds no learner"),
        (["--save", "other.bayspike"], "other.bayspike exists: to go on from it"),
        ([str(model), "--record", "taken.jsonl"], "taken.jsonl exists"),
        ([str(model), "--stdin"], "takes pictures, not events"),
        ([str(model), "--coverage", "1.5"], "--coverage must lie in"),
        ([str(model), "--port", "99999"], "--port must lie in"),
        ([str(model), "--prot", "1"], "did you mean --port"),
        (["--replay", "nothing.jsonl"], "is not a file"),
        (["--replay", "a.png"], "holds no recording"),
    ]:
        assert main(["live", *arguments]) == 2, arguments
        said = capsys.readouterr().err
        assert sentence in said
        assert len(said.splitlines()) == 1


def test_without_the_extra_it_says_how_to_get_it(monkeypatch, capsys):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "uvicorn" else real(name, *more)
    )
    assert main(["live"]) == 2
    assert "pip install 'bayspike[live]'" in capsys.readouterr().err


def test_the_help_comes_without_torch_or_a_server():
    code = (
        "import sys\nfrom bayspike.cli import main\ntry:\n    main(['live', '--help'])\nexcept SystemExit:\n    pass\n"
        "assert not {'torch', 'starlette', 'uvicorn'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--record" in done.stdout
