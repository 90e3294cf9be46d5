import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from bayspike.errors import UserError
from bayspike.runs import checkpoints
from bayspike.runs.directory import MetricsLog, create_run
from bayspike.runs.locks import locked
from bayspike.storage.files import read_json, read_lines, replacing, write_json
from bayspike.storage.sealed import seal


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"old": 1})

    def fail_half_way() -> None:
        with replacing(path) as beside:
            beside.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert read_json(path) == {"old": 1}
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


def test_json_has_no_nan(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"a": [math.nan, math.inf, 1.5]})
    assert json.loads((tmp_path / "a.json").read_text(), parse_constant=pytest.fail) == {"a": [None, None, 1.5]}


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_damaged_json_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(UserError, match=r"a\.json"):
        read_json(tmp_path / "a.json")


def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    run = create_run(tmp_path / "run", force=False)
    write_json(run.config, {})
    (run.path / "results").mkdir()
    with pytest.raises(UserError, match="bayspike resume"):
        create_run(run.path, force=False)
    create_run(run.path, force=True)
    assert not run.config.exists()
    assert not (run.path / "results").exists()


def test_force_deletes_nothing_foreign(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match="thesis"):
        create_run(tmp_path, force=True)
    assert (tmp_path / "thesis.tex").exists()
    assert (tmp_path / "config.json").exists()


def test_torn_and_unremembered_lines_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(b'{"batch": 1}\n{"batch": 2}\n{"batch": 3}\n{"bat')
    log = MetricsLog(path, lambda entry: entry["batch"] <= 2)
    log.append({"batch": 3, "again": True})
    log.close()
    assert read_lines(path) == [{"batch": 1}, {"batch": 2}, {"batch": 3, "again": True}]


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with locked(tmp_path / ".lock"), pytest.raises(UserError, match="in use"), locked(tmp_path / ".lock"):
        pass
    with locked(tmp_path / ".lock"):  # and free again afterwards
        pass


def save(folder: Path, name: str, value: float = 1.0, **identity: object) -> None:
    checkpoints.save(folder, name, {"identity": identity}, {"w": torch.full((2, 3), value)})


def test_checkpoint_round_trip(tmp_path: Path) -> None:
    save(tmp_path, "step-000-0000001", 0.1)
    found = checkpoints.load(tmp_path / "step-000-0000001.json")
    assert torch.equal(found.tensors["w"], torch.full((2, 3), 0.1))


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    for number in range(5):
        save(tmp_path, f"step-000-{number:07d}")
        checkpoints.prune(tmp_path)
    assert [path.stem for path in checkpoints.steps(tmp_path)] == ["step-000-0000003", "step-000-0000004"]
    assert len(list(tmp_path.glob("*.safetensors"))) == 2


@pytest.mark.parametrize("damage", ["flip", "cut", "no tensors", "no json", "torn json"])
def test_a_damaged_newest_checkpoint_is_passed_over(tmp_path: Path, damage: str) -> None:
    save(tmp_path, "step-000-0000001", 1.0)
    save(tmp_path, "step-000-0000002", 2.0)
    tensors, header = tmp_path / "step-000-0000002.safetensors", tmp_path / "step-000-0000002.json"
    content = tensors.read_bytes()
    if damage == "flip":
        tensors.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "cut":
        tensors.write_bytes(content[:-4])
    elif damage == "no tensors":
        tensors.unlink()
    elif damage == "no json":
        header.unlink()
    else:
        header.write_text(header.read_text()[:40])
    found = checkpoints.latest(tmp_path)
    assert found is not None
    assert float(found.tensors["w"][0, 0]) == 1.0


def test_another_configuration_is_refused_by_name(tmp_path: Path) -> None:
    save(tmp_path, "step-000-0000001", method={"rule": {"lr": 0.1}}, seed=0)
    found = checkpoints.load(tmp_path / "step-000-0000001.json")
    checkpoints.check_identity(found, {"method": {"rule": {"lr": 0.1}}, "seed": 0}, tmp_path)
    with pytest.raises(UserError, match=r"method\.rule\.lr is 0\.1 there and 0\.2 here"):
        checkpoints.check_identity(found, {"method": {"rule": {"lr": 0.2}}, "seed": 0}, tmp_path)


def test_another_version_or_format_is_refused(tmp_path: Path) -> None:
    save(tmp_path, "step-000-0000001")
    path = tmp_path / "step-000-0000001.json"
    header = read_json(path)
    write_json(path, seal({**header, "bayspike": "0.0.1"}))
    with pytest.raises(UserError, match=r"bayspike is '0\.0\.1' there"):
        checkpoints.check_identity(checkpoints.load(path), {}, tmp_path)
    write_json(path, seal({**header, "format": 99}))
    with pytest.raises(UserError, match="format 99"):
        checkpoints.load(path)


def test_npz_holds_no_objects(tmp_path: Path) -> None:
    from bayspike.storage.arrays import read_arrays, write_arrays

    write_arrays(tmp_path / "a.npz", {"x/y": np.arange(3)})
    assert read_arrays(tmp_path / "a.npz")["x/y"].tolist() == [0, 1, 2]
    np.savez(tmp_path / "b.npz", bad=np.array([{}], dtype=object))
    with pytest.raises(UserError, match=r"b\.npz"):
        read_arrays(tmp_path / "b.npz")
