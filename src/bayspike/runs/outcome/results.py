"""The result of one job: what goes into `results/<job>.json` and `results/<job>.npz`."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bayspike.continual.looking_back import accuracy_matrix, memory_of, untrained_accuracy
from bayspike.continual.methods import method
from bayspike.continual.protocol import Evaluation, Progress
from bayspike.continual.tasks import Concatenated, Stream
from bayspike.data.base import Dataset
from bayspike.data.delays import delays_of, shape_now
from bayspike.figures import count_means
from bayspike.learning.batch import posteriors
from bayspike.metrics import (
    LOIHI,
    chance_ece,
    compare_scores,
    detect_foreign,
    mutual_information,
    summarise_continual,
)
from bayspike.posteriors.distributions import Posterior, variance_of
from bayspike.predict.by_name import make_predictor
from bayspike.predict.predictors import Committee, Point
from bayspike.predict.temperature import Temperature
from bayspike.runs.checkpoints import evaluation_to_plain
from bayspike.runs.outcome.asked import controls_of
from bayspike.runs.outcome.chip import energy_spent, on_chip
from bayspike.runs.outcome.examination import (
    Examination,
    committee_generator,
    examine,
    final_predictors,
    foreign_prediction,
    frames,
    headline,
    held_back_temperature,
)
from bayspike.runs.plan.config import RunConfig
from bayspike.runs.plan.experiment import Experiment
from bayspike.runs.plan.prepare import PreparedJob, stratified_indices
from bayspike.seeds import generator_for
from bayspike.storage.plain import to_plain

FRAMES_OF_CLASS, MOST_FRAMES = 3, 36  # examples whose input spikes are kept
ENERGY_EXAMPLES = 16


def job_result(
    experiment: Experiment,
    config: RunConfig,
    prepared: PreparedJob,
    dataset: Dataset,
    progress: Progress,
    seconds: float,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Examine a finished job: its JSON and its arrays."""
    job, network, stream = prepared.job, prepared.network, prepared.stream
    learnt = posteriors(prepared.rule, progress.states)
    chosen = method(job.method.method)
    labels = torch.cat([task.test.labels for task in stream.judges])
    subset = stratified_indices(labels, min(len(labels), config.judging.stored_examples), config.data.seed)
    subset = subset[torch.randperm(len(subset), generator=torch.Generator().manual_seed(config.data.seed))]
    shown, ages = some_of_each(labels[subset]), len(delays_of(dataset.view))
    arrays: dict[str, Any] = {
        "labels": labels.numpy(),
        "task": np.repeat(np.arange(len(stream.judges)), [len(task.test) for task in stream.judges]),
        "subset": subset.numpy(),
        "frames": frames(stream.judges, subset[shown], job.seed, dataset.train.inputs // ages),
        "frames_of": shown.numpy(),
        "frames_shape": np.array(shape_now(dataset.sample_shape, dataset.view)),
        "sample_shape": np.array(dataset.sample_shape),
    }
    if dataset.foreign is not None and dataset.foreign_classes:
        arrays["foreign_labels"] = dataset.foreign.labels.numpy()
    exams: dict[str, Examination] = {}
    foreign: dict[str, Any] = {}
    first, gather = headline(chosen, config.judging), config.judging.gather
    names = list(final_predictors(chosen, learnt))
    beside = None if gather == "mean" else f"{first}-{gather}"  # the headline, gathering otherwise than the paper's
    temperature: Temperature | None = None
    for name in (*names, *([] if beside is None else [beside])):
        base, how = (first, gather) if name == beside else (name, "mean")
        drawn = committee_generator(job.seed)
        predictor = make_predictor(
            base, network, learnt, config.judging.members, drawn, how, job.method.training.kernels
        )
        newest = stream.judges[-1]
        scale = temperature = held_back_temperature(predictor, dataset, job.seed, newest) if name == beside else None
        exam = exams[name] = examine(predictor, stream.judges, job.seed, subset, scale)
        arrays[f"final/{name}"] = exam.final.numpy()
        arrays[f"probabilities/{name}"] = exam.probabilities.numpy()
        if exam.members is not None and len(exam.members) > 1:
            arrays[f"members/{name}"] = exam.members.numpy()
        if dataset.foreign is not None:
            foreign[name] = _foreign(arrays, name, predictor, exam, dataset, job.seed, scale)
        if experiment.extras is not None:
            arrays |= experiment.extras(name, predictor, dataset, job.seed)
    for index, posterior in enumerate(learnt):
        counted = count_means(posterior.mean().numpy(force=True))
        arrays |= {f"weights/{index}_{part}": np.asarray(counted[part]) for part in ("counts", "edges", "nonzero")}
        arrays |= _deviations(index, posterior)
    rounded = exams.get(f"{chosen.predictors[0]}-8bit")
    memory = memory_of(stream, progress)
    stored_bytes = memory.coresets
    stored = sum(len(kept) for kept in progress.coresets)
    kept_back = 0 if dataset.held_back is None else len(dataset.held_back) * dataset.held_back.bytes_per_sample
    if chosen.tasks == "coresets":  # what it trained on is what it had stored
        stored = len(stream.tasks[0].train)
        stored_bytes = stored * stream.tasks[0].train.bytes_per_sample
    parameters = sum(prod(layer.shape) for layer in network.layers)
    matrices = {name: _matrix(progress.evaluations, name, exam) for name, exam in exams.items()}
    result = {
        "job": job.name,
        "method": job.method.method,
        "label": job.method.label,
        "seed": job.seed,
        "predictors": list(exams),
        "headline_predictor": first,
        "task_names": [task.name for task in stream.judges],
        "classes": list(dataset.classes),
        "evaluations": [evaluation_to_plain(each) for each in progress.evaluations],
        "final": {
            name: {
                "overall": exam.overall._asdict(),
                "per_task": [scores._asdict() for scores in exam.tasks],
                "over_time": exam.course,
                "chance_ece": chance_ece(exam.final),
            }
            for name, exam in exams.items()
        },
        "gathered": None if beside is None else {"predictor": beside, "temperature": to_plain(temperature)},
        "accuracy_matrix": {name: matrix.tolist() for name, matrix in matrices.items() if matrix is not None},
        "continual": {
            name: _continual(stream, matrix, progress.evaluations, name)
            for name, matrix in matrices.items()
            if matrix is not None and stream.stage_judges is not None and len(matrix) > 1
        },
        "ood": foreign or None,
        "controls": controls_of(config, network, learnt, stream, dataset, job.seed),
        "presentations": progress.presentations,
        "replayed": progress.replayed,
        "coreset_examples": stored,
        "held_back_examples": 0 if dataset.held_back is None else len(dataset.held_back),
        "memory_bytes": {
            "rule": memory.rule,
            "coresets": stored_bytes,
            "held_back": kept_back,
            "total": memory.rule + stored_bytes + kept_back,
        },
        "bytes_per_synapse": memory.rule / parameters,
        "parameters": parameters,
        "seconds": seconds,
        "rates": exams[first].rates,
        "energy": _energy(prepared, learnt, config.judging.members if chosen.bayesian else 1),
        "fixed_point": None if rounded is None else {"weights": "8-bit", **rounded.overall._asdict()},
        "chip": _chip(prepared, learnt, chosen.bayesian, config.judging.members),
    }
    return result, arrays


def some_of_each(labels: Tensor) -> Tensor:
    """Places of the first of every class, then of the second of every class, and so on: every class is seen."""
    order = sorted((labels[:place].eq(label).sum().item(), place) for place, label in enumerate(labels.tolist()))
    return torch.tensor([place for rank, place in order if rank < FRAMES_OF_CLASS][:MOST_FRAMES])


def _deviations(layer: int, posterior: Posterior) -> dict[str, Any]:
    """Histogram of the standard deviations of a layer's synapses; a point has none."""
    deviations = variance_of(posterior).sqrt().numpy(force=True)
    if not deviations.any():
        return {}
    counts, edges = np.histogram(deviations, 60, (0.0, float(deviations.max())))
    return {f"deviations/{layer}_counts": counts, f"deviations/{layer}_edges": edges}


def _foreign(
    arrays: dict[str, Any],
    name: str,
    predictor: Any,
    exam: Examination,
    dataset: Dataset,
    seed: int,
    temperature: Temperature | None,
) -> Mapping[str, Any]:
    """How well the predictor tells foreign inputs from its own, by each score; its probabilities go to the arrays."""
    assert dataset.foreign is not None
    done = foreign_prediction(predictor, dataset.foreign, seed, temperature)
    arrays[f"foreign/{name}"] = done.probabilities.numpy()
    found = detect_foreign(exam.final, done.probabilities[-1])
    if exam.mutual_information is not None and done.members is not None:
        arrays[f"foreign_members/{name}"] = done.members.numpy()
        found["mutual_information"] = compare_scores(exam.mutual_information, mutual_information(done.members))
    if exam.discord is not None and done.discord is not None:
        found["discord"] = compare_scores(exam.discord, done.discord)
    measures = ("auroc", "aupr", "fpr95")
    return {each: {kind: float(getattr(found[kind], each)) for kind in found} for each in measures}


def _matrix(evaluations: tuple[Evaluation, ...], name: str, exam: Examination) -> Tensor | None:
    """Accuracy after each task; the last row is of the final examination, which sees all test examples."""
    mine = [each for each in evaluations if each.predictor == name]
    if not mine:
        return None
    matrix = accuracy_matrix(mine, name)
    matrix[-1] = torch.tensor([scores.accuracy for scores in exam.tasks], dtype=torch.float64)
    return matrix


def _continual(
    stream: Stream, matrix: Tensor, evaluations: tuple[Evaluation, ...], name: str
) -> dict[str, float | None]:
    return summarise_continual(matrix, untrained_accuracy(evaluations, name), stream.stage_judges)._asdict()


def _chip(prepared: PreparedJob, learnt: Any, bayesian: bool, members: int) -> dict[str, Any]:
    """The committee (or the point) as the chip's integers would have it."""
    name = "committee" if bayesian else "point"
    predictor = make_predictor(name, prepared.network, learnt, members, committee_generator(prepared.job.seed))
    assert isinstance(predictor, Committee | Point)
    everything = Concatenated(tuple(task.test for task in prepared.stream.judges))
    return on_chip(prepared.network, predictor, everything, prepared.job.seed)


def _energy(prepared: PreparedJob, learnt: Any, members: int) -> dict[str, Any]:
    """Spikes, synaptic operations and joules of a decision at the last step, averaged over a few test examples."""
    samples = prepared.stream.judges[-1].test
    chosen = torch.arange(min(ENERGY_EXAMPLES, len(samples)))
    spikes = samples.spikes(chosen, generator_for(prepared.job.seed, "energy"))
    spent = energy_spent(prepared.network, learnt, spikes, members)
    return {
        "joules": float(spent.joules[-1].mean()),
        "spikes": float(spent.spikes[-1].mean()),
        "synaptic_operations": float(spent.synaptic_operations[-1].mean()),
        "members": members,
        "source": LOIHI.source,
    }
