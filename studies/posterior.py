"""What a learnt posterior is worth: small trials with every control, on validation images alone.

    BAYSPIKE_DATA=… python studies/posterior.py split --stored 0 10 100 --seeds 1
    BAYSPIKE_DATA=… python studies/posterior.py permuted --widths 100 400 --images 10000

`split`: split-MNIST, five tasks of two digits, one epoch of 1,000 images a class, exactly so many of a class stored,
judged on 2,000 other training images; foreign: Fashion-MNIST; a point's best noise is chosen by 1,000 more, which were
not learnt either. `permuted`: ten orders of the pixels, nothing stored, no boundary told, judged on 1,000 other
training images a task. The test sets are never touched. One JSON line for each learner goes to `--out`; trials that the
file already has are not repeated. `--set` changes the Gaussian rule.
"""

import argparse
import json
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from bayspike.continual import StreamConfig, permuted, run_stream, split_by_class
from bayspike.continual.judging import score
from bayspike.data import Dataset, load
from bayspike.data.base import stratified_split
from bayspike.learning.batch import posteriors
from bayspike.metrics import auroc, entropy, mutual_information
from bayspike.predict.controls import judge_controls
from bayspike.predict.predictors import Committee, predict_samples
from bayspike.rules import BGD, EWC, MESU, SGD, SI, BernoulliVI, GaussianVI, Rule
from bayspike.seeds import generator_for
from bayspike.spiking.network import NetworkConfig, build

MEMBERS = 10
FOREIGN = 1000


def parts(time: int, per_class: int, judged_per_class: int, seed: int, held_back: int = 0) -> tuple[Dataset, Dataset]:
    """Part of the training set with other images of it to judge by; and Fashion-MNIST. Of those that are left
    `held_back` a class are neither learnt nor judged, for what a control must choose."""
    full = load("mnist", time=time)
    rest, judged = stratified_split(full.train.labels, judged_per_class, seed=1)
    pool = full.train.subset(rest)
    left, kept = stratified_split(pool.labels, per_class, seed=2 + seed)
    data = Dataset("mnist part", pool.subset(kept), full.train.subset(judged), full.classes, full.sample_shape)
    if held_back:
        others = pool.subset(left)
        data = replace(data, held_back=others.subset(stratified_split(others.labels, held_back, seed=3)[1]))
    return data, load("fashion_mnist", time=time)


def split_trial(rule: Rule, stored: int, seed: int, evidence: str) -> dict[str, Any]:
    data, fashion = parts(50, 1000, 200, seed, held_back=100)
    assert data.held_back is not None
    network = build(
        NetworkConfig(
            784,
            (400,),
            10,
            synapse_decay=0.0,
            membrane_decay=0.5,
            readout_scale=16.0,
            seed=seed,
            threshold=8.0 if rule.binary else None,
        )
    )
    config = StreamConfig(
        coreset_share=stored / 1000,
        replay="balanced" if stored else "none",
        anneal=0.0 if isinstance(rule, GaussianVI | BernoulliVI) else 0.98,
        evidence=evidence,  # type: ignore[arg-type]
        fisher_examples=1000,
        seed=seed,
    )
    done = run_stream(network, rule, split_by_class(data), config)
    foreign = fashion.test.subset(torch.arange(FOREIGN))
    found = judge_controls(
        network, posteriors(rule, done.states), data.test, foreign, data.held_back, members=MEMBERS, seed=seed
    )
    return {name: scores._asdict() for name, scores in found.items()}


def permuted_trial(
    rule: Rule,
    width: int,
    images: int,
    seed: int,
    readout: float,
    membrane: float,
    tasks: int = 10,
    batch: int = 64,
    steps: int = 20,
) -> dict[str, Any]:
    data, fashion = parts(steps, images // 10, 100, seed)
    stream = permuted(data, tasks, seed=seed)
    network = build(
        NetworkConfig(
            784,
            (width,),
            10,
            synapse_decay=0.0,
            membrane_decay=membrane,
            readout_scale=readout,
            seed=seed,
            threshold=8.0 if rule.binary else None,
        )
    )
    config = StreamConfig(batch=batch, replay="none", coreset_share=0.0, fisher_examples=1000, seed=seed)
    done = run_stream(network, rule, stream, config)
    learnt = posteriors(rule, done.states)
    spread = isinstance(rule, GaussianVI | MESU | BGD | BernoulliVI)
    committee = Committee.draw(network, learnt, MEMBERS if spread else 1, generator=generator_for(seed, "committee"))
    answers = [
        predict_samples(committee, task.test, generator_for(seed, "own", k), over_time=False)
        for k, task in enumerate(stream.tasks)
    ]
    other = predict_samples(
        committee, fashion.test.subset(torch.arange(FOREIGN)), generator_for(seed, "foreign"), over_time=False
    )
    finals = [each.probabilities[-1] for each in answers]
    labels = [task.test.labels for task in stream.tasks]
    result: dict[str, Any] = score(torch.cat(finals), torch.cat(labels))._asdict()
    result["tasks"] = [score(p, y).accuracy for p, y in zip(finals, labels, strict=True)]
    result["auroc_entropy"] = float(auroc(entropy(finals[0]), entropy(other.probabilities[-1])))
    if spread and answers[0].members is not None and other.members is not None:
        result["auroc_mutual_information"] = float(
            auroc(mutual_information(answers[0].members), mutual_information(other.members))
        )
    return result


def learners(kind: str, changes: dict[str, Any], names: list[str]) -> dict[str, Rule]:
    memory = {"remember": 300_000.0} if kind == "permuted" else {}
    rates = {"lr": 0.12, "init_scale": 3.0} if kind == "split" else {"lr": 0.03}
    if names == ["bayes-binary"]:
        natural = {"lr": None, "temperature": None, "sampling": "neuron"}
        return {"bayes-binary": BernoulliVI(**{**natural, **memory, **changes})}
    everything: dict[str, Rule] = {
        "bayes": GaussianVI(**{**memory, **changes}),
        "bayes-flat": GaussianVI(**{**memory, **changes}, flat=True),
        "sgd": SGD(**rates),
        "mesu": MESU(),
        "bgd": BGD(),
    }
    for strength in (1e-7, 3e-7, 1e-6, 1e-5, 1e-4, 1e-3, 3e-3):
        everything[f"ewc {strength:g}"] = EWC(strength=strength, online=kind == "permuted", **rates)
    for strength in (1e-3, 1e-2, 1e-1):
        everything[f"si {strength:g}"] = SI(strength=strength, **rates)
    return {name: everything[name] for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["split", "permuted"])
    parser.add_argument("--learners", nargs="+", default=["bayes", "sgd"])
    parser.add_argument("--stored", nargs="+", type=int, default=[10])
    parser.add_argument("--widths", nargs="+", type=int, default=[400])
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--readout", type=float, default=16.0)
    parser.add_argument("--membrane", type=float, default=0.5)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--evidence", choices=["once", "always"], default="once")
    parser.add_argument("--set", nargs="*", default=[], help="of the Gaussian rule, as in carry=100")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    torch.set_num_threads(1)
    out = options.out or Path("docs/results") / f"posterior-{options.kind}.jsonl"
    changes = {name: json.loads(value) for name, value in (each.split("=") for each in options.set)}
    known = [json.loads(line)["trial"] for line in out.read_text().splitlines()] if out.exists() else []
    for seed in range(options.seeds):
        for size in options.stored if options.kind == "split" else options.widths:
            for name, rule in learners(options.kind, changes, options.learners).items():
                trial: dict[str, Any] = {"learner": name, "rule": plain(rule), "seed": seed}
                if options.kind == "split":
                    trial |= {"stored": size, "evidence": options.evidence}
                else:
                    trial |= {"width": size, "images": options.images, "readout": options.readout}
                    if options.membrane != 0.5:
                        trial |= {"membrane": options.membrane}
                if trial in known:
                    continue
                begin = time.perf_counter()
                if options.kind == "split":
                    found = split_trial(rule, size, seed, options.evidence)
                else:
                    found = permuted_trial(rule, size, options.images, seed, options.readout, options.membrane)
                line = json.dumps({"trial": trial, "found": found, "seconds": round(time.perf_counter() - begin, 1)})
                print(line, flush=True)
                with out.open("a") as stream:
                    stream.write(line + "\n")


def plain(rule: Any) -> dict[str, Any]:
    return {"kind": type(rule).__name__, **{key: value for key, value in asdict(rule).items() if value is not None}}


if __name__ == "__main__":
    main()
