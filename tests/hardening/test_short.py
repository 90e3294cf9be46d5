"""The campaigns of `hardening/` in a minute: what they find there at full length must not be found here either."""

import os
import random
from collections import Counter
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent.parent / "hardening"
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork, signals and limits")


@pytest.fixture(autouse=True)
def _programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def test_killed_at_instants_at_writes_and_by_power_cuts(tmp_path: Path) -> None:
    import kills

    done = kills.campaign_of(15, ["instant", "write", "power"], tmp_path / "state.json", tmp_path, 600)
    assert done.faults == []
    assert done.total >= 15
    again = kills.Campaign(tmp_path / "state.json")  # counts are kept, so that a campaign can be continued
    assert again.total == done.total


def test_killed_while_drawing(tmp_path: Path) -> None:
    import kills

    done = kills.campaign_of(2, ["drawing write"], None, tmp_path, 600)
    assert done.faults == []


def test_a_power_cut_takes_what_was_not_secured(tmp_path: Path) -> None:
    """The disk of the campaign itself: what no fsync secured may be lost, what one did stays."""
    import disk
    import kills

    def work(seed: int, folder: Path) -> None:
        machine = disk.Disk(str(folder), power_cut=random.Random(seed)).install()
        for name in ("kept", "lost"):
            handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT)
            os.write(handle, b"content")
            if name == "kept":
                os.fsync(handle)
                os.fsync(os.open(folder, os.O_RDONLY))
        machine.at = machine.count
        os.mkdir(folder / "never")

    outcomes = set()
    for seed in range(12):
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert kills.in_child(lambda seed=seed, folder=folder: work(seed, folder)) is None
        assert (folder / "kept").read_bytes() == b"content"
        assert not (folder / "never").exists()
        outcomes.add((folder / "lost").read_bytes() if (folder / "lost").exists() else None)
    assert len(outcomes) > 2


def test_damaged_files_of_every_kind(tmp_path: Path) -> None:
    import fuzz
    from targets import readers, stored_runs

    counts: Counter[str] = Counter()
    for name, target in {**readers(tmp_path), **stored_runs(tmp_path)}.items():
        target.path.write_bytes(target.genuine)
        cases = max(10, int(150 * target.share))
        answer = fuzz.batch(name, target, cases, f"short {name}", tmp_path)
        assert answer["findings"] == {}, name
        assert answer["counts"]["cases"] == cases, name
        counts.update(answer["counts"])
    assert counts["sentence"] > counts["accepted"] > 0


@pytest.mark.parametrize("name", ["predict picture", "predict checkpoint", "report result"])
def test_commands_on_damaged_files(name: str, tmp_path: Path) -> None:
    import fuzz
    from targets import commands

    target = commands(tmp_path)[name]
    target.read(target.path)  # the genuine one is accepted
    answer = fuzz.batch(name, target, 4, f"short {name}", tmp_path)
    assert answer["findings"] == {}
    assert answer["counts"]["cases"] == 4


def test_a_finding_is_found(tmp_path: Path) -> None:
    """The campaign itself: exceptions, hangs and crashes are told apart from sentences."""
    import fuzz
    from targets import Target

    def crash(path: Path) -> None:
        os.kill(os.getpid(), 9)

    def fail(path: Path) -> None:
        raise KeyError("x")

    for read, word in ((crash, "process ended"), (fail, "KeyError")):
        answer = fuzz.batch("a", Target(tmp_path / "a", b"abc", read), 3, "seed", tmp_path)
        assert [each for each in answer["findings"] if each.startswith(word)]


def test_memory_stays_flat_under_load() -> None:
    import load

    for work in load.works(0.01)[:2] + load.works(0.01)[4:]:
        done = work()
        assert done.memory is not None
        assert done.memory < 1.25, done.what


def test_the_programs_explain_themselves() -> None:
    for name in ("kills", "fuzz", "load"):
        module = __import__(name)
        assert f"python hardening/{name}.py" in (module.__doc__ or "")
