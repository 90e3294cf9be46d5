"""`python -m bayspike.experiments.worker DIRECTORY JOB`: one job of a run, for its parent (`runs.child`)."""

import os
import sys
from pathlib import Path

from bayspike.experiments.registry import experiment
from bayspike.runs.child import work
from bayspike.storage.named import ANY, permit

if __name__ == "__main__":
    permit(ANY)  # the parent was asked
    code = work(Path(sys.argv[1]), sys.argv[2], experiment)
    sys.stdout.flush()
    os._exit(code)  # without waiting for the thread that watches the lifeline
