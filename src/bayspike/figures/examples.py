"""The three most probable classes on selected examples (paper, Fig. visualisation)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bayspike.errors import require
from bayspike.figures.output import Array, Figure, Table, field, numbers, require_panels, write_figure
from bayspike.figures.style import BLACK, WIDTH, new_sheet, series_style, styled


@styled
def top_classes(
    directory: str | Path,
    examples: Mapping[str, Mapping[str, Mapping[str, Any]]],
    class_names: Sequence[str],
    *,
    shown: int = 3,
    name: str = "top_classes",
    simulated: bool = False,
) -> Figure:
    """`examples[row][column]` is one example, e.g. rows by kind of synapse and columns by who is right.

    An example has `label`, `probabilities` (a mapping from model to one number per class) and optionally
    `image` `(height, width)`, such as its events summed over time. The correct class is in bold.
    """
    require_panels(examples, "examples")
    columns = max(len(row) for row in examples.values())
    most = max(
        len(field(example, "probabilities", column)) for row in examples.values() for column, example in row.items()
    )
    height = 0.3 + len(examples) * (0.42 + most * (0.26 + 0.17 * shown))
    sheet = new_sheet(WIDTH, height)
    cells = sheet.subfigures(len(examples), columns, squeeze=False, wspace=0.02, hspace=0.03)
    rows: list[tuple[Any, ...]] = []
    for i, (row, cases) in enumerate(examples.items()):
        for j, (column, example) in enumerate(cases.items()):
            rows += _cell(cells[i, j], row, column, example, class_names, shown)
    caption = (
        f"The {shown} most probable classes of each model on selected examples. "
        "The correct class is in bold; bars and numbers are predictive probabilities."
    )
    table = Table(("row", "example", "model", "rank", "class", "probability", "is_label"), rows)
    return write_figure(sheet, directory, name, caption, table, simulated=simulated)


def _cell(
    cell: Any, row: str, column: str, example: Mapping[str, Any], class_names: Sequence[str], shown: int
) -> list[tuple[Any, ...]]:
    where = f"{row}, {column}"
    label = int(field(example, "label", where))
    require(
        0 <= label < len(class_names),
        f"label {label} of {where!r} has no name among {len(class_names)} class names.",
    )
    cell.suptitle(f"{row}: {column}\n(correct: {class_names[label]})")
    predictions = field(example, "probabilities", where)
    require_panels(predictions, f"probabilities of {where}")
    image = example.get("image")
    layout = cell.add_gridspec(
        len(predictions), 2 if image is not None else 1, width_ratios=[1, 1.5] if image is not None else [1]
    )
    if image is not None:
        axes = cell.add_subplot(layout[:, 0])
        axes.imshow(numbers(image, f"image of {where}", 2), cmap="Greys", interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        for side in axes.spines.values():
            side.set(visible=True, linewidth=0.4)
    rows: list[tuple[Any, ...]] = []
    for m, (model, values) in enumerate(predictions.items()):
        p = numbers(values, f"probabilities of {where}, {model}", 1)
        require(
            len(p) == len(class_names) and bool(((p >= 0) & (p <= 1)).all()),
            f"probabilities of {where}, {model} must be {len(class_names)} numbers in [0, 1], one per class.",
        )
        best = np.argsort(-p, kind="stable")[:shown]
        _bars(cell.add_subplot(layout[m, -1]), m, model, p, best, label, class_names)
        rows += [
            (row, column, model, rank + 1, class_names[k], f"{p[k]:.6g}", int(k == label))
            for rank, k in enumerate(best)
        ]
    return rows


def _bars(axes: Any, index: int, model: str, p: Array, best: Any, label: int, class_names: Sequence[str]) -> None:
    style = series_style(index)
    places = np.arange(len(best))
    axes.barh(places, p[best], 0.72, facecolor=style.colour, edgecolor="white", hatch=style.hatch, linewidth=0.4)
    axes.set_yticks(places, [class_names[k] for k in best])
    for tick, k in zip(axes.get_yticklabels(), best, strict=True):
        tick.set(fontweight="bold" if k == label else "normal", fontsize=6.5)
    for place, k in zip(places, best, strict=True):
        weight = "bold" if k == label else "normal"
        axes.text(p[k] + 0.03, place, f"{p[k]:.2f}", va="center", fontsize=6.5, color=BLACK, fontweight=weight)
    axes.invert_yaxis()
    axes.set(xlim=(0, 1.25), xticks=[])
    axes.tick_params(axis="y", length=0)
    axes.spines["bottom"].set_visible(False)
    axes.set_title(model, fontsize=7, pad=1.5, loc="left")
