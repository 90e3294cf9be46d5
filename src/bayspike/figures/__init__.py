"""Every figure of the paper, and a few more, drawn from saved results alone.

Each function takes a directory and plain arrays or mappings, writes `<name>.png`, `.svg`, `.csv` (the
numbers) and `.txt` (the caption), and returns a `Figure` that says where they are. `simulated=True` puts
"Simulated data" on the figure and into its caption.
"""

from bayspike.figures.calibration import foreign_histograms, reliability_diagrams
from bayspike.figures.continual import accuracy_matrices, final_boxes, training_curves
from bayspike.figures.course import stream_course
from bayspike.figures.examples import top_classes
from bayspike.figures.online import measures_over_time, risk_coverage_curves
from bayspike.figures.output import Figure
from bayspike.figures.pruning import pruning_curves
from bayspike.figures.two_moons import confidence_maps
from bayspike.figures.weights import count_means, mean_parameters

__all__ = [
    "Figure",
    "accuracy_matrices",
    "confidence_maps",
    "count_means",
    "final_boxes",
    "foreign_histograms",
    "mean_parameters",
    "measures_over_time",
    "pruning_curves",
    "reliability_diagrams",
    "risk_coverage_curves",
    "stream_course",
    "top_classes",
    "training_curves",
]
