"""One tiny run and one picture for all tests of the command line; they only read them."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tiny_run import TINY

from bayspike.cli import main


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cli") / "run"
    assert main(["run", "digits", "--method", "bayes", "sgd", "--out", str(out), *TINY]) == 0
    return out


@pytest.fixture(scope="session")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("picture") / "bar.png"
    pixels = np.zeros((28, 28), dtype=np.uint8)
    pixels[4:24, 12:16] = 255
    Image.fromarray(pixels).save(path)
    return path
