"""What is left of a learner without some of its synapses: accuracy against the share that was cut, in both orders."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bayspike.errors import require
from bayspike.figures.output import Figure, Table, field, numbers, require_panels, write_figure
from bayspike.figures.style import COLUMN, new_sheet, series_style, styled

ORDERS = {"size": "|m|", "signal": r"|m|$\sqrt{p}$"}


@styled
def pruning_curves(
    directory: str | Path,
    results: Mapping[str, Mapping[str, Any]],
    *,
    name: str = "pruning",
    simulated: bool = False,
) -> Figure:
    """`results[method]` has for each order in which synapses were cut, `size` or `signal`, the `share` that was cut and
    the `accuracy` that is left, each `(points,)`."""
    require_panels(results, "results")
    sheet = new_sheet(1.35 * COLUMN, 2.7)
    axes = sheet.subplots()
    rows: list[tuple[Any, ...]] = []
    ticks: set[float] = set()
    for place, (method, orders) in enumerate(results.items()):
        style = series_style(place)
        for order, curve in orders.items():
            require(
                order in ORDERS, f"synapses of {method!r} were cut by {order!r}: only {', '.join(ORDERS)} are known."
            )
            share = numbers(field(curve, "share", method), f"share of {method}", 1)
            accuracy = numbers(field(curve, "accuracy", method), f"accuracy of {method}", 1)
            require(
                len(share) == len(accuracy) and bool(((share >= 0) & (share < 1)).all()),
                f"share of {method!r} must lie in [0, 1) and be as long as its accuracy.",
            )
            by_size = order == "size"
            axes.plot(
                1 - share, accuracy, color=style.colour, linestyle="-" if by_size else (0, (4, 1.5)),
                marker=style.marker, markerfacecolor=style.colour if by_size else "white",
                label=f"{method}, by {ORDERS[order]}",
            )  # fmt: skip
            ticks |= {round(float(each), 6) for each in share}
            rows += [(method, order, f"{a:g}", f"{b:.6g}") for a, b in zip(share, accuracy, strict=True)]
    axes.set_xscale("log")
    axes.invert_xaxis()
    shown = sorted(ticks)
    axes.set_xticks([1 - each for each in shown], [f"{100 * each:g} %" for each in shown])
    axes.minorticks_off()
    axes.set(xlabel="synapses cut (scale: those left)", ylabel="accuracy")
    axes.grid(axis="both")
    axes.legend(loc="lower left")
    caption = (
        "Accuracy of every learner without a share of each layer's synapses, cut in the order of their size |m| (solid "
        "lines) or, of a posterior, of their signal-to-noise ratio |m|·√p (dashed)."
    )
    table = Table(("method", "cut_by", "share_cut", "accuracy"), rows)
    return write_figure(sheet, directory, name, caption, table, simulated=simulated)
