"""Accuracy on every task after each training stage."""

from bayspike.report.markup import Card, Cards, Page, Plot, Section, label, rounded
from bayspike.report.measures import matrix
from bayspike.report.runs import Comparison, assign_views

MOST_WRITTEN = 10  # more tasks than this and the numbers would not be readable in their cells


def panel(comparison: Comparison, page: Page) -> Section | None:
    cards = []
    found = {series: values for series in comparison.series if (values := matrix(series)) is not None}
    found = {series: values for series, values in found.items() if values.shape[1] > 1}
    shown = assign_views(comparison, list(found))
    for series, values in found.items():
        stages, tasks = values.shape
        names = series.jobs[0].task_names
        names = [label(n, 12) for n in names] if len(names) == tasks else [str(k + 1) for k in range(tasks)]
        heat = {
            "type": "heatmap",
            "z": rounded(100 * values, 2),
            "x": list(range(tasks)),
            "y": list(range(stages)),
            "zmin": 0,
            "zmax": 100,
            "colorscale": "Cividis",
            "xgap": 2,
            "ygap": 2,
            "hovertemplate": "after stage %{y:.0f}, task %{x:.0f}: %{z:.2f} %<extra></extra>",
            "colorbar": {"thickness": 10, "ticksuffix": " %", "outlinewidth": 0},
        }
        if max(stages, tasks) <= MOST_WRITTEN:
            heat["texttemplate"] = "%{z:.1f}"
        every = -(-max(stages, tasks) // MOST_WRITTEN)
        layout = {
            "xaxis": {
                "title": {"text": "tested on task"},
                "tickvals": list(range(0, tasks, every)),
                "ticktext": names[::every],
                "showgrid": False,
            },
            "yaxis": {
                "title": {"text": "after training stage"},
                "tickvals": list(range(0, stages, every)),
                "ticktext": [str(i + 1) for i in range(0, stages, every)],
                "autorange": "reversed",
                "showgrid": False,
            },
        }
        place = page.add_plot(Plot([heat], layout, height=320))
        cards.append(Card(series.name, place, views=shown[series], simulated=series.run.simulated))
    if not cards:
        return None
    lead = "Accuracy in per cent on every task (column) after each training stage (row), mean over seeds."
    return Section("matrices", "Accuracy matrices", lead, [Cards(cards)])
