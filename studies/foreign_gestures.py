"""Are gestures never taught noticed, and lights never seen? Genuine DVS-Gesture, the same strangers on both sides.

    BAYSPIKE_DATA=… python studies/foreign_gestures.py              # docs/results/foreign-gestures.jsonl
    BAYSPIKE_DATA=… python studies/foreign_gestures.py light-led    # only this one; what the file has is not repeated
    python studies/foreign_gestures.py --table

`gestures-0-1` and so on: two or three gestures (the tasks of split-gestures) are left out, in all five lights, and of
users 16 to 19 those are the foreign inputs, all others the own. `light-led` and so on: one light is left out, and the
same users in that light are foreign. Nothing but the gesture, or the light, tells own from foreign: in the presets'
foreign light known people make up most of it. Users 1 to 14 are learnt from, as the preset `laptop` of dvs-gestures
does, with its network and settings, none chosen for this; user 15 is held back for a point's noise and temperatures.

A learner is asked by the paper's plain mean and by the preset's logits, and with every control
(`bayspike.predict.controls`); AUROC by mutual information, entropy and discord, and by the inputs alone.
"""

import argparse
import json
import time
from collections import defaultdict
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
from cells import difference
from events import learn

from bayspike.data import catalogue
from bayspike.data.sets.dvs_gesture import LIGHTS
from bayspike.experiments.dvs_gestures import DATA, MAPS, OF_MAPS, SEEN, TRAINING
from bayspike.experiments.split_gestures import GROUPS
from bayspike.predict.controls import judge_controls
from bayspike.predict.gathering import Gather
from bayspike.predict.predictors import Committee, predict_samples
from bayspike.predict.temperature import Temperature, fit_temperature
from bayspike.runs.outcome.paired import compare
from bayspike.seeds import generator_for

OUT = Path("docs/results/foreign-gestures.jsonl")
LEARNERS = ("bayes", "sgd")
WAYS: tuple[Gather, ...] = ("mean", "logits")
OPTIONS: dict[str, Any] = {"time": 25, **DATA, **SEEN, "held_back_users": 1, "foreign_users": "test"}
CASES: dict[str, dict[str, Any]] = {
    f"gestures-{'-'.join(map(str, group))}": {"untaught": list(group), "foreign_light": "none"} for group in GROUPS
} | {f"light-{light}": {"foreign_light": light} for light in LIGHTS}
SCORES = ("auroc_mutual_information", "auroc_entropy", "auroc_discord", "auroc_inputs")
OTHERS = {  # what the committee's mutual information is held against: learner, spread, score
    ("bayes", "constant", SCORES[0]): "that of constant precisions",
    ("bayes", "permuted", SCORES[0]): "that of permuted precisions",
    ("bayes", "matched", SCORES[0]): "that of matched noise",
    ("bayes", "learnt", SCORES[1]): "its own entropy",
    ("bayes", "zero", SCORES[1]): "the entropy of its means alone",
    ("sgd", "noise", SCORES[0]): "that of SGD with its best noise",
    ("sgd", "point", SCORES[1]): "the entropy of SGD",
}


def judged(case: str, learner: str, seed: int) -> dict[str, Any]:
    """Learn what is left, and tell what was left out from it."""
    data = catalogue.load("dvs_gesture", **OPTIONS, **CASES[case])
    held_back, foreign = data.held_back, data.foreign
    assert held_back is not None
    assert foreign is not None
    spec = {
        "method": learner,
        "rule": OF_MAPS[learner],
        "network": {**MAPS, "seed": seed},
        "training": {**TRAINING, "seed": seed},
    }
    network, learnt, seconds = learn(spec, data)

    def calibrate(committee: Committee) -> Temperature:
        done = predict_samples(committee, held_back, generator_for(seed, "held back"), over_time=False)
        return fit_temperature(done.probabilities[-1], held_back.labels)

    found = {
        how: judge_controls(
            network, learnt, data.test, foreign, held_back, seed=seed, gather=how,
            calibrate=None if how == "mean" else calibrate,
        )
        for how in WAYS
    }  # fmt: skip
    scores = {how: {name: each._asdict() for name, each in table.items()} for how, table in found.items()}
    return {"own": len(data.test), "foreign": len(foreign), "seconds": round(seconds), "found": scores}


def table(lines: list[dict[str, Any]]) -> str:
    """Every spread, the mean and standard deviation over what was left out (and seeds), by question."""
    groups: dict[tuple[str, str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        for how, spreads in line["found"].items():
            for name, scores in spreads.items():
                groups[line["case"].split("-")[0], how, line["learner"], name].append(scores)
    head = ("left out", "steps", "learner", "spread", "accuracy of the others %")
    head += ("by mutual information", "by entropy", "by discord", "by the inputs alone")
    rows = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for key, found in groups.items():
        cells = [of(found, "accuracy", 1, 100), *(of(found, score, 3) for score in SCORES)]
        rows.append("| " + " | ".join([*key, *cells]) + " |")
    return "\n".join(rows)


def differences(lines: list[dict[str, Any]]) -> str:
    """The committee's mutual information less other scores, paired by what was left out and seed."""
    rows = ["| left out | steps | the committee's mutual information less | cases | AUROC |", "|" + "---|" * 5]
    places: dict[tuple[str, str], dict[tuple[str, str, str], dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    cases = {key: number for number, key in enumerate(dict.fromkeys((line["case"], line["seed"]) for line in lines))}
    for line in lines:
        for how, spreads in line["found"].items():
            place = places[line["case"].split("-")[0], how]
            for (name, scores), score in product(spreads.items(), SCORES):
                if scores[score] is not None:
                    place[line["learner"], name, score][cases[line["case"], line["seed"]]] = scores[score]
    for (kind, how), found in places.items():
        for other, words in OTHERS.items():
            each = compare(found["bayes", "learnt", SCORES[0]], found[other])
            if each is not None:
                rows.append(f"| {kind} | {how} | {words} | {each['seeds']} | {difference('auroc', each)} |")
    return "\n".join(rows)


def of(found: list[dict[str, Any]], measure: str, digits: int, scale: float = 1.0) -> str:
    values = [scale * each[measure] for each in found if each[measure] is not None]
    if not values:
        return ""
    return f"{fmean(values):.{digits}f}" + (f" ± {stdev(values):.{digits}f}" if len(values) > 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    known = [json.loads(line) for line in OUT.read_text("utf-8").splitlines()] if OUT.exists() else []
    if options.table:
        print(table(known), differences(known), sep="\n\n")
        return
    for seed in range(options.seeds):
        for case in options.cases or CASES:
            for learner in LEARNERS:
                if (case, learner, seed) in {(line["case"], line["learner"], line["seed"]) for line in known}:
                    continue
                begin = time.perf_counter()
                line = {"case": case, "learner": learner, "seed": seed, **judged(case, learner, seed)}
                line["all"] = round(time.perf_counter() - begin)
                with OUT.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
                print(table([line]), flush=True)


if __name__ == "__main__":
    main()
