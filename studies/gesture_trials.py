"""Settings for maps on genuine gestures, tried on three users of 1 to 15 who were not learnt from.

    BAYSPIKE_DATA=… python studies/gesture_trials.py all-at-once            # docs/results/gesture-trials.jsonl
    BAYSPIKE_DATA=… python studies/gesture_trials.py in-tasks --folds 2 3   # what the file has is not repeated
    python studies/gesture_trials.py --table

Network, ages, augmentation and number of presentations are those of the presets `laptop` of dvs-gestures (all at once)
and of split-gestures (in tasks); only a rule's own settings change. A trial is judged by what logits gathered to the
end say, its NLL after a temperature: of each half of the recordings by the temperature of the other half.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import torch
from cells import without_empty_columns
from events import learn
from gesture_folds import answers

from bayspike.data import catalogue
from bayspike.experiments import dvs_gestures, split_gestures
from bayspike.experiments.dvs_gestures import DATA, MAPS, SEEN
from bayspike.metrics import accuracy, ece, nll
from bayspike.predict.calibration import halves
from bayspike.predict.temperature import fit_temperature
from bayspike.seeds import generator_for
from bayspike.storage.files import read_lines, write_lines

OUT = Path("docs/results/gesture-trials.jsonl")
Settings = dict[str, Any]
NETWORK = "network."


def beside(today: Settings, *others: Settings) -> list[Settings]:
    """Today's settings, and what is tried in their place."""
    return [today, *({**today, **other} for other in others)]


ONCE, TASKS = dvs_gestures.OF_MAPS, split_gestures.OF_MAPS
BINARY = {"network.threshold": 1.0}
TRIALS: dict[str, dict[str, list[Settings]]] = {
    "all-at-once": {
        "sgd": beside(
            ONCE["sgd"],
            *({"lr": lr} for lr in (0.02, 0.03, 0.09, 0.12, 0.2)),
            *({"lr": lr, "init_scale": scale} for lr in (0.06, 0.12) for scale in (1.0, 6.0)),
        ),
        "ste": beside(
            {"lr": 2.0, "init_scale": 3.0, **BINARY},
            {"lr": 0.5},
            {"lr": 8.0},
            {"network.threshold": 3.0},
        ),
        "bayes-binary": beside(
            {"lr": None, "temperature": None, "sampling": "neuron", **BINARY},
            {"network.threshold": 3.0},
            {"lr": 30.0, "temperature": 1e-4},
            {"lr": 30.0, "temperature": 1e-4, "network.threshold": 3.0},
        ),
    },
    "in-tasks": {
        "bayes": beside(TASKS["bayes"], *({"carry": carry} for carry in (0.3, 3.0, 10.0))),
        "ewc": beside(TASKS["ewc"], *({"strength": strength} for strength in (1e-7, 1e-5, 1e-4))),
        "sgd": beside(TASKS["sgd"], *({"lr": lr} for lr in (0.03, 0.12, 0.2))),
    },
}
PRESETS = {"all-at-once": dvs_gestures.EXPERIMENT, "in-tasks": split_gestures.EXPERIMENT}
KEPT = ("epochs", "anneal", "augment", "coreset_share", "coreset_selection", "replay")  # of a preset's training
STREAMS = {"all-at-once": "offline", "in-tasks": "split-gestures"}


def spec_of(stream: str, how: str, settings: Settings, fold: int) -> dict[str, Any]:
    """All that a trial is learnt with, in plain values."""
    training = PRESETS[stream].presets["laptop"].training
    own = {name.removeprefix(NETWORK): value for name, value in settings.items() if name.startswith(NETWORK)}
    return {
        "stream": STREAMS[stream],
        "method": how,
        "rule": {name: value for name, value in settings.items() if not name.startswith(NETWORK)},
        "network": {**MAPS, **own, "seed": fold},
        "training": {**{name: training[name] for name in KEPT if name in training}, "seed": fold},
    }


def judged(stream: str, how: str, settings: Settings, fold: int) -> dict[str, Any]:
    seen: dict[str, Any] = {**DATA, **SEEN, **({"foreign_light": "none"} if stream == "in-tasks" else {})}
    data = catalogue.load("dvs_gesture", time=25, **seen, validation=True, fold=fold)
    network, learnt, seconds = learn(spec_of(stream, how, settings, fold), data)
    said = answers(how, network, learnt, data.test, fold, "logits")[-1].double()
    labels = data.test.labels
    scaled = said.clone()
    for choosing, judging in (two := halves(labels, generator_for(0, "halves")), two[::-1]):
        scaled[judging] = fit_temperature(said[choosing], labels[choosing]).apply(said[judging])
    return {
        "judged": len(labels),
        "accuracy": float(accuracy(said, labels)),
        "ece": float(ece(scaled, labels)),
        "nll": float(nll(scaled, labels)),
        "raw_nll": float(nll(said, labels)),
        "seconds": round(seconds),
    }


def table(lines: list[dict[str, Any]]) -> str:
    """Every setting that was tried, the folds it was judged on, and the best of each learner by NLL."""
    head = ("gestures", "learner", "tried, beside the first", "folds", "accuracy %", "ECE, scaled", "NLL, scaled")
    rows = []
    for stream, learners in TRIALS.items():
        for how, settings in learners.items():
            for tried in settings:
                found = [line for line in lines if _is(line, stream, how, tried)]
                if not found:
                    continue
                weights = [line["judged"] for line in found]
                means = [
                    sum(weight * line[name] for weight, line in zip(weights, found, strict=True)) / sum(weights)
                    for name in ("accuracy", "ece", "nll")
                ]
                differs = {
                    name: value
                    for name, value in tried.items()
                    if tried is settings[0] or value != settings[0].get(name)
                }
                words = ", ".join(f"{name} {value}" for name, value in differs.items())
                folds = ", ".join(str(line["fold"]) for line in found)
                rows.append((stream, how, words, folds, f"{100 * means[0]:.1f}", f"{means[1]:.3f}", f"{means[2]:.3f}"))
    return without_empty_columns(head, rows)


def _is(line: dict[str, Any], stream: str, how: str, settings: Settings) -> bool:
    return bool(line["spec"] == spec_of(stream, how, settings, line["fold"]) and line["stream"] == stream)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("streams", nargs="*", choices=[[], *TRIALS])
    parser.add_argument("--learners", nargs="+")
    parser.add_argument("--folds", nargs="+", type=int, default=[3])
    parser.add_argument("--numbers", nargs="+", type=int, help="only these of a learner's settings, from 0")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    known = read_lines(OUT)
    for stream in () if options.table else options.streams or TRIALS:
        for how in options.learners or TRIALS[stream]:
            for number, settings in enumerate(TRIALS[stream].get(how, ())):
                if options.numbers is not None and number not in options.numbers:
                    continue
                for fold in options.folds:
                    if any(line["fold"] == fold and _is(line, stream, how, settings) for line in known):
                        continue
                    begin = time.perf_counter()
                    spec = spec_of(stream, how, settings, fold)
                    line = {"stream": stream, "fold": fold, "spec": spec, **judged(stream, how, settings, fold)}
                    line["all"] = round(time.perf_counter() - begin)
                    known = [*read_lines(OUT), line]  # others may have been tried meanwhile
                    write_lines(OUT, known)
                    print(table([line]).splitlines()[-1], f"{line['all']} s", flush=True)
    print(table(known))


if __name__ == "__main__":
    main()
