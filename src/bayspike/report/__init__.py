"""The report on one or several runs: one HTML file that needs no network. And the figures of a run, drawn again."""

from bayspike.report.build import write_report
from bayspike.report.figure_set import write_figures

__all__ = ["write_figures", "write_report"]
