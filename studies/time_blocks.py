"""What time blocks cost in accuracy and calibration: small split digits with `update_every` 1, 5 and 10.

    python studies/time_blocks.py [--every 1 5 10] [--seeds 3] [--out docs/results/time-blocks.jsonl]

One layer of 100 neurons, 25 time-steps, 1,500 training and 1,000 test digits in five tasks, the demo's settings, which
were chosen for k = 1. Prints means and standard deviations over seeds.
"""

import argparse
import json
import statistics
from pathlib import Path

import torch

from bayspike.continual.judging import judge_with
from bayspike.continual.methods import method
from bayspike.continual.protocol import run_stream
from bayspike.experiments.registry import experiment
from bayspike.learning.batch import posteriors
from bayspike.runs.engine import open_bench
from bayspike.runs.plan.config import jobs_of
from bayspike.runs.plan.prepare import prepare
from bayspike.runs.plan.resolve import Changes, resolve

JUDGING_SEED = 7


def run(every: int, seeds: int) -> list[dict[str, float | str]]:
    changes = Changes(
        methods=["bayes", "sgd"],
        seeds=seeds,
        network={"hidden": (100,)},
        training={"evaluations": 1, "update_every": every},
        data={"time": 25, "train_examples": 1500, "test_examples": 1000},
        run={"threads": 1},
    )
    bench = open_bench(resolve(experiment("digits"), "demo", changes), experiment("digits"))
    found = []
    for job in jobs_of(bench.config):
        learner = prepare(bench.config, job, bench.dataset, bench.stream)
        done = run_stream(learner.network, learner.rule, learner.stream, learner.training)
        name = method(job.method.method).predictors[0]
        judge = judge_with(learner.network, [name], members=10)
        _, overall = judge(posteriors(learner.rule, done.states), learner.stream.judges, JUDGING_SEED)[name]
        found.append({"method": job.method.method, "every": every, "seed": job.seed, **overall._asdict()})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", nargs="+", type=int, default=[1, 5, 10])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    entries = [each for every in options.every for each in run(every, options.seeds)]
    if options.out:
        options.out.write_text("".join(json.dumps(each) + "\n" for each in entries))
    for name in ("bayes", "sgd"):
        for every in options.every:
            mine = [each for each in entries if (each["method"], each["every"]) == (name, every)]
            shown = []
            for measure in ("accuracy", "ece", "nll"):
                values = [float(each[measure]) for each in mine]
                spread = statistics.stdev(values) if len(values) > 1 else 0.0
                shown.append(f"{measure} {statistics.fmean(values):.4f} ± {spread:.4f}")
            print(f"{name}, update_every={every}: {', '.join(shown)}")


if __name__ == "__main__":
    main()
