"""TACOS in its authors' protocol and in the paper's: which of the two is its published 83 % for?

    BAYSPIKE_DATA=… python studies/tacos_protocol.py

Soures et al. report split-MNIST *domain-incremental*: five tasks of two digits and two outputs, "the first or the
second of the pair", no task identity at test (arXiv 2409.00021). The paper's Table I is *class-incremental*: ten
outputs, of which each task shows two. Both here, nothing stored, 1,000 images a class, T = 50, 784→400, judged on 2,000
other training images, each setting printed. SGD and the Bayesian learner beside it.
"""

import json
import time
from pathlib import Path
from typing import Any

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


def main() -> None:
    torch.set_num_threads(1)
    rules: dict[str, Rule] = {
        "sgd": SGD(lr=0.12, init_scale=3.0),
        **{
            f"tacos, lr {lr:g}, increment {each:g}": TACOS(lr=lr, increment=each, use_trace=True)
            for lr in (0.03, 0.1)
            for each in (0.01, 0.1, 1.0)
        },
        "bayes": GaussianVI(),
        "bayes, 300,000 remembered": GaussianVI(remember=300_000.0),
    }
    known = [json.loads(line) for line in OUT.read_text().splitlines()] if OUT.exists() else []
    done = {(line["learner"], line["protocol"]) for line in known}
    data, _ = small(0)
    streams = {"class-incremental": split_by_class(data), "domain-incremental": by_domain(split_by_class(data))}
    for name, rule in rules.items():
        for protocol, stream in streams.items():
            if (name, protocol) in done:
                continue
            begin = time.perf_counter()
            line = json.dumps({"learner": name, "protocol": protocol, **trial(rule, stream, 0)})
            print(line, round(time.perf_counter() - begin), flush=True)
            with OUT.open("a") as out:
                out.write(line + "\n")


if __name__ == "__main__":
    main()
