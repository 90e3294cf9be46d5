"""A packed posterior on disk: two bytes a synapse, the same numbers again, and no other file taken for one."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from bayspike.errors import UserError
from bayspike.posteriors.distributions import Gaussian, Point
from bayspike.posteriors.packed import pack, unpack
from bayspike.runs.models import load_model
from bayspike.runs.packed import save_packed
from bayspike.spiking.network import NetworkConfig, build
from bayspike.storage.plain import to_plain
from bayspike.storage.sealed import seal

NETWORK = NetworkConfig(inputs=30, hidden=(20,), classes=4)
ABOUT: dict[str, Any] = {
    "experiment": "digits", "network": to_plain(NETWORK), "method": "bayes", "label": "bayes", "rule": {}, "seed": 0,
    "members": 3, "data": {"name": "digits", "root": "/somewhere/else"}, "name": "digits",
    "classes": ["a", "b", "c", "d"], "sample_shape": [5, 6], "inputs": 30, "time": 4,
}  # fmt: skip


def posteriors(seed: int = 0) -> list[Gaussian]:
    generator = torch.Generator().manual_seed(seed)
    return [
        Gaussian(
            torch.randn(layer.shape, generator=generator), torch.exp(3 * torch.rand(layer.shape, generator=generator))
        )
        for layer in build(NETWORK).layers
    ]


def test_what_is_read_is_what_the_two_bytes_stand_for(tmp_path: Path) -> None:
    learnt = posteriors()
    synapses = sum(each.centre.numel() for each in learnt)
    assert save_packed(tmp_path / "small", ABOUT, learnt) == 2 * synapses
    size = (tmp_path / "small/posterior.safetensors").stat().st_size
    assert 2 * synapses < size < 2 * synapses + 1000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small"]
    for path in (tmp_path / "small", tmp_path / "small/posterior.json", tmp_path / "small/posterior.safetensors"):
        model = load_model(path)
        for mine, again in zip(learnt, model.posteriors, strict=True):
            expected = unpack(pack(mine))
            assert isinstance(again, Gaussian)
            assert torch.equal(again.centre, expected.centre)
            assert torch.equal(again.precision, expected.precision)
    assert model.classes == ABOUT["classes"]
    assert "/somewhere/else" not in (tmp_path / "small/posterior.json").read_text()


def test_nothing_is_replaced_without_being_told_to(tmp_path: Path) -> None:
    out = tmp_path / "small"
    save_packed(out, ABOUT, posteriors())
    with pytest.raises(UserError, match="exists"):
        save_packed(out, ABOUT, posteriors(1))
    save_packed(out, ABOUT, posteriors(1), force=True)
    assert torch.equal(load_model(out).posteriors[0].mean(), unpack(pack(posteriors(1)[0])).centre)
    (tmp_path / "other").mkdir()
    with pytest.raises(UserError, match="not a packed posterior"):
        save_packed(tmp_path / "other", ABOUT, posteriors(), force=True)
    with pytest.raises(UserError, match="Point"):
        save_packed(tmp_path / "point", ABOUT, [Point(torch.zeros(2, 2))])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "small"]


def test_a_writing_that_fails_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "small"
    save_packed(out, ABOUT, posteriors())
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def full_disk(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("bayspike.runs.checkpoints.write_json", full_disk)
    with pytest.raises(UserError, match=r"cannot be written \(no space .*nothing that was there is lost"):
        save_packed(out, ABOUT, posteriors(1), force=True)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


def test_a_damaged_or_wrong_one_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "small"
    save_packed(out, ABOUT, posteriors())
    described = json.loads((out / "posterior.json").read_text())

    def refused(change: dict[str, Any], sentence: str) -> None:
        (out / "posterior.json").write_text(json.dumps(seal({**described, **change})))
        with pytest.raises(UserError, match=sentence):
            load_model(out)

    wide = {**ABOUT, "network": {**ABOUT["network"], "inputs": 31}}
    refused({"model": wide}, "shape \\(20, 31\\) for layer 0")
    refused({"packed": []}, "one packed posterior for each")
    refused({"packed": [{"mean_step": "x"}] * len(described["packed"])}, "mean_step of layer 0 must be a number")
    refused({"packed": [None] * len(described["packed"])}, "mean_step of layer 0 must be a number")
    (out / "posterior.json").write_text(json.dumps({**described, "packed": []}))
    with pytest.raises(UserError, match="its digest does not fit"):
        load_model(out)
    (out / "posterior.json").write_text(json.dumps(described))
    content = bytearray((out / "posterior.safetensors").read_bytes())
    content[-1] ^= 1
    (out / "posterior.safetensors").write_bytes(content)
    with pytest.raises(UserError, match="digest"):
        load_model(out)
