"""All tables and figures of the results from one command: `make results`, or `python studies/results.py [NAME …]`.

Each line below is a run or a study, with what it makes. A run that was stopped is resumed, one that is done is skipped,
and a study repeats no trial that its file already has (foreign-split-mnist, which trains nothing, is made anew); so the
whole can be stopped at any time and called again.
`--list` says what is there, what is missing, and by estimate how many hours all of it takes on two cores of a small
machine. Afterwards `studies/tables.py` fills the tables in.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "runs" / "results"


class Step(NamedTuple):
    """One command. A run leaves its summary and some of its figures in the docs; a study appends to a file there."""

    name: str
    arguments: str
    hours: float  # on two cores, estimated
    summary: str | None = None  # name of the file in docs/results that a run's summary becomes
    figures: tuple[str, ...] = ()  # files of the run's figures that become docs/img/results-NAME-….png
    lines: str | None = None  # name of the file in docs/results that a study appends to
    prune: tuple[str, ...] = ()  # shares of the synapses that are cut of a run's networks when it is done

    @property
    def run(self) -> Path:
        return RUNS / self.name

    def picture(self, figure: str, docs: Path = ROOT / "docs") -> Path:
        return docs / "img" / f"results-{self.name}-{figure.replace('_', '-')}.png"


FOUR = "--method bayes-stream si ewc-online finetune"  # of the streams without boundaries
MEMORY_OF_GARMENTS = "studies/memory_split_mnist.py {} --data fashion_mnist --stored 0 10 45 450 --kernels compiled"
FOREIGN_GESTURES = "gestures-0-1 gestures-2-3 gestures-4-5 gestures-6-7 gestures-8-9-10 light-natural"
SIX_DVS = "--method ewc bayes sgd ewc-binary bayes-binary ste"

# Five seeds where one costs less than ten minutes. A study that asks trained networks comes after their runs.
STEPS = (
    Step(
        "demo",
        "digits --preset demo --method bayes ewc sgd --seeds 3",
        0.1,
        "demo",
        ("pruning",),
        prune=("0.5", "0.75", "0.9", "0.95"),
    ),
    Step(
        "split-mnist",
        "split-mnist --preset paper --evaluations 2",
        6,
        "split-mnist",
        ("reliability", "foreign_confidence"),
    ),
    Step(
        "split-mnist-controls",
        "split-mnist --preset paper --method bayes ewc sgd --evaluations 1 --control-examples 4000 --kernels compiled "
        "--seeds 3",
        1,
        "split-mnist-controls",
    ),
    Step(
        "split-mnist-shifted",
        "split-mnist --preset paper --method bayes ewc sgd --augment-stored shift=1 --evaluations 1 --kernels compiled",
        1,
        "split-mnist-shifted",
    ),
    Step(
        "split-mnist-shifted-carried",
        "split-mnist --preset paper --method bayes-carried --augment-stored shift=1 --evaluations 1 --kernels compiled "
        "--seeds 3",
        0.3,
        "split-mnist-shifted-carried",
    ),
    Step(
        "split-mnist-ten",
        "split-mnist --preset paper --method bayes-carried ewc sgd --coreset-share 0.0016667 --augment-stored shift=1 "
        "--evaluations 1 --kernels compiled --seeds 1 "
        "--set bayes-carried.carry=32 bayes-carried.by_evidence=true bayes-carried.training.anneal=0 ewc.strength=1e-5",
        0.5,
        "split-mnist-ten",
    ),
    Step(
        "split-mnist-ten-turned",
        "split-mnist --preset paper --method laplace bayes-stream ewc sgd --coreset-share 0.0016667 "
        "--augment-stored shift=1,turn=10,stretch=0.1 --evaluations 1 --kernels compiled --seeds 3 "
        "--set bayes-stream.remember=200000 bayes-stream.training.anneal=0 ewc.strength=1e-6",
        1,
        "split-mnist-ten-turned",
    ),
    Step(
        "foreign-split-mnist",
        "studies/foreign_split_mnist.py runs/results/split-mnist",
        0.3,
        lines="foreign-split-mnist",
    ),
    Step(
        "permuted-mnist",
        f"permuted-mnist --preset laptop --train-examples 60000 --seeds 3 {FOUR}",
        4,
        "permuted-mnist",
        ("course",),
    ),
    Step(
        "permuted-mnist-flat",
        "permuted-mnist --preset laptop --train-examples 60000 --seeds 3 --method bayes-flat --kernels compiled",
        0.5,
        "permuted-mnist-flat",
    ),
    Step(
        "mnist-alone",
        "permuted-mnist --preset laptop --tasks 1 --train-examples 60000 --seeds 3 --method bayes-stream mesu finetune "
        "--kernels compiled",
        0.2,
        "mnist-alone",
    ),
    # not the preset `paper`: its memory of two and a half tasks is for a stream without an end, and would forget these
    Step(
        "permuted-mnist-50",
        f"permuted-mnist --preset laptop --tasks 50 --seeds 3 {FOUR} --kernels compiled",
        0.7,
        "permuted-mnist-50",
    ),
    Step(
        "permuted-mnist-200",
        "permuted-mnist --preset paper --seeds 1 --method bayes-stream finetune --kernels compiled",
        2,
        "permuted-mnist-200-of-50",
        ("course",),
    ),
    Step(
        "permuted-mnist-200-rivals",
        "permuted-mnist --preset paper --seeds 1 --method mesu ewc-online si --kernels compiled",
        2,
        "permuted-mnist-200-rivals",
    ),
    Step(
        "permuted-mnist-200-400",
        "permuted-mnist --preset paper --hidden 400 --method bayes-stream --kernels compiled --seeds 3 "
        "--set bayes-stream.prior_std=null",
        4,
        "permuted-mnist-200-of-400",
        ("course",),
    ),
    Step("permuted-tuning", "studies/permuted_mnist.py tune", 1, lines="permuted-tuning"),
    Step("permuted-long", "studies/permuted_mnist.py long", 1, lines="permuted-tuning"),
    Step(
        "permuted-long-400",
        "studies/permuted_mnist.py long --widths 400 --methods bayes-stream",
        0.3,
        lines="permuted-tuning",
    ),
    Step("permuted-units", "studies/permuted_mnist.py units", 0.2, lines="permuted-tuning"),
    Step("permuted-widths", "studies/permuted_mnist.py widths", 1, lines="permuted-tuning"),
    Step("width", "studies/width.py", 0.1, lines="width"),
    Step("foreign-after-tasks", "studies/foreign_after_tasks.py", 0.5, lines="foreign-after-tasks"),
    Step("inputs-alone", "studies/inputs_alone.py", 0.1, lines="inputs-alone"),
    Step("rotated-mnist", "rotated-mnist --preset laptop --seeds 5 --kernels compiled", 0.3, "rotated-mnist"),
    Step("drifting-mnist", "drifting-mnist --preset laptop --seeds 5 --kernels compiled", 0.4, "drifting-mnist"),
    Step(
        "split-fashion-mnist",
        "split-fashion-mnist --preset laptop --seeds 5 --evaluations 1 --kernels compiled",
        0.3,
        "split-fashion-mnist",
    ),
    Step(
        "split-fashion-mnist-full",
        "split-fashion-mnist --preset paper --method bayes ewc sgd --evaluations 1 --kernels compiled --seeds 3",
        0.8,
        "split-fashion-mnist-full",
    ),
    Step("two-moons", "two-moons --preset paper --seeds 3 --kernels compiled", 0.5, "two-moons", ("two_moons",)),
    Step("nmnist-maps", "split-nmnist --preset laptop --seeds 3", 0.5, "nmnist-maps"),
    Step(
        "nmnist-joint",
        "split-nmnist --preset paper --method bayes-joint joint --network 32c5s2-2p-96c5s2 --epochs 16 --evaluations 1 "
        "--seeds 3",
        0.6,
        "nmnist-joint",
    ),
    Step(
        "gestures-genuine",
        "dvs-gestures --preset laptop --seeds 5",
        0.3,
        "gestures-genuine",
        ("reliability", "over_time", "foreign_confidence"),
    ),
    Step(
        "gestures-binary",
        "dvs-gestures --preset demo --method bayes sgd bayes-binary ste --epochs 15 --seeds 5",
        0.2,
        "gestures-binary",
    ),
    Step("split-gestures", "split-gestures --preset laptop --seeds 3", 0.4, "split-gestures"),
    Step(  # the rate that suits strangers best, of four
        "split-gestures-sgd",
        "split-gestures --preset laptop --method sgd --seeds 3 --set sgd.lr=0.03",
        0.2,
        "split-gestures-sgd",
    ),
    Step("gesture-folds", "studies/gesture_folds.py runs/results/gestures-genuine", 0.3, lines="gesture-folds"),
    Step("foreign-gestures", f"studies/foreign_gestures.py {FOREIGN_GESTURES}", 0.8, lines="foreign-gestures"),
    Step("gesture-trials", "studies/gesture_trials.py", 1, lines="gesture-trials"),
    Step("delays", "studies/delays.py", 0.7, lines="delays"),
    Step("anytime", "studies/anytime.py runs/results/nmnist-maps runs/results/gestures-genuine", 0.3, lines="anytime"),
    Step("robustness", "studies/robustness.py", 1, lines="robustness"),
    Step("poker-dvs", "poker-dvs --preset paper --evaluations 1 --seeds 3", 0.2, "poker-dvs"),
    Step(
        "dvs-gestures",
        "dvs-gestures --preset demo --simulated --seeds 3",
        0.1,
        "dvs-gestures",
        ("reliability", "over_time"),
    ),
    Step("dvs-gestures-laptop", "dvs-gestures --preset laptop --simulated --seeds 1", 0.1, "dvs-gestures-laptop"),
    Step(
        "mnist-dvs",
        "mnist-dvs --preset laptop --simulated --hidden 256 128 --train-examples 900 --time 40 --evaluations 2 "
        f"--seeds 3 {SIX_DVS}",
        0.2,
        "mnist-dvs",
        ("training_curves", "final_boxes", "mean_parameters"),
    ),
    Step("stored-examples", "studies/stored_examples.py --seeds 3", 3, lines="stored-examples"),
    Step("memory-tuning", "studies/memory_split_mnist.py tune --kernels compiled", 1, lines="memory-tuning"),
    Step("memory", "studies/memory_split_mnist.py judge --seeds 3 --kernels compiled", 3, lines="memory-split-mnist"),
    Step(
        "memory-neighbours",
        "studies/memory_split_mnist.py neighbours --stored 0 10 --learners bayes ewc --seeds 3 --kernels compiled",
        0.7,
        lines="memory-split-mnist",
    ),
    Step("memory-figure", "studies/memory_split_mnist.py draw", 0, lines="memory-split-mnist"),
    Step(
        "memory-tuning-fashion",
        f"{MEMORY_OF_GARMENTS.format('tune')} --learners ewc sgd coreset-only",
        0.6,
        lines="memory-tuning-fashion-mnist",
    ),
    Step(
        "memory-fashion",
        f"{MEMORY_OF_GARMENTS.format('judge')} --learners bayes ewc sgd coreset-only --as-it-comes "
        "--train-examples 10000 --seeds 3",
        0.9,
        lines="memory-split-fashion-mnist-10000",
    ),
    Step(
        "memory-figure-fashion",
        "studies/memory_split_mnist.py draw --data fashion_mnist --train-examples 10000",
        0,
        lines="memory-split-fashion-mnist-10000",
    ),
    Step("exact-posterior", "studies/exact_posterior.py", 0.5, lines="exact-posterior"),
    Step("surrogate-free", "studies/surrogate_free.py", 0.5, lines="surrogate-free"),
    Step("tacos", "studies/tacos_protocol.py --seeds 3", 1, lines="tacos-protocol"),
    Step("curves", "studies/curves_split_mnist.py", 1, lines="curves-split-mnist"),
)

# Summaries that no step makes: what is in them, and why their command says something else today.
CHANGED_SINCE = {
    "permuted-mnist-200-of-400-more": "seeds 1 and 2 of permuted-mnist-200-400, run apart from seed 0",
    "split-nmnist": "1,100 recordings, one layer of 400; its presets have other data, networks and rates now",
    "nmnist-maps-one-epoch": "one epoch, evidence annealed with the step; the preset has three epochs now",
    "nmnist-maps-at-random": "what is stored drawn at random; the preset stores medoids now",
    "nmnist-maps-one-age": "smaller maps, inputs as they are; the preset sees them at three ages now",
    "gestures-unmirrored": "maps and a dense layer of 128, no mirror; the preset has maps alone now, and a mirror",
    "gestures-one-age": "one dense layer of 256, inputs as they are; the preset has maps that see four ages now",
    "split-gestures-dense": "one dense layer of 256, inputs as they are; the preset has the maps of dvs-gestures now",
    "nmnist-stored": "one layer of 300 on all recordings; the preset has maps now, with settings of their own",
}


def command(step: Step) -> list[str]:
    """What to run now: a study, a run from the start, or one that goes on."""
    if step.summary is None:
        return [sys.executable, *step.arguments.split()]
    if (step.run / "config.json").is_file():
        return [sys.executable, "-m", "bayspike", "resume", str(step.run)]
    return [sys.executable, "-m", "bayspike", "run", *step.arguments.split(), "--out", str(step.run)]


def after(step: Step) -> list[str]:
    """What is then asked of a run's networks, to be kept in its summary and figures."""
    return [sys.executable, "-m", "bayspike", "evaluate", str(step.run), "--prune", *step.prune, "--keep"]


def state(step: Step, docs: Path = ROOT / "docs") -> str:
    """How far a run is, or how many lines a study's file has; a run of other arguments is none of this step."""
    if step.summary is None:
        file = docs / "results" / f"{step.lines}.jsonl"
        count = len(file.read_text("utf-8").splitlines()) if file.is_file() else 0
        return f"{count} line{'' if count == 1 else 's'}"
    if (environment := step.run / "environment.json").is_file():
        typed = json.loads(environment.read_text("utf-8"))["command"]
        if not set(step.arguments.split()) <= set(typed):  # more may be said, such as --quiet
            return "other"
    if (step.run / "summary.json").is_file():
        methods = json.loads((step.run / "summary.json").read_text("utf-8"))["methods"].values()
        return "begun" if step.prune and not all(each.get("pruning") for each in methods) else "done"
    return "begun" if step.run.exists() else "missing"


def publish(step: Step, docs: Path = ROOT / "docs") -> None:
    """The run's summary and figures, where the docs look for them; of where the data lay, only the folder's name."""
    summary = json.loads((step.run / "summary.json").read_text("utf-8"))
    data = (summary.get("protocol") or {}).get("dataset") or {}
    if data.get("place"):
        data["place"] = Path(data["place"]).name
    (docs / "results" / f"{step.summary}.json").write_text(json.dumps(summary, indent=1) + "\n", "utf-8")
    for figure in step.figures:
        shutil.copyfile(step.run / "figures" / f"{figure}.png", step.picture(figure, docs))


def listed(steps: list[Step]) -> str:
    """A line for each step, then their hours together; how far a study is, its lines do not say."""
    states = [state(step) for step in steps]
    table = [
        f"{found:10} {step.name:20} {step.hours:4g} h  {' '.join(command(step)[1:])}"
        for step, found in zip(steps, states, strict=True)
    ]
    done = sum(step.hours for step, found in zip(steps, states, strict=True) if found == "done")
    every = sum(step.hours for step in steps)
    return "\n".join([*table, f"about {every:.3g} hours in all, {done:.3g} of them for runs that are done"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these steps; without any, all")
    parser.add_argument("--list", action="store_true", help="say what is done and what is missing, and run nothing")
    options = parser.parse_args()
    known = {step.name: step for step in STEPS}
    if unknown := [name for name in options.names if name not in known]:
        print(f"There is no step {unknown[0]!r}: choose from {', '.join(known)}.", file=sys.stderr)
        return 2
    chosen = [known[name] for name in options.names or known]
    if options.list:
        print(listed(chosen))
        return 0
    for step in chosen:
        found = state(step)
        if found == "other":
            print(f"{step.run} was made by another command than {step.name} has: move it away.", file=sys.stderr)
            return 2
        for words in () if found == "done" else (command(step), *([after(step)] if step.prune else [])):
            if code := subprocess.run(words, cwd=ROOT).returncode:
                print(f"{step.name} ended with code {code}: call this again to go on with it.", file=sys.stderr)
                return code
        if step.summary is not None:
            publish(step)
    return subprocess.run([sys.executable, "studies/tables.py"], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
