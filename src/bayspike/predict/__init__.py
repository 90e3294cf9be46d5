"""Decisions: committees, ensembles and points, for whole signals at once or while they are still arriving.

In come posteriors and spikes; out go probabilities at every time-step, and what can be said about their worth:
confidence, disagreement, a fitted temperature, conformal sets, and whether an input looks foreign.
"""
