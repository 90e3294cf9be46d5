"""Measures of accuracy, calibration, uncertainty, continual learning and energy.

Probabilities are `(..., batch, classes)`; a measure reduces the batch and keeps the leading dimensions, so
cumulative probabilities `(time, batch, classes)` give every measure as a function of t.
"""

from bayspike.metrics.calibration import (
    ReliabilityBins,
    adaptive_ece,
    chance_ece,
    classwise_ece,
    confidence_histogram,
    ece,
    reliability_bins,
)
from bayspike.metrics.checks import check_labels, check_probabilities
from bayspike.metrics.continual import (
    ContinualSummary,
    average_accuracy,
    backward_transfer,
    forgetting,
    forward_transfer,
    plasticity,
    summarise_continual,
)
from bayspike.metrics.energy import (
    LOIHI,
    ChipEnergy,
    EnergyOverTime,
    Population,
    energy_over_time,
    fan_out_of,
    spike_counts,
)
from bayspike.metrics.foreign import (
    ForeignDetection,
    aupr,
    auroc,
    compare_scores,
    detect_foreign,
    false_pass_rate,
    fpr95,
    unsureness,
)
from bayspike.metrics.scores import accuracy, brier, mean_confidence, nll
from bayspike.metrics.selective import RiskCoverage, risk_coverage
from bayspike.metrics.uncertainty import Uncertainty, entropy, mutual_information, split_uncertainty

__all__ = [
    "LOIHI",
    "ChipEnergy",
    "ContinualSummary",
    "EnergyOverTime",
    "ForeignDetection",
    "Population",
    "ReliabilityBins",
    "RiskCoverage",
    "Uncertainty",
    "accuracy",
    "adaptive_ece",
    "aupr",
    "auroc",
    "average_accuracy",
    "backward_transfer",
    "brier",
    "chance_ece",
    "check_labels",
    "check_probabilities",
    "classwise_ece",
    "compare_scores",
    "confidence_histogram",
    "detect_foreign",
    "ece",
    "energy_over_time",
    "entropy",
    "false_pass_rate",
    "fan_out_of",
    "forgetting",
    "forward_transfer",
    "fpr95",
    "mean_confidence",
    "mutual_information",
    "nll",
    "plasticity",
    "reliability_bins",
    "risk_coverage",
    "spike_counts",
    "split_uncertainty",
    "summarise_continual",
    "unsureness",
]
