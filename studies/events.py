"""Settings for genuine recordings of event cameras, chosen on validation users and recordings alone.

    BAYSPIKE_DATA=… python studies/events.py nmnist-joint nmnist-split gestures split-gestures --methods bayes sgd
    python studies/events.py --table                  # what docs/results/events-trials.jsonl holds

A trial is a preset of an experiment with some settings, on data with `validation=true`: users 13 to 15 of DVS-Gesture,
a fifth of N-MNIST's training recordings. The test parts are never read. Every trial is judged with each way to gather,
as it is and with the temperature that the examples held back give: accuracy and ECE at the end, and the largest ECE at any
step after the first fifth of the signal. Trials that are in the file already are not repeated.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from bayspike.continual.methods import method
from bayspike.continual.protocol import run_stream
from bayspike.data.base import Dataset
from bayspike.experiments.registry import experiment
from bayspike.learning.batch import posteriors
from bayspike.metrics import accuracy, auroc, ece, entropy, mutual_information, nll
from bayspike.predict.by_name import make_predictor
from bayspike.predict.gathering import GATHERS
from bayspike.predict.predictors import predict_samples
from bayspike.runs.outcome.examination import committee_generator, headline, held_back_temperature
from bayspike.runs.outcome.summary import worst_ece
from bayspike.runs.plan.config import jobs_of
from bayspike.runs.plan.prepare import load_data, prepare
from bayspike.runs.plan.resolve import Changes, resolve
from bayspike.seeds import generator_for

OUT = Path("docs/results/events-trials.jsonl")


class Stage(NamedTuple):
    """What is being chosen: an experiment, and by which methods."""

    experiment: str
    methods: tuple[str, ...]
    trials: tuple[tuple[str, ...], ...]  # each in the words of --set, for the methods that know them
    preset: str = "laptop"


STAGES: dict[str, Stage] = {}


def judged(stage: str, name: str, trial: tuple[str, ...], threads: int) -> dict[str, Any]:
    """Learn with one set of settings and score it on the validation part."""
    torch.set_num_threads(threads)
    chosen = experiment(STAGES[stage].experiment)
    data = {"options": {"validation": True, **_loader(trial)}}
    said = [each for each in trial if not each.startswith("data.")]
    config = resolve(
        chosen,
        STAGES[stage].preset,
        Changes(methods=[name], seeds=1, settings=said, data=data, training={"evaluations": 1}),
    )
    dataset = load_data(chosen, config.data)
    learner = prepare(config, jobs_of(config)[0], dataset, chosen.stream(dataset))
    begin = time.perf_counter()
    done = run_stream(learner.network, learner.rule, learner.stream, learner.training)
    seconds = time.perf_counter() - begin
    learnt = posteriors(learner.rule, done.states)
    found: dict[str, Any] = {
        "stage": stage, "method": name, "trial": list(trial), "seconds": round(seconds), "about": dataset.about,
        "synapses": sum(layer.neurons * layer.pre for layer in learner.network.layers),
    }  # fmt: skip
    for how in GATHERS:
        predictor = make_predictor(
            headline(method(name), config.judging), learner.network, learnt, 10, committee_generator(0), how
        )
        found[how] = scores(predictor, dataset)
    return found


def scores(predictor: Any, dataset: Dataset) -> dict[str, Any]:
    shown = predict_samples(predictor, dataset.test, generator_for(0, "validation"))
    labels, said = dataset.test.labels, shown.probabilities
    temperature = held_back_temperature(predictor, dataset, 0)
    result = {
        "accuracy": float(accuracy(said[-1], labels)),
        "ece": float(ece(said[-1], labels)),
        "nll": float(nll(said[-1], labels)),
        "worst_ece": worst_ece(ece(said, labels).tolist()),
        "rate": [round(float(each), 4) for each in shown.rates],
    }
    if temperature is not None:
        scaled = temperature.apply(said)
        result |= {
            "temperature": temperature.value,
            "scaled_ece": float(ece(scaled[-1], labels)),
            "scaled_nll": float(nll(scaled[-1], labels)),
            "scaled_worst_ece": worst_ece(ece(scaled, labels).tolist()),
        }
    if dataset.foreign is not None:
        other = predict_samples(predictor, dataset.foreign, generator_for(0, "foreign"))
        result["auroc_entropy"] = float(auroc(entropy(said[-1]), entropy(other.probabilities[-1])))
        if predictor.members > 1:
            own, theirs = (mutual_information(each.members) for each in (shown, other))
            result["auroc_mutual_information"] = float(auroc(own, theirs))
    return result


def _loader(trial: tuple[str, ...]) -> dict[str, Any]:
    pairs = (each.removeprefix("data.").split("=", 1) for each in trial if each.startswith("data."))
    return {name: json.loads(value) for name, value in pairs}


def known(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def table(entries: list[dict[str, Any]]) -> Iterator[str]:
    for each in entries:
        ways = "  ".join(
            f"{how} {each[how]['accuracy']:.3f} ece {each[how]['ece']:.3f}"
            + (f"→{each[how]['scaled_ece']:.3f} (worst {each[how]['scaled_worst_ece']:.3f})" if "scaled_ece" in each[how] else "")
            for how in GATHERS
        )
        area = each["mean"].get("auroc_mutual_information", each["mean"].get("auroc_entropy"))
        foreign = "" if area is None else f"  auroc {area:.2f}"
        yield f"{each['stage']:14s} {each['method']:12s} {ways}{foreign}  {each['seconds']} s  {' '.join(each['trial'])}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stages", nargs="*", choices=[*STAGES, []])
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if options.table:
        print("\n".join(table(known(options.out))))
        return
    for stage in options.stages:
        for trial in STAGES[stage].trials:
            for name in options.methods or STAGES[stage].methods:
                if any((e["stage"], e["method"], e["trial"]) == (stage, name, list(trial)) for e in known(options.out)):
                    continue
                found = judged(stage, name, trial, options.threads)
                with options.out.open("a") as lines:
                    lines.write(json.dumps(found) + "\n")
                print(*table([found]), flush=True)


if __name__ == "__main__":
    main()
