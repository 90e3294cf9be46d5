"""`bayspike predict`: watch decisions grow while signals arrive."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from bayspike.cli.checks import agree, at_least_one, check_committee
from bayspike.cli.models import PredictorName, load_data_of

if TYPE_CHECKING:
    import torch

    from bayspike.data.delays import Silence
    from bayspike.learner.state import Calibration as Own
    from bayspike.predict.calibration import Calibration
    from bayspike.predict.predictors import Predictor
    from bayspike.predict.watching import Decision, Watch
    from bayspike.runs.models import Model

FALSE_ALARM = 0.05


@dataclass(frozen=True)
class Predict:
    """Watch a decision grow while a signal arrives.

    bayspike predict runs/demo seven.png

    bayspike predict runs/demo seven.png --coverage 0.9

    bayspike predict runs/nmnist recording.bin --json --every 1

    bayspike predict digits.bayspike seven.png

    event-camera | bayspike predict runs/nmnist -

    FILE is a picture, a recording (.aedat, .bin, .npy), or - for standard input: a picture, or lines of events
    `t x y p` (µs, pixels, 0 or 1), decided upon bin by bin as they come.
    """

    model: tyro.conf.Positional[Path]
    """A run directory, a folder of checkpoints, one checkpoint, a packed posterior, or a learner's file (.bayspike)."""
    files: tyro.conf.Positional[tuple[Path, ...]]
    """Pictures or recordings, or -."""
    job: str | None = None
    """Which job of a run."""
    predictor: PredictorName | None = None
    """How to predict; by default the method's headline."""
    members: int | None = None
    """Networks of the committee."""
    every: int | None = None
    """Time-steps between two lines; by default about ten lines, with --json (and no --coverage) every step."""
    coverage: float | None = None
    """Also the set of classes that holds the right one with this probability at all printed steps, for example 0.9."""
    temperature: bool = False
    """Scale confidences by a temperature fitted on held-out examples: those the run held back, else test examples; that
    of a learner's file is always used."""
    gather: Literal["mean", "weighted", "logits"] | None = None
    """How the steps of a signal become one answer; by default as in the run."""
    kernels: Literal["plain", "compiled"] = "plain"
    """Inner loops of torch, or compiled ones (extra `fast`): faster, the same within rounding."""
    foreign: bool = False
    """Say whether the input looks foreign; a learner that can tell always says so."""
    held_out: int = 500
    """Test examples of the network's data set that calibrate --coverage, --temperature and --foreign."""
    data: Path | None = None
    """Folder of data sets, for the held-out examples."""
    resize: bool = False
    """Bring pictures to the size the network takes."""
    own_code: bool = False
    """Run the data set or the rule from outside bayspike that the model names."""
    seed: int | None = None
    """Of encoding and weight draws; by default 0, for a learner's file its own."""
    json: bool = False
    """JSON lines."""

    def execute(self) -> int:
        from bayspike.continual.methods import method
        from bayspike.data.inputs import spikes_of_file
        from bayspike.errors import UserError, require, require_range
        from bayspike.predict.by_name import make_predictor
        from bayspike.runs.models import load_model
        from bayspike.runs.outcome.examination import committee_generator
        from bayspike.seeds import generator_for

        require(len(self.files) > 0, "name at least one file to predict, or - for standard input.")
        at_least_one(every=self.every, members=self.members, held_out=self.held_out)
        if self.coverage is not None:
            require_range("--coverage", self.coverage, 0, 1, low_open=True, high_open=True)
        agree(self.own_code)
        model = load_model(self.model, self.job)
        check_committee(model, () if self.predictor is None else (self.predictor,), self.members)
        members = self.members or int(model.about["members"])
        name = self.predictor or method(model.method).predictors[0]
        seed = model.seed if self.seed is None else self.seed
        gathered = model.about.get("gather", "mean")
        gather = self.gather or gathered
        drawn = committee_generator(seed)
        predictor = make_predictor(name, model.network, model.posteriors, members, drawn, gather, self.kernels)
        own = model.own_calibration(name, members, seed) if gather == gathered else None
        calibration = self._calibrate(model, predictor, own, seed)
        refused = 0
        for path in self.files:
            try:
                generator = generator_for(seed, "input")
                if str(path) == "-":
                    steps = _standard_input(model, generator, self.resize)
                else:
                    steps = iter(spikes_of_file(path, model.about, generator, self.resize))
                told = Telling(str(path), model.classes, calibration, self.json)
                watching = predictor.open(1, generator_for(seed, "ensemble"), foreign=calibration.foreign)
                self._watch(steps, watching, told, self._every(model))
            except UserError as error:  # the others are predicted all the same
                if len(self.files) == 1:
                    raise
                print(f"bayspike: {error}", file=sys.stderr)
                refused += 1
        return 2 if refused else 0

    def _watch(self, steps: Iterator["torch.Tensor | Silence"], watching: "Watch", told: "Telling", every: int) -> None:
        from bayspike.data.delays import Silence

        decision = None
        for spikes in steps:
            if not isinstance(spikes, Silence):
                decision = watching.push(spikes.unsqueeze(0))
                told.see(decision, tell=decision.time % every == 0)
                continue
            for bins in told.cut(watching.time, spikes.bins):
                before = watching.time
                decision = watching.rest(bins)
                told.see(decision, tell=decision.time // every > before // every)
        if decision is not None:
            told.end(decision)

    def _every(self, model: "Model") -> int:
        each_step = self.json and self.coverage is None
        return self.every or (1 if each_step else max(1, int(model.about["time"]) // 10))

    def _calibrate(self, model: "Model", predictor: "Predictor", own: "Own | None", seed: int) -> "Calibration":
        """What the model brings along, and what was asked to be fitted; how, and on what, is said before the first
        line."""
        import torch

        from bayspike.predict.calibration import Calibration, fit

        brought = Calibration(0) if own is None else Calibration(0, own.temperature, None, own.foreign)
        told = [brought.temperature.note] if brought.temperature is not None else []
        told += ["Foreign inputs are told as the learner itself tells them."] if brought.foreign is not None else []
        for note in told:
            print(note, file=sys.stderr)
        scaling = self.temperature and brought.temperature is None
        telling = self.foreign and brought.foreign is None
        if not (scaling or telling or self.coverage is not None):
            return brought
        dataset = load_data_of(model, self.data, None, self.held_out)
        held_out, kind = dataset.test, "test examples"
        if dataset.held_back is not None and self.coverage is None and not self.foreign:
            held_out, kind = dataset.held_back, "examples held back"
        time, every, layers = dataset.test.time, self._every(model), len(model.network.layers)
        # the steps a whole signal has lines for, but for the first, which cannot depend on it
        checkpoints = sorted({t for t in (*range(every, time, every), time) if t > layers or t == time})
        fitted = fit(
            predictor,
            held_out,
            torch.Generator().manual_seed(seed),
            temperature=scaling,
            promise=self.coverage,
            checkpoints=checkpoints,
            false_alarm=FALSE_ALARM if telling else None,
        )
        notes = [f"Calibrated on {fitted.examples} {kind} of {dataset.name}, which took no part in training."]
        if fitted.sets is not None:
            notes.append(
                f"With probability {self.coverage:g} the sets of all {len(checkpoints)} time-steps from "
                f"{checkpoints[0]} to {checkpoints[-1]} hold the right class, if the input is of the same kind."
            )
        if fitted.temperature is not None:
            notes.append(
                f"{fitted.temperature.note} Fitted at every time-step, told of the last; the sets do not use it."
            )
        if fitted.foreign is not None:
            notes.append(f"At any one time-step {FALSE_ALARM:.0%} of own inputs look foreign.")
        for note in notes:
            print(note, file=sys.stderr if self.json else sys.stdout, flush=True)
        return replace(
            fitted, temperature=fitted.temperature or brought.temperature, foreign=fitted.foreign or brought.foreign
        )


class Telling:
    """The lines about one signal, and since when its set has had one class or none."""

    def __init__(self, name: str, classes: list[str], calibration: "Calibration", as_json: bool) -> None:
        import torch

        self.name, self.classes, self.calibration, self.as_json = name, classes, calibration, as_json
        self.set = torch.ones(1, len(classes), dtype=torch.bool)
        self.single_since: int | None = None
        self.empty_since: int | None = None
        self.told = 0

    def see(self, decision: "Decision", tell: bool) -> None:
        """Take in one step, and tell it if asked to."""
        sets = self.calibration.sets
        if sets is not None:
            self.set = sets.narrow(self.set, decision.probabilities.cpu(), decision.time)
            tell = tell or decision.time == sets.checkpoints[-1]
        size = int(self.set.sum())
        became = ""
        if size == 1 and self.single_since is None:
            self.single_since = decision.time
            became = f"t={decision.time}: the set has become a single class, {self._named()[0]}."
        if size == 0 and self.empty_since is None:
            self.empty_since = decision.time
            became = f"t={decision.time}: the set has become empty: no class is plausible, the input looks foreign."
        if tell:
            self._line(decision)
        if became and not self.as_json:
            print(f"{self.name}  {became}", flush=True)

    def cut(self, time: int, bins: int) -> Iterator[int]:
        """A silence of so many bins from `time` on, in pieces that end where sets are narrowed."""
        sets = self.calibration.sets
        stops = [] if sets is None else [each for each in sets.checkpoints if time < each < time + bins]
        for stop in (*stops, time + bins):
            yield stop - time
            time = stop

    def end(self, decision: "Decision") -> None:
        """The signal is over: its last step is told, whichever it is."""
        if self.told != decision.time:
            self._line(decision)

    def _named(self) -> list[str]:
        return [name for name, inside in zip(self.classes, self.set[0].tolist(), strict=True) if inside]

    def _line(self, decision: "Decision") -> None:
        self.told = decision.time
        temperature = self.calibration.temperature
        probabilities = decision.probabilities[0]
        if temperature is not None:
            probabilities = temperature.apply(probabilities, decision.time)
        label, sure = int(decision.label[0]), float(probabilities.max())
        doubt, foreign = float(decision.epistemic[0]), bool(decision.foreign[0])
        if not self.as_json:
            line = f"t={decision.time:<4d} {self.classes[label]:<16s} confidence {sure:.2f}  epistemic {doubt:.3f}"
            named = self._named()
            among = "all classes" if len(named) == len(self.classes) else f"{{{', '.join(named)}}}"
            shown = f"  set {among}" if self.calibration.sets is not None else ""
            print(f"{self.name}  {line}{shown}{'  looks foreign' if foreign else ''}", flush=True)
            return
        entry: dict[str, Any] = {
            "file": self.name, "time": decision.time, "label": label, "class": self.classes[label],
            "confidence": round(sure, 6), "epistemic": round(doubt, 6),
            "probabilities": [round(float(p), 6) for p in probabilities],
        }  # fmt: skip
        if temperature is not None:
            entry["temperature"] = temperature.at(decision.time)
        if self.calibration.sets is not None:
            entry["coverage"] = round(1 - self.calibration.sets.alpha, 9)
            entry["set"] = self._named()
            entry["single_since"], entry["empty_since"] = self.single_since, self.empty_since
        if self.calibration.foreign is not None:
            entry["foreign"] = foreign
        if self.calibration.examples:
            entry["held_out"] = self.calibration.examples
        print(json.dumps(entry), flush=True)


def _standard_input(model: "Model", generator: "torch.Generator", resize: bool) -> Iterator["torch.Tensor | Silence"]:
    """A picture if the network takes pictures, else lines of events, one bin after another."""
    from bayspike.data.files.pictures import LARGEST_PICTURE
    from bayspike.data.inputs import LONGEST_LINE, bins_of_lines, spikes_of_picture

    source = sys.stdin.buffer
    if len(model.about["sample_shape"]) == 2:
        picture = source.read(LARGEST_PICTURE + 1)
        return iter(spikes_of_picture(picture, "standard input", model.about, generator, resize))
    return bins_of_lines(iter(lambda: source.readline(LONGEST_LINE + 1), b""), model.about)
