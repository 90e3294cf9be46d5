"""The table of methods, mean ± standard deviation over seeds, above the numbers of the paper; then the costs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bayspike.report.markup import (
    Cell,
    Page,
    Paragraph,
    Part,
    Row,
    Section,
    Table,
    duration,
    energy,
    size,
    whole,
    with_spread,
)
from bayspike.report.measures import over_seeds
from bayspike.report.reading import mapping, number, sequence
from bayspike.report.runs import SUMMARY_KEYS, Comparison, Run, Series, assign_views, view_of

HEADINGS = {"accuracy": "Accuracy", "ece": "ECE", "nll": "NLL", "brier": "Brier", "ood_auroc": "OOD AUROC"}
CONTINUAL = {
    "average_accuracy": "Average accuracy",
    "forgetting": "Forgetting",
    "backward_transfer": "Backward transfer",
    "plasticity": "Plasticity",
}


def panel(comparison: Comparison, page: Page) -> Section | None:
    del page  # nothing to plot here
    runs = comparison.runs
    columns = [key for key in HEADINGS if key != "ood_auroc" or any(_has_foreign(run) for run in runs)]
    several = len(runs) > 1
    rows = [row for run in runs for row in _rows(run, columns, several=several)]
    if not rows:
        return None
    head = [*(["Run"] if several else []), "Method", "Predictor", *(HEADINGS[c] for c in columns), "Seeds"]
    lead = (
        "Final scores on the test data, mean ± standard deviation over seeds. Higher accuracy is better, lower ECE, "
        "NLL and Brier score are better. The menu above adds further predictors. A click on a heading sorts."
    )
    of_paper = paper_rows(runs, columns)
    notes = dict.fromkeys(str(run.summary["paper_note"]) for run in runs if run.summary.get("paper_note"))
    table = Table(head, rows, name="headline", sortable=True, foot=of_paper, foot_title=paper_title(runs))
    parts = [table, *map(Paragraph, notes)]
    rest = [*_warnings(comparison), *_continual(comparison), *_costs(comparison)]
    return Section("results", "Results", lead, [*parts, *rest])


def _has_foreign(run: Run) -> bool:
    return any(_pair(method.get("ood_auroc"))[0] is not None for method in run.methods.values())


def _pair(value: Any) -> tuple[float | None, float | None]:
    """(mean, std) of a score given as a number or as {"mean", "std"}."""
    if isinstance(value, dict):
        return number(value.get("mean")), number(value.get("std"))
    return number(value), None


def _score_cells(scores: Mapping[str, Any], columns: list[str]) -> list[Cell]:
    cells = []
    for key in columns:
        mean, std = _pair(scores.get(key))
        std = number(scores.get(f"{key}_std")) if std is None else std
        shown = with_spread(mean, std, percent=key == "accuracy")
        cells.append(Cell(shown, value=mean, key=key))
    return cells


def _rows(run: Run, columns: list[str], *, several: bool) -> Iterator[Row]:
    first = [Cell(run.name)] if several else []
    for name, scores in run.methods.items():
        seeds, headline = scores.get("seeds"), str(scores.get("predictor") or "–")
        count = len(seeds) if isinstance(seeds, list) else number(seeds)
        others = {str(p): mapping(s) for p, s in mapping(scores.get("predictors")).items() if p != headline}
        title = Cell(name, heading=True, simulated=run.simulated)
        seen = Cell(whole(count), value=None if count is None else float(count))
        yield Row([*first, title, Cell(headline), *_score_cells(scores, columns), seen])
        for predictor, each in others.items():
            cells = [*first, title._replace(heading=False), Cell(predictor), *_score_cells(each, columns), Cell("")]
            yield Row(cells, [view_of(predictor)], "minor")


def paper_rows(runs: Sequence[Run], columns: list[str]) -> list[Row]:
    """The published numbers, each once, however many runs they are to be held against."""
    first = [Cell("–")] if len(runs) > 1 else []
    found: dict[tuple[str, ...], Row] = {}
    for run in runs:
        for name, scores in published(run.summary.get("paper")):
            if scores.get("of"):
                continue  # of some of the tasks: beside ours of the same tasks, see `course`
            measured = _score_cells(scores, columns)
            predictor = str(scores.get("predictor") or "–")
            tag = "paper, other data" if others_data(runs) == list(runs) else "paper"
            cells = [*first, Cell(name, heading=True, tag=tag), Cell(predictor), *measured, Cell("–")]
            found.setdefault((name, predictor, *(cell.text for cell in measured)), Row(cells))
    return list(found.values())


def others_data(runs: Sequence[Run]) -> list[Run]:
    """The runs whose data set is not that of the published numbers."""
    return [run for run in runs if mapping(run.summary.get("paper_data")).get("same") is False]


def paper_title(runs: Sequence[Run]) -> str:
    """What stands above the published numbers: the data they are of, and which runs had others."""
    data = list(dict.fromkeys(_paper_data(run) for run in runs if run.summary.get("paper_data")))
    title = "Published numbers" + (f", on {' and '.join(data)}" if data else "")
    others = others_data(runs)
    if not others:
        return title
    whose = "this run has" if len(runs) == 1 else f"{', '.join(run.name for run in others)} had"
    return f"{title}; {whose} another data set, so the numbers cannot be compared one to one"


def _paper_data(run: Run) -> str:
    data = mapping(run.summary.get("paper_data"))
    counts = [number(each) for each in sequence(data.get("images"))]
    images = f" ({' + '.join(f'{each:,.0f}' for each in counts if each is not None)} images)" if counts else ""
    return f"{data.get('name')}{images}"


def published(value: Any, name: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every set of scores in the summary's "paper", with its name; however deep it is nested."""
    if isinstance(value, list):
        for entry in value:
            own = next(
                (str(mapping(entry)[k]) for k in ("label", "name", "method", "model") if k in mapping(entry)), ""
            )
            yield from published(entry, own or name)
    elif isinstance(value, dict):
        if any(_pair(value.get(key))[0] is not None for key in (*SUMMARY_KEYS, "ood_auroc")):
            yield name or "published", value
        else:
            for key, entry in value.items():
                yield from published(entry, f"{name}, {key}" if name else str(key))


def _warnings(comparison: Comparison) -> list[Part]:
    """What looked wrong while learners learnt, each thing once."""
    said: dict[str, None] = {}
    for run in comparison.runs:
        for job in run.jobs:
            for each in map(mapping, sequence(job.result.get("warnings"))):
                name = f"{run.name}: {job.label}" if len(comparison.runs) > 1 else job.label
                said[f"{name}: {each.get('sentence')}"] = None
    return [Paragraph(text, heading="" if k else "Warnings", kind="warning") for k, text in enumerate(said)]


def _continual(comparison: Comparison) -> list[Part]:
    found = {
        series: {key: over_seeds(series, "continual", series.predictor, key) for key in CONTINUAL}
        for series in comparison.series
    }
    found = {series: values for series, values in found.items() if any(values.values())}
    shown = assign_views(comparison, list(found))
    rows = []
    for series, values in found.items():
        cells = [
            Cell(with_spread(*(value or (None, None)), percent=True), value=value[0] if value else None, key=key)
            for key, value in values.items()
        ]
        title = Cell(series.name, heading=True, simulated=series.run.simulated)
        rows.append(Row([title, *cells], shown[series]))
    if not rows:
        return []
    lead = (
        "Forgetting: mean drop from a task's best accuracy to its last "
        "(lower is better). Backward transfer: change since the task was first learnt (negative: harm by later tasks). "
        "Plasticity: accuracy just after learning."
    )
    scores = Table(["Method", *CONTINUAL.values()], rows, name="continual", sortable=True)
    return [Paragraph(lead, heading="Continual learning"), scores]


def _costs(comparison: Comparison) -> list[Part]:
    seen: dict[tuple[str, str], Series] = {}
    for series in comparison.series:
        seen.setdefault((series.run.name, series.label), series)
    rows = []
    for (_, name), series in seen.items():
        scores = series.run.methods.get(name, {})
        memory = scores.get("memory_bytes")
        total = number(memory.get("total")) if isinstance(memory, dict) else number(memory)
        fixed = over_seeds(series, "fixed_point", "accuracy")
        per_synapse = over_seeds(series, "bytes_per_synapse")
        joules = over_seeds(series, "energy", "joules")
        title = f"{series.run.name}: {name}" if len(comparison.runs) > 1 else name
        values = [_pair(scores.get(key))[0] for key in ("parameters", "coreset_examples", "presentations", "seconds")]
        rows.append(
            Row(
                [
                    Cell(title, heading=True, simulated=series.run.simulated),
                    Cell(whole(values[0]), value=values[0], key="parameters"),
                    Cell(size(total), value=total, key="memory_bytes"),
                    Cell(
                        f"{per_synapse[0]:.2f}" if per_synapse else "–", value=per_synapse[0] if per_synapse else None
                    ),
                    Cell(whole(values[1]), value=values[1], key="coreset_examples"),
                    Cell(whole(values[2]), value=values[2], key="presentations"),
                    Cell(duration(values[3]), value=values[3], key="seconds"),
                    Cell(with_spread(*(fixed or (None, None)), percent=True), value=fixed[0] if fixed else None),
                    Cell(energy(joules[0]) if joules else "–", value=joules[0] if joules else None, key="joules"),
                ]
            )
        )
    if not rows:
        return []
    head = [
        "Method",
        "Parameters",
        "Memory",
        "Bytes a synapse",
        "Stored examples",
        "Presentations",
        "Time",
        "Accuracy, 8-bit weights",
        "Energy a decision",
    ]
    lead = (
        "Memory: all that a learner keeps, its rule's state and the stored examples. "
        "Energy: an estimate from counted spikes and synaptic operations, on the chip, for all members together."
    )
    return [Paragraph(lead, heading="Cost"), Table(head, rows, name="costs", sortable=True)]
