"""TACOS in its authors' protocol and in the paper's: which of the two is its published 83 % for?

    BAYSPIKE_DATA=… python studies/tacos_protocol.py --seeds 3    # what docs/results/tacos-protocol.jsonl has is kept
    python studies/tacos_protocol.py --table

Soures et al. report split-MNIST *domain-incremental*: five tasks of two digits and two outputs, "the first or the
second of the pair", no task identity at test (arXiv 2409.00021). The paper's Table I is *class-incremental*: ten
outputs, of which each task shows two. Both here, nothing stored, 1,000 images a class, T = 50, 784→400, judged on 2,000
other training images, each setting printed. SGD and the Bayesian learner beside it.
"""

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from memory_split_mnist import small  # the study beside this one

from bayspike.continual import Stream, StreamConfig, Task, run_stream, split_by_class
from bayspike.continual.judging import score
from bayspike.learner.examples import relabelled
from bayspike.learning.batch import posteriors
from bayspike.predict.predictors import Committee, predict_samples
from bayspike.rules import SGD, TACOS, GaussianVI, Rule
from bayspike.seeds import generator_for
from bayspike.spiking.network import NetworkConfig, build

OUT = Path("docs/results/tacos-protocol.jsonl")


def by_domain(stream: Stream) -> Stream:
    """The same tasks with two outputs for all of them."""
    tasks = [
        Task(task.name, *(relabelled(part, part.labels % 2) for part in (task.train, task.test)))
        for task in stream.tasks
    ]
    return Stream(tuple(tasks), 2)


def trial(rule: Rule, stream: Stream, seed: int) -> dict[str, Any]:
    network = build(
        NetworkConfig(784, (400,), stream.classes, synapse_decay=0.0, membrane_decay=0.5, readout_scale=16.0, seed=seed)
    )
    done = run_stream(network, rule, stream, StreamConfig(replay="none", coreset_share=0.0, seed=seed))
    members = 10 if isinstance(rule, GaussianVI) else 1
    committee = Committee.draw(
        network, posteriors(rule, done.states), members, generator=generator_for(seed, "committee")
    )
    found = [
        predict_samples(committee, task.test, generator_for(seed, "own", k), over_time=False).probabilities[-1]
        for k, task in enumerate(stream.tasks)
    ]
    labels = [task.test.labels for task in stream.tasks]
    every = score(torch.cat(found), torch.cat(labels))._asdict()
    return {**every, "tasks": [score(p, y).accuracy for p, y in zip(found, labels, strict=True)]}


def rules() -> dict[str, Rule]:
    return {
        "sgd": SGD(lr=0.12, init_scale=3.0),
        **{
            f"tacos, lr {lr:g}, increment {each:g}": TACOS(lr=lr, increment=each, use_trace=True)
            for lr in (0.03, 0.1)
            for each in (0.01, 0.1, 1.0)
        },
        "bayes": GaussianVI(),
        "bayes, 300,000 remembered": GaussianVI(remember=300_000.0),
    }


def known(out: Path) -> list[dict[str, Any]]:
    """What the file holds; a line that names no seed is of the first."""
    return [{"seed": 0, **json.loads(line)} for line in out.read_text("utf-8").splitlines()] if out.exists() else []


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: mean ± std over seeds."""
    by_place: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_place[row["protocol"], row["learner"]].append(row)
    lines = ["| protocol | learner | seeds | accuracy % | ECE | NLL |", "|---|---|---|---|---|---|"]
    for (protocol, learner), of in sorted(by_place.items(), key=lambda each: each[0][0]):
        cells = [across(of, "accuracy", 100, 1), across(of, "ece", 1, 3), across(of, "nll", 1, 3)]
        lines.append(f"| {protocol} | {learner} | {len(of)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def across(of: list[dict[str, Any]], key: str, scale: float, digits: int) -> str:
    values = [scale * row[key] for row in of]
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--table", action="store_true", help="only print what the file holds")
    options = parser.parse_args()
    torch.set_num_threads(1)
    done = {(line["learner"], line["protocol"], line["seed"]) for line in known(options.out)}
    for seed in range(0 if options.table else options.seeds):
        data, _ = small(seed)
        streams = {"class-incremental": split_by_class(data), "domain-incremental": by_domain(split_by_class(data))}
        for name, rule in rules().items():
            for protocol, stream in streams.items():
                if (name, protocol, seed) in done:
                    continue
                begin = time.perf_counter()
                place = {"learner": name, "protocol": protocol, "seed": seed}
                line = {**place, **trial(rule, stream, seed), "seconds": round(time.perf_counter() - begin, 1)}
                print(json.dumps(line), flush=True)
                with options.out.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(line) + "\n")
    print(table(known(options.out)))


if __name__ == "__main__":
    main()
