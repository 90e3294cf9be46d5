"""Studies are scripts, and some import the one beside them: their folder is on the path while they are loaded."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "studies"))
