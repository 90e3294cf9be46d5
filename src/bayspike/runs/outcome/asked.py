"""What is judged of a finished job beyond its scores: its posterior beside controls, and without some of its synapses.

Controls are part of every result; both can be asked for later (`bayspike evaluate RUN --controls --prune … --keep`).
What was asked for is kept beside the results, in `asked/<job>.json`, sealed like them, and wins over what a result has.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch

from bayspike.continual.judging import score
from bayspike.continual.tasks import Concatenated, Stream
from bayspike.data.base import Dataset
from bayspike.posteriors.distributions import Gaussian, Posterior
from bayspike.posteriors.pruning import Criterion, prune
from bayspike.predict.by_name import make_predictor
from bayspike.predict.controls import ControlScores, judge_controls
from bayspike.predict.predictors import Committee, predict_samples
from bayspike.predict.temperature import Temperature
from bayspike.runs.directory import RunDirectory
from bayspike.runs.outcome.examination import committee_generator, held_back_temperature
from bayspike.runs.outcome.shapes import ASKED, check_shape
from bayspike.runs.plan.config import RunConfig
from bayspike.runs.plan.prepare import stratified, stratified_indices
from bayspike.seeds import generator_for
from bayspike.spiking.network import Network
from bayspike.storage.files import read_json, write_json
from bayspike.storage.sealed import check_seal, seal

PRUNING_EXAMPLES = 2000  # of all tasks together


def controls_of(
    config: RunConfig, network: Network, learnt: Sequence[Posterior], stream: Stream, dataset: Dataset, seed: int
) -> dict[str, Any] | None:
    """The posterior beside its controls, on some test examples; as many others serve to choose what must be chosen.

    By the paper's plain mean; and, where the run gathers otherwise, that way as well, with a temperature for each from
    what is held back.
    """
    count = config.judging.control_examples
    everything = Concatenated(tuple(task.test for task in stream.judges))
    if count == 0 or len(everything) < 2:
        return None
    chosen = stratified_indices(everything.labels, min(len(everything), 2 * count), config.data.seed)
    chosen = chosen[torch.randperm(len(chosen), generator=generator_for(config.data.seed, "controls"))]
    foreign = None if dataset.foreign is None else stratified(dataset.foreign, count, config.data.seed, "foreign")
    own, held_out = everything.subset(chosen[: len(chosen) // 2]), everything.subset(chosen[len(chosen) // 2 :])
    ask = partial(judge_controls, network, learnt, own, foreign, held_out, members=config.judging.members, seed=seed)
    result: dict[str, Any] = {"examples": len(own), "scores": _plain(ask())}
    if (gather := config.judging.gather) != "mean":

        def calibrate(committee: Committee) -> Temperature | None:
            return held_back_temperature(committee, dataset, seed, stream.judges[-1], over_time=False)

        result["gathered"] = {"gather": gather, "scores": _plain(ask(gather=gather, calibrate=calibrate))}
    return result


def _plain(found: Mapping[str, ControlScores]) -> dict[str, Any]:
    return {name: scores._asdict() for name, scores in found.items()}


def pruning_of(
    config: RunConfig,
    network: Network,
    learnt: Sequence[Posterior],
    stream: Stream,
    shares: Sequence[float],
    seed: int,
) -> dict[str, Any]:
    """The learner with all of its synapses, then without each share of them, in either order where it has two."""
    everything = Concatenated(tuple(task.test for task in stream.judges))
    samples = stratified(everything, PRUNING_EXAMPLES, config.data.seed, "examples")
    rows = pruned_rows(network, learnt, shares, config.judging.members, seed, samples)
    return {"examples": len(samples), "rows": rows}


def pruned_rows(
    network: Network, learnt: Sequence[Posterior], shares: Sequence[float], members: int, seed: int, samples: Any
) -> list[dict[str, Any]]:
    """Scores by share and order; a point has one order only, its size."""
    bayesian = any(isinstance(each, Gaussian) for each in learnt)
    orders: tuple[Criterion, ...] = ("signal", "size") if bayesian else ("size",)
    rows = []
    for share in (0.0, *shares):
        for by in orders if share else orders[-1:]:
            cut = prune(learnt, share, by)
            kind = "committee" if bayesian else "point"
            predictor = make_predictor(kind, network, cut, members, committee_generator(seed))
            done = predict_samples(
                predictor, samples, generator_for(seed, "final"), over_time=False, keep_members="none"
            )
            scores = score(done.probabilities[-1].cpu(), samples.labels)
            rows.append({"pruned": share, "by": by if share else "", **scores._asdict()})
    return rows


def keep(run: RunDirectory, job: str, found: dict[str, Any]) -> None:
    """Keep what was asked for, beside what was asked for before."""
    write_json(run.asked(job), seal({**read_asked(run, job), **found}))


def read_asked(run: RunDirectory, job: str) -> dict[str, Any]:
    """What was asked for and kept; empty where nothing was."""
    path = run.asked(job)
    if not path.is_file():
        return {}
    kept: dict[str, Any] = read_json(path)
    check_shape(kept, ASKED, str(path))
    check_seal(kept, str(path))
    return {name: kept[name] for name in ("controls", "pruning") if name in kept}
