"""What is fuzzed: every reader, on small genuine files, and every command that takes a file.

A target makes its genuine content once and judges damaged content as often as asked: it returns when the file was
accepted or raises `UserError`; anything else is a finding.
"""

import contextlib
import gzip
import io
import json
import os
import random
import shutil
import struct
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mutations import damaged, damaged_json
from PIL import Image

from bayspike.cli import main
from bayspike.data.files.aedat import read_aedat2, read_aedat3
from bayspike.data.files.event_files import read_gesture_npy, read_nmnist
from bayspike.data.files.idx import read_idx
from bayspike.data.files.pictures import read_picture
from bayspike.data.files.zipped import Archives
from bayspike.data.inputs import bins_of_lines
from bayspike.data.sets import mnist_dvs
from bayspike.data.simulated.cache import cache_path, cached
from bayspike.errors import UserError
from bayspike.experiments.registry import experiment
from bayspike.hardware import hdf5, hdf5_child, lava, nir
from bayspike.hardware.cuba import CubaLayer, CubaNetwork
from bayspike.hardware.export import read_manifest
from bayspike.hardware.files import load_network, load_self_test, save_network
from bayspike.hardware.fixed_point import FixedPointLayer, FixedPointNetwork
from bayspike.learner import Learner
from bayspike.runs.checkpoints import steps
from bayspike.runs.directory import RunDirectory
from bayspike.runs.engine import require_storable
from bayspike.runs.models import load_model
from bayspike.runs.outcome.summary import read_results, summarise
from bayspike.runs.plan.config import config_from_json, parse_setting
from bayspike.runs.plan.resolve import Changes, resolve
from bayspike.runs.workers import understood
from bayspike.storage.archive import read_sealed, write_sealed
from bayspike.storage.arrays import read_arrays
from bayspike.storage.files import read_json, read_lines
from bayspike.storage.sealed import seal

ROWS = [(17 * i, (5 * i) % 34, (3 * i) % 34, i % 2) for i in range(12)]
CAMERA = {"name": "nmnist", "time": 30, "inputs": 2312, "sample_shape": [2, 34, 34], "data": {"options": {}}}


@dataclass(frozen=True)
class Target:
    """A file with genuine content, how it is damaged, and what reads it. `share` of the cases of a plain reader."""

    path: Path
    genuine: bytes
    read: Callable[[Path], object]
    damage: Callable[[bytes, random.Random], bytes] = damaged
    share: float = 1.0


def readers(folder: Path) -> dict[str, Target]:
    """Every reader of single files."""
    made: dict[str, Target] = {}

    def add(name: str, file: str, content: bytes, read: Callable[[Path], object], **rest: Any) -> None:
        made[name] = Target(folder / file, content, read, **rest)

    aedat2 = b"#!AER-DAT2.0\r\n# text\r\n" + b"".join(
        struct.pack(">II", (y << 8) | (x << 1) | p, t) for t, x, y, p in ROWS
    )
    events = b"".join(struct.pack("<II", (x << 17) | (y << 2) | (p << 1) | 1, t) for t, x, y, p in ROWS)
    packet = struct.pack("<HHIIIIII", 1, 1, 8, 4, 0, len(ROWS), len(ROWS), len(ROWS)) + events
    add("aedat2", "a.aedat", aedat2, read_aedat2)
    add("aedat3", "b.aedat", b"#!AER-DAT3.1\r\n#Format: RAW\r\n#!END-HEADER\r\n" + packet, read_aedat3)
    add("nmnist", "a.bin", b"".join(struct.pack(">BBBH", x, y, p << 7, t) for t, x, y, p in ROWS), read_nmnist)
    array = io.BytesIO()
    np.save(array, np.array([(x, y, p, t / 1000) for t, x, y, p in ROWS]))
    add("npy", "a.npy", array.getvalue(), read_gesture_npy)
    array = io.BytesIO()
    np.save(array, np.array(ROWS, dtype=[("t", "<i8"), ("x", "<i2"), ("y", "<i2"), ("p", "u1")]))
    add("npy fields", "fields.npy", array.getvalue(), read_gesture_npy)
    idx = struct.pack(">IIII", 0x0803, 2, 5, 5) + bytes(range(50))
    add("idx", "images", idx, lambda path: read_idx(path, 3))
    add("idx.gz", "images.gz", gzip.compress(idx), lambda path: read_idx(path, 3))
    grey = Image.fromarray((np.arange(64).reshape(8, 8) * 3).astype(np.uint8))
    for kind, ending in (("PNG", "png"), ("JPEG", "jpg"), ("BMP", "bmp"), ("GIF", "gif"), ("PPM", "pgm")):
        buffer = io.BytesIO()
        grey.save(buffer, kind)
        add(ending, f"a.{ending}", buffer.getvalue(), lambda path: read_picture(path, (8, 8)))
    lines = "".join(f"{1000 * t} {x} {y} {p}\n" for t, x, y, p in ROWS).encode()
    add("event lines", "lines", lines, lambda path: list(bins_of_lines(path.read_bytes().splitlines(), CAMERA)))
    add("json", "a.json", json.dumps({"a": [1, 2.5, None], "b": {"c": "d"}}).encode(), read_json)
    add("json lines", "a.jsonl", b'{"task": 1, "batch": 2}\n{"kind": "batch"}\n', read_lines)
    add("worker lines", "worker", b'{"say": "a"}\n{"batch": {"done": 1}}\n', _worker_lines)
    archive = io.BytesIO()
    np.savez_compressed(archive, a=np.arange(6).reshape(2, 3), b=np.ones(4, np.float32))
    add("npz", "a.npz", archive.getvalue(), read_arrays)
    whole = {"packed": np.arange(60, dtype=np.uint8).reshape(3, 4, 5), "labels": np.arange(3)}
    cached("toy", {}, folder, lambda: whole, list(whole))
    cache = cache_path("toy", {}, folder)
    add("cache", str(cache), cache.read_bytes(), lambda _: cached("toy", {}, folder, lambda: whole, list(whole)))
    zipped = folder / "mnist_dvs" / "grabbed_data3.zip"
    zipped.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("grabbed_data3/scale4/mnist_3_scale04_0001.aedat", aedat2)
    add("mnist-dvs zip", str(zipped), zipped.read_bytes(), lambda _: _recordings(folder), share=0.2)
    add("setting", "setting", b"bayes.lr=100 training.epochs=2 network.hidden=[4,5]", _setting, share=0.1)
    return made | _chips(folder) | _learners(folder)


def _learners(folder: Path) -> dict[str, Target]:
    """The file of a learner: as it lies there, and with its words changed and sealed anew."""
    path = folder / "a.bayspike"
    learner = Learner((2, 4), classes=["a", "b"], hidden=(4,), time=3, members=2, batch=8, held_back=0.2)
    values = np.random.default_rng(0).integers(0, 256, (24, 2, 4), dtype=np.uint8)
    learner.learn(values, [("a", "b")[number % 2] for number in range(24)])
    learner.save(path)
    about, tensors = read_sealed(path)

    def resealed(data: bytes, chance: random.Random) -> bytes:
        beside = folder / "resealed.bayspike"
        write_sealed(beside, _object(damaged_json(about, chance)), tensors)
        return beside.read_bytes()

    return {
        "learner bytes": Target(path, path.read_bytes(), load_model, share=0.3),
        "learner json": Target(path, path.read_bytes(), load_model, resealed, 0.1),
    }


def _worker_lines(path: Path) -> None:
    for line in path.read_bytes().decode("utf-8", "replace").splitlines():
        understood(line)


def _recordings(root: Path) -> None:
    os.environ["BAYSPIKE_DATA"] = ""
    found = mnist_dvs.find_recordings(root)
    for place, member in (found or {}).get(3, []):
        with Archives() as archives:
            archives.read(place, member)


def _setting(path: Path) -> None:
    words = path.read_bytes().decode("utf-8", "replace").replace("\0", "").split()
    for word in words:
        parse_setting(word)
    require_storable(resolve(experiment("digits"), "demo", Changes(methods=["bayes"], settings=words)))


def _chips(folder: Path) -> dict[str, Target]:
    """Files for chips: HDF5 as its child process reads it, safetensors, a manifest."""
    made: dict[str, Target] = {}
    weight = np.array([[[2, -4], [6, 8]]], np.int16)
    integers = FixedPointNetwork((FixedPointLayer(weight, 300, 2048, 410),), (np.ones((3, 2), np.float32),))
    floats = CubaNetwork((CubaLayer(np.ones((1, 2, 2)), 0.5, 0.9, 1.0),), (np.ones((3, 2), np.float32),))
    net, graph, safe = folder / "a.net", folder / "a.nir", folder / "network.safetensors"
    lava.write(net, integers)
    nir.write(graph, floats)
    save_network(safe, integers)
    test = folder / "selftest.safetensors"
    from bayspike.hardware.files import save_arrays

    save_arrays(test, {"input": np.zeros((2, 1, 1), np.uint8), "spikes": np.zeros((1, 2, 1, 1), np.uint8)})
    manifest = {
        "format": "nir",
        "version": 1,
        "members": 1,
        "inputs": 2,
        "neurons": [2],
        "files": {"a": {"sha256": "b"}},
    }
    made["net"] = Target(net, net.read_bytes(), lambda path: _tree(path, lava), share=0.05)
    made["nir"] = Target(graph, graph.read_bytes(), lambda path: _tree(path, nir), share=0.05)
    made["fixed-point"] = Target(safe, safe.read_bytes(), load_network)
    made["self-test"] = Target(test, test.read_bytes(), lambda path: load_self_test(path, 2, 2))
    made["manifest"] = Target(
        folder / "chip" / "manifest.json", json.dumps(manifest).encode(), lambda path: read_manifest(path.parent)
    )
    (folder / "chip").mkdir(exist_ok=True)
    return made


def _tree(path: Path, kind: Any) -> None:
    """`lava.read` or `nir.read` with the child's own function in its place: this process is limited as the child is."""
    arrays: list[bytes] = []
    try:
        plain = hdf5_child._tree(str(path), 2**26, arrays)
    except Exception as error:  # the child says `refused`, whatever it was
        raise UserError("refused") from error
    body = memoryview(b"".join(arrays))
    before = kind.read_trees
    kind.read_trees = lambda paths: [hdf5._tree(plain, body)[0]]
    try:
        kind.read(path)
    finally:
        kind.read_trees = before


def stored_runs(folder: Path) -> dict[str, Target]:
    """The files of a run directory: what reads them, with digests made anew so that damage gets past them."""
    source = Path(__file__).parent.parent / "tests" / "runs" / "fixtures" / "run-0.1"
    run = RunDirectory(Path(shutil.copytree(source, folder / "run", dirs_exist_ok=True)))
    header = steps(run.checkpoints("bayes-seed0"))[-1]
    config = config_from_json(read_json(run.config), "config")
    result = run.result("bayes-seed0")

    def resealed(data: bytes, chance: random.Random) -> bytes:
        return json.dumps(seal(_object(damaged_json(json.loads(data), chance)))).encode()

    def structural(data: bytes, chance: random.Random) -> bytes:
        return json.dumps(damaged_json(json.loads(data), chance)).encode()

    def summarised(path: Path) -> None:
        summarise(experiment("digits"), config, read_results(run, config))

    def configured(path: Path) -> None:
        require_storable(config_from_json(read_json(path), str(path)))

    tensors = header.with_suffix(".safetensors")
    scores = {
        "accuracy": 0.5,
        "ece": 0.1,
        "nll": 1.0,
        "auroc_mutual_information": None,
        "auroc_entropy": 0.7,
        "about": "",
    }
    controls = {"examples": 5, "scores": {"learnt": scores, "zero": scores}}
    with_controls = json.dumps({**read_json(result), "controls": controls}).encode()
    return {
        "checkpoint json": Target(header, header.read_bytes(), lambda _: load_model(run.path), resealed, 0.05),
        "checkpoint bytes": Target(header, header.read_bytes(), lambda _: load_model(run.path), share=0.05),
        "tensors": Target(tensors, tensors.read_bytes(), lambda _: load_model(run.path), share=0.1),
        "result json": Target(result, with_controls, summarised, resealed, 0.1),
        "config json": Target(run.config, run.config.read_bytes(), configured, structural, 0.3),
        "config bytes": Target(run.config, run.config.read_bytes(), configured, share=0.3),
    }


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"a": value}


def commands(folder: Path) -> dict[str, Target]:
    """Whole commands on damaged files: exit code 0, or 2 and one sentence."""
    source = Path(__file__).parent.parent / "tests" / "runs" / "fixtures" / "run-0.1"
    run = RunDirectory(Path(shutil.copytree(source, folder / "command-run", dirs_exist_ok=True)))
    picture = folder / "seven.png"
    Image.fromarray((np.arange(784).reshape(28, 28) % 256).astype(np.uint8)).save(picture)
    header = steps(run.checkpoints("bayes-seed0"))[-1]
    result, arrays = run.result("bayes-seed0"), run.arrays("bayes-seed0")
    page, chip = folder / "page.html", folder / "exported"

    def structural(data: bytes, chance: random.Random) -> bytes:
        value = _object(damaged_json(json.loads(data), chance))
        return json.dumps(seal(value) if chance.random() < 0.8 else value).encode()

    def command(*words: str) -> Callable[[Path], None]:
        return lambda _: judged(list(words))

    report = command("report", str(run.path), "--out", str(page), "--force")
    evaluate = command("evaluate", str(run.path), "--predictor", "mean", "--test-examples", "5", "--json")
    predict = command("predict", str(run.path), str(picture), "--json")
    export = command("export", str(run.path), "--out", str(chip), "--examples", "1", "--members", "1", "--force")
    resume = command("resume", str(run.path), "--quiet")
    return {
        "predict picture": Target(picture, picture.read_bytes(), predict, share=0.02),
        "predict checkpoint": Target(header, header.read_bytes(), predict, structural, 0.01),
        "evaluate checkpoint": Target(header, header.read_bytes(), evaluate, structural, 0.005),
        "export checkpoint": Target(header, header.read_bytes(), export, structural, 0.002),
        "report result": Target(result, result.read_bytes(), report, structural, 0.002),
        "report arrays": Target(arrays, arrays.read_bytes(), report, share=0.002),
        "report config": Target(run.config, run.config.read_bytes(), report, structural, 0.002),
        "resume result": Target(result, result.read_bytes(), resume, structural, 0.0005),
    }


def judged(words: list[str]) -> None:
    """Run one command; one sentence and code 2 becomes the `UserError` it was."""
    out, err = io.StringIO(), io.StringIO()
    torch.set_num_threads(1)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    sentences = [line for line in err.getvalue().splitlines() if line.startswith("bayspike: ")]
    if code == 2 and len(sentences) == 1:
        raise UserError(sentences[0])
    if code != 0:
        raise AssertionError(f"code {code}, said: {err.getvalue()[-300:]}")
    sys.stdout.flush()
