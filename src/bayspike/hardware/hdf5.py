"""HDF5 files from strangers, read in a process of their own (`hdf5_child`) with a limit on time and memory.

What comes back is plain: dictionaries, words and arrays. A file that hangs, crashes or fills the process costs one
sentence here and nothing else.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bayspike.storage.files import parse_json

LARGEST_TREE = 2**29  # bytes of arrays that reading a file may unpack
SECONDS = 20.0  # for one file; more of them get a little more each
SECONDS_EACH = 5.0

Tree = dict[str, Any]


class Unreadable(Exception):
    """A file, and why it cannot be read."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path, self.why = path, why


def read_trees(paths: Sequence[Path]) -> list[Tree]:
    """The content of each file; raises `Unreadable` at the first that cannot be read."""
    for path in paths:
        if not path.is_file():
            raise Unreadable(str(path), "it is not a file")
    named = [str(path.absolute()) for path in paths]
    command = [sys.executable, "-m", "bayspike.hardware.hdf5_child", str(LARGEST_TREE), *named]
    allowed = SECONDS + SECONDS_EACH * len(paths)
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=allowed, check=False)
    except subprocess.TimeoutExpired as error:
        raise Unreadable(_several(paths), f"it takes more than {allowed:.0f} seconds") from error
    except OSError as error:
        raise Unreadable(_several(paths), f"no process can be started for it: {error}") from error
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"code {done.returncode}"]
        raise Unreadable(_several(paths), f"it makes the HDF5 library fail: {why[0][:200]}")
    return _answers(done.stdout, paths)


def _several(paths: Sequence[Path]) -> str:
    return str(paths[0]) if len(paths) == 1 else f"one of {paths[0]} … {paths[-1].name}"


def _answers(output: bytes, paths: Sequence[Path]) -> list[Tree]:
    at, trees = 0, []
    for path in paths:
        end = output.find(b"\n", at)
        fallen: dict[str, Any] = {"refused": "it makes the HDF5 library fail"}
        answer: dict[str, Any] = parse_json(output[at:end]) if end >= 0 else fallen
        if "refused" in answer:
            raise Unreadable(str(path), answer["refused"])
        body = memoryview(output)[end + 1 : end + 1 + answer["bytes"]]
        tree, used = _tree(answer["tree"], body)
        if not used == len(body) == answer["bytes"]:
            raise Unreadable(str(path), "it makes the HDF5 library fail")
        trees.append(tree)
        at = end + 1 + len(body)
    return trees


def _tree(plain: dict[str, Any], body: memoryview) -> tuple[Tree, int]:
    """Dictionaries with arrays in their places, and how many bytes of the body they took."""
    tree: Tree = {}
    used = 0
    for name, each in plain.items():
        if "group" in each:
            tree[name], more = _tree(each["group"], body[used:])
            used += more
        elif "words" in each:
            tree[name] = each["words"]
        else:
            dtype, count = np.dtype(each["dtype"]), int(np.prod(each["shape"], dtype=np.int64))
            size = dtype.itemsize * count
            tree[name] = np.frombuffer(body[used : used + size], dtype).reshape(each["shape"]).copy()[()]
            used += size
    return tree, used
