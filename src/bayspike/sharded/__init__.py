"""One network on several processes: each holds some neurons of every layer, with all their synapses.

The learning rule is local, so a synapse needs the traces of its inputs and the error of its own neuron, nothing else.
What travels is the spikes of a layer, one bit each, at every time-step; every process computes the logits from them. A
gradient never leaves the process whose weights it moves. In come the same values as in `bayspike.learning`, out go its
states cut into rows; draws are those of one process.
"""
