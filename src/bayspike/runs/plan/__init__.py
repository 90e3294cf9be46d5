"""What a run is: its options, what an experiment has to say, and the one configuration they resolve to."""
