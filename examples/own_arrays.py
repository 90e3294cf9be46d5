"""Continual learning on arrays of your own: five tasks of two classes each, one after the other.

Put your own `images` (n, height, width) and `labels` (n,) where the 8×8 digits of scikit-learn are loaded.

    python examples/own_arrays.py
"""

import numpy as np
from sklearn.datasets import load_digits

from bayspike import Dataset, GaussianVI, NetworkConfig, StreamConfig, build, judge_with, run_stream
from bayspike.continual import accuracy_matrix, split_by_class, summarise

TIME = 20  # time-steps for which every image is shown

# 1. Your arrays: numbers from 0 to 1, each the chance of a spike at a time-step. A fifth of every class is for testing.
images, labels = load_digits(return_X_y=True)
data = Dataset.from_arrays(images.reshape(-1, 8, 8) / images.max(), labels, time=TIME, test=0.2)

# 2. Tasks {0,1}, {2,3}, … and a network with one read-out for all classes: it is never told which task it is in.
stream = split_by_class(data)
network = build(NetworkConfig(inputs=data.train.inputs, hidden=(128,), classes=10))

# 3. Learn the tasks in turn. At the end of each the posterior becomes the prior, and 10 % are kept for replay.
config = StreamConfig(epochs=2, batch=32, coreset_share=0.1)
done = run_stream(network, GaussianVI(), stream, config, evaluate=judge_with(network, ["committee"], members=5))

# 4. Look at it: row = after which task, column = accuracy on which task.
print(np.round(accuracy_matrix(done.evaluations, "committee").numpy(), 2))
last = done.evaluations[-1].overall
print(f"all classes: accuracy {last.accuracy:.3f}, ECE {last.ece:.3f}, mean confidence {last.confidence:.3f}")
print(f"forgetting {summarise(stream, done.evaluations, 'committee').forgetting:.3f} (0 is none)")
