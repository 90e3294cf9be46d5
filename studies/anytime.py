"""Decisions before the signal is over: what waiting is worth, and what stopping early saves, on genuine events.

    bayspike run split-nmnist --preset laptop --out runs/nmnist      # and dvs-gestures, or any other experiment
    python studies/anytime.py runs/nmnist runs/gestures              # docs/results/anytime.jsonl and a picture of each

Three ways to stop, for a committee and for a point alike: at the first step at which the confidence (steps gathered as
in the run, with a temperature) reaches a level, the level being the lowest that costs at most one point of accuracy; at
the first checkpoint at which a conformal set of promise 90 % holds a single class; and never. Temperature and level
come from the examples that the run held back, and all test examples judge; in a run without any, from one half of the
test examples, and the other half judges. The promise of a set asks for more examples than are held back: sets are
always calibrated on one half of the test examples and judged on the other; what is said when a set stops is judged,
too, and at every checkpoint how many sets hold the right class and how many signals have stopped. The energy is that
of a Loihi chip by its published figures, for what was simulated up to the stop (members times as much for a committee).
"""

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from cells import settings_of
from torch import Tensor

from bayspike.cli.models import load_data_of
from bayspike.continual.methods import method
from bayspike.data.base import Dataset, Samples
from bayspike.experiments.registry import EXPERIMENTS
from bayspike.figures.style import new_sheet, plot_line, series_style, styled
from bayspike.metrics import accuracy, ece
from bayspike.predict.by_name import make_predictor
from bayspike.predict.calibration import even_checkpoints, fit_sets, halves, judge_sets
from bayspike.predict.conformal import EarlyStopping, coverage
from bayspike.predict.gathering import Gather
from bayspike.predict.predictors import predict_samples
from bayspike.predict.temperature import Temperature, fit_temperature
from bayspike.runs.models import Model, load_model
from bayspike.runs.outcome.chip import energy_spent
from bayspike.runs.outcome.examination import committee_generator
from bayspike.seeds import generator_for
from bayspike.storage.files import read_lines, write_lines

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


def place(model: Model) -> tuple[str, str, int]:
    """What tells one learner from another."""
    return model.about["experiment"], model.about["label"], int(model.about["seed"])


def place_of(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["experiment"], row["label"], row["seed"]


def gather_of(model: Model) -> Gather:
    """How the run made an answer of the steps; one that took the plain mean is gathered as its experiment would."""
    usual: Gather = "weighted" if model.about["experiment"] == "split-nmnist" else "logits"
    how: Gather = model.about.get("gather", usual)
    return how


class Answers(NamedTuple):
    """What was said at every step, `(time, examples, classes)`, and what would have been right."""

    said: Tensor
    labels: Tensor

    def of(self, chosen: Tensor) -> "Answers":
        return Answers(self.said[:, chosen], self.labels[chosen])


def lowest_level(calibrating: Answers) -> float:
    """Of all levels at which to stop the lowest that costs at most one point of accuracy; 1 where none does."""
    whole = float(accuracy(calibrating.said[-1], calibrating.labels))
    enough = [
        level
        for level in LEVELS.tolist()
        if right_at(calibrating.said, calibrating.labels, first_sure(calibrating.said, level)) >= whole - MAY_COST
    ]
    return min(enough, default=1.0)


def judged(model: Model, data: Dataset) -> dict[str, Any]:
    """Everything about one learner."""
    test, (experiment, label, seed) = data.test, place(model)
    bayesian = method(model.method).bayesian
    members = int(model.about["members"]) if bayesian else 1
    name, how = "committee" if bayesian else "point", gather_of(model)

    def answers(samples: Samples, gather: Gather, draws: str) -> Answers:
        predictor = make_predictor(name, model.network, model.posteriors, members, committee_generator(seed), gather)
        return Answers(
            predict_samples(predictor, samples, generator_for(seed, draws)).probabilities.cpu(), samples.labels
        )

    every, plain = answers(test, how, "anytime"), answers(test, "mean", "anytime")
    first, second = halves(test.labels, generator_for(seed, "halves"))
    # behind re-wired inputs the examples held back are those of no task in particular
    held_back = None if EXPERIMENTS[experiment].rewires else data.held_back
    if held_back is None:
        calibrating, judging, plain = every.of(first), every.of(second), plain.of(second)
    else:
        calibrating, judging = answers(held_back, how, "held back"), every
    scale = fit_temperature(calibrating.said, calibrating.labels)
    calibrating = calibrating._replace(said=scale.apply_over_time(calibrating.said))
    after, told = scale.apply_over_time(judging.said), judging.labels
    joules = joules_over_time(model, test, members)
    found: dict[str, Any] = {"experiment": experiment, "label": label, "seed": seed, "predictor": name}
    found |= {"gather": how, "examples": len(told), "time": test.time, "simulated": model.about["simulated"]}
    found["calibrated"] = {
        "on": "half of the test examples" if held_back is None else "examples held back",
        "examples": len(calibrating.labels), "temperature": scale.value,
    }  # fmt: skip
    found["course"] = {
        "accuracy": accuracy(after, told).tolist(), "ece": ece(after, told).tolist(),
        "ece_plain_mean": ece(plain.said, told).tolist(), "joules": joules.tolist(),
    }  # fmt: skip
    found["trade"] = []
    for level in LEVELS.tolist():
        stops = first_sure(after, level)
        found["trade"].append([level, float(stops.double().mean()) + 1, right_at(after, told, stops)])
    level = lowest_level(calibrating)
    stops = first_sure(after, level)
    at_stop = after[stops, torch.arange(len(told))]
    found["sure"] = {
        "level": level, "accuracy": right_at(after, told, stops), "ece": float(ece(at_stop, told)),
        "stop": float(stops.double().mean()) + 1, "joules": float(joules[stops].mean()),
    }  # fmt: skip
    found["whole"] = {
        "accuracy": float(accuracy(after[-1], told)), "ece": float(ece(after[-1], told)), "stop": test.time,
        "joules": float(joules[-1]),
    }  # fmt: skip
    points = even_checkpoints(test.time, PROMISE, len(first), first=max(1, test.time // 5))
    sets = fit_sets(every.said[:, first], every.labels[first], points, PROMISE)
    found["conformal"] = by_sets(sets, every.of(second), scale) | {"examples": len(second)}
    stops = sets.decide(every.said[:, second]).stopped_at
    found["conformal"]["joules"] = float(joules[stops - 1].mean())
    return found


def by_sets(sets: EarlyStopping, judging: Answers, scale: Temperature) -> dict[str, Any]:
    """How stopping by sets fares: in the end, what is said at the stop, and how far it is at every checkpoint."""
    said, told = judging
    stops = sets.decide(said).stopped_at
    at_stop = scale.apply_over_time(said)[stops - 1, torch.arange(len(told))]
    held = sets.sets(said)  # (checkpoints, examples, classes)
    times = torch.tensor(sets.checkpoints)
    return {
        **judge_sets(sets, said, told)._asdict(),
        "accuracy": float(accuracy(at_stop, told)),
        "ece": float(ece(at_stop, told)),
        "course": {
            "step": list(sets.checkpoints),
            "coverage": coverage(held, told).tolist(),
            "size": held.sum(-1).double().mean(-1).tolist(),
            "stopped": (stops <= times.unsqueeze(1)).double().mean(1).tolist(),
            "mean_stop": torch.minimum(stops, times.unsqueeze(1)).double().mean(1).tolist(),
        },
    }


@styled
def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Accuracy and calibration against time, and accuracy against the mean time of the decision."""
    sheet = new_sheet(10.0, 6.0)
    (over_time, calibration), (stopping, promised) = sheet.subplots(2, 2)
    for number, of in enumerate(grouped(rows).values()):
        style, label = series_style(number), of[0]["label"]
        steps = np.arange(1, of[0]["time"] + 1)
        course = {name: np.mean([row["course"][name] for row in of], axis=0) for name in ("accuracy", "ece")}
        plot_line(over_time, steps, course["accuracy"], style, label)
        plot_line(calibration, steps, course["ece"], style, label)
        trade = np.mean([row["trade"] for row in of], axis=0)
        plot_line(stopping, trade[:, 1], trade[:, 2], style, f"{label}: each when sure")
        stopping.plot(steps, course["accuracy"], color=style.colour, linewidth=0.7, label=f"{label}: all at that step")
        sets = [row["conformal"]["course"] for row in of if "course" in row["conformal"]]
        if sets:
            points, covered, stopped = (
                np.mean([each[name] for each in sets], axis=0) for name in ("step", "coverage", "stopped")
            )
            plot_line(promised, points, covered, style, f"{label}: the set holds the right class")
            promised.plot(points, stopped, color=style.colour, linewidth=0.7, label=f"{label}: has stopped")
    promised.axhline(PROMISE, color="grey", linewidth=0.7, linestyle=":")
    promised.set(xlabel="time-step", ylabel="share of the signals", ylim=(0, 1.02))
    promised.legend()
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
        "Sets of promise 90 %, calibrated on one half of the test examples and judged on the other:",
        "",
        "| experiment | learner | coverage % | classes in a set | of one class % | accuracy % | ECE | mean step | µJ |",
        "|" + "---|" * 9,
    ]
    for (experiment, label), of in grouped(rows).items():
        names = (
            ("coverage", 100, 1), ("size", 1, 2), ("single", 100, 1), ("accuracy", 100, 1), ("ece", 1, 3),
            ("stopped_at", 1, 1), ("joules", 1e6, 1),
        )  # fmt: skip
        cells = [across(of, "conformal", *each) for each in names]
        lines.append(f"| {experiment} | {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def across(of: list[dict[str, Any]], way: str, key: str, scale: float = 1.0, digits: int = 1) -> str:
    """Mean ± std over the seeds; empty where an earlier study did not ask."""
    if any(key not in row[way] for row in of):
        return ""
    values = [scale * row[way][key] for row in of]
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(of) > 1 else ""
    return f"{np.mean(values):.{digits}f}{spread}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--pictures", type=Path, default=PICTURES)
    options = parser.parse_args()
    if not options.runs and not options.out.exists():
        parser.error(f"name the directories of runs: there is no {options.out} to make a table of.")
    for run in options.runs:
        if not (run / "checkpoints").is_dir():
            parser.error(f"{run} is no run with trained networks: {run / 'checkpoints'} is not there.")
    torch.set_num_threads(1)
    rows = read_lines(options.out)
    for run in options.runs:
        settings = settings_of(run)
        models = [load_model(run, job) for job in sorted(each.name for each in (run / "checkpoints").iterdir())]
        known = {place_of(row) for row in rows if row.get("settings") == settings}
        new = [model for model in models if place(model) not in known]
        data = load_data_of(new[0], None, None, None) if new else None  # jobs of one run have the same
        for model in new:
            assert data is not None
            found = {**judged(model, data), "settings": settings}
            # what an earlier run of other settings had gives way
            rows = [*(row for row in rows if place_of(row) != place(model)), found]
            write_lines(options.out, rows)
    for name in sorted({row["experiment"] for row in rows}):
        draw([row for row in rows if row["experiment"] == name], options.pictures / f"anytime-{name}.png")
    print(table(rows))


if __name__ == "__main__":
    main()
