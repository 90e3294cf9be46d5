"""What are several ages of the inputs worth? Gestures on five folds of users, N-MNIST on validation recordings.

    BAYSPIKE_DATA=… python studies/delays.py                  # docs/results/delays.jsonl; what it has is not repeated
    BAYSPIKE_DATA=… python studies/delays.py gestures-maps-4  # only this one
    python studies/delays.py --table

Only recordings meant for training are read: three of the users 1 to 15 judge at a time, or a fifth of N-MNIST's
training part. The same network, rule and number of presentations with inputs as they are and at several ages; one seed.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from events import learn, said

from bayspike.continual.methods import method
from bayspike.data import catalogue
from bayspike.experiments.dvs_gestures import AGES, AUGMENT, DATA, MAPS, NETWORK, SEEN
from bayspike.experiments.split_nmnist import MAPS as NMNIST_MAPS
from bayspike.metrics import accuracy, ece, nll
from bayspike.predict.by_name import make_predictor
from bayspike.predict.gathering import GATHERS, gathered
from bayspike.seeds import generator_for

OUT = Path("docs/results/delays.jsonl")
FOLDS = (1, 2, 3, 4, 5)
ONE = {**AGES, "delays": [0]}
SGD = {"lr": 0.06, "init_scale": 3.0}
NMNIST = {"epochs": 4, "batch": 32, "anneal": 0.98, "augment": "shift=1,turn=10,stretch=0.1"}
GESTURES = {"epochs": 15, "anneal": 0.98, "augment": AUGMENT}
SMALLEST = {**MAPS, "layers": "16c5s2-2p-32c5s2-128", "readout_grid": 2}  # the preset's maps when this was run
SMALL_MAPS = {**NMNIST_MAPS, "layers": "16c5s2-2p-32c5s2-128"}


def of_gestures(
    ages: dict[str, Any], network: dict[str, Any], rule: dict[str, Any], how: str = "sgd", **training: Any
) -> dict[str, Any]:
    options = {"time": 25, **DATA, **ages, "validation": True}
    return {"data": "dvs_gesture", "options": options, "network": network, "method": how, "rule": rule} | {
        "training": {**GESTURES, **training}
    }


def of_nmnist(delays: list[int], network: dict[str, Any], how: str = "sgd", **training: Any) -> dict[str, Any]:
    options = {"time": 20, "delays": delays, "validation": True}
    rule = SGD if how == "sgd" else {"init_scale": 3.0}
    return {"data": "nmnist", "options": options, "network": network, "method": how, "rule": rule} | {
        "training": {**NMNIST, **training}
    }


TRIALS = {
    "gestures-dense-1": of_gestures(ONE, NETWORK, {"lr": 0.06}),
    "gestures-dense-4": of_gestures(AGES, NETWORK, {"lr": 0.06}),
    "gestures-maps-1": of_gestures(ONE, SMALLEST, SGD),
    "gestures-maps-4": of_gestures(AGES, SMALLEST, SGD),
    "gestures-maps-4-long": of_gestures(AGES, SMALLEST, SGD, epochs=30),
    "gestures-maps-4-turned": of_gestures(AGES, SMALLEST, SGD, augment=f"{AUGMENT},turn=10,stretch=0.1"),
    "gestures-maps-4-bayes": of_gestures(AGES, SMALLEST, {"init_scale": 3.0}, "bayes"),
    "gestures-no-dense": of_gestures(AGES, MAPS, SGD),
    "gestures-no-dense-mirror": of_gestures(SEEN, MAPS, SGD, epochs=10),
    "nmnist-1": of_nmnist([0], SMALL_MAPS),
    "nmnist-3": of_nmnist([0, 7, 13], SMALL_MAPS),
    "nmnist-6": of_nmnist([0, 4, 7, 10, 13, 16], SMALL_MAPS),
    "nmnist-3-bayes": of_nmnist([0, 7, 13], SMALL_MAPS, "bayes"),
    "nmnist-3-large": of_nmnist([0, 7, 13], NMNIST_MAPS, epochs=12),
}


def judged(spec: dict[str, Any]) -> dict[str, Any]:
    """Learn and judge; of gestures every fold in turn, their answers taken together."""
    answers: dict[str, list[torch.Tensor]] = {how: [] for how in GATHERS}
    labels, seconds, begin = [], 0.0, time.perf_counter()
    for fold in FOLDS if spec["data"] == "dvs_gesture" else (None,):
        data = catalogue.load(spec["data"], **spec["options"], **({} if fold is None else {"fold": fold}))
        network, learnt, took = learn(spec, data)
        seconds += took
        kind = "committee" if method(spec["method"]).bayesian else "point"
        predictor = make_predictor(kind, network, learnt, 10, generator_for(0, "committee"))
        every = said(predictor, data.test)[:, len(network.layers) :]
        for how in GATHERS:
            answers[how].append(gathered(how, every).mean(0)[-1])
        labels.append(data.test.labels)
    right = torch.cat(labels)
    scores = {
        how: {"accuracy": float(accuracy(p, right)), "ece": float(ece(p, right)), "nll": float(nll(p, right))}
        for how, p in ((how, torch.cat(parts)) for how, parts in answers.items())
    }
    return {**scores, "judged": len(right), "learning": round(seconds), "all": round(time.perf_counter() - begin)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *TRIALS])
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    known = [json.loads(line) for line in OUT.read_text("utf-8").splitlines()] if OUT.exists() else []
    for name in () if options.table else options.names or TRIALS:
        if name not in {line["name"] for line in known}:
            line = {"name": name, **TRIALS[name], **judged(TRIALS[name])}
            with OUT.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(name, {how: line[how] for how in GATHERS}, flush=True)
    for line in known if options.table else ():
        each = "  ".join(f"{how} {100 * line[how]['accuracy']:.1f} % {line[how]['nll']:.3f}" for how in GATHERS)
        print(f"{line['name']:24s} {line['judged']} judged  {each}  {line['learning']} s")


if __name__ == "__main__":
    main()
