"""Distributions over the weights of a layer, what can be drawn from them, and how small they can be stored.

In come means, precisions or logits from a rule; out go draws, modes and means for predictors, weights on the chip's
8-bit grid, and posteriors packed into two bytes a synapse.
"""
