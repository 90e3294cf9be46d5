"""bayspike: Bayesian continual learning with spiking neural networks.

`__all__` is the public API: a few names that serve most uses, and the modules that hold the rest. What is listed
neither here nor in the `__all__` of a module named here is private and may change in any release.

Names are looked up when they are first used, so that `import bayspike` and the help of the command line need not
wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from bayspike import continual, data, figures, learner, metrics, rules
    from bayspike.continual import StreamConfig, Task, judge_with, run_stream, split_by_class
    from bayspike.data import CoordinateSamples, Dataset, SpikeSamples, StaticSamples
    from bayspike.errors import UserError
    from bayspike.hardware.export import export, verify
    from bayspike.learner.learner import Learner
    from bayspike.learning.batch import init_states, train_batch
    from bayspike.posteriors.grid import Grid
    from bayspike.predict.predictors import Committee, Ensemble, Point, predict_samples
    from bayspike.predict.watching import calibrate_foreign
    from bayspike.rules import EWC, SGD, STE, TACOS, BernoulliVI, GaussianVI, Laplace
    from bayspike.spiking.filters import DoubleExponential, Resonator
    from bayspike.spiking.network import NetworkConfig, build

__all__ = [
    "EWC",
    "SGD",
    "STE",
    "TACOS",
    "BernoulliVI",
    "Committee",
    "CoordinateSamples",
    "Dataset",
    "DoubleExponential",
    "Ensemble",
    "GaussianVI",
    "Grid",
    "Laplace",
    "Learner",
    "NetworkConfig",
    "Point",
    "Resonator",
    "SpikeSamples",
    "StaticSamples",
    "StreamConfig",
    "Task",
    "UserError",
    "__version__",
    "build",
    "calibrate_foreign",
    "continual",
    "data",
    "export",
    "figures",
    "init_states",
    "judge_with",
    "learner",
    "metrics",
    "predict_samples",
    "rules",
    "run_stream",
    "split_by_class",
    "train_batch",
    "verify",
]

_MODULES = ("continual", "data", "figures", "learner", "metrics", "rules")
_HOMES = {
    "continual": ("StreamConfig", "Task", "judge_with", "run_stream", "split_by_class"),
    "data": ("CoordinateSamples", "Dataset", "SpikeSamples", "StaticSamples"),
    "errors": ("UserError",),
    "hardware.export": ("export", "verify"),
    "learner.learner": ("Learner",),
    "learning.batch": ("init_states", "train_batch"),
    "posteriors.grid": ("Grid",),
    "predict.predictors": ("Committee", "Ensemble", "Point", "predict_samples"),
    "predict.watching": ("calibrate_foreign",),
    "rules": ("EWC", "SGD", "STE", "TACOS", "BernoulliVI", "GaussianVI", "Laplace"),
    "spiking.filters": ("DoubleExponential", "Resonator"),
    "spiking.network": ("NetworkConfig", "build"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"bayspike.{name}")
    if name in _HOME_OF:
        return getattr(import_module(f"bayspike.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module 'bayspike' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
