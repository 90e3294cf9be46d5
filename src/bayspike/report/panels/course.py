"""Task after task: does the learner stay plastic, what does it keep, and how does its precision grow?"""

from collections.abc import Mapping
from typing import Any

from bayspike.report.course import Course, course_of, last_tasks, mean_course
from bayspike.report.markup import (
    Card,
    Cards,
    Cell,
    Page,
    Paragraph,
    Part,
    Plot,
    Row,
    Section,
    Table,
    label,
    rounded,
    with_spread,
)
from bayspike.report.measures import over_seeds, spread_of
from bayspike.report.panels.headline import published
from bayspike.report.panels.over_time import DASHES
from bayspike.report.reading import number
from bayspike.report.runs import Comparison, Series, simulated_among

CURVES = {
    "newest": "Accuracy of the task just learnt",
    "last_five": "Accuracy of the last five tasks",
    "learnt": "Accuracy of all tasks learnt so far",
    "ece": "Calibration error of all learnt so far",
}
HEAD = (
    "Method",
    "All tasks",
    "Last five",
    "Last task",
    "Tenth task when new",
    "ECE",
    "Foreign, by entropy",
    "Foreign, by mutual information",
)
TENTH = 9


def panel(comparison: Comparison, page: Page) -> Section | None:
    found: dict[Series, Course] = {}
    for series in comparison.series:
        courses = [
            each
            for job in series.jobs
            if series.predictor == job.headline
            and (each := course_of(job.result, series.predictor, job.arrays.get("precision", 3))) is not None
        ]
        if courses and (mean := mean_course(courses)) is not None:
            found[series] = mean
    if not found:
        return None
    simulated = simulated_among(list(found))
    cards = []
    for name, title in CURVES.items():
        shown = {series: getattr(course, name) for series, course in found.items()}
        if any((values == values).sum() > 1 for values in shown.values()):  # NaN is not equal to itself
            plot = _plot(comparison, shown, "ECE" if name == "ece" else "accuracy")
            cards.append(Card(title, page.add_plot(plot), simulated=simulated))
    spread = {series: course for series, course in found.items() if course.precision is not None}
    for series, course in spread.items():
        plot = _precision(course)
        title = f"{_name(comparison, series)}: precision after each task"
        cards.append(Card(title, page.add_plot(plot), simulated=series.run.simulated))
    of = dict.fromkeys(
        str(e["of"]) for run in comparison.runs for _, e in published(run.summary.get("paper")) if e.get("of")
    )
    lead = "Final accuracies on all test examples: of every task, of the last five, and of the last one alone." + (
        f" Rows marked paper are published numbers: {', '.join(of)}." if of else ""
    )
    text = (
        "After each task, judged on part of the test examples: the task just learnt, the mean of the last five, and "
        "the mean of all learnt so far"
        + (
            " (of many tasks the newest five and five older ones, which stand for the others)"
            if _sampled(found)
            else ""
        )
        + ". Precision: median, and the band in which nine tenths of a layer's synapses lie."
    )
    parts: list[Part] = [_table(comparison, found), Paragraph(text, heading="While it was learnt"), Cards(cards)]
    return Section("course", "Task after task", lead, parts)


def _sampled(found: Mapping[Series, Course]) -> bool:
    return any(course.sampled for course in found.values())


def _name(comparison: Comparison, series: Series) -> str:
    return f"{series.run.name}: {series.label}" if len(comparison.runs) > 1 else series.label


def _plot(comparison: Comparison, curves: Mapping[Series, Any], unit: str) -> Plot:
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines" if len(values) > 30 else "lines+markers",
            "x": list(range(1, len(values) + 1)),
            "y": rounded(values, 4),
            "name": label(_name(comparison, series)),
            "line": {"color": f"@c{series.colour}", "width": 2, "dash": DASHES[series.colour % len(DASHES)]},
            "marker": {"size": 5},
        }
        for series, values in curves.items()
    ]
    layout = {
        "xaxis": {"title": {"text": "tasks learnt"}},
        "yaxis": {"title": {"text": unit}, **({"rangemode": "tozero"} if unit == "ECE" else {})},
        "showlegend": True,
    }
    return Plot(traces, layout, height=280 + 20 * len(traces))


def _precision(course: Course) -> Plot:
    assert course.precision is not None
    traces: list[dict[str, Any]] = []
    x = list(range(1, len(course.precision) + 1))
    for layer in range(course.precision.shape[1]):
        low, middle, high = ([float(f"{v:.4g}") for v in course.precision[:, layer, k]] for k in range(3))
        band = {"type": "scatter", "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
        traces += [
            {**band, "x": x + x[::-1], "y": high + low[::-1], "fill": "toself", "fillcolor": f"@c{layer}:0.18"},
            {
                "type": "scatter",
                "mode": "lines",
                "x": x,
                "y": middle,
                "line": {"color": f"@c{layer}", "width": 2},
                "name": f"layer {layer}",
            },
        ]
    layout = {
        "xaxis": {"title": {"text": "tasks learnt"}},
        "yaxis": {"title": {"text": "precision"}, "type": "log", "exponentformat": "power"},
        "showlegend": course.precision.shape[1] > 1,
    }
    return Plot(traces, layout, height=300)


def _table(comparison: Comparison, found: Mapping[Series, Course]) -> Table:
    rows = []
    for series, course in found.items():
        scores = {
            "all": over_seeds(series, "final", series.predictor, "overall", "accuracy"),
            "last_five": spread_of([last_tasks(job.result, series.predictor) for job in series.jobs]),
            "newest": spread_of([last_tasks(job.result, series.predictor, 1) for job in series.jobs]),
            "tenth": (float(course.newest[TENTH]), None) if len(course.newest) > TENTH else None,
            "ece": over_seeds(series, "final", series.predictor, "overall", "ece"),
            "entropy": over_seeds(series, "ood", series.predictor, "auroc", "entropy"),
            "mutual_information": over_seeds(series, "ood", series.predictor, "auroc", "mutual_information"),
        }
        percent = ("all", "last_five", "newest", "tenth")
        cells = [
            Cell(with_spread(*(value or (None, None)), percent=key in percent), value and value[0], key)
            for key, value in scores.items()
        ]
        title = Cell(_name(comparison, series), heading=True, simulated=series.run.simulated)
        rows.append(Row([title, *cells]))
    for run in comparison.runs:
        for name, entry in published(run.summary.get("paper")):
            if entry.get("of"):
                accuracy, std = number(entry.get("accuracy")), number(entry.get("accuracy_std"))
                cells = [Cell("–"), Cell(with_spread(accuracy, std, percent=True), accuracy)]
                title = Cell(name, heading=True, tag="paper")
                rows.append(Row([title, *cells, *[Cell("–")] * (len(HEAD) - 3)]))
    return Table(HEAD, rows, name="course-table", sortable=True)
