"""The report on a learner's own file: what it is, what it has learnt, and how it does on the examples it held back.

One HTML file without scripts; its content security policy forbids them and every connection.
"""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import torch
from markupsafe import Markup

from bayspike.continual.judging import score
from bayspike.learner.answers import Answers, accuracy_by_class, enough, judge_of
from bayspike.learner.file import load_state
from bayspike.learner.state import LearnerState, bytes_of, posteriors_of
from bayspike.posteriors.distributions import Gaussian
from bayspike.report.markup import Cell, Part, Row, Section, Table, size, templates, whole, with_spread
from bayspike.seeds import generator_for
from bayspike.storage.files import replacing


def write_learner_report(path: Path, out: Path) -> Path:
    """Write the page and return where it is."""
    content = learner_page(load_state(path), path.name)
    with replacing(out) as beside:
        beside.write_text(content, "utf-8", newline="\n")
    return out


def learner_page(state: LearnerState, name: str) -> str:
    """The whole page as text."""
    answers = _on_held_back(state)
    sections = [_facts(state), _classes(state, answers), _held_back(state, answers), _posterior(state)]
    style = (files("bayspike.report") / "static" / "report.css").read_text(encoding="utf-8")
    return templates().get_template("learner.html").render(title=name, style=Markup(style), sections=sections)


def _on_held_back(state: LearnerState) -> list[Answers]:
    judge = judge_of(state)
    generator = generator_for(state.seed, "report")
    return [judge.predict(part, generator) for part in state.held_back]


def _facts(state: LearnerState) -> Section:
    recipe = state.recipe
    posterior, examples = bytes_of(state)
    layers = " → ".join([str(recipe.encoding.inputs), *recipe.network.described.split("-")])
    facts = {
        "network": f"{layers} neurons, {len(state.classes)} classes",
        "an example": f"{'×'.join(map(str, recipe.encoding.shape))}, {recipe.encoding.kind}, "
        f"{recipe.encoding.time} time-steps",
        "rule": type(recipe.rule).__name__,
        "committee": f"{recipe.members} networks",
        "learnt": f"{len(state.tasks)} tasks, {state.alone} single examples",
        "presentations": f"{whole(state.presentations)}, of which {whole(state.replayed)} of stored examples",
        "keeps": f"{size(posterior)} of posterior and prior, {size(examples)} of examples",
        "data": str(state.about.get("name", "of its own")),
        "seed": str(state.seed),
    }
    return Section("learner", "The learner", "", [_pairs(facts)])


def _classes(state: LearnerState, answers: list[Answers]) -> Section:
    stored = _count(state, [part.labels for part in state.memory])
    held = _count(state, [part.labels for part in state.held_back])
    truth = [state.classes[place] for part in state.held_back for place in part.labels.tolist()]
    right = accuracy_by_class([label for each in answers for label in each.labels], truth)
    rows = []
    for number, name in enumerate(state.classes):
        good, count = right.get(name, (0, 0))
        share = good / count if count else None
        rows.append(
            Row(
                (
                    Cell(name, heading=True),
                    Cell(whole(state.seen[number]), state.seen[number]),
                    Cell(whole(stored[number]), stored[number]),
                    Cell(whole(held[number]), held[number]),
                    Cell(with_spread(share, None, percent=True), share),
                )
            )
        )
    head = ("class", "examples seen", "stored", "held back", "accuracy on those held back")
    tasks = [
        Row((Cell(str(k), k), Cell(task, heading=True), Cell(whole(len(part)), len(part))))
        for k, (task, part) in enumerate(zip(state.tasks, state.stored, strict=True), start=1)
    ]
    parts: list[Part] = [Table(head, rows)]
    if tasks:
        parts.append(Table(("", "task", "examples stored"), tasks))
    return Section("learnt", "What it has learnt", "", parts)


def _held_back(state: LearnerState, answers: list[Answers]) -> Section:
    if not answers:
        lead = "No examples were held back; to judge it on others there is `bayspike evaluate --dataset`."
        return Section("held-back", "On examples it has not learnt from", lead, [])
    probabilities = torch.cat([each.probabilities for each in answers])
    scores = score(probabilities, torch.cat([part.labels for part in state.held_back]))
    foreign = float(torch.cat([each.foreign for each in answers]).double().mean())
    measures = {
        "accuracy": with_spread(scores.accuracy, None, percent=True),
        "mean confidence": with_spread(scores.confidence, None, percent=True),
        "ECE": with_spread(scores.ece, None),
        "NLL": with_spread(scores.nll, None),
        "examples": whole(scores.examples),
    }
    needed = enough(state.recipe.false_alarm)
    if state.calibration is None or state.calibration.foreign is None:
        measures["called foreign"] = f"not told yet: that takes {needed} examples held back"
    else:
        measures["called foreign"] = with_spread(foreign, None, percent=True)
    return Section("held-back", "On examples it has not learnt from", "", [_pairs(measures)])


def _posterior(state: LearnerState) -> Section:
    rows = []
    for number, posterior in enumerate(posteriors_of(state)):
        spread = None
        if isinstance(posterior, Gaussian):
            spread = float(posterior.precision.rsqrt().median())
        centre = float(posterior.mean().abs().mean())
        rows.append(
            Row(
                (
                    Cell(str(number), number, heading=True),
                    Cell(type(posterior).__name__),
                    Cell(with_spread(centre, None, digits=4), centre),
                    Cell(with_spread(spread, None, digits=4), spread),
                )
            )
        )
    head = ("layer", "posterior", "mean size of a weight", "median standard deviation")
    return Section("posterior", "Its weights", "", [Table(head, rows)])


def _count(state: LearnerState, labels: list[torch.Tensor]) -> list[int]:
    counts = torch.zeros(len(state.classes), dtype=torch.int64)
    for each in labels:
        counts += torch.bincount(each, minlength=len(counts))
    return [int(count) for count in counts]


def _pairs(facts: Mapping[str, str]) -> Table:
    return Table(("", ""), [Row((Cell(key, heading=True), Cell(value))) for key, value in facts.items()])
