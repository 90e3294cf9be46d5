"""How well calibrated on strangers? Genuine DVS-Gesture, five folds of users 1 to 15, 404 recordings judged once.

    BAYSPIKE_DATA=… python studies/gesture_folds.py                             # docs/results/gesture-folds.jsonl
    BAYSPIKE_DATA=… python studies/gesture_folds.py runs/results/gestures-genuine    # then: a run's networks as well
    python studies/gesture_folds.py --table

The preset `laptop` of dvs-gestures judges by users 16 to 19, 105 recordings, and has one stranger, user 15, to choose a
temperature by. Here every user of 1 to 15 is a stranger once: twelve are learnt from, three judge, with the preset's
network, settings and number of presentations. A fold's temperature comes from the other four folds, so that nobody is
judged by a temperature that he helped to choose: one for the whole signal, fitted at its end, or one for each fifth of
it (`bayspike.predict.temperature`). With the directory of a run the temperature of all five folds is put
on that run's networks, which learnt from users 1 to 14, and users 16 to 19 judge: what twelve strangers more are worth.

`bayes-neuron` is the preset's rule with one thing changed: while learning, potentials are drawn at the neurons, each
place of a map by itself, in place of one kernel for all places. What that costs is the difference on the same folds.
"""

import argparse
import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import torch
from cells import difference, of_seeds, settings_of
from events import learn

from bayspike.cli.models import load_data_of
from bayspike.continual.methods import method
from bayspike.data import catalogue
from bayspike.data.base import Samples
from bayspike.experiments.dvs_gestures import DATA, MAPS, OF_MAPS, SEEN, TRAINING
from bayspike.metrics import accuracy, chance_ece, ece, nll
from bayspike.posteriors.distributions import Posterior
from bayspike.predict.by_name import make_predictor
from bayspike.predict.gathering import Gather
from bayspike.predict.predictors import predict_samples
from bayspike.predict.temperature import Temperature, fit_temperature
from bayspike.runs.models import load_model
from bayspike.runs.outcome.examination import committee_generator
from bayspike.runs.outcome.paired import compare
from bayspike.seeds import generator_for
from bayspike.spiking.network import Network
from bayspike.storage.files import read_lines, write_lines

OUT = Path("docs/results/gesture-folds.jsonl")
FOLDS, MEMBERS = (1, 2, 3, 4, 5), 10
LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {  # method, and what differs from its defaults
    "bayes": ("bayes", OF_MAPS["bayes"]),
    "sgd": ("sgd", OF_MAPS["sgd"]),
    "bayes-neuron": ("bayes", {**OF_MAPS["bayes"], "sampling": "neuron"}),
}
DIFFERENCES = {"Bayes − SGD": ("bayes", "sgd"), "Drawn at the neurons − at the synapses": ("bayes-neuron", "bayes")}
WAYS: tuple[Gather, ...] = ("mean", "logits")
MEASURES = ("accuracy", "ece", "nll")
FIFTHS = (15, 30, 45, 60, 75)  # steps at which a signal is judged


def answers(of: str, network: Network, learnt: list[Posterior], samples: Samples, seed: int, way: Gather) -> Any:
    """What a method's committee, or its point, says at every step, `(time, examples, classes)`."""
    name, members = ("committee", MEMBERS) if method(of).bayesian else ("point", 1)
    predictor = make_predictor(name, network, learnt, members, committee_generator(seed), way)
    return predict_samples(predictor, samples, generator_for(seed, "folds")).probabilities.cpu()


def settings(fold: int, how: str) -> dict[str, Any]:
    """With what a fold is learnt; a line made with others is made anew."""
    of, rule = LEARNERS[how]
    spec = {"method": of, "rule": rule, "network": {**MAPS, "seed": fold}}
    plain: dict[str, Any] = json.loads(json.dumps({**spec, "training": {**TRAINING, "seed": fold}}))
    return plain


def of_fold(fold: int, how: str) -> dict[str, Any]:
    """Learn from twelve users; the answers of the last step on the recordings of the other three."""
    data = catalogue.load("dvs_gesture", time=25, **DATA, **SEEN, validation=True, fold=fold)
    network, learnt, seconds = learn(settings(fold, how), data)
    said = {way: at_fifths(answers(LEARNERS[how][0], network, learnt, data.test, fold, way)) for way in WAYS}
    told = {way: [[[float(f"{p:.4g}") for p in row] for row in step] for step in said[way].tolist()] for way in WAYS}
    told["mean"] = told["mean"][-1:]  # the paper's way at the end alone: the file is large enough
    return {"labels": data.test.labels.tolist(), "said": told, "seconds": round(seconds)}


def at_fifths(said: torch.Tensor) -> torch.Tensor:
    return said[[step - 1 for step in FIFTHS]].to(torch.float64)


def of_run(path: Path, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A run's networks on its own test examples, scaled by the temperature of all folds and by the run's own."""
    models = [load_model(path, job) for job in sorted(each.name for each in (path / "checkpoints").iterdir())]
    data = load_data_of(models[0], None, None, None)
    held_back, labels, found = data.held_back, data.test.labels, []
    assert held_back is not None
    for model in models:
        for way in WAYS:
            how, seed = model.about["method"], int(model.about["seed"])
            said = at_fifths(answers(how, model.network, model.posteriors, data.test, seed, way))
            own = at_fifths(answers(how, model.network, model.posteriors, held_back, seed, way))
            scales = {"one stranger": fit_temperature(own, held_back.labels)}
            scales["the folds"] = fit_temperature(*gathered_folds(lines, how, way))
            for by, scale in scales.items():
                scaled = scale.apply_over_time(said)
                late = {"worst_ece": float(ece(scaled, labels).max())} if len(scale.steps) == len(FIFTHS) else {}
                found.append(
                    {"run": path.name, "learner": how, "seed": seed, "steps": way, "temperature_by": by}
                    | {"temperature": scale.value, **scores(scaled[-1], labels), **late}
                )
    return found


def gathered_folds(
    lines: list[dict[str, Any]], how: str, way: str, without: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The answers of all folds, or of all but one, `(steps, recordings, classes)`, and the labels."""
    chosen = [line for line in lines if line.get("learner") == how and line.get("fold", without) != without]
    said = torch.cat([torch.tensor(line["said"][way], dtype=torch.float64) for line in chosen], dim=1)
    return said / said.sum(-1, keepdim=True), torch.tensor([label for line in chosen for label in line["labels"]])


def scores(said: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    found = {"accuracy": accuracy(said, labels), "ece": ece(said, labels), "nll": nll(said, labels)}
    return {name: float(value) for name, value in found.items()} | {"chance_ece": chance_ece(said)}


def scaled_folds(
    lines: list[dict[str, Any]], how: str, way: str, *, each_step: bool = False
) -> dict[int, tuple[torch.Tensor, torch.Tensor]]:
    """Every fold's answers, with the temperature of the other four: that of their ends for all, or each step's own."""
    found = {}
    for fold in FOLDS:
        scale: Temperature = fit_temperature(*gathered_folds(lines, how, way, without=fold))
        own = [line for line in lines if line.get("fold") == fold]
        said, labels = gathered_folds(own, how, way)
        found[fold] = (scale.apply_over_time(said) if each_step else scale.apply(said)), labels
    return found


def judged(lines: list[dict[str, Any]]) -> list[str]:
    """The learners that all folds have."""
    return [how for how in LEARNERS if {line.get("fold") for line in lines if line["learner"] == how} >= set(FOLDS)]


def over_time(lines: list[dict[str, Any]]) -> str:
    """ECE at every fifth of the signal, all folds together: as it is, by the temperature of the end, by each step's."""
    head = " | ".join(f"{step} of {FIFTHS[-1]}" for step in FIFTHS)
    rows = [f"| learner, logits | temperature | {head} |", "|" + "---|" * (2 + len(FIFTHS))]
    for how in judged(lines):
        plain, labels = gathered_folds(lines, how, "logits")
        ways = {"none": plain}
        for name, each_step in (("of the end", False), ("of each step", True)):
            folds = scaled_folds(lines, how, "logits", each_step=each_step).values()
            ways[name] = torch.cat([said for said, _ in folds], dim=1)
        for name, said in ways.items():
            rows.append(f"| {how} | {name} | {' | '.join(f'{each:.3f}' for each in ece(said, labels).tolist())} |")
        chance = (f"{chance_ece(step):.3f}" for step in ways["of each step"])
        rows.append(f"| {how} | of each step, by chance | {' | '.join(chance)} |")
        right = (f"{100 * each:.1f} %" for each in accuracy(plain, labels).tolist())
        rows.append(f"| {how} | accuracy | {' | '.join(right)} |")
    return "\n".join(rows)


def table(lines: list[dict[str, Any]]) -> str:
    """Pooled over the folds, before and after the temperature; the paired difference by fold; then a run's networks."""
    rows = ["| learner | steps | judged | accuracy % | ECE | NLL | ECE, scaled | by chance | NLL, scaled |"]
    rows.append("|" + "---|" * 9)
    by_fold: dict[tuple[str, str], dict[int, dict[str, float]]] = {}
    for way in WAYS:
        for how in judged(lines):
            said, labels = gathered_folds(lines, how, way)
            folds = scaled_folds(lines, how, way)
            plain = scores(said[-1], labels)
            after = scores(torch.cat([each[-1] for each, _ in folds.values()]), labels)
            by_fold[how, way] = {fold: scores(each[-1], of) for fold, (each, of) in folds.items()}
            cells = [f"{100 * plain['accuracy']:.1f}", f"{plain['ece']:.3f}", f"{plain['nll']:.3f}"]
            cells += [f"{after['ece']:.3f}", f"{after['chance_ece']:.3f}", f"{after['nll']:.3f}"]
            rows.append(f"| {how} | {way} | {len(labels)} | {' | '.join(cells)} |")
    found = "\n".join(rows)
    for way, (words, pair) in product(WAYS, DIFFERENCES.items()):
        if not all((how, way) in by_fold for how in pair):
            continue
        differences = (
            compare(*({fold: each[name] for fold, each in by_fold[how, way].items()} for how in pair))
            for name in MEASURES
        )
        cells = [difference(name, each) for name, each in zip(MEASURES, differences, strict=True)]
        found += f"\n\n{words}, by fold, scaled, {way}: accuracy {cells[0]} points, ECE {cells[1]}, NLL {cells[2]}."
    return f"{found}\n\n{over_time(lines)}" + of_runs([line for line in lines if "run" in line])


def of_runs(lines: list[dict[str, Any]]) -> str:
    """A run's networks, by where the temperature came from, each step's own; the worst of the fifths by the logits."""
    if not lines:
        return ""
    rows = ["| learner | steps | temperature from | T | accuracy % | ECE | at the worst fifth | by chance | NLL |"]
    rows.append("|" + "---|" * 9)
    for key in dict.fromkeys((line["learner"], line["steps"], line["temperature_by"]) for line in lines):
        of = [line for line in lines if (line["learner"], line["steps"], line["temperature_by"]) == key]
        cells = [of_seeds(of, "temperature", 2), of_seeds(of, "accuracy", 1, 100), of_seeds(of, "ece", 3)]
        cells += [of_seeds(of, "worst_ece", 3), of_seeds(of, "chance_ece", 3), of_seeds(of, "nll", 3)]
        rows.append("| " + " | ".join([*key, *cells]) + " |")
    return "\n\n" + "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path, help="of dvs-gestures: put the temperature of the folds on it")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    known = read_lines(OUT)

    def keep(lines: list[dict[str, Any]]) -> None:
        known[:] = lines
        write_lines(OUT, lines)

    for fold in () if options.table else FOLDS:
        for how in LEARNERS:
            same = [line for line in known if (line.get("fold"), line["learner"]) == (fold, how)]
            spec = settings(fold, how)
            if not any(line.get("settings") == spec for line in same):
                begin = time.perf_counter()
                found = {"fold": fold, "learner": how, "settings": spec, **of_fold(fold, how)}
                found["all"] = round(time.perf_counter() - begin)
                keep([*(line for line in known if line not in same), found])
                print(fold, how, found["all"], flush=True)
    if options.run is not None:
        name = settings_of(options.run)
        if not any(line.get("settings") == name for line in known):
            folds = [line for line in known if "fold" in line]
            keep([*folds, *({**line, "settings": name} for line in of_run(options.run, folds))])
    print(table(known))


if __name__ == "__main__":
    main()
