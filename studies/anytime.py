"""Decisions before the signal is over: what waiting is worth, and what stopping early saves, on genuine events.

    bayspike run split-nmnist --preset laptop --out runs/nmnist      # and dvs-gestures, or any other experiment
    python studies/anytime.py runs/nmnist runs/gestures              # docs/results/anytime.jsonl and a picture of each

Of each job's test examples one half calibrates and the other judges. Three ways to stop, for a committee and for a
point alike: at the first step at which the confidence (the logits added up, with a temperature) reaches a level, the
level being the lowest that on the calibrating half costs at most one point of accuracy; at the first checkpoint at
which a conformal set of promise 90 % holds a single class; and never. The energy is that of a Loihi chip by its
published figures, for what was simulated up to the stop (members times as much for a committee).
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bayspike.cli.models import load_data_of
from bayspike.continual.methods import method
from bayspike.data.base import Samples
from bayspike.figures.style import new_sheet, plot_line, series_style, styled
from bayspike.metrics import accuracy, ece
from bayspike.predict.by_name import make_predictor
from bayspike.predict.calibration import even_checkpoints, fit_sets, halves, judge_sets
from bayspike.predict.predictors import predict_samples
from bayspike.predict.temperature import fit_temperature
from bayspike.runs.models import Model, load_model
from bayspike.runs.outcome.chip import energy_spent
from bayspike.runs.outcome.examination import committee_generator
from bayspike.seeds import generator_for

OUT, PICTURES = Path("docs/results/anytime.jsonl"), Path("docs/img")
PROMISE, MAY_COST = 0.9, 0.01
LEVELS = torch.cat([torch.linspace(0.3, 0.9, 13), 1 - torch.logspace(-1.1, -4, 15)])


def first_sure(probabilities: Tensor, level: float) -> Tensor:
    """The step, from 0, at which each example's confidence reaches the level for the first time, or the last."""
    sure = probabilities.amax(-1) >= level
    sure[-1] = True
    return sure.to(torch.int8).argmax(0)


def right_at(probabilities: Tensor, labels: Tensor, stops: Tensor) -> float:
    chosen = probabilities[stops, torch.arange(len(labels))].argmax(-1)
    return float((chosen == labels).double().mean())


def joules_over_time(model: Model, samples: Samples, members: int) -> Tensor:
    """Mean energy up to each step, `(time,)`, of a hundred examples."""
    chosen = torch.arange(0, len(samples), max(1, len(samples) // 100))[:100]
    spikes = samples.spikes(chosen, generator_for(0, "energy"))
    return energy_spent(model.network, model.posteriors, spikes, members).joules.mean(dim=1)


def judged(run: Path, job: str) -> dict[str, Any]:
    """Everything about one learner."""
    model = load_model(run, job)
    test = load_data_of(model, None, None, None).test
    bayesian = method(model.method).bayesian
    members = int(model.about["members"]) if bayesian else 1
    seed = int(model.about["seed"])
    name = "committee" if bayesian else "point"
    calibrating, judging = halves(test.labels, generator_for(seed, "halves"))
    found: dict[str, Any] = {"experiment": model.about["experiment"], "label": model.about["label"], "seed": seed}
    found |= {"predictor": name, "examples": len(judging), "time": test.time, "simulated": model.about["simulated"]}
    answers = {}
    for how in ("mean", "logits"):
        drawn = committee_generator(seed)
        predictor = make_predictor(name, model.network, model.posteriors, members, drawn, how)
        answers[how] = predict_samples(predictor, test, generator_for(seed, "anytime")).probabilities.cpu()
    told = test.labels[calibrating], test.labels[judging]
    scale = fit_temperature(answers["logits"][-1, calibrating], told[0])
    scaled = scale.apply(answers["logits"])
    before, after = scaled[:, calibrating], scaled[:, judging]
    joules = joules_over_time(model, test, members)
    found["course"] = {
        "accuracy": accuracy(after, told[1]).tolist(), "ece": ece(after, told[1]).tolist(),
        "ece_plain_mean": ece(answers["mean"][:, judging], told[1]).tolist(), "joules": joules.tolist(),
    }  # fmt: skip
    found["trade"] = []
    for level in LEVELS.tolist():
        stops = first_sure(after, level)
        found["trade"].append([level, float(stops.double().mean()) + 1, right_at(after, told[1], stops)])
    whole = float(accuracy(before[-1], told[0]))
    enough = [
        each for each in LEVELS.tolist() if right_at(before, told[0], first_sure(before, each)) >= whole - MAY_COST
    ]
    level = min(enough, default=1.0)
    stops = first_sure(after, level)
    at_stop = after[stops, torch.arange(len(judging))]
    found["sure"] = {
        "level": level, "accuracy": right_at(after, told[1], stops), "ece": float(ece(at_stop, told[1])),
        "stop": float(stops.double().mean()) + 1, "joules": float(joules[stops].mean()),
    }  # fmt: skip
    found["whole"] = {
        "accuracy": float(accuracy(after[-1], told[1])), "ece": float(ece(after[-1], told[1])), "stop": test.time,
        "joules": float(joules[-1]),
    }  # fmt: skip
    points = even_checkpoints(test.time, PROMISE, len(calibrating), first=max(1, test.time // 5))
    sets = fit_sets(answers["logits"][:, calibrating], told[0], points, PROMISE)
    decided = sets.decide(answers["logits"][:, judging])
    fared = judge_sets(sets, answers["logits"][:, judging], told[1])
    found["conformal"] = {**fared._asdict(), "joules": float(joules[decided.stopped_at - 1].mean())}
    return found


@styled
def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Accuracy and calibration against time, and accuracy against the mean time of the decision."""
    sheet = new_sheet(10.0, 3.0)
    over_time, calibration, stopping = sheet.subplots(1, 3)
    for number, of in enumerate(grouped(rows).values()):
        style, label = series_style(number), of[0]["label"]
        steps = np.arange(1, of[0]["time"] + 1)
        course = {name: np.mean([row["course"][name] for row in of], axis=0) for name in ("accuracy", "ece")}
        plot_line(over_time, steps, course["accuracy"], style, label)
        plot_line(calibration, steps, course["ece"], style, label)
        trade = np.mean([row["trade"] for row in of], axis=0)
        plot_line(stopping, trade[:, 1], trade[:, 2], style, f"{label}: each when sure")
        stopping.plot(steps, course["accuracy"], color=style.colour, linewidth=0.7, label=f"{label}: all at that step")
    over_time.set(xlabel="time-step", ylabel="accuracy")
    calibration.set(xlabel="time-step", ylabel="ECE", ylim=(0, None))
    stopping.set(xlabel="mean time-step of the decision", ylabel="accuracy")
    over_time.legend()
    stopping.legend()
    sheet.savefig(path, dpi=130)


def grouped(rows: list[dict[str, Any]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The seeds of each experiment and learner."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row["experiment"], row["label"]].append(row)
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown: mean ± std over seeds."""
    lines = ["| experiment | learner | it stops | accuracy % | ECE | mean step | µJ |", "|" + "---|" * 7]
    for (experiment, label), of in grouped(rows).items():
        for way, words in (("whole", "never"), ("sure", "when sure enough")):
            cells = [across(of, way, "accuracy", 100), across(of, way, "ece", 1, 3), across(of, way, "stop")]
            lines.append(
                f"| {experiment} | {label} | {words} | {' | '.join(cells)} | {across(of, way, 'joules', 1e6)} |"
            )
    lines += [
        "",
        "| experiment | learner | coverage % | classes in a set | of one class % | mean step | µJ |",
        "|" + "---|" * 7,
    ]
    for (experiment, label), of in grouped(rows).items():
        names = (("coverage", 100, 1), ("size", 1, 2), ("single", 100, 1), ("stopped_at", 1, 1), ("joules", 1e6, 1))
        cells = [across(of, "conformal", *each) for each in names]
        lines.append(f"| {experiment} | {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def across(of: list[dict[str, Any]], way: str, key: str, scale: float = 1.0, digits: int = 1) -> str:
    """Mean ± std over the seeds."""
    values = [scale * row[way][key] for row in of]
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(of) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = [json.loads(line) for line in options.out.read_text("utf-8").splitlines()] if options.out.exists() else []
    for run in options.runs:
        for job in sorted(each.name for each in (run / "checkpoints").iterdir()):
            found = judged(run, job)
            same = [(row["experiment"], row["label"], row["seed"]) for row in rows]
            if (found["experiment"], found["label"], found["seed"]) not in same:
                rows.append(found)
                with options.out.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(found) + "\n")
    for experiment in sorted({row["experiment"] for row in rows}):
        draw([row for row in rows if row["experiment"] == experiment], PICTURES / f"anytime-{experiment}.png")
    print(table(rows))


if __name__ == "__main__":
    main()
