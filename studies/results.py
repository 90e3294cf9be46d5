"""All tables and figures of the results from one command: `make results`, or `python studies/results.py [NAME …]`.

Each line below is a run or a study, with what it makes. A run that was stopped is resumed, one that is done is skipped,
and a study repeats no trial that its file already has; so the whole can be stopped at any time and called again. On two
cores of a small machine all of it takes about a day; `--list` says what is there and what is missing. Afterwards
`studies/tables.py` fills the tables in.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "runs" / "results"


class Step(NamedTuple):
    """One command. A run leaves its summary in docs/results; a study appends to its own file there."""

    name: str
    arguments: str
    summary: str | None = None  # name of the file in docs/results that a run's summary becomes

    @property
    def run(self) -> Path:
        return RUNS / self.name


STEPS = (
    Step("split-mnist", "split-mnist --preset paper --evaluations 2", "split-mnist"),
    Step("permuted-mnist", "permuted-mnist --preset laptop --train-examples 60000 --seeds 3", "permuted-mnist"),
    Step("permuted-mnist-50", "permuted-mnist --preset paper --hidden 400 --tasks 50 --seeds 1", "permuted-mnist-50"),
    Step("permuted-mnist-200", "permuted-mnist --preset paper --seeds 1", "permuted-mnist-200"),
    Step("permuted-tuning", "studies/permuted_mnist.py tune"),
    Step("permuted-widths", "studies/permuted_mnist.py widths"),
    Step("foreign-after-tasks", "studies/foreign_after_tasks.py"),
    Step("two-moons", "two-moons --preset paper", "two-moons"),
    Step("split-nmnist", "split-nmnist --preset laptop --seeds 3", "split-nmnist"),
    Step("dvs-gestures", "dvs-gestures --preset laptop --seeds 3", "dvs-gestures"),
    Step("poker-dvs", "poker-dvs --preset paper --evaluations 1", "poker-dvs"),
    Step(
        "mnist-dvs",
        "mnist-dvs --preset laptop --simulated --hidden 256 128 --train-examples 900 --time 40 --evaluations 2",
        "mnist-dvs",
    ),
    Step("memory-tuning", "studies/memory_split_mnist.py tune"),
    Step("memory", "studies/memory_split_mnist.py judge --seeds 3"),
    Step("memory-figure", "studies/memory_split_mnist.py draw"),
    Step("exact-posterior", "studies/exact_posterior.py"),
    Step("surrogate-free", "studies/surrogate_free.py"),
    Step("tacos", "studies/tacos_protocol.py"),
    Step("curves", "studies/curves_split_mnist.py"),
)


def command(step: Step) -> list[str]:
    """What to run now: a study, a run from the start, or one that goes on."""
    if step.summary is None:
        return [sys.executable, *step.arguments.split()]
    if (step.run / "config.json").is_file():
        return [sys.executable, "-m", "bayspike", "resume", str(step.run)]
    return [sys.executable, "-m", "bayspike", "run", *step.arguments.split(), "--out", str(step.run)]


def state(step: Step) -> str:
    if step.summary is None:
        return "study"
    if (step.run / "summary.json").is_file():
        return "done"
    return "begun" if step.run.exists() else "missing"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these steps; without any, all")
    parser.add_argument("--list", action="store_true", help="say what is done and what is missing, and run nothing")
    options = parser.parse_args()
    known = {step.name: step for step in STEPS}
    if unknown := [name for name in options.names if name not in known]:
        print(f"There is no step {unknown[0]!r}: choose from {', '.join(known)}.", file=sys.stderr)
        return 2
    for step in (known[name] for name in options.names or known):
        if options.list:
            print(f"{state(step):8} {step.name:20} {' '.join(command(step)[1:])}")
            continue
        if state(step) != "done" and (code := subprocess.run(command(step), cwd=ROOT).returncode):
            print(f"{step.name} ended with code {code}: call this again to go on with it.", file=sys.stderr)
            return code
        if step.summary is not None:
            shutil.copyfile(step.run / "summary.json", ROOT / "docs" / "results" / f"{step.summary}.json")
    return 0 if options.list else subprocess.run([sys.executable, "studies/tables.py"], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
