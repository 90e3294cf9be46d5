"""Permuted MNIST, nothing stored: every rule tuned with the same number of trials, and what the single choices do.

    BAYSPIKE_DATA=… python studies/permuted_mnist.py tune                     # the settings below, 784→400
    BAYSPIKE_DATA=… python studies/permuted_mnist.py long                     # 784→50, for a stream of 200 tasks
    BAYSPIKE_DATA=… python studies/permuted_mnist.py long --widths 400 --methods bayes-stream
    BAYSPIKE_DATA=… python studies/permuted_mnist.py widths --widths 50 4096  # one default for every width?
    BAYSPIKE_DATA=… python studies/permuted_mnist.py units                    # mini-batches and steps of any number?
    python studies/permuted_mnist.py best                                     # settings of the lowest validation loss

Ten orders of the pixels, T = 20, the same network and read-out for every rule, as in the experiment `permuted-mnist`.
Learnt from 10,000 images a task (`widths`: 3,000; `units`: 784→100), judged on 1,000 other *training* images a task;
the test set is never touched. The best settings are those of the experiment's table, with which all 60,000 images are
learnt; `long` has twenty orders, is judged by the last five, and remembers in tasks: 25,000 of these images are 150,000
of those.
Lines go to `docs/results/permuted-tuning.jsonl`; trials that it already has are not repeated.
"""

import argparse
import json
import time
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import posterior as trials  # the study beside this one
import torch

from bayspike.rules import BGD, EWC, MESU, SGD, SI, STE, BernoulliVI, GaussianVI, Metaplastic, Rule

OUT = Path("docs/results/permuted-tuning.jsonl")
READOUT, MEMBRANE, LONG = 24.0, 0.5, 2_000_000.0
BINARY: dict[str, Any] = {"lr": None, "temperature": None, "sampling": "neuron", "remember": LONG}

# The default first where a rule has one. Six for the headline and its rivals of other kinds, four for the rest.
SETTINGS: dict[str, list[Rule]] = {
    "bayes-stream": [
        *(GaussianVI(remember=LONG, crowd=crowd) for crowd in (200.0, 100.0, 400.0, 800.0)),
        GaussianVI(remember=LONG, prior_std=0.3),
        GaussianVI(remember=300_000.0),
    ],
    "bayes-flat": [GaussianVI(remember=LONG, crowd=crowd, flat=True) for crowd in (200.0, 100.0, 400.0, 800.0, 1600.0)],
    "mesu": [MESU(remember=LONG, prior_std=std) for std in (0.03, 0.1, 0.2, 0.4)],
    "bgd": [BGD(prior_std=std) for std in (0.03, 0.1, 0.2, 0.4)],
    "ewc-online": [
        *(EWC(lr=0.03, strength=strength, online=True) for strength in (1e-7, 3e-7, 1e-6, 3e-6)),
        *(EWC(lr=0.01, strength=strength, online=True) for strength in (1e-6, 3e-6)),
    ],
    "si": [
        *(SI(lr=0.03, strength=strength) for strength in (1e-3, 1e-2, 1e-1)),
        *(SI(lr=lr, strength=strength) for lr, strength in ((0.03, 3e-4), (0.01, 1e-3), (0.01, 3e-3))),
    ],
    "finetune": [SGD(lr=lr) for lr in (0.001, 0.003, 0.01, 0.03, 0.06, 0.12)],
    "bayes-binary-stream": [BernoulliVI(**BINARY, observations=count) for count in (None, 2.0, 20.0, 60.0)],
    "metaplastic": [Metaplastic(lr=0.5, metaplasticity=m, init_scale=3.0) for m in (0.3, 1.0, 3.0, 10.0)],
    "ste": [STE(lr=lr, init_scale=3.0) for lr in (0.03, 0.1, 0.5, 2.0)],
}

# Of a stream that never ends: six each, and as many more for those whose best was at the edge.
LONG_STREAM: dict[str, list[Rule]] = {
    "bayes-stream": [
        GaussianVI(remember=50_000.0),
        *(GaussianVI(remember=memory, prior_std=0.05) for memory in (25_000.0, 50_000.0, 100_000.0)),
        GaussianVI(remember=25_000.0, prior_std=0.03),
        GaussianVI(remember=25_000.0, prior_std=0.05, crowd=500.0),
    ],
    "mesu": [MESU(remember=memory, prior_std=std) for memory in (25_000.0, 50_000.0) for std in (0.03, 0.05, 0.1)],
    "ewc-online": [
        *(EWC(lr=0.03, strength=strength, online=True) for strength in (1e-7, 1e-6)),
        *(EWC(lr=0.03, strength=strength, online=True, decay=0.8) for strength in (1e-6, 1e-5)),
        *(EWC(lr=0.01, strength=strength, online=True, decay=0.8) for strength in (1e-6, 3e-6)),
        *(EWC(lr=0.03, strength=strength, online=True) for strength in (1e-8, 3e-8)),
        *(EWC(lr=0.01, strength=strength, online=True) for strength in (1e-8, 1e-7)),
        *(EWC(lr=0.01, strength=strength, online=True, decay=0.5) for strength in (1e-7, 1e-6)),
    ],
    "si": [
        *(SI(lr=lr, strength=strength) for lr in (0.03, 0.01) for strength in (1e-5, 1e-4, 1e-3)),
        *(SI(lr=lr, strength=strength) for lr in (0.01, 0.003) for strength in (1e-7, 1e-6)),
        *(SI(lr=0.003, strength=strength) for strength in (1e-5, 1e-4)),
    ],
    "finetune": [SGD(lr=lr) for lr in (0.003, 0.01, 0.03, 0.06, 0.12, 0.3)],
}
# A wider layer may want a wider prior.
WIDE: list[Rule] = [
    GaussianVI(remember=50_000.0),
    GaussianVI(remember=25_000.0),
    GaussianVI(remember=25_000.0, prior_std=0.05),
    *(GaussianVI(remember=memory, prior_std=0.08) for memory in (15_000.0, 25_000.0, 50_000.0)),
]
SHORT, MANY = 10, 20  # tasks
BATCH, STEPS = 64, 20  # where a line of the file says nothing else


class Job(NamedTuple):
    method: str
    rule: Rule
    width: int
    images: int
    tasks: int = SHORT
    batch: int = BATCH
    steps: int = STEPS


def known() -> list[dict[str, Any]]:
    return [json.loads(line) for line in OUT.read_text().splitlines()] if OUT.exists() else []


def jobs(kind: str, methods: list[str], widths: list[int]) -> list[Job]:
    if kind == "tune":
        return [Job(name, rule, 400, 10_000) for name in methods for rule in SETTINGS[name]]
    if kind == "long":
        return [
            Job(name, rule, width, 10_000, MANY)
            for width in widths
            for name in methods
            for rule in (WIDE if width > 50 and name == "bayes-stream" else LONG_STREAM.get(name, []))
        ]
    if kind == "units":
        rule = GaussianVI(remember=300_000.0)
        places = product((64, 16, 256), (20, 50))
        return [Job("bayes-stream", rule, 100, 10_000, batch=batch, steps=steps) for batch, steps in places]
    weights = SETTINGS["bayes-stream"][:4]  # of evidence: they alone are a matter of width
    return [Job("bayes-stream", rule, width, 3000) for width in widths for rule in weights]


def best() -> None:
    """One line for each rule: its best setting, how it did, and how far the others were behind."""
    short = [line for line in known() if (line["width"], line["images"]) == (400, 10_000)]
    units = [line for line in known() if (line["width"], line["images"]) == (100, 10_000) and "steps" in line]
    for name, every in by_method(short).items():
        first, *others = sorted(every, key=lambda line: float(line["found"]["nll"]))
        found, behind = first["found"], ", ".join(f"{100 * line['found']['accuracy']:.1f}" for line in others)
        print(f"{name}: {100 * found['accuracy']:.1f} % / {found['ece']:.3f} / {found['nll']:.3f}", end=" ")
        print(f"of {len(every)} (others {behind} %) {first['rule']}")
    long = [line for line in known() if line.get("tasks") == MANY]
    for width in sorted({line["width"] for line in long}):
        print(f"\nThe last five of {MANY} tasks, 784→{width}")
        for name, every in by_method([line for line in long if line["width"] == width]).items():
            first, *others = sorted(every, key=last_five, reverse=True)
            behind = ", ".join(f"{100 * last_five(line):.1f}" for line in others)
            print(f"{name}: {100 * last_five(first):.1f} % of {len(every)} (others {behind} %) {first['rule']}")
    print("\nMini-batches and steps, 784→100")
    for line in sorted(units, key=lambda line: (line["steps"], line["batch"])):
        found = line["found"]
        print(f"batch {line['batch']}, T {line['steps']}: {100 * found['accuracy']:.1f} %", end=" ")
        print(f"/ {found['ece']:.3f} / {found['nll']:.3f}")


def by_method(lines: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    tried: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        tried.setdefault(line["method"], []).append(line)
    return tried


def last_five(line: dict[str, Any]) -> float:
    return sum(line["found"]["tasks"][-5:]) / 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["tune", "long", "widths", "units", "best"])
    parser.add_argument("--methods", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--widths", nargs="+", type=int, help="of `widths`: 50 to 4,096 neurons; of `long`: 50")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.kind == "best":
        best()
        return
    unsaid = {"tasks": SHORT, "batch": BATCH, "steps": STEPS}
    widths = options.widths or ([50] if options.kind == "long" else [50, 100, 400, 1600, 4096])
    for job in jobs(options.kind, options.methods, widths):
        name = {**job._asdict(), "rule": trials.plain(job.rule)}
        if name in [{key: line.get(key, unsaid.get(key)) for key in name} for line in known()]:
            continue
        begin = time.perf_counter()
        sizes = {"tasks": job.tasks, "batch": job.batch, "steps": job.steps}
        found = trials.permuted_trial(job.rule, job.width, job.images, 0, READOUT, MEMBRANE, **sizes)
        line = json.dumps({**name, "found": found, "seconds": round(time.perf_counter() - begin, 1)})
        print(line, flush=True)
        with OUT.open("a") as stream:
            stream.write(line + "\n")


if __name__ == "__main__":
    main()
