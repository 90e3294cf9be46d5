"""What came out of a run: the examinations of a learner, the results of a job, the summary of all, and their forms."""
