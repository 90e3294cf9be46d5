"""The parameters: their means at the end of training (paper, Fig. weights_distrib), and how unsure the posterior is of
each synapse then, and of each input after every task."""

from collections.abc import Iterator

from bayspike.report.markup import Card, Cards, Page, Plot, Section, label, rounded
from bayspike.report.panels.spread import spread_pictures
from bayspike.report.reading import Array
from bayspike.report.runs import Comparison, Job


def panel(comparison: Comparison, page: Page) -> Section | None:
    cards, maps, seen = [], [], set()
    for series in comparison.series:
        job = series.jobs[0]
        if (series.run.name, series.label) in seen:
            continue  # one card for all predictors: they share their parameters
        seen.add((series.run.name, series.label))
        layers = list(histograms(job, "weights"))
        if not layers:
            continue
        name = f"{series.run.name}: {series.label}" if len(comparison.runs) > 1 else series.label
        cards.append(Card(name, page.add_plot(_plot(layers, "mean parameter")), simulated=series.run.simulated))
        if deviations := list(histograms(job, "deviations")):
            place = page.add_plot(_plot(deviations, "standard deviation of a synapse"))
            cards.append(Card(f"{name}: standard deviations", place, simulated=series.run.simulated))
        if (pictures := spread_pictures(job)) is not None:
            title = f"{name}: standard deviation by input"
            maps.append(Card(title, page.add_plot(pictures), simulated=series.run.simulated, wide=True))
    if not cards:
        return None
    lead = (
        "Distribution of the mean parameters (weights, or the posterior's means) at the end of training, first seed, "
        "logarithmic scale, with the share that is not zero; for a posterior also the standard deviations of its "
        "synapses. Below: how unsure it is of the synapses of each input after every task, all on one scale, from the "
        "surest to the least sure; what the tasks have used is dark."
    )
    return Section("parameters", "Parameters", lead, [Cards(cards, below=maps)])


def histograms(job: Job, what: str) -> Iterator[tuple[str, Array, Array, float | None]]:
    """Layer, counts, edges and share of non-zero parameters, for every layer of which `what` was stored."""
    for name in job.arrays.names():
        if not name.startswith(f"{what}/") or not name.endswith("_counts"):
            continue
        layer = name.removeprefix(f"{what}/").removesuffix("_counts")
        counts, edges = job.arrays.get(name, 1), job.arrays.get(f"{what}/{layer}_edges", 1)
        share = job.arrays.get(f"{what}/{layer}_nonzero")
        if counts is not None and edges is not None and len(edges) == len(counts) + 1 and counts.sum() > 0:
            yield layer, counts, edges, None if share is None or share.size != 1 else float(share.reshape(-1)[0])


def _plot(layers: list[tuple[str, Array, Array, float | None]], what: str) -> Plot:
    traces = []
    for k, (layer, counts, edges, share) in enumerate(layers):
        nonzero = "" if share is None else f": {100 * share:.1f} % non-zero"
        shares = counts / counts.sum()
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": rounded((edges[:-1] + edges[1:]) / 2, 5),
                "y": [float(f"{v:.3g}") if v > 0 else None for v in shares],
                "line": {"color": f"@c{k}", "width": 1.5, "shape": "hvh"},
                "name": label(f"layer {layer}{nonzero}"),
            }
        )
    layout = {
        "xaxis": {"title": {"text": what}},
        "yaxis": {"title": {"text": "share"}, "type": "log", "exponentformat": "power", "dtick": 1},
        "showlegend": True,
    }
    return Plot(traces, layout, height=280 + 20 * len(layers))
