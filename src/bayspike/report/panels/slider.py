"""The slider over time t of a section; the script moves every plot of the section that has steps."""

from dataclasses import dataclass

from bayspike.report.markup import Part


@dataclass(frozen=True)
class Slider(Part):
    """From 1 to `steps`, at the end to begin with."""

    template = "slider.html"
    name: str
    steps: int
