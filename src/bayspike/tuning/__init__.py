"""Tuning: hyper-parameters chosen on validation examples, fairly by construction.

In come an experiment with its methods and a number of trials; out goes a record of all that was tried, and the best
settings of every method. Methods have the same number of trials, the same ranges for all that they share, and the same
division of the training examples; the test examples are never looked at. The search itself is Optuna's (extra `tune`).
"""
