"""Today one process learns three tasks from a folder of pictures; tomorrow another, without them, goes on."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven")
FIRST = [("zero", "one"), ("two", "three"), ("four", "five")]
SCRIPT = """
import sys
from pathlib import Path
import numpy as np
import torch
from bayspike import Learner, data, split_by_class

torch.set_num_threads(1)


def tasks(folder, groups):
    dataset = data.load("folder", root=Path(folder), time=12)
    places = [[dataset.classes.index(word) for word in words] for words in groups]
    return split_by_class(dataset, places).tasks, dataset.classes


def today(old):
    learner = Learner(inputs=(8, 8), hidden=(80,), time=12, seed=5)
    three, names = tasks(old, (("zero", "one"), ("two", "three"), ("four", "five")))
    for each in three:
        learner.learn(each, names=names)
    return learner


def tomorrow(learner, new, test, out):
    # a fourth task, and two classes that nobody had thought of
    fourth, names = tasks(new, (("one", "four"), ("six", "seven")))
    for each in fourth:
        learner.learn(each, names=names)
    exam = data.load("folder", root=Path(test), time=12)
    answers = learner.predict(exam.test)
    words = [exam.classes[label] for label in exam.test.labels.tolist()]
    np.savez(out, probabilities=answers.probabilities, foreign=answers.foreign, over_time=answers.over_time,
             right=[a == b for a, b in zip(answers.labels, words)], words=words, classes=learner.classes_)
    learner.save(str(out) + ".bayspike")


way, old, new, test, file, out = sys.argv[1:]
if way == "today":
    today(old).save(file)
elif way == "tomorrow":
    tomorrow(Learner.load(file), new, test, out)
else:
    tomorrow(today(old), new, test, out)
"""


def picture(values: np.ndarray, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.round(values * (255 / 16)).astype(np.uint8)).save(path)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`old`: 60 pictures of each of six digits; `new`: others of four; `exam/test`: yet others of all eight."""
    root = tmp_path_factory.mktemp("pictures")
    images, labels = load_digits(return_X_y=True)
    for number, word in enumerate(WORDS):
        mine = images[labels == number].reshape(-1, 8, 8)
        parts = {"old": mine[:60], "new": mine[60:120], "exam/train": mine[:1], "exam/test": mine[120:160]}
        if number > 5:
            del parts["old"]
        if word not in ("one", "four", "six", "seven"):
            del parts["new"]
        for part, pictures in parts.items():
            for k, values in enumerate(pictures):
                picture(values, root / part / word / f"{k:03d}.png")
    return root


def process(root: Path, way: str, out: Path) -> None:
    places = [root / "old", root / "new", root / "exam", root / "learner.bayspike", out]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, way, *map(str, places)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_it_goes_on_in_another_process_without_the_old_pictures(folders: Path) -> None:
    process(folders, "at once", folders / "whole.npz")
    process(folders, "today", folders / "none.npz")
    shutil.rmtree(folders / "old")
    process(folders, "tomorrow", folders / "parted.npz")
    whole, parted = np.load(folders / "whole.npz"), np.load(folders / "parted.npz")
    for name in whole.files:
        np.testing.assert_array_equal(whole[name], parted[name])
    files = [folders / f"{name}.npz.bayspike" for name in ("whole", "parted")]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert set(parted["classes"]) == set(WORDS)
    assert tuple(parted["classes"][-2:]) == ("seven", "six")  # what came last; a folder's classes are in order
    right, words = parted["right"], parted["words"]
    for pair in (*FIRST, ("six", "seven")):
        of_task = np.isin(words, pair)
        assert right[of_task].mean() > 0.75, pair  # 0.86 and more when written; chance is 0.125
    assert right.mean() > 0.85
