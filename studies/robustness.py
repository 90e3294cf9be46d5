"""What wrong labels and a worse camera do to a learner, on genuine recordings of N-MNIST.

    BAYSPIKE_DATA=… python studies/robustness.py    # what docs/results/robustness.jsonl has is not repeated
    python studies/robustness.py --table

All ten digits at once, four epochs of 6,220 recordings; 500 more choose a point's noise, 1,680 judge. Network, read-out
and rates are those of the preset `demo` of the experiment `split-nmnist`: one dense layer of 300 neurons on 17×17×2
inputs, not the maps of its larger presets. While learning, a share of the labels is another class's, drawn evenly. The
camera gets worse only when it is judged, and nobody is told:

    noise    every pixel of either sign fires at every step with this probability, whatever it sees
    dead     this share of the pixels, both signs, never fires
    drift    the picture moves by so many pixels to one side from the first step to the last, each example its own way

A learner notices (AUROC) if its uncertainty tells changed recordings from whole ones: by mutual information for a
committee and by the discord of its members' spikes, by entropy for both. Beside it the controls: the same means with
constant, permuted and matched variances, and the point with the noise that suits it best (see `predict.controls`).
EWC is not among the learners: in the first task there is nothing to hold on to, and it learns as SGD does.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cells import difference
from torch import Tensor

from bayspike.continual import StreamConfig, run_stream
from bayspike.continual.judging import score
from bayspike.continual.methods import build_rule, method
from bayspike.data import catalogue
from bayspike.data.base import Dataset, Samples, stratified_split
from bayspike.experiments.split_nmnist import NETWORK, TUNED
from bayspike.learner.examples import Relabelled, relabelled
from bayspike.learning.batch import posteriors
from bayspike.metrics import auroc, entropy, mutual_information
from bayspike.posteriors.distributions import Posterior
from bayspike.predict.by_name import make_predictor
from bayspike.predict.controls import NOISES, control, noisy, trace_power
from bayspike.predict.predictors import Predictor, predict_samples
from bayspike.rules.base import Rule
from bayspike.runs.outcome.paired import compare
from bayspike.runs.plan.experiment import offline
from bayspike.seeds import generator_for
from bayspike.spiking.network import Network, NetworkConfig, build
from bayspike.storage.files import read_lines, write_lines

OUT = Path("docs/results/robustness.jsonl")
LEARNERS = ("bayes", "sgd", "bayes-binary", "ste")
SPREADS = ("constant", "permuted", "matched")
WRONG = (0.0, 0.1, 0.2, 0.4)
CAMERA = {"noise": (0.01, 0.03, 0.1), "dead": (0.1, 0.3, 0.5), "drift": (1, 2, 4)}
NAMES = ("kind", "size", "learner", "seed")  # what tells two lines apart
EPOCHS = 4


@dataclass(frozen=True)
class Changed(Relabelled):
    """Samples, with their own labels, as a worse camera would show them."""

    change: Callable[[Tensor, torch.Generator], Tensor]

    def spikes(self, indices: Tensor, generator: torch.Generator) -> Tensor:
        return self.change(self.samples.spikes(indices, generator), generator)

    def subset(self, indices: Tensor) -> "Changed":
        return replace(self, samples=self.samples.subset(indices), labels=self.labels[indices])


def worse(kind: str, size: float, shape: tuple[int, ...]) -> Callable[[Tensor, torch.Generator], Tensor]:
    """A change of spikes `(time, batch, inputs)`, whose inputs are `shape`: signs, height, width."""

    def noise(spikes: Tensor, generator: torch.Generator) -> Tensor:
        return spikes | (torch.rand(spikes.shape, generator=generator) < size).to(spikes.dtype)

    def dead(spikes: Tensor, generator: torch.Generator) -> Tensor:
        alive = torch.rand(shape[-2:], generator=generator_for(0, "dead pixels")) >= size  # the same for all
        return spikes * alive.expand(shape).flatten().to(spikes.dtype)

    def drift(spikes: Tensor, generator: torch.Generator) -> Tensor:
        steps, batch = spikes.shape[:2]
        angle = 2 * torch.pi * torch.rand(batch, generator=generator)
        aim = size * torch.stack([angle.sin(), angle.cos()])
        moved = torch.zeros_like(spikes).view(steps, batch, *shape)
        pictures = spikes.view(steps, batch, *shape)
        for step in range(steps):
            for example, (down, across) in enumerate((aim * step / (steps - 1)).round().int().T.tolist()):
                shifted = torch.roll(pictures[step, example], (down, across), (-2, -1))
                shifted[..., : max(down, 0), :] = 0
                shifted[..., shape[-2] + min(down, 0) :, :] = 0
                shifted[..., : max(across, 0)] = 0
                shifted[..., shape[-1] + min(across, 0) :] = 0
                moved[step, example] = shifted
        return moved.view_as(spikes)

    return {"noise": noise, "dead": dead, "drift": drift}[kind]


def with_wrong_labels(samples: Samples, share: float, classes: int, seed: int) -> Samples:
    """The share of the labels that are another class's, each of the others as likely."""
    generator = generator_for(seed, "wrong labels")
    wrong = torch.rand(len(samples), generator=generator) < share
    other = (samples.labels + torch.randint(1, classes, (len(samples),), generator=generator)) % classes
    return relabelled(samples, torch.where(wrong, other, samples.labels))


def speakers(label: str) -> tuple[str, ...]:
    """The names of a learner and of its controls."""
    return (label, *(f"{label}, {each}" for each in (SPREADS if method(label).bayesian else ("best noise",))))


def taught(label: str, data: Dataset, seed: int) -> dict[str, Predictor]:
    """A learner of all digits, and what speaks for it, the controls of its spread beside it."""
    chosen = TUNED.get(label, {})
    plain = {key: value for key, value in chosen.items() if "." not in key}
    plain.pop("carry", None)  # there is one task
    rule: Rule = build_rule(label, plain)
    own = {key.removeprefix("network."): value for key, value in chosen.items() if key.startswith("network.")}
    config = NetworkConfig(data.train.inputs, classes=len(data.classes), seed=seed, binary=rule.binary, **NETWORK)
    network = build(replace(config, **own))
    training = StreamConfig(epochs=EPOCHS, anneal=0.98, replay="none", coreset_share=0.0, seed=seed)
    done = run_stream(network, rule, offline(data), training)
    kind = "committee" if method(label).bayesian else "point"
    learnt = posteriors(rule, done.states)
    spreads: dict[str, tuple[str, list[Posterior]]] = {label: (kind, learnt)}
    assert data.held_back is not None
    if kind == "committee":
        power = trace_power(network, learnt, data.held_back, generator_for(seed, "power"))
        for name in SPREADS:
            drawn = generator_for(seed, "permuted")
            changed = [control(name, each, part, drawn) for each, part in zip(learnt, power, strict=True)]
            spreads[f"{label}, {name}"] = ("committee", changed)
    else:
        noise = {size: [noisy(each, size) for each in learnt] for size in NOISES}
        best = min(noise, key=lambda size: chance(speaking("committee", network, noise[size], seed), data, seed))
        spreads[f"{label}, best noise"] = ("committee", noise[best])
    return {name: speaking(how, network, spread, seed) for name, (how, spread) in spreads.items()}


def speaking(kind: str, network: Network, spread: list[Posterior], seed: int) -> Predictor:
    return make_predictor(kind, network, spread, 10, generator_for(seed, "committee"), gather="logits")


def chance(predictor: Predictor, data: Dataset, seed: int) -> float:
    """How unlikely the labels of what is held back are."""
    assert data.held_back is not None
    said = predict_samples(predictor, data.held_back, generator_for(seed, "held back"), over_time=False)
    return score(said.probabilities[-1], data.held_back.labels).nll


def judged(predictor: Predictor, test: Samples, changed: Samples | None, seed: int) -> dict[str, float]:
    """Scores of the changed recordings (or the whole ones), and whether they are told from whole ones."""
    said = predict_samples(predictor, changed or test, generator_for(seed, "own"), over_time=False)
    found = score(said.probabilities[-1], test.labels)
    result = {"accuracy": found.accuracy, "ece": found.ece, "nll": found.nll, "confidence": found.confidence}
    if changed is not None:
        own = predict_samples(predictor, test, generator_for(seed, "own"), over_time=False)
        result["auroc_entropy"] = float(auroc(entropy(own.probabilities[-1]), entropy(said.probabilities[-1])))
        if own.members is not None and said.members is not None and len(own.members) > 1:
            pair = mutual_information(own.members), mutual_information(said.members)
            result["auroc_mutual_information"] = float(auroc(*pair))
        if own.discord is not None and said.discord is not None:
            result["auroc_discord"] = float(auroc(own.discord, said.discord))
    return result


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: mean ± std over seeds."""
    by_place: dict[tuple[str, float, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_place[row["kind"], row["size"], row["learner"]].append(row)
    lines = ["| what | how much | learner | accuracy % | ECE | NLL | noticed, by mutual information | by entropy "]
    lines[0] += "| by discord |"
    lines.append("|" + "---|" * 9)
    for (kind, size, learner), of in sorted(by_place.items(), key=lambda each: place(*each[0])):
        columns = (("accuracy", 100, 1), ("ece", 1, 3), ("nll", 1, 3))
        cells = [across(of, *each) for each in columns]
        keys = ("auroc_mutual_information", "auroc_entropy", "auroc_discord")
        cells += [across(of, key, 1, 2) for key in keys]
        lines.append(f"| {kind} | {size:g} | {learner} | {' | '.join(cells)} |")
    return "\n".join(lines)


def differences(rows: list[dict[str, Any]]) -> str:
    """Markdown: by wrong labels, the committees less their controls and less their points, paired by seed."""
    lines = ["| wrong labels | difference | seeds | accuracy, points | ECE | NLL |", "|" + "---|" * 6]
    pairs = [("bayes", other) for other in (*speakers("bayes")[1:], *speakers("sgd"))]
    pairs += [("bayes-binary", other) for other in (*speakers("bayes-binary")[1:], *speakers("ste"))]
    for share in WRONG:
        by_seed: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
        for row in rows:
            if (row["kind"], row["size"]) == ("wrong labels", share):
                by_seed[row["learner"]][row["seed"]] = row
        for one, other in pairs:
            found = {
                key: compare(*({seed: row[key] for seed, row in by_seed[who].items()} for who in (one, other)))
                for key in ("accuracy", "ece", "nll")
            }
            if found["nll"] is not None:
                cells = " | ".join(difference(key, each) for key, each in found.items())
                lines.append(f"| {100 * share:g} % | {one} − {other} | {found['nll']['seeds']} | {cells} |")
    return "\n".join(lines)


def is_known(rows: list[dict[str, Any]], label: str, share: float, seed: int) -> bool:
    """Whether the learner and all its controls have been judged with this share of wrong labels."""
    same = [row for row in rows if (row["kind"], row["size"], row["seed"]) == ("wrong labels", share, seed)]
    return {row["learner"] for row in same} >= set(speakers(label))


def place(kind: str, size: float, learner: str) -> tuple[int, float, int]:
    """Where a line of the table stands: what is wrong, how much, and who."""
    return (
        ["wrong labels", *CAMERA].index(kind),
        size,
        [each for of in LEARNERS for each in speakers(of)].index(learner),
    )


def across(of: list[dict[str, Any]], key: str, scale: float, digits: int) -> str:
    values = [scale * row[key] for row in of if key in row]
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}" if values else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--table", action="store_true", help="only print what the file holds")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.table:
        print(table(read_lines(options.out)))
        return
    whole = catalogue.load("nmnist", downsample=2, time=20)
    rest, kept = stratified_split(whole.train.labels, 50, seed=0)
    data = replace(whole, train=whole.train.subset(rest), held_back=whole.train.subset(kept))
    for seed in range(options.seeds):
        for label in LEARNERS:
            for share in WRONG:
                name = {"kind": "wrong labels", "size": share, "seed": seed}
                if is_known(read_lines(options.out), label, share, seed):
                    continue
                begin = time.perf_counter()
                learnt = replace(data, train=with_wrong_labels(data.train, share, len(data.classes), seed))
                predictors = taught(label, learnt, seed)
                rows = [
                    {**name, "learner": who, **judged(each, data.test, None, seed)} for who, each in predictors.items()
                ]
                if share == 0:
                    for kind, sizes in CAMERA.items():
                        for size in sizes:
                            changed = Changed(data.test, data.test.labels, worse(kind, size, data.sample_shape))
                            for who, each in predictors.items():
                                found = judged(each, data.test, changed, seed)
                                rows.append({**name, "learner": who, "kind": kind, "size": size, **found})
                rows[0]["seconds"] = round(time.perf_counter() - begin, 1)
                made = [{key: row[key] for key in NAMES} for row in rows]
                kept = [row for row in read_lines(options.out) if {key: row[key] for key in NAMES} not in made]
                write_lines(options.out, [*kept, *rows])
                print(table(rows), flush=True)


if __name__ == "__main__":
    main()
