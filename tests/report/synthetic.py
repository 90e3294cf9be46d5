"""Run directories by the contract, made of numbers that a test knows; no training."""

import json
from pathlib import Path
from typing import Any

import numpy as np

HOSTILE = '<img src=x onerror="window.hacked=1">&amp;</script><script>window.hacked=2</script>\''
TIME, TASKS, CLASSES, PER_CLASS = 20, 5, 10, 12
SIDE = 12


def make_run(
    folder: Path,
    *,
    seeds: int = 2,
    labels: tuple[str, ...] = ("sgd", "bayes"),
    simulated: bool = False,
    foreign: bool = False,
    hostile: bool = False,
    same_data: bool = True,
    lr: float = 0.1,
) -> Path:
    """A continual run on pictures of two polarities."""
    name = HOSTILE if hostile else "plain"
    methods: dict[str, Any] = {}
    for place, label in enumerate(labels):
        results = [_job(folder, label, place, seed, foreign, name if hostile else "") for seed in range(seeds)]
        methods[label if not hostile else label + name] = _summary(results, foreign)
    paper = [
        {"name": f"Frequentist {name if hostile else ''}", "method": labels[0], "predictor": "point",
         "accuracy": 0.7719, "accuracy_std": 0.0065, "ece": 0.39, "ece_std": 0.01},
        {"name": "Another rule", "method": "tacos", "predictor": "point",
         "accuracy": 0.8345, "accuracy_std": 0.0055, "ece": None, "ece_std": None},
    ]  # fmt: skip
    _write(
        folder / "summary.json",
        {"experiment": "split-test", "methods": methods, "paper": paper, "protocol": {"epochs": 1, "note": name},
         "paper_note": "Published for more data.",
         "paper_data": {"name": "mnist", "images": [60_000, 10_000], "same": same_data}},
    )  # fmt: skip
    _write(
        folder / "config.json",
        {"experiment": "split-test", "preset": "demo", "seeds": list(range(seeds)), "simulated": simulated,
         "reduced": ["1,000 of 60,000 images.", name], "dataset": {"name": name, "examples": 1000},
         "methods": [{"label": each, "rule": {"lr": lr}} for each in labels]},
    )  # fmt: skip
    _write(
        folder / "environment.json",
        {"bayspike": "0.1.0", "git": "abc", "command": ["bayspike", "run", "--out", f"my runs/{name}"], "cores": 2,
         "started": folder.name},
    )  # fmt: skip
    return folder


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def _summary(results: list[dict[str, Any]], foreign: bool) -> dict[str, Any]:
    first = results[0]
    scores = [each["final"][first["headline_predictor"]]["overall"] for each in results]
    out: dict[str, Any] = {
        "predictor": first["headline_predictor"], "parameters": 57_600, "coreset_examples": 45,
        "memory_bytes": {"rule": 460_800, "coresets": 6_480, "total": 467_280},
        "presentations": 1_234, "seconds": 83.0, "seeds": list(range(len(results))),
    }  # fmt: skip
    for key in ("accuracy", "ece", "nll", "brier"):
        values = [each[key] for each in scores]
        out[key] = {"mean": float(np.mean(values)), "std": float(np.std(values, ddof=1)) if len(values) > 1 else None}
    if foreign:
        out["ood_auroc"] = {"mean": 0.8125, "std": 0.02, "score": "confidence"}
    out["predictors"] = {
        name: {key: {"mean": each["overall"][key], "std": None} for key in ("accuracy", "ece", "nll", "brier")}
        for name, each in first["final"].items()
    }
    return out


def probabilities(labels: np.ndarray, skill: float, random: np.random.Generator) -> np.ndarray:
    """Cumulative class probabilities (time, n, classes) that grow towards the label."""
    logits = random.normal(0, 1, (TIME, len(labels), CLASSES))
    logits[:, np.arange(len(labels)), labels] += skill * np.linspace(0.2, 1.5, TIME)[:, None]
    p = np.exp(logits)
    p /= p.sum(-1, keepdims=True)
    return (p.cumsum(0) / np.arange(1, TIME + 1)[:, None, None]).astype(np.float32)


def _scores(p: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    right = p.argmax(-1) == labels
    return {
        "accuracy": float(right.mean()), "ece": float(abs(right.mean() - p.max(-1).mean())),
        "nll": float(-np.log(p[np.arange(len(labels)), labels]).mean()), "brier": 0.25,
        "confidence": float(p.max(-1).mean()), "examples": len(labels),
    }  # fmt: skip


def _job(folder: Path, label: str, place: int, seed: int, foreign: bool, suffix: str) -> dict[str, Any]:
    random = np.random.default_rng([seed, place])
    job = f"{label}-seed{seed}"
    labels = np.repeat(np.arange(CLASSES), PER_CLASS)
    tasks = labels // 2
    subset = np.random.default_rng(0).permutation(len(labels))[:60]
    shown = np.array([np.flatnonzero(labels[subset] == c)[k] for k in range(2) for c in reversed(range(CLASSES))])
    predictors = ["committee", "mean", "committee-8bit"] if "bayes" in label else ["point"]
    arrays: dict[str, np.ndarray] = {
        "labels": labels, "task": tasks, "subset": subset, "sample_shape": np.array([2, SIDE, SIDE]),
        "frames": _frames(labels[subset[shown]], seed), "frames_of": shown,
        "weights/0_counts": np.array([2, 30, 100, 25, 3]),
        "weights/0_edges": np.linspace(-1, 1, 6), "weights/0_nonzero": np.array(0.835),
    }  # fmt: skip
    if "bayes" in label:
        arrays |= {
            "deviations/0_counts": np.array([10, 150]), "deviations/0_edges": np.array([0.0, 0.05, 0.1]),
            "spread": np.tile(np.linspace(0.06, 0.1, SIDE * SIDE), (TASKS, 2)).astype(np.float32),
        }  # fmt: skip
    result: dict[str, Any] = {
        "job": job, "method": label, "label": label + suffix, "seed": seed, "predictors": predictors,
        "headline_predictor": predictors[0], "task_names": [f"{2 * k}/{2 * k + 1}{suffix}" for k in range(TASKS)],
        "classes": [f"{c}{suffix}" for c in range(CLASSES)], "evaluations": [], "final": {}, "accuracy_matrix": {},
        "continual": {}, "ood": None, "presentations": 1_234, "replayed": 300, "coreset_examples": 45,
        "memory_bytes": {"rule": 460_800, "coresets": 6_480, "total": 467_280}, "bytes_per_synapse": 8.0,
        "parameters": 57_600, "seconds": 83.0, "rates": [0.1], "energy": {"joules": 1e-5}, "fixed_point": None,
    }  # fmt: skip
    for number, predictor in enumerate(predictors):
        p = probabilities(labels, 2.0 + 1.5 * place - 0.3 * number, random)
        arrays[f"probabilities/{predictor}"] = p[:, subset]
        arrays[f"final/{predictor}"] = p[-1]
        per_task = [_scores(p[-1][tasks == k], labels[tasks == k]) for k in range(TASKS)]
        result["final"][predictor] = {"overall": _scores(p[-1], labels), "per_task": per_task}
        if foreign:
            stranger = probabilities(np.repeat(np.arange(CLASSES), 4), 0.3, random)
            arrays[f"foreign/{predictor}"] = stranger
            result["ood"] = {**(result["ood"] or {}), predictor: {
                "auroc": {"confidence": 0.81, "entropy": 0.83}, "aupr": {"confidence": 0.7, "entropy": 0.72},
                "fpr95": {"confidence": 0.4, "entropy": 0.38}}}  # fmt: skip
        if predictor.endswith("8bit"):
            result["fixed_point"] = result["final"][predictor]["overall"]
            continue  # not judged while training
        matrix = np.clip(np.tril(0.95 - 0.1 * (np.arange(TASKS)[:, None] - np.arange(TASKS)) / (1 + place)), 0, 1)
        result["accuracy_matrix"][predictor] = matrix.tolist()
        result["continual"][predictor] = {
            "average_accuracy": float(matrix[-1].mean()), "forgetting": 0.2 + 0.01 * seed,
            "backward_transfer": -0.2, "plasticity": 0.95,
        }  # fmt: skip
        for stage in range(TASKS):
            for batch in (5, 10):
                row = matrix[stage] if batch == 10 else (matrix[stage] + matrix[max(0, stage - 1)]) / 2
                scores = [{**per_task[0], "accuracy": float(a), "ece": float(1 - a) / 3} for a in row]
                result["evaluations"].append(
                    {"task": stage, "batch": batch, "predictor": predictor, "tasks": scores, "overall": scores[0]}
                )
    results = folder / "results"
    results.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(results / f"{job}.npz", **arrays)
    _write(results / f"{job}.json", result)
    return result


def _frames(labels: np.ndarray, seed: int) -> np.ndarray:
    """A bar that moves along: on events at its front, off events at its tail."""
    spikes = np.zeros((len(labels), TIME, 2, SIDE, SIDE), dtype=np.uint8)
    for k in range(len(labels)):
        for t in range(TIME):
            front = (t + k + seed) % SIDE
            spikes[k, t, 1, 2:10, front] = 1
            spikes[k, t, 0, 2:10, (front - 2) % SIDE] = 1
    return np.packbits(spikes.reshape(len(labels), TIME, -1), axis=-1)


def make_two_moons(folder: Path) -> Path:
    """A run without tasks, with confidence maps and inputs that are no picture."""
    x, y = np.linspace(-1.5, 2.5, 40), np.linspace(-1, 1.5, 30)
    random = np.random.default_rng(3)
    points = random.uniform([-1.5, -1], [2.5, 1.5], (80, 2)).astype(np.float32)
    labels = (points[:, 1] < 0.25).astype(np.int64)
    for label, sharpness in (("sgd", 9.0), ("bayes ρ=0.001", 3.0), ("bayes-binary ρ=0.001", 2.0)):
        p1 = 1 / (1 + np.exp(sharpness * (y[:, None] - 0.25 + 0.2 * np.sin(2 * x)[None])))
        p = np.repeat(np.where(labels == 1, 0.8, 0.2)[None, :, None], 20, 0)
        arrays = {
            "labels": labels, "task": np.zeros(80, int), "subset": np.arange(50), "sample_shape": np.array([2]),
            "frames": np.packbits(random.random((3, 20, 20)) < 0.3, axis=-1), "grid_x": x, "grid_y": y,
            "grid/point": np.stack([1 - p1, p1], -1), "points": points, "point_labels": labels,
            "probabilities/point": np.concatenate([1 - p, p], -1)[:, :50].astype(np.float32),
            "final/point": np.concatenate([1 - p, p], -1)[-1],
        }  # fmt: skip
        job = label.replace(" ", "_").replace("ρ", "rho") + "-seed0"
        scores = {"accuracy": 1.0, "ece": 0.2, "nll": 0.22, "brier": 0.08, "confidence": 0.8, "examples": 80}
        _write(
            folder / "results" / f"{job}.json",
            {"job": job, "method": label.split()[0], "label": label, "seed": 0, "predictors": ["point"],
             "headline_predictor": "point", "task_names": ["all"], "classes": ["upper moon", "lower moon"],
             "final": {"point": {"overall": scores, "per_task": [scores]}}, "evaluations": [],
             "accuracy_matrix": {"point": [[1.0]]}, "continual": {}},
        )  # fmt: skip
        np.savez_compressed(folder / "results" / f"{job}.npz", **arrays)
    _write(folder / "config.json", {"experiment": "two-moons", "preset": "demo", "simulated": False, "reduced": []})
    return folder
