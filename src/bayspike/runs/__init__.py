"""Runs: from a configuration to a directory of results that survives any kill.

In comes an `Experiment` value with its data (this room knows no experiment by name); out go checkpoints, metrics,
results and a summary. `plan` holds what a run is; the rest is how it is carried out: jobs, worker processes, run
directories, checkpoints, the final examination.
"""
