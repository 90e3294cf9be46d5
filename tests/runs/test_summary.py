"""The summary keeps what every seed had, in the order of the seeds, and pairs methods by each of their predictors."""

import io
import statistics
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bayspike.experiments.registry import experiment
from bayspike.report.finish import print_table
from bayspike.runs.directory import RunDirectory
from bayspike.runs.outcome.shapes import RESULT, fits
from bayspike.runs.outcome.summary import summarise
from bayspike.runs.plan.resolve import Changes, resolve
from bayspike.storage.files import write_json

SEEDS = 3
TASKS = 6


def scores(level: float) -> dict[str, Any]:
    return {
        "accuracy": level,
        "ece": level / 10,
        "nll": 1 - level,
        "brier": 2 - level,
        "confidence": 0.5,
        "examples": 4,
    }


def result(label: str, seed: int, lead: float, *, foreign: bool = True, beside: bool = True) -> dict[str, Any]:
    """One job whose every figure is told by its seed and its lead; the predictor beside is ahead by twice as much."""
    first = "committee" if label == "bayes" else "point"
    level = 0.5 + seed**2 / 100
    levels = {first: level + lead, f"{first}-weighted": level + 2 * lead}
    areas = {"confidence": level, "entropy": level + lead}
    if first == "committee":
        areas["mutual_information"] = level + 3 * lead
    return {
        "job": f"{label}-seed{seed}", "method": label, "label": label, "seed": seed, "predictors": list(levels),
        "headline_predictor": first, "task_names": [str(k) for k in range(TASKS)], "classes": ["a"], "evaluations": [],
        "final": {
            name: {"overall": scores(own), "per_task": [scores(own + k) for k in range(TASKS)],
                   "over_time": {"ece": [0.9, 0.1, own, 0.0, 0.0]}, "chance_ece": own / 100}
            for name, own in levels.items()
        },
        "gathered": {"predictor": f"{first}-weighted"} if beside else None,
        "accuracy_matrix": {}, "continual": {first: {"forgetting": level, "average_accuracy": None}},
        "ood": {name: {"auroc": areas} for name in levels} if foreign else None,
        "controls": None, "pruning": None, "presentations": 1, "replayed": 0, "coreset_examples": 0,
        "memory_bytes": {"total": 8}, "bytes_per_synapse": 8.0, "parameters": 1, "seconds": 1.0, "rates": [0.1],
        "energy": {}, "fixed_point": {"weights": "8-bit", **scores(level)},
        "chip": {"examples": 4, "float_accuracy": level, "same_decisions": None},
    }  # fmt: skip


def summary(**more: bool) -> dict[str, Any]:
    chosen = experiment("digits")
    config = resolve(chosen, "demo", Changes(methods=["bayes", "sgd"], seeds=SEEDS))
    leads = {"bayes": 0.02, "sgd": 0.0}
    results = [result(label, seed, lead, **more) for seed in range(SEEDS) for label, lead in leads.items()]
    assert all(fits(each, RESULT) for each in results)
    return summarise(chosen, config, results)


LEVELS = [0.5, 0.51, 0.54]


def test_every_figure_is_there_for_every_seed() -> None:
    sgd = summary()["methods"]["sgd"]
    places = {
        "AUROC": (sgd["ood_auroc"], LEVELS),
        "by entropy": (sgd["ood_auroc"]["by_score"]["entropy"], LEVELS),
        "worst ECE": (sgd["worst_ece"], LEVELS),
        "chance": (sgd["predictors"]["point-weighted"]["chance_ece"], [each / 100 for each in LEVELS]),
        "forgetting": (sgd["continual"]["forgetting"], LEVELS),
        "last five": (sgd["last_five"], [each + 3 for each in LEVELS]),
        "fixed point": (sgd["fixed_point"]["accuracy"], LEVELS),
        "chip": (sgd["chip"]["float_accuracy"], LEVELS),
    }
    for name, (found, values) in places.items():
        assert found["seeds"] == pytest.approx(values), name
        assert found["mean"] == pytest.approx(statistics.fmean(values)), name
        assert found["std"] == pytest.approx(statistics.stdev(values)), name
    assert sgd["continual"]["average_accuracy"] == {"mean": None, "std": None, "seeds": [None] * SEEDS}
    assert sgd["chip"]["examples"] == 4


def test_methods_are_paired_by_both_ways_to_gather_and_by_foreign_inputs() -> None:
    made = summary()
    assert made["methods"]["bayes"]["gathered"] == "committee-weighted"
    plain, beside = made["paired"]["sgd"], made["paired_gathered"]["sgd"]
    assert plain["accuracy"]["mean"] == pytest.approx(0.02)
    assert beside["accuracy"]["mean"] == pytest.approx(0.04)
    assert plain["auroc_confidence"]["mean"] == pytest.approx(0.0)
    assert plain["auroc_entropy"]["mean"] == pytest.approx(0.02)
    assert plain["auroc_own"]["mean"] == pytest.approx(0.06)  # mutual information against the entropy of a point
    assert plain["auroc_own"]["seeds"] == SEEDS


def test_what_a_run_has_not_is_not_paired() -> None:
    made = summary(foreign=False, beside=False)
    assert set(made["paired"]["sgd"]) == {"accuracy", "ece", "nll", "brier"}
    assert made["paired_gathered"] == {}
    assert made["methods"]["sgd"]["gathered"] is None
    assert made["methods"]["sgd"]["ood_auroc"] is None


def test_the_table_on_the_terminal_has_the_last_five(tmp_path: Path) -> None:
    run, made = RunDirectory(tmp_path), summary()
    write_json(run.summary, made)
    said = io.StringIO()
    print_table(run, Console(file=said, width=200))
    last = made["methods"]["sgd"]["last_five"]
    assert f"{100 * last['mean']:.2f} ± {100 * last['std']:.2f} %" in said.getvalue()


def test_a_long_stream_says_whether_it_stays_plastic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of forty tasks, each learnt to a hundredth less than the one before; only its own column is looked at."""
    monkeypatch.setattr(sys.modules[__name__], "TASKS", 40)
    chosen = experiment("digits")
    config = resolve(chosen, "demo", Changes(methods=["sgd"], seeds=SEEDS))
    results = [result("sgd", seed, 0.0) for seed in range(SEEDS)]
    for seed, each in enumerate(results):
        rows = [[1 - k / 100 - seed / 10 if k == row else 0.0 for k in range(40)] for row in range(40)]
        each["accuracy_matrix"] = {"point": rows}
    newest = summarise(chosen, config, results)["methods"]["sgd"]["newest"]
    assert newest["early"]["seeds"] == pytest.approx([0.905, 0.805, 0.705])  # tasks 6 to 15
    assert newest["late"]["seeds"] == pytest.approx([0.705, 0.605, 0.505])  # tasks 21 to 40
    assert "newest" not in summary()["methods"]["sgd"]
