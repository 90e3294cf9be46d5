"""Learning from one mini-batch: the loop over time of Algorithms 1 and 2, in which any rule can be put.

In come a network, a rule, its states and the spikes of a mini-batch; out go the states after one update of every layer
at every time-step, and a report. Inputs that stay silent are set aside, silence and divergence are noticed, and the
Fisher information of a task is gathered for the rules that ask for it.
"""
