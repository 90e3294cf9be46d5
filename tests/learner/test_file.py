"""The file of a learner: the same bytes each time, and one sentence for whatever is wrong with it."""

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_learners import RULES, datasets, pictures, same, small

from bayspike.errors import UserError
from bayspike.learner import Learner, load_state
from bayspike.learner.file import is_learner_file, pack_state
from bayspike.storage.archive import read_sealed, write_sealed


def made(rule: str = "bayes") -> Learner:
    learner = small(RULES[rule]).learn(*pictures("abc", 36))
    for x, word in zip(*pictures("cd", 3, seed=1), strict=True):
        learner.learn_one(x, word)
    return learner


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made().save(tmp_path_factory.mktemp("file") / "a.bayspike")


@pytest.mark.parametrize("rule", RULES)
def test_saved_loaded_and_saved_again_it_is_the_same_file(rule: str, tmp_path: Path) -> None:
    learner = made(rule)
    learner.save(tmp_path / "a.bayspike")
    again = Learner.load(tmp_path / "a.bayspike")
    again.save(tmp_path / "b.bayspike")
    assert (tmp_path / "a.bayspike").read_bytes() == (tmp_path / "b.bayspike").read_bytes()
    assert same(learner.state, again.state)
    assert learner.state.recipe == again.state.recipe
    assert repr(learner) == repr(again)
    assert [each.name for each in tmp_path.iterdir() if each.suffix != ".bayspike"] == []


@pytest.mark.parametrize("kind", ["rate", "latency", "spikes", "population"])
def test_every_kind_of_example_is_kept_whole(kind: str, tmp_path: Path) -> None:
    dataset = datasets()[kind]
    learner = Learner.for_data(dataset, hidden=(6,), held_back=0.2, members=2).learn(dataset)
    again = Learner.load(learner.save(tmp_path / "a.bayspike"))
    assert same(learner.state, again.state)
    assert again.state.recipe.encoding == learner.state.recipe.encoding
    assert again.state.about["name"] == kind
    (kept,) = again.state.stored
    first = kept.spikes(torch.arange(len(kept)), torch.Generator().manual_seed(3))
    (original,) = learner.state.stored
    assert torch.equal(first, original.spikes(torch.arange(len(kept)), torch.Generator().manual_seed(3)))


def test_the_file_is_a_plain_archive_that_holds_the_examples(saved: Path, tmp_path: Path) -> None:
    """Read by other tools: zip, JSON, safetensors."""
    from safetensors.numpy import load_file

    with zipfile.ZipFile(saved) as archive:
        assert archive.testzip() is None
        archive.extractall(tmp_path)
    about = json.loads((tmp_path / "about.json").read_text("utf-8"))
    assert about["classes"] == ["a", "b", "c", "d"]
    tensors = load_file(tmp_path / "tensors.safetensors")
    x, words = pictures("abc", 36)
    mine = {tuple(row) for row in x.reshape(-1, 8).tolist()}
    assert tensors["stored.0.examples"].dtype == np.uint8
    assert {tuple(row) for row in tensors["stored.0.examples"].tolist()} < mine
    assert len(tensors["stored.0.labels"]) < len(words)
    assert tensors["layer.0.mean"].shape == (8, 8)


def test_cut_off_anywhere_it_is_refused(saved: Path, tmp_path: Path) -> None:
    whole, path = saved.read_bytes(), tmp_path / "cut.bayspike"
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(UserError, match=r"cut\.bayspike is (damaged or cut off|not a file of this kind)[^\n]*\.$"):
            load_state(path)


def test_one_bit_flipped_anywhere_it_is_refused(saved: Path, tmp_path: Path) -> None:
    whole, path = saved.read_bytes(), tmp_path / "bit.bayspike"
    places = [*range(0, len(whole), 61), *range(len(whole) - 120, len(whole))]
    for place in places:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        with pytest.raises(UserError, match=r"bit\.bayspike[^\n]*\.$"):
            load_state(path)
    path.write_bytes(whole + b"0")
    with pytest.raises(UserError, match="damaged"):
        load_state(path)


@pytest.mark.parametrize("content", [b"", b"PK", b"{}", b"\x80\x04K\x01.", b"PK\x03\x04" + b"0" * 200])
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.bayspike"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"x\.bayspike is (not a file of this kind|damaged)"):
        load_state(path)
    with pytest.raises(UserError, match="missing"):
        load_state(tmp_path / "nowhere.bayspike")
    with pytest.raises(UserError, match="not a file"):
        load_state(tmp_path)
    assert is_learner_file(path)
    assert not is_learner_file(tmp_path)


def test_a_seal_without_a_learner_is_refused(tmp_path: Path) -> None:
    write_sealed(tmp_path / "x", {"kind": "something else"}, {"w": torch.zeros(2)})
    assert is_learner_file(tmp_path / "x")
    with pytest.raises(UserError, match="is not the file of a learner"):
        load_state(tmp_path / "x")
    write_sealed(tmp_path / "x", [1, 2], {})  # type: ignore[arg-type]
    with pytest.raises(UserError, match="is not the file of a learner"):
        load_state(tmp_path / "x")


HOSTILE: dict[str, tuple[Any, str]] = {
    "format": (2, r"format 2, but bayspike .* reads format 1"),
    "classes": (["a", "a", "b", "c"], "doubled"),
    "seen": ([1], "does not count"),
    "since_task": (-3, "fewer than no examples"),
    "network.inputs": (10**15, "synapses, more than"),
    "network.hidden": ([10**12, 5], "synapses, more than"),
    "network.classes": (10**9, "more classes than there are names"),
    "network.inputs ": ("many", "must be"),
    "encoding.time": (10**12, "time must lie in"),
    "encoding.time ": (1e999, "sound"),
    "encoding.shape": ([2, 5], "inputs"),
    "encoding.kind": ("pickle", "must be one of rate, latency"),
    "settings.members": (10**9, "members must lie in"),
    "settings.replay": (10**12, "replay must lie in"),
    "rule.name": ("os.system", "There is no method"),
    "rule.settings": ({"lr": "fast"}, "must be a number"),
    "training.epochs": (0, "epochs must lie in"),
    "stored": ([], "examples of every task"),
    "stored ": ("all", "must be a list"),
    "held_back": ([], "of no use"),
    "calibration": ({"score": "luck", "examples": 3, "temperature": None}, "score must be one of"),
    "online": ({"kind": "population", "code": {}}, "sound"),
    "about": (7, "named entries"),
    "tasks": (None, "sound"),
}


@pytest.mark.parametrize("place", HOSTILE)
def test_a_sealed_file_that_lies_is_refused(place: str, saved: Path, tmp_path: Path) -> None:
    """The seal is right, what it seals is not: no traceback, nothing huge is built."""
    about, tensors = read_sealed(saved)
    value, sentence = HOSTILE[place]
    *path, last = place.strip().split(".")
    inner = about
    for key in path:
        inner = inner[key]
    assert last in inner
    inner[last] = value
    file = tmp_path / "lie.bayspike"
    if value == 1e999:  # JSON knows no infinity, but a number may be too large for any float
        inner[last] = 123456789
    write_sealed(file, about, tensors)
    if value == 1e999:
        _reseal(file, b"123456789", b"1.0e99999"[:9])
    with pytest.raises(UserError, match=sentence) as refusal:
        load_state(file)
    assert "\n" not in str(refusal.value)


def _reseal(path: Path, old: bytes, new: bytes) -> None:
    import hashlib
    import zlib

    content = path.read_bytes()[:-32]
    start = content.index(b"about.json") + len(b"about.json")
    size = int.from_bytes(content[18:22], "little")
    crc = zlib.crc32(content[start : start + size]).to_bytes(4, "little")
    changed = content.replace(old, new)
    assert changed != content
    changed = changed.replace(crc, zlib.crc32(changed[start : start + size]).to_bytes(4, "little"))
    path.write_bytes(changed + hashlib.blake2b(changed, digest_size=16).hexdigest().encode())


def test_tensors_that_do_not_fit_are_refused(saved: Path, tmp_path: Path) -> None:
    about, tensors = read_sealed(saved)
    file = tmp_path / "x.bayspike"
    for name, value, sentence in (
        ("layer.0.mean", torch.zeros(8, 9), r"mean of layer 0 should be torch.float32 of the shape \(8, 8\)"),
        ("layer.0.mean", torch.zeros(8, 8, dtype=torch.float64), "should be"),
        ("calibration.thresholds", torch.zeros(3), "does not fit its time-steps"),
        ("layer.1.precision", torch.full((7, 8), float("nan")), "NaN"),
        ("stored.0.labels", torch.full_like(tensors["stored.0.labels"], 9), "no classes"),
        ("stored.0.labels", torch.zeros(1, dtype=torch.int64), "labels of shape"),
        ("stored.0.examples", torch.zeros(len(tensors["stored.0.labels"]), 7, dtype=torch.uint8), "7 inputs"),
        ("extra", torch.zeros(1), "no use"),
    ):
        write_sealed(file, about, {**tensors, name: value})
        with pytest.raises(UserError, match=sentence):
            load_state(file)
    for name in tensors:
        write_sealed(file, about, {key: each for key, each in tensors.items() if key != name})
        with pytest.raises(UserError, match="not a sound learner"):
            load_state(file)


def test_a_bomb_or_a_stranger_in_the_archive_is_refused(saved: Path, tmp_path: Path) -> None:
    import hashlib

    for extra, compression in (("bomb", zipfile.ZIP_DEFLATED), ("stranger.pkl", zipfile.ZIP_STORED)):
        file = tmp_path / "x.bayspike"
        with zipfile.ZipFile(file, "w", compression) as archive:
            archive.comment = b"0" * 32
            archive.writestr("about.json", "{}" if extra != "bomb" else " " * 10**7)
            archive.writestr("tensors.safetensors", b"")
            if extra != "bomb":
                archive.writestr(extra, b"cos\nsystem\n")
        content = file.read_bytes()[:-32]
        file.write_bytes(content + hashlib.blake2b(content, digest_size=16).hexdigest().encode())
        with pytest.raises(UserError, match="nothing else"):
            load_state(file)


def test_a_failed_save_leaves_the_old_file(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.bayspike"
    shutil.copy(saved, path)
    learner = Learner.load(path).learn(*pictures("ef"))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bayspike.storage.files.os.replace", full)
    with pytest.raises(UserError, match="No space left on device"):
        learner.save(path)
    assert path.read_bytes() == saved.read_bytes()
    assert [each.name for each in tmp_path.iterdir()] == ["a.bayspike"]
    with pytest.raises(UserError, match="cannot be written"):
        learner.save(path / "below a file")


def test_a_rule_of_ones_own_learns_but_is_not_saved(tmp_path: Path) -> None:
    class Mine(type(RULES["sgd"])):  # type: ignore[misc]
        pass

    learner = small(Mine(lr=0.1)).learn(*pictures("ab"))
    with pytest.raises(UserError, match="but this one has Mine"):
        learner.save(tmp_path / "a.bayspike")
    assert pack_state(made("sgd").state)[0]["rule"]["name"] == "sgd"


def test_stored_examples_are_shifted_before_and_after_a_file(tmp_path: Path) -> None:
    """The first task has none; the second is learnt from shifted ones, by a learner from a file as by the other."""
    still, shifted = small(), small(augment_stored="shift=1")
    for each in (still, shifted):
        each.learn(*pictures("ab"))
    assert all(a.equal(b) for a, b in zip(still.state.states[0][:4], shifted.state.states[0][:4], strict=True))
    tomorrow = Learner.load(shifted.save(tmp_path / "shifted.bayspike"))
    for each in (still, shifted, tomorrow):
        each.learn(*pictures("cd"))
    assert same(shifted.state, tomorrow.state)
    assert not still.state.states[0].mean.equal(shifted.state.states[0].mean)
    with pytest.raises(UserError, match="augment takes shift"):
        small(augment_stored="spin=3")
