"""`python -m bayspike.experiments.tuner DIRECTORY METHOD`: the trials of one method, for their parent."""

import os
import sys
from pathlib import Path

from bayspike.experiments.registry import experiment
from bayspike.storage.named import ANY, permit
from bayspike.tuning.carry_out import work

if __name__ == "__main__":
    permit(ANY)  # the parent was asked
    code = work(Path(sys.argv[1]), sys.argv[2], experiment)
    sys.stdout.flush()
    os._exit(code)  # without waiting for the thread that watches the lifeline
