"""What can be got out of a stored image? Shifted, with the learner's answer, or chosen by doubt; all learners alike.

    BAYSPIKE_DATA=… python studies/stored_examples.py --seeds 3    # what docs/results/stored-examples.jsonl has is kept
    python studies/stored_examples.py --table

Split-MNIST, 784→400, T = 50, 1,000 images a class of which 75 are stored (the paper's share, or as many as `--stored`
says), judged on 2,000 other training images; the test set is never touched. `--learners` names settings, for example
"ewc, 1e-05"; without it one of each kind.
Lines of "…, evidence annealed too" were made when annealing took the evidence of natural units down with the step.

    plain      as in the paper: drawn at random, replayed as it is against its label
    shift      replayed one pixel up or down, left or right, or in place
    turn       shifted, turned by up to 10 degrees, its height and width stretched by up to a tenth
    answers    replayed against what the learner said of it when its task ended
    both       shifted, against the answer
    doubtful   plain, but stored are those of which the learner is least sure (mutual information, of a point entropy)
    sure       and those of which it is most sure
    medoids    plain, but stored are those that leave all others near a stored one
"""

import argparse
import json
import time
from collections import defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from memory_split_mnist import small  # the study beside this one
from torch import Tensor

from bayspike.continual import StreamConfig, split_by_class
from bayspike.continual.judging import score
from bayspike.continual.protocol import Evidence, Parts, end_task, run_task, start
from bayspike.data.augment import parse_augment
from bayspike.data.base import Samples
from bayspike.learning.batch import posteriors
from bayspike.metrics import entropy, mutual_information
from bayspike.predict.predictors import Committee, predict_samples
from bayspike.rules import EWC, SGD, GaussianVI, Laplace, Rule
from bayspike.seeds import generator_for
from bayspike.spiking.network import NetworkConfig, build

OUT = Path("docs/results/stored-examples.jsonl")


class Learner(NamedTuple):
    rule: Rule
    anneal: float = 0.98
    evidence: Evidence = "once"


def weak_ewc(strength: float) -> Learner:
    return Learner(EWC(lr=0.12, init_scale=3.0, strength=strength))


# One of each kind first, the Bayesian one with a posterior that is learnt; the others were tried beside them, and some
# did better: see the table.
LEARNERS: dict[str, Learner] = {
    "bayes": Learner(GaussianVI(carry=1.0)),
    "ewc": weak_ewc(1e-8),
    "sgd": Learner(SGD(lr=0.12, init_scale=3.0)),
    "bayes, default": Learner(GaussianVI(), 0.0),
    "bayes, default carry": Learner(GaussianVI()),
    "bayes, carry 1, not annealed": Learner(GaussianVI(carry=1.0), 0.0),
    "bayes, carry 10, not annealed": Learner(GaussianVI(carry=10.0), 0.0),
    "bayes, carry 30, not annealed": Learner(GaussianVI(carry=30.0), 0.0),
    **{f"bayes, carry {carry:g}": Learner(GaussianVI(carry=carry)) for carry in (3.0, 10.0, 30.0, 100.0)},
    "bayes, narrow prior, carry 10, not annealed": Learner(GaussianVI(carry=10.0, prior_std=0.05), 0.0),
    "bayes, narrow prior, carry 10": Learner(GaussianVI(carry=10.0, prior_std=0.05)),
    "bayes, paper's units, temperature 3e-05": Learner(
        GaussianVI(lr=100.0, temperature=3e-5, precision_lr=10.0, prior_precision=300.0, pull_every=10),
        evidence="always",
    ),
    "bayes, evidence a fifth": Learner(GaussianVI(carry=1.0, crowd=2000.0)),
    "bayes, evidence a twentieth": Learner(GaussianVI(carry=1.0, crowd=8000.0)),
    "bayes, evidence a fifth, carry 10": Learner(GaussianVI(carry=10.0, crowd=2000.0)),
    "bayes, evidence a fifth, carry 10, not annealed": Learner(GaussianVI(carry=10.0, crowd=2000.0), 0.0),
    **{  # no boundary is told, and the prior stays; what is replayed counts again, and is forgotten again
        f"bayes, the last {count:,} examples": Learner(GaussianVI(remember=count), 0.0, "always")
        for count in (1000, 3000, 10_000, 30_000, 100_000)
    },
    "bayes, no carry, not annealed": Learner(GaussianVI(carry=0.0), 0.0),
    "bayes, precisions of their own rate": Learner(
        GaussianVI(
            lr=100.0,
            temperature=6e-6,
            precision_lr=400.0,
            prior_precision=10.0,
            init_precision=300.0,
            pull_every=10,
            carry=1.0,
        )
    ),
    "bayes, the preset in the paper's units": Learner(
        GaussianVI(lr=100.0, temperature=1e-8, precision_lr=10.0, prior_precision=300.0, pull_every=10),
        evidence="always",
    ),
    **{
        f"laplace, carry {carry:g}": Learner(Laplace(lr=0.12, init_scale=3.0, carry=carry))
        for carry in (1.0, 10.0, 100.0)
    },
    **{f"ewc, {strength:g}": weak_ewc(strength) for strength in (1e-5, 1e-6, 1e-7)},
    "ewc, 0.0001": weak_ewc(1e-4),
    "ewc, rate 0.06": Learner(EWC(lr=0.06, init_scale=3.0, strength=1e-8)),
    "ewc, rate 0.25, 1e-06": Learner(EWC(lr=0.25, init_scale=3.0, strength=1e-6)),
    "ewc, rate 0.25": Learner(EWC(lr=0.25, init_scale=3.0, strength=1e-8)),
    **{f"sgd, rate {rate:g}": Learner(SGD(lr=rate, init_scale=3.0)) for rate in (0.03, 0.06, 0.25, 0.5)},
    "sgd, small first weights": Learner(SGD(lr=0.12)),
}
MAIN = ("bayes", "ewc", "sgd")
WAYS = ("plain", "shift", "turn", "answers", "both", "doubtful", "sure", "medoids")
CHANGES = {"shift": "shift=1", "turn": "shift=1,turn=10,stretch=0.1", "both": "shift=1"}
STORED, OF = 75, 1000


def trial(learner: Learner, way: str, seed: int, stored: int = STORED) -> dict[str, float]:
    """One learner through the five tasks."""
    rule, anneal, evidence = learner
    data, _ = small(seed)
    stream = split_by_class(data)
    network = build(
        NetworkConfig(784, (400,), 10, synapse_decay=0.0, membrane_decay=0.5, readout_scale=16.0, seed=seed)
    )
    members = 10 if isinstance(rule, GaussianVI | Laplace) else 1
    config = StreamConfig(
        coreset_share=stored / OF,
        coreset_selection="medoids" if way == "medoids" else "random",
        anneal=anneal,
        evidence=evidence,
        kernels="compiled",
        fisher_examples=1000,
        seed=seed,
        stored_as="answers" if way in ("answers", "both") else "labels",
        augment_stored=parse_augment(CHANGES.get(way, "none"), data.sample_shape),
    )
    now = start(network, rule, seed)
    for number, task in enumerate(stream.tasks):
        now = run_task(network, rule, Parts(stream, number, now.coresets), config, now)
        now = end_task(network, rule, task.train, config, now)
        if way in ("doubtful", "sure"):
            drawn = generator_for(seed, "choosing", number)
            committee = Committee.draw(network, posteriors(rule, now.states), members, generator=drawn)
            kept = chosen(committee, task.train, drawn, most=way == "doubtful", stored=stored)
            now = replace(now, coresets=(*now.coresets[:-1], kept))
    learnt = posteriors(rule, now.states)
    committee = Committee.draw(network, learnt, members, generator=generator_for(seed, "committee"))
    answer = predict_samples(committee, data.test, generator_for(seed, "own"), over_time=False)
    found = score(answer.probabilities[-1], data.test.labels)
    return {"accuracy": found.accuracy, "ece": found.ece, "nll": found.nll}


def chosen(committee: Committee, train: Samples, generator: torch.Generator, most: bool, stored: int) -> Tensor:
    """Of every class those with the most doubt, or with the least."""
    said = predict_samples(committee, train, generator, over_time=False)
    several = said.members is not None and len(said.members) > 1
    doubt = mutual_information(said.members) if several else entropy(said.probabilities[-1])
    kept = []
    for label in train.labels.unique().tolist():
        members = (train.labels == label).nonzero().flatten()
        kept.append(members[doubt[members].argsort(descending=most)[:stored]])
    return torch.cat(kept).sort().values


def known(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()] if out.exists() else []


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: mean ± std over seeds."""
    by_place: dict[tuple[int, str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_place[row.get("stored", STORED), row["way"], row["learner"]].append(row)
    lines = ["| stored of a class | how | learner | seeds | accuracy % | ECE | NLL |", "|---|---|---|---|---|---|---|"]
    learners = dict.fromkeys([*LEARNERS, *(row["learner"] for row in rows)])
    for stored, way, learner in product(sorted({place[0] for place in by_place}), WAYS, learners):
        if of := by_place.get((stored, way, learner)):
            cells = [across(of, "accuracy", 100, 1), across(of, "ece", 1, 3), across(of, "nll", 1, 3)]
            lines.append(f"| {stored} | {way} | {learner} | {len(of)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def across(of: list[dict[str, Any]], key: str, scale: float, digits: int) -> str:
    values = [scale * row[key] for row in of]
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--learners", nargs="+", default=list(MAIN), choices=list(LEARNERS))
    parser.add_argument("--stored", type=int, default=STORED, help="images of a class, of 1,000")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--table", action="store_true", help="only print what the file holds")
    options = parser.parse_args()
    torch.set_num_threads(1)
    asked = [(seed, way, name) for seed in range(options.seeds) for way in options.ways for name in options.learners]
    for seed, way, name in [] if options.table else asked:
        place = {"stored": options.stored, "way": way, "learner": name, "seed": seed}
        if any(all(row.get(key, STORED) == value for key, value in place.items()) for row in known(options.out)):
            continue
        begin = time.perf_counter()
        line = {
            **place,
            **trial(LEARNERS[name], way, seed, options.stored),
            "seconds": round(time.perf_counter() - begin, 1),
        }
        with options.out.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)
    print(table(known(options.out)))


if __name__ == "__main__":
    main()
