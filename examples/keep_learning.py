"""A learner that lives: single examples as they come, a task, a night in a file, and two new classes tomorrow.

python examples/keep_learning.py
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import load_digits

from bayspike import Learner

WORDS = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])

images, numbers = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(numbers))
images, words = images[order].reshape(-1, 8, 8) / 16, WORDS[numbers[order]]


def pick(names: list[str], rows: slice) -> tuple[np.ndarray, np.ndarray]:
    chosen = np.flatnonzero(np.isin(words, names))[rows]
    return images[chosen], words[chosen]


# 1. One example after another, each judged before it is learnt. Classes turn up as they come.
learner = Learner(inputs=(8, 8), hidden=(100,), members=5)
right = []
for x, word in zip(*pick(["zero", "one", "two", "three"], slice(0, 200)), strict=True):
    right.append(learner.predict_one(x).label == word)
    learner.learn_one(x, word)
print(f"prequential: {np.mean(right[:40]):.2f} at first, {np.mean(right[-100:]):.2f} later")

# 2. A whole task at once; then into a file.
learner.learn(*pick(["four", "five"], slice(0, 150)))
with TemporaryDirectory() as folder:
    file = learner.save(Path(folder) / "digits.bayspike")
    print(f"saved {len(learner.classes_)} classes in {file.stat().st_size / 2**10:.0f} KiB")
    tomorrow = Learner.load(file)  # the old pictures are not needed any more

# 3. Tomorrow: two classes that nobody had thought of.
tomorrow.learn(*pick(["six", "seven"], slice(0, 150)))
print(tomorrow)
scores = tomorrow.evaluate(*pick(list(tomorrow.classes_), slice(-400, None)))
print(f"all {len(tomorrow.classes_)} classes: accuracy {scores.accuracy:.3f}, ECE {scores.ece:.3f}")
noise = tomorrow.predict(np.random.default_rng(1).random((200, 8, 8)))
print(f"of noise, {noise.foreign.double().mean():.0%} is called foreign")
