"""Spiking networks: filters, neurons, surrogates, layers, and the local gradient of a layer. No learning happens here.

In come spikes `(time, batch, inputs)` and whatever drives a layer (weights, or draws of them); out go spikes,
potentials and, at every time-step, the two factors of each example's gradient. State is handed in and out, never kept.
"""
