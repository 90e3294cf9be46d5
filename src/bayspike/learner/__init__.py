"""`Learner`: a continual learner to keep, on top of all the rooms below.

In come tasks, data sets, arrays or single examples with labels; out go decisions of a committee with their worth, and a
file from which the learner goes on tomorrow without the old data. `LearnerState` is all that a learner is, as one
value, and the functions of this room take one and return the next.
"""

from bayspike.learner.answers import Answer, Answers, LearnerWatch, calibrate, judge_of
from bayspike.learner.defaults import default_rule
from bayspike.learner.encoding import Encoding
from bayspike.learner.file import load_state, save_state
from bayspike.learner.from_stream import learner_of_stream
from bayspike.learner.learner import Learner
from bayspike.learner.online import learn_one
from bayspike.learner.state import Calibration, LearnerState, Recipe, birth, network_of, posteriors_of, with_classes
from bayspike.learner.tasks import BatchNote, TaskNote, learn_task

__all__ = [
    "Answer",
    "Answers",
    "BatchNote",
    "Calibration",
    "Encoding",
    "Learner",
    "LearnerState",
    "LearnerWatch",
    "Recipe",
    "TaskNote",
    "birth",
    "calibrate",
    "default_rule",
    "judge_of",
    "learn_one",
    "learn_task",
    "learner_of_stream",
    "load_state",
    "network_of",
    "posteriors_of",
    "save_state",
    "with_classes",
]
