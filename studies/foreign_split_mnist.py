"""How well trained split-MNIST networks notice what is no digit, by three scores.

    BAYSPIKE_DATA=… python studies/foreign_split_mnist.py runs/RUN [runs/RUN …]

Takes the last checkpoint of every job of the runs. Foreign images, 2,000 of each kind, against 2,000 test digits:
test digits with shuffled pixels; uniform noise, brighter than any digit; digits dark on light; and Fashion-MNIST where
its files are at hand. Prints AUROC by confidence, entropy and, for a committee, mutual information, mean ± standard
deviation over seeds, and writes every figure to `docs/results/foreign-split-mnist.jsonl`.
"""

import argparse
import json
import statistics
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import torch

from bayspike.continual.methods import method
from bayspike.data import load
from bayspike.data.base import StaticSamples
from bayspike.data.sets.mnist import find_files, shuffled_pixels
from bayspike.metrics.foreign import detect_foreign
from bayspike.predict.predictors import Committee, Point, Prediction, predict_samples
from bayspike.runs.models import load_model
from bayspike.seeds import generator_for

COUNT = 2000


def foreign_images(test: StaticSamples) -> dict[str, StaticSamples]:
    some = test.subset(torch.arange(COUNT))
    noise = torch.randint(256, some.values.shape, generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    found = {
        "shuffled digits": shuffled_pixels(test, 0).subset(torch.arange(COUNT)),
        "uniform noise": replace(some, values=noise),
        "dark on light": replace(some, values=255 - some.values),
    }
    if find_files("fashion_mnist", None) is not None:
        found["Fashion-MNIST"] = load("fashion_mnist", time=test.time).test.subset(torch.arange(COUNT))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/results/foreign-split-mnist.jsonl"))
    options = parser.parse_args()
    test = load("mnist", time=50).test
    assert isinstance(test, StaticSamples)
    own, foreign = test.subset(torch.arange(len(test) - COUNT, len(test))), foreign_images(test)
    lines = []
    for folder in sorted(folder for run in options.runs for folder in (run / "checkpoints").iterdir()):
        name, seed = folder.name.rsplit("-seed", 1)
        model = load_model(folder)
        predictor: Committee | Point = (
            Committee.draw(model.network, model.posteriors, 10, generator=generator_for(int(seed), "committee"))
            if method(model.method).bayesian
            else Point.of(model.network, model.posteriors)
        )

        def answer(images: StaticSamples, predictor: Committee | Point = predictor) -> Prediction:
            keep = "final" if isinstance(predictor, Committee) else "none"
            return predict_samples(predictor, images, generator_for(0, "foreign"), over_time=False, keep_members=keep)

        known = answer(own)
        for kind, images in foreign.items():
            strange = answer(images)
            found = detect_foreign(
                known.probabilities[-1],
                strange.probabilities[-1],
                known.members,
                strange.members,
            )
            sure = float(strange.probabilities[-1].amax(1).mean())
            scores = {score: float(detection.auroc) for score, detection in found.items()}
            lines.append({"method": name, "seed": int(seed), "foreign": kind, "confidence": sure, "auroc": scores})
    options.out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    print(
        "| method | foreign images | mean confidence | AUROC: confidence | entropy | mutual information |\n|"
        + "---|" * 6
    )
    groups = defaultdict(list)
    for line in lines:
        groups[line["method"], line["foreign"]].append(line)
    for (name, kind), group in groups.items():
        cells = [[line["confidence"] for line in group]]
        cells += [[line["auroc"][score] for line in group] for score in group[0]["auroc"]]
        spread = [statistics.stdev(cell) if len(cell) > 1 else 0.0 for cell in cells]
        texts = [f"{statistics.fmean(cell):.3f} ± {width:.3f}" for cell, width in zip(cells, spread, strict=True)]
        print(f"| {name} | {kind} | " + " | ".join(texts + [""] * (4 - len(texts))) + " |")


if __name__ == "__main__":
    main()
