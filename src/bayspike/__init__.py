"""bayspike: Bayesian continual learning with spiking neural networks."""

__version__ = "0.1.0"
