"""`summary.json`: the final figures of every method, mean and standard deviation over the seeds, with the protocol.

Made from `config.json` and `results/*.json` alone, so it can be made again at any time. The keys are documented in
docs/summary-schema.md.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from bayspike.continual.methods import METHODS, about_rule
from bayspike.errors import UserError
from bayspike.runs.checkpoints import describe_differences
from bayspike.runs.directory import FORMAT, RunDirectory
from bayspike.runs.outcome.asked import read_asked
from bayspike.runs.outcome.paired import against_first, gathered
from bayspike.runs.outcome.shapes import RESULT, check_shape
from bayspike.runs.plan.config import Job, RunConfig, identity, identity_from_json, jobs_of
from bayspike.runs.plan.experiment import Experiment
from bayspike.storage.files import read_json
from bayspike.storage.named import is_named
from bayspike.storage.plain import differences, to_plain
from bayspike.storage.sealed import SEAL, check_seal

MEASURES = ("accuracy", "ece", "nll", "brier")
LAST = 5  # tasks at the end of a long stream
EARLY, LATE, LONG = slice(5, 15), slice(-20, None), 40  # tasks of a stream of at least so many: does it stay plastic?
CONTINUAL = ("average_accuracy", "forgetting", "backward_transfer", "forward_transfer", "plasticity")


def read_results(run: RunDirectory, config: RunConfig, form: Any = RESULT) -> list[dict[str, Any]]:
    """The results of all jobs that are done, each of the given form."""
    found = [read_result(run, config, job, form) for job in jobs_of(config) if run.result(job.name).is_file()]
    tasks = {len(scores["per_task"]) for each in found for scores in each["final"].values()}
    if len(tasks) > 1:
        raise UserError(f"The results in {run.path / 'results'} tell of different numbers of tasks: run it again.")
    return found


def read_result(run: RunDirectory, config: RunConfig, job: Job, form: Any = RESULT) -> dict[str, Any]:
    """One result, if it is whole and was made with the settings that `config.json` has.

    Version 0.1 wrote neither digest nor settings into a result: such a one is taken as it is.
    """
    path = run.result(job.name)
    result: dict[str, Any] = read_json(path)
    if isinstance(result, dict) and (SEAL in result or "identity" in result):
        check_seal(result, str(path))
    check_shape(result, form, str(path))
    result = {
        "ood": None,
        "fixed_point": None,
        "controls": None,
        "pruning": None,
        **result,
        **read_asked(run, job.name),
    }
    known, named = result["predictors"], {result["headline_predictor"], gathered(result)} - {None}
    method = result["method"] in METHODS or is_named(result["method"])
    sound = result["job"] == job.name and method and named <= set(known)
    if not sound or any(each not in result["final"] for each in known):
        raise UserError(f"{path} is not the result of {job.name}: put the right one back, or delete it and resume.")
    made_with = result.get("identity")
    if made_with is not None:
        found = differences(to_plain(identity(config, job)), identity_from_json(made_with, str(path)))
        if found:
            raise UserError(
                f"{path} was made with other settings than {run.config} has now: {describe_differences(found)}; put "
                "config.json back as it was, or run with these settings in another directory."
            )
    return result


def summarise(experiment: Experiment, config: RunConfig, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The content of `summary.json`."""
    labels = [method.label for method in config.methods]
    by_label = {label: [each for each in results if each["label"] == label] for label in labels}
    return {
        "format": FORMAT,
        "experiment": config.experiment,
        "title": experiment.title,
        "preset": config.preset,
        "complete": len(results) == len(jobs_of(config)),
        "simulated": config.simulated,
        "reduced": list(config.reduced),
        "methods": {label: _method(mine) for label, mine in by_label.items() if mine},
        "paired": against_first(by_label, MEASURES),
        "paired_gathered": against_first(by_label, MEASURES, gathered),
        "protocol": protocol(experiment, config),
        "paper": [to_plain(each) for each in experiment.published],
        "paper_note": experiment.published_note,
        "paper_data": _paper_data(experiment, config),
    }


def _paper_data(experiment: Experiment, config: RunConfig) -> dict[str, Any] | None:
    """What the published numbers are of, and whether this run is on the same data set."""
    data = experiment.paper_data
    if data is None:
        return None
    return {**to_plain(data), "same": config.data.name == data.name and not config.simulated}


def _method(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    first = results[0]
    headline = first["headline_predictor"]
    summary: dict[str, Any] = {
        "method": first["method"],
        "about": about_rule(first["method"]),
        "predictor": headline,
        "gathered": gathered(first),
        **_scores(results, headline),
        "predictors": {name: _scores(results, name) for name in first["predictors"]},
        "task_names": first["task_names"],
        "parameters": first["parameters"],
        "memory_bytes": first["memory_bytes"],
        "bytes_per_synapse": first["bytes_per_synapse"],
        "coreset_examples": first["coreset_examples"],
        "presentations": first["presentations"],
        "replayed": first["replayed"],
        "seconds": spread([each["seconds"] for each in results])["mean"],
        "seeds": [each["seed"] for each in results],
        "energy": first["energy"],
        "rates": first["rates"],
        "fixed_point": _fixed_point(results),
        "chip": _chip(results),
        "ood_auroc": _ood(results, headline),
        "warnings": list(dict.fromkeys(each["sentence"] for one in results for each in one.get("warnings", []))),
        "controls": _controls([each["controls"] for each in results]),
        "controls_gathered": _controls([(each["controls"] or {}).get("gathered") for each in results]),
        "pruning": _pruning(results),
    }
    if len(first["task_names"]) > LAST:
        newest = [[scores["accuracy"] for scores in each["final"][headline]["per_task"][-LAST:]] for each in results]
        summary["last_five"] = _each_seed([statistics.fmean(values) for values in newest])
    matrices = [each["accuracy_matrix"].get(headline) for each in results]
    if len(first["task_names"]) >= LONG and all(matrices):
        summary["newest"] = {
            name: _each_seed([statistics.fmean(row[k] for k, row in list(enumerate(each))[part]) for each in matrices])
            for name, part in (("early", EARLY), ("late", LATE))
        }
    continual = [each["continual"].get(headline) for each in results]
    if all(continual):
        summary["continual"] = {name: _each_seed([each.get(name) for each in continual]) for name in CONTINUAL}
    return summary


def _scores(results: Sequence[Mapping[str, Any]], predictor: str) -> dict[str, Any]:
    """For each measure its mean and spread on all test examples, and on those of every task."""
    finals = [each["final"][predictor] for each in results]
    tasks = range(len(finals[0]["per_task"]))
    over_time = [final.get("over_time") for final in finals]  # a result of version 0.2 has none
    more = {}
    if all(over_time):
        more["worst_ece"] = _each_seed([worst_ece(each["ece"]) for each in over_time if each])
    if all("chance_ece" in final for final in finals):
        more["chance_ece"] = _each_seed([final["chance_ece"] for final in finals])
    return more | {
        name: {
            **_each_seed([final["overall"][name] for final in finals]),
            "per_task": [spread([final["per_task"][k][name] for final in finals])["mean"] for k in tasks],
        }
        for name in MEASURES
    }


def worst_ece(over_time: Sequence[float]) -> float:
    """The largest expected calibration error at any step after the first fifth of the signal."""
    return max(over_time[len(over_time) // 5 :])


def _fixed_point(results: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    found = [each["fixed_point"] for each in results]
    if not all(found):
        return None
    return {"weights": found[0]["weights"], **{name: _each_seed([each[name] for each in found]) for name in MEASURES}}


def _chip(results: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Float beside the chip's integers, on the same few test examples; or why the chip cannot run the network."""
    found = [each["chip"] for each in results]
    refused = next((each["refused"] for each in found if "refused" in each), None)
    if refused is not None:
        return {"refused": refused}
    return {name: _each_seed([each.get(name) for each in found]) for name in found[0] if name != "examples"} | {
        "examples": found[0]["examples"]
    }


def _controls(found: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """The committee (or the point) beside its controls; each measure over the seeds, with every seed's own value."""
    if not all(found):
        return None
    tables: list[Mapping[str, Mapping[str, Any]]] = [each["scores"] for each in found if each]
    return {
        name: {
            measure: None if value is None else _each_seed([table.get(name, {}).get(measure) for table in tables])
            for measure, value in first.items()
            if measure != "about"
        }
        for name, first in tables[0].items()
    }


def _pruning(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    """Scores without each share of the synapses, by the order in which they were cut; only where it was asked for."""
    found = [each["pruning"] for each in results]
    if not all(found):
        return None
    tables = [{(row["pruned"], row["by"]): row for row in each["rows"]} for each in found]
    return [
        {
            "pruned": share,
            "by": by,
            **{name: _each_seed([each[share, by][name] for each in tables]) for name in MEASURES},
        }
        for share, by in tables[0]
        if all((share, by) in each for each in tables)
    ]


def _each_seed(values: Sequence[float | None]) -> dict[str, Any]:
    """Mean and spread, and the values themselves in the order of the method's seeds."""
    return {**spread(values), "seeds": list(values)}


def _ood(results: Sequence[Mapping[str, Any]], predictor: str) -> dict[str, Any] | None:
    """AUROC of telling foreign inputs apart: by the confidence, and by each score of uncertainty."""
    found = [(each["ood"] or {}).get(predictor, {}).get("auroc", {}) for each in results]
    if not any(found):
        return None
    scores = next(each for each in found if each)
    by_score = {score: _each_seed([each.get(score) for each in found]) for score in scores}
    return {**by_score["confidence"], "score": "confidence", "by_score": by_score}


def spread(values: Sequence[float | None]) -> dict[str, float | None]:
    """Mean and sample standard deviation; one value has none, and says so by null."""
    known = [value for value in values if value is not None]
    if not known:
        return {"mean": None, "std": None}
    return {"mean": statistics.fmean(known), "std": statistics.stdev(known) if len(known) > 1 else None}


def protocol(experiment: Experiment, config: RunConfig) -> dict[str, Any]:
    """What was actually run."""
    return {
        "dataset": to_plain(config.dataset),
        "data": to_plain(config.data),
        "judging": to_plain(config.judging),
        "seeds": list(config.seeds),
        "device": config.device,
        "threads": config.threads,
        "methods": {method.label: to_plain(method) for method in config.methods},
    }
