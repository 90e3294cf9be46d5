"""What kind of errors finished split-MNIST runs make, and how small an ECE can be at all.

    python studies/errors_split_mnist.py runs/RUN [runs/RUN …]

An error *within* a task takes one digit for the other of its task: both were learnt together, from all their images. An
error *between* tasks mixes up two digits that have met through coresets alone. The ECE of a perfectly calibrated
network is not zero either: answers are drawn from the network's own confidences to see what is left by chance.
Reads `results/*.npz` of the runs; prints means over seeds.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch

from bayspike.metrics.calibration import ece

DRAWS = 20


def kinds(file: Path, predictor: str) -> list[float]:
    """Errors within and between tasks in percent, confidence minus accuracy, ECE, ECE by chance."""
    with np.load(file, allow_pickle=False) as arrays:
        probabilities, labels = arrays[f"final/{predictor}"], arrays["labels"]
    answer, sure = probabilities.argmax(axis=1), probabilities.max(axis=1)
    same_task = answer // 2 == labels // 2
    shown, random = torch.from_numpy(probabilities), np.random.default_rng(0)
    chance = []
    for _ in range(DRAWS):
        truth = np.where(random.random(len(sure)) < sure, answer, (answer + 1) % probabilities.shape[1])
        chance.append(float(ece(shown, torch.from_numpy(truth))))
    return [
        100 * float((same_task & (answer != labels)).mean()),
        100 * float((~same_task).mean()),
        float(sure.mean() - (answer == labels).mean()),
        float(ece(shown, torch.from_numpy(labels))),
        float(np.mean(chance)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    found = defaultdict(list)
    for file in sorted(file for run in parser.parse_args().runs for file in (run / "results").glob("*.npz")):
        name = file.stem.rsplit("-seed", 1)[0]
        found[name].append(kinds(file, "committee" if name.startswith("bayes") else "point"))
    print("| method | errors within a task % | between tasks % | confidence − accuracy | ECE | ECE by chance |")
    print("|" + "---|" * 6)
    for name, rows in found.items():
        within, between, excess, error, chance = np.mean(rows, axis=0)
        print(f"| {name} | {within:.2f} | {between:.2f} | {excess:+.4f} | {error:.4f} | {chance:.4f} |")


if __name__ == "__main__":
    main()
