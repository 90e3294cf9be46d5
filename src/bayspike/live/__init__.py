"""`bayspike live`: a page on this machine on which a person asks a learner, teaches it, and sees what it remembers.

In come drawings, files, streams of events and lessons; out go the steps of decisions, what was learnt, and a learner to
keep. What is done to the learner is plain functions of values (`moments`, `lessons`, `playing`); `session` is the one
place that changes, `server` lets a page in and `guard` keeps others out. Needs the extra `live`.
"""
