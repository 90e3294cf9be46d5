"""`bayspike evaluate --controls` and `--prune`: what is the posterior's own merit, and which synapses can be spared."""

import json
from collections.abc import Sequence

from rich.table import Table

from bayspike.continual.tasks import Task
from bayspike.data.base import Dataset
from bayspike.posteriors.distributions import Gaussian
from bayspike.posteriors.pruning import prune
from bayspike.predict.by_name import make_predictor
from bayspike.predict.calibration import halves
from bayspike.predict.controls import ControlScores, judge_controls
from bayspike.runs.models import Model
from bayspike.runs.outcome.examination import committee_generator, examine
from bayspike.runs.reporting import wide_console
from bayspike.seeds import generator_for


def tell_controls(model: Model, dataset: Dataset, members: int, seed: int, *, as_json: bool) -> int:
    """Judge a model beside its controls and print what came out."""
    choosing, judging = halves(dataset.test.labels, generator_for(seed, "halves"))
    found = judge_controls(
        model.network, model.posteriors, dataset.test.subset(judging), dataset.foreign, dataset.test.subset(choosing),
        members=members, seed=seed,
    )  # fmt: skip
    if as_json:
        facts = {"model": str(model.path), "dataset": dataset.name, "simulated": dataset.simulated}
        print(json.dumps({**facts, "examples": len(judging), "controls": {k: v._asdict() for k, v in found.items()}}))
        return 0
    kind = " (simulated)" if dataset.simulated else ""
    table = Table(title=f"{model.about['label']}, seed {model.about['seed']}, on {dataset.name}{kind}: other spreads")
    table.add_column("spread")
    for heading in ("accuracy", "ECE", "NLL", "AUROC, mutual information", "AUROC, entropy"):
        table.add_column(heading, justify="right")
    for name, scores in found.items():
        table.add_row(f"{name} ({scores.about})" if scores.about else name, *_cells(scores))
    console = wide_console()
    console.print(table)
    foreign = f"foreign: {dataset.foreign_about or 'those of the data set'}" if dataset.foreign else "no foreign inputs"
    judged = f"judged on {len(judging)} test examples, chosen on the other {len(choosing)}"
    console.print(f"Committees of {members}; {judged}; {foreign}.", highlight=False, soft_wrap=True)
    return 0


def _cells(scores: ControlScores) -> list[str]:
    areas = (scores.auroc_mutual_information, scores.auroc_entropy)
    return [
        f"{scores.accuracy:.2%}", f"{scores.ece:.3f}", f"{scores.nll:.3f}",
        *("" if area is None else f"{area:.3f}" for area in areas),
    ]  # fmt: skip


def tell_pruned(
    model: Model, dataset: Dataset, shares: Sequence[float], members: int, seed: int, *, as_json: bool
) -> int:
    """Judge a model without some of its synapses."""
    bayesian = any(isinstance(each, Gaussian) for each in model.posteriors)
    rows = []
    for share in (0.0, *shares):
        for by in ("signal", "size") if bayesian and share else ("size",):
            cut = prune(model.posteriors, share, by)
            drawn = make_predictor(
                "committee" if bayesian else "point", model.network, cut, members, committee_generator(seed)
            )
            scores = examine(drawn, [Task(dataset.name, dataset.train, dataset.test)], seed).overall
            rows.append({"pruned": share, "by": by if share else "", **scores._asdict()})
    if as_json:
        facts = {"model": str(model.path), "dataset": dataset.name, "simulated": dataset.simulated}
        print(json.dumps({**facts, "pruned": rows}))
        return 0
    kind = " (simulated)" if dataset.simulated else ""
    table = Table(title=f"{model.about['label']}, seed {model.about['seed']}, on {dataset.name}{kind}: fewer synapses")
    for heading in ("pruned", "by", "accuracy", "ECE", "NLL"):
        table.add_column(heading, justify="left" if heading == "by" else "right")
    names = {"signal": "|m|·√p", "size": "|m|", "": ""}
    for row in rows:
        numbers = [f"{row['accuracy']:.2%}", f"{row['ece']:.3f}", f"{row['nll']:.3f}"]
        table.add_row(f"{row['pruned']:.0%}", names[str(row["by"])], *numbers)
    wide_console().print(table)
    return 0
