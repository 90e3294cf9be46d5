"""The panels of the report in the order they are read. Each gives a section, or none if its data are missing."""

from collections.abc import Callable

from bayspike.report.markup import Page, Section
from bayspike.report.panels import (
    controls,
    figures,
    foreign,
    headline,
    matrices,
    over_time,
    provenance,
    reliability,
    sets,
    stream,
    training,
    tuning,
    two_moons,
    weights,
)
from bayspike.report.runs import Comparison

Panel = Callable[[Comparison, Page], Section | None]

PANELS: tuple[tuple[str, Panel], ...] = (
    ("Results", headline.panel),
    ("Confidence maps", two_moons.panel),
    ("Decisions as events arrive", stream.panel),
    ("Calibration", reliability.panel),
    ("Over time", over_time.panel),
    ("Prediction sets", sets.panel),
    ("Foreign inputs", foreign.panel),
    ("Is it the posterior?", controls.panel),
    ("Training", training.panel),
    ("Accuracy matrices", matrices.panel),
    ("Parameters", weights.panel),
    ("What was tried", tuning.panel),
    ("Figures", figures.panel),
    ("Configuration and provenance", provenance.panel),
)
