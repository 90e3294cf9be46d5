"""The panels of the report in the order they are read. Each gives a section, or none if its data are missing."""

from collections.abc import Callable

from bayspike.report.markup import Page, Section
from bayspike.report.panels import (
    controls,
    course,
    differences,
    figures,
    foreign,
    headline,
    matrices,
    over_time,
    paired,
    provenance,
    pruning,
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
    ("What differs", differences.panel),
    ("Results", headline.panel),
    ("Beyond chance?", paired.panel),
    ("Confidence maps", two_moons.panel),
    ("Decisions as events arrive", stream.panel),
    ("Calibration", reliability.panel),
    ("Over time", over_time.panel),
    ("Prediction sets", sets.panel),
    ("Foreign inputs", foreign.panel),
    ("Is it the posterior?", controls.panel),
    ("Fewer synapses", pruning.panel),
    ("Task after task", course.panel),
    ("Training", training.panel),
    ("Accuracy matrices", matrices.panel),
    ("Parameters", weights.panel),
    ("What was tried", tuning.panel),
    ("Figures", figures.panel),
    ("Configuration and provenance", provenance.panel),
)
