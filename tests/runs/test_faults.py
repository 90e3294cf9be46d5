"""Faults of disks, files and people: each is one sentence, nothing is lost, and nothing goes on as if all were well."""

import errno
import json
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from told import JOB, Told, go_on, newest, sentence_of

from bayspike.cli import main
from bayspike.errors import UserError
from bayspike.runs import checkpoints
from bayspike.runs.directory import RunDirectory, claimed_run, create_run
from bayspike.runs.engine import run_jobs
from bayspike.runs.jobs import Stop, Workbench
from bayspike.runs.locks import locked
from bayspike.runs.plan.config import config_from_json, parse_setting
from bayspike.runs.workers import run_in_workers
from bayspike.storage.files import read_json, read_limited, write_json, write_whole

# --- what cannot be stored -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["inf", "nan", "-1"])
def test_a_time_between_checkpoints_that_cannot_be_stored_is_refused(
    value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    said = sentence_of(["run", "digits", "--checkpoint-seconds", value, "--out", str(out)], capsys)
    assert "checkpoint_seconds must lie in" in said
    assert not out.exists()


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("training.epochs=NaN", "training.epochs must be a finite number"),
        ("training.epochs=Infinity", "training.epochs must be a finite number"),
        ("training.epochs=1e999", "training.epochs must be a whole number"),
        (f"training.epochs={'9' * 5000}", "training.epochs has a number of 5,000 digits"),
        (f"bayes.lr={'9' * 400}", "bayes.lr has a number of 400 digits"),
        ("bayes.lr=[1, Infinity]", "bayes.lr must be a finite number"),
        ("sgd.lr=[1, 1e999]", "sgd.lr must be a finite number"),
        ('bayes.lr=["a"]', "bayes.lr must be a number"),
    ],
)
def test_numbers_that_are_none_are_refused(setting: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = sentence_of(["run", "digits", "--set", setting], capsys)
    assert sentence in said
    assert len(said) < 300


@pytest.mark.parametrize("seed", ["Infinity", "1e999", "NaN", "-1", "9" * 400, "1.5", '"a"'])
def test_a_seed_that_is_none_is_refused(seed: str, done: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    text = done.config.read_text().replace('"seeds": [\n  0\n ]', f'"seeds": [{seed}]')
    done.config.write_text(text)
    assert str(done.config) in sentence_of(["resume", str(done.path)], capsys) or seed == "-1"


def test_settings_that_are_words_stay_words() -> None:
    assert parse_setting("a=zero") == ("a", "zero")
    with pytest.raises(UserError, match="a must be a finite number, but is NaN"):
        parse_setting("a=NaN")
    assert parse_setting("a=3") == ("a", 3)


# --- locks ---------------------------------------------------------------------------------------------------------


def test_a_link_in_the_place_of_a_lock_empties_nothing(tmp_path: Path) -> None:
    precious = tmp_path / "thesis.tex"
    precious.write_text("years of work")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(precious)
    with pytest.raises(UserError, match="is a link"), locked(tmp_path / "run" / ".lock"):
        pass
    assert precious.read_text() == "years of work"


def test_a_lock_keeps_what_its_file_holds(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("kept")
    with locked(tmp_path / ".lock"):
        assert (tmp_path / ".lock").read_text() == "kept"


def test_the_lock_is_held_until_the_report_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bayspike.report import finish

    held: list[bool] = []

    def drawing(run: RunDirectory, *rest: Any) -> list[Any]:
        with pytest.raises(UserError, match="in use"):
            create_run(run.path, force=True)
        held.append(run.config.is_file())
        return []

    monkeypatch.setattr(finish, "draw_figures", drawing)
    sizes = ["--train-examples", "10", "--test-examples", "10", "--time", "2", "--hidden", "2", "--members", "1"]
    command = ["run", "digits", "--method", "sgd", "--out", str(tmp_path / "run"), "--quiet", "--threads", "1", *sizes]
    assert main(command) == 0
    assert held == [True]


def test_a_directory_deleted_under_a_run_is_noticed(half: RunDirectory, bench: Workbench) -> None:
    told = Told()
    told.each = lambda: shutil.rmtree(half.path, ignore_errors=True)
    with pytest.raises(UserError, match=r"deleted or replaced under the run|cannot be written"):
        run_jobs(half, bench, told, Stop())
    assert told.left > 0  # at once, not at the end of the training
    assert not half.config.exists()


# --- what killed processes leave -----------------------------------------------------------------------------------


def test_parts_of_killed_processes_are_cleared_away(half: RunDirectory, bench: Workbench) -> None:
    left = [
        half.path / ".summary.json.1.part", half.path / "results" / ".bayes-seed0.npz.1.part",
        half.checkpoints(JOB) / ".best.json.1.part",
    ]  # fmt: skip
    for path in left:
        path.write_bytes(b"half")
    go_on(half, bench)
    assert not [path for path in left if path.exists()]


def test_old_checkpoints_that_a_power_cut_brought_back_are_removed_again(half: RunDirectory, bench: Workbench) -> None:
    go_on(half, bench)
    kept = sorted(half.checkpoints(JOB).iterdir())
    for ending in ("json", "safetensors"):
        back = half.checkpoints(JOB) / f"step-000-0000001.{ending}"
        shutil.copy(newest(half).with_suffix(f".{ending}"), back)
    (half.checkpoints(JOB) / ".step-005-0000000.json.1.part").write_bytes(b"half")
    go_on(half, bench)
    assert sorted(half.checkpoints(JOB).iterdir()) == kept


def test_a_bound_on_reading_is_no_demand_for_memory(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"abc")
    assert read_limited(tmp_path / "small", 2**60) == b"abc"
    with pytest.raises(UserError, match="more than the 2"):
        read_limited(tmp_path / "small", 2)


def test_a_start_that_was_killed_at_once_leaves_a_free_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_json(tmp_path / "run" / "environment.json", {})
    (tmp_path / "run" / ".config.json.1.part").write_text("{")
    assert "config.json" in sentence_of(["resume", str(tmp_path / "run")], capsys)
    with claimed_run(tmp_path / "run", force=False) as run:
        assert [path.name for path in run.path.iterdir()] == [".lock"]


def test_a_directory_that_is_no_run_is_not_told_to_be_resumed(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="not a run: choose another --out"):
        create_run(tmp_path, force=False)


# --- workers -------------------------------------------------------------------------------------------------------


def test_a_worker_that_prints_something_else_is_listened_to(
    half: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chatty_worker.py").write_text(
        "import sys\n"
        'sys.stdout.buffer.write(b\'Downloading \\xff\\n[1, 2]\\n\\n{"batch": {"done": 1}}\\n{"say": 3}\\nNaN\\n\')\n'
        'print(\'{"say": "well"}\')\n'
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    told = Told()
    listening = threading.Thread(
        target=run_in_workers, args=(half.path, "chatty_worker", ["a", "b"], 2, told, Stop(), lambda: None), daemon=True
    )
    listening.start()
    listening.join(60)
    assert not listening.is_alive()
    assert told.sentences.count("well") == 2
    assert any(each.startswith("Downloading") for each in told.sentences)


def test_a_worker_that_is_killed_is_one_sentence(
    half: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dying_worker.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    with pytest.raises(UserError, match="killed by signal 9: go on with `bayspike resume"):
        run_in_workers(half.path, "dying_worker", ["a", "b"], 2, Told(), Stop(), lambda: None)


# --- disks ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """A disk with room for so many more writes."""

    def fill(room: int) -> None:
        real, left = os.write, [room]

        def write(handle: int, data: bytes) -> int:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(handle, data)

        monkeypatch.setattr(os, "write", write)

    return fill


@pytest.mark.parametrize("room", [0, 1, 2, 3, 7, 20])
def test_a_full_disk_is_one_sentence_and_the_run_resumes_when_there_is_room(
    room: int, half: RunDirectory, bench: Workbench, full_disk: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    full_disk(room)
    with pytest.raises(UserError, match="No space left"):
        run_jobs(half, bench, Told(), Stop())
    monkeypatch.undo()
    go_on(half, bench)
    assert half.result(JOB).is_file()
    assert not list(half.path.rglob("*.part"))


@pytest.mark.parametrize("command", ["resume", "report", "export", "show", "run"])
def test_a_disk_that_is_read_only_is_one_sentence(
    command: str, done: RunDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = done.path / "new" / "x.png"
    commands = {
        "resume": ["resume", str(done.path)],
        "report": ["report", str(done.path)],
        "export": ["export", str(done.path), "--out", str(out), "--examples", "1"],
        "show": ["data", "show", "two_moons", "--out", str(out)],
        "run": ["run", "digits", "--out", str(out)],
    }
    real, root = os.open, str(done.path)

    def refuse(path: Any, *rest: Any, **named: Any) -> Any:
        if str(path).startswith(root) and rest and rest[0] & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return real(path, *rest, **named)

    def refuse_folder(path: Any, *rest: Any, **named: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "mkdir", refuse_folder)
    assert "Read-only file system" in sentence_of(commands[command], capsys)


def test_a_report_elsewhere_leaves_the_run_as_it_is(done: RunDirectory, tmp_path: Path) -> None:
    def state() -> dict[str, tuple[int, bytes]]:
        return {str(p): (p.stat().st_mtime_ns, p.read_bytes()) for p in done.path.rglob("*") if p.is_file()}

    done.summary.unlink()
    before = state()
    assert main(["report", str(done.path), "--out", str(tmp_path / "elsewhere.html")]) == 0
    assert state() == before
    assert "bayes" in (tmp_path / "elsewhere.html").read_text()


@pytest.mark.parametrize("place", [".", "/", "", "..", "\udcff"])
@pytest.mark.parametrize("command", ["evaluate", "predict", "resume", "report"])
def test_places_that_are_no_run_are_one_sentence(
    command: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sentence_of([command, place, *(["x.png"] if command == "predict" else [])], capsys)


def test_tensors_that_cannot_be_read_are_one_sentence(done: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    tensors = newest(done).with_suffix(".safetensors")
    tensors.unlink()
    tensors.mkdir()
    assert tensors.name in sentence_of(["evaluate", str(done.path)], capsys)


def test_tensors_on_a_failing_disk_are_one_sentence(
    done: RunDirectory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = Path.open

    def failing(path: Path, *rest: Any, **named: Any) -> Any:
        if path.suffix == ".safetensors":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return real(path, *rest, **named)

    monkeypatch.setattr(Path, "open", failing)
    assert "Input/output error" in sentence_of(["evaluate", str(done.path)], capsys)


def test_nothing_is_written_through_a_link_beside(tmp_path: Path) -> None:
    precious = tmp_path / "thesis.tex"
    precious.write_text("years of work")
    (tmp_path / f".a.json.{os.getpid()}.part").symlink_to(precious)
    write_whole(tmp_path / "a.json", b"{}")
    assert precious.read_text() == "years of work"
    assert (tmp_path / "a.json").read_bytes() == b"{}"


def test_a_configuration_of_old_is_read(done: RunDirectory) -> None:
    assert json.loads(done.config.read_text())["seeds"] == [0]
    assert config_from_json(read_json(done.config), "config").seeds == (0,)
    assert torch.equal(*[checkpoints.load(newest(done)).tensors["layer.0.mean"]] * 2)
