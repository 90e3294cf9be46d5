"""The report on one or several runs: one HTML file that needs no network. And the figures of a run, drawn again.

In come run directories, whose files are not trusted; out go a page in which every value is escaped and pictures with
their numbers beside them.
"""

from bayspike.report.build import write_report
from bayspike.report.figure_set import write_figures

__all__ = ["write_figures", "write_report"]
