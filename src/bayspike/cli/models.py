"""`bayspike evaluate`, `predict` and `export`: from a trained network in a checkpoint."""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

if TYPE_CHECKING:
    import torch

    from bayspike.data.base import Dataset
    from bayspike.predict.predictors import Predictor
    from bayspike.runs.models import Model

PredictorName = Literal["committee", "ensemble", "mean", "point", "committee-8bit", "point-8bit"]


@dataclass(frozen=True)
class Evaluate:
    """Judge a trained network on test data.

    bayspike evaluate runs/demo

    bayspike evaluate runs/demo --job sgd-seed0 --json

    bayspike evaluate runs/demo/checkpoints/bayes-seed0/best.json --dataset mnist --data ~/data
    """

    model: tyro.conf.Positional[Path]
    """A run directory, a folder of checkpoints, or one checkpoint."""
    job: str | None = None
    """Which job of a run, for example sgd-seed0."""
    predictor: tuple[PredictorName, ...] = ()
    """How to predict; by default in all ways the method has."""
    members: int | None = None
    """Networks of the committee; by default as in the run."""
    dataset: str | None = None
    """Another data set with the same inputs and classes."""
    data: Path | None = None
    """Folder of data sets."""
    test_examples: int | None = None
    """Only that many test examples."""
    seed: int = 0
    """Of encodings and weight draws."""
    json: bool = False
    """One JSON object instead of a table."""

    def execute(self) -> int:
        from rich.console import Console
        from rich.table import Table

        from bayspike.continual.methods import method
        from bayspike.continual.tasks import Task
        from bayspike.predict.by_name import make_predictor
        from bayspike.runs.examination import committee_generator, examine, final_predictors
        from bayspike.runs.models import load_model

        model = load_model(self.model, self.job)
        dataset = load_data_of(model, self.data, self.dataset, self.test_examples)
        names = self.predictor or final_predictors(method(model.method), model.posteriors)
        members = self.members or int(model.about["members"])
        judges = [Task(dataset.name, dataset.train, dataset.test)]
        scores = {}
        for name in names:
            predictor = make_predictor(name, model.network, model.posteriors, members, committee_generator(self.seed))
            scores[name] = examine(predictor, judges, self.seed).overall._asdict()
        if self.json:
            facts = {"model": str(model.path), "dataset": dataset.name, "simulated": dataset.simulated}
            print(json.dumps({**facts, "scores": scores}))
            return 0
        kind = " (simulated)" if dataset.simulated else ""
        table = Table(title=f"{model.about['label']}, seed {model.about['seed']}, on {dataset.name}{kind}")
        for heading in ("predictor", "accuracy", "ECE", "NLL", "Brier", "examples"):
            table.add_column(heading, justify="left" if heading == "predictor" else "right")
        for name, each in scores.items():
            numbers = [f"{each[key]:.3f}" for key in ("ece", "nll", "brier")]
            table.add_row(name, f"{each['accuracy']:.2%}", *numbers, str(each["examples"]))
        Console().print(table)
        return 0


@dataclass(frozen=True)
class Predict:
    """Watch a decision grow while a signal arrives.

    bayspike predict runs/demo seven.png

    bayspike predict runs/nmnist recording.bin --json --every 1

    event-camera | bayspike predict runs/nmnist -

    FILE is a picture, a recording (.aedat, .bin, .npy), or - for standard input: a picture, or lines of events
    `t x y p` (µs, pixels, 0 or 1), decided upon bin by bin as they come.
    """

    model: tyro.conf.Positional[Path]
    """A run directory, a folder of checkpoints, or one checkpoint."""
    files: tyro.conf.Positional[tuple[Path, ...]]
    """Pictures or recordings, or -."""
    job: str | None = None
    """Which job of a run."""
    predictor: PredictorName | None = None
    """How to predict; by default the method's headline."""
    members: int | None = None
    """Networks of the committee."""
    every: int | None = None
    """Time-steps between two lines; by default about ten lines, with --json every step."""
    foreign: bool = False
    """Say whether the input looks foreign; calibrated on test examples of the network's data set."""
    data: Path | None = None
    """Folder of data sets, for --foreign."""
    seed: int = 0
    """Of encoding and weight draws."""
    json: bool = False
    """JSON lines."""

    def execute(self) -> int:
        from bayspike.continual.methods import method
        from bayspike.data.inputs import spikes_of_file
        from bayspike.errors import require
        from bayspike.predict.by_name import make_predictor
        from bayspike.runs.examination import committee_generator
        from bayspike.runs.models import load_model
        from bayspike.seeds import generator_for

        require(len(self.files) > 0, "name at least one file to predict, or - for standard input.")
        model = load_model(self.model, self.job)
        members = self.members or int(model.about["members"])
        name = self.predictor or method(model.method).predictors[0]
        predictor = make_predictor(name, model.network, model.posteriors, members, committee_generator(self.seed))
        rule = self._foreign_rule(model, predictor) if self.foreign else None
        for path in self.files:
            generator = generator_for(self.seed, "input")
            if str(path) == "-":
                steps = _standard_input(model, generator)
            else:
                steps = iter(spikes_of_file(path, model.about, generator))
            watching = predictor.open(1, generator_for(self.seed, "ensemble"), foreign=rule)
            self._tell(str(path), model, watching, steps)
        return 0

    def _foreign_rule(self, model: "Model", predictor: "Predictor") -> Any:
        import torch

        from bayspike.predict.predictors import predict_samples
        from bayspike.predict.watching import calibrate_foreign

        dataset = load_data_of(model, self.data, None, 200)
        generator = torch.Generator().manual_seed(self.seed)
        done = predict_samples(predictor, dataset.test, generator, keep_members="all")
        assert done.members is not None
        score: Literal["mutual_information", "entropy"] = "mutual_information" if predictor.members > 1 else "entropy"
        return calibrate_foreign(done.members, score=score)

    def _tell(self, name: str, model: "Model", watching: Any, steps: Iterable[Any]) -> None:
        from bayspike.data.inputs import Silence

        every = self.every or (1 if self.json else max(1, int(model.about["time"]) // 10))
        decision, told = None, 0
        for spikes in steps:
            before = 0 if decision is None else decision.time
            silent = isinstance(spikes, Silence)
            decision = watching.rest(spikes.bins) if silent else watching.push(spikes.unsqueeze(0))
            if decision.time // every > before // every:
                self._line(name, model, watching, decision)
                told = decision.time
        if decision is not None and told != decision.time:
            self._line(name, model, watching, decision)

    def _line(self, name: str, model: "Model", watching: Any, decision: Any) -> None:
        label, sure = int(decision.label[0]), float(decision.confidence[0])
        doubt, foreign = float(decision.epistemic[0]), bool(decision.foreign[0])
        if self.json:
            probabilities = [round(float(p), 6) for p in watching.members.mean(dim=0)[0]]
            entry = {
                "file": name, "time": decision.time, "label": label, "class": model.classes[label],
                "confidence": round(sure, 6), "epistemic": round(doubt, 6), "probabilities": probabilities,
            }  # fmt: skip
            if self.foreign:
                entry["foreign"] = foreign
            print(json.dumps(entry), flush=True)
        else:
            mark = "  looks foreign" if foreign else ""
            line = f"t={decision.time:<4d} {model.classes[label]:<16s} confidence {sure:.2f}  epistemic {doubt:.3f}"
            print(f"{name}  {line}{mark}", flush=True)


def _standard_input(model: "Model", generator: "torch.Generator") -> Iterator[Any]:
    """A picture if the network takes pictures, else lines of events, one bin after another."""
    from bayspike.data.files.pictures import LARGEST_PICTURE
    from bayspike.data.inputs import LONGEST_LINE, bins_of_lines, spikes_of_picture

    source = sys.stdin.buffer
    if len(model.about["sample_shape"]) == 2:
        return iter(spikes_of_picture(source.read(LARGEST_PICTURE + 1), "standard input", model.about, generator))
    return bins_of_lines(iter(lambda: source.readline(LONGEST_LINE + 1), b""), model.about)


@dataclass(frozen=True)
class Export:
    """Write a trained committee for hardware, with a self-test that is run on the written files.

    bayspike export runs/demo --out chip

    bayspike export runs/demo --to nir --members 3 --out graphs
    """

    model: tyro.conf.Positional[Path]
    """A run directory, a folder of checkpoints, or one checkpoint."""
    out: Path
    """Directory to write."""
    to: Literal["fixed-point", "nir", "netx"] = "fixed-point"
    """The chip's integers, NIR graphs, or Lava's .net files."""
    job: str | None = None
    """Which job of a run."""
    members: int | None = None
    """Networks of the committee; by default as in the run (one for frequentist methods)."""
    examples: int = 16
    """Test examples of the self-test."""
    data: Path | None = None
    """Folder of data sets."""
    seed: int = 0
    """Of weight draws and encodings."""
    force: bool = False
    """Overwrite an earlier export."""

    def execute(self) -> int:
        import torch

        from bayspike.continual.methods import method
        from bayspike.hardware.export import export
        from bayspike.predict.by_name import make_predictor
        from bayspike.predict.predictors import Committee
        from bayspike.runs.examination import committee_generator
        from bayspike.runs.models import load_model

        model = load_model(self.model, self.job)
        bayesian = method(model.method).bayesian
        members = self.members or (int(model.about["members"]) if bayesian else 1)
        committee = make_predictor(
            "committee", model.network, model.posteriors, members, committee_generator(self.seed)
        )
        assert isinstance(committee, Committee)
        test = load_data_of(model, self.data, None, self.examples).test
        spikes = test.spikes(torch.arange(len(test)), torch.Generator().manual_seed(self.seed))
        manifest = export(
            model.network,
            committee.weights,
            self.out,
            self.to,
            spikes=spikes.numpy(),
            labels=test.labels.numpy(),
            metadata={"method": model.method, "dataset": model.about["name"], "classes": model.classes},
            force=self.force,
        )
        print(f"{members} network(s) as {self.to} in {self.out}, checked against their self-test.")
        for warning in manifest.get("warnings", []):
            print(f"warning: {warning}", file=sys.stderr)
        return 0


def load_data_of(model: "Model", root: Path | None, name: str | None, examples: int | None) -> "Dataset":
    """The data set a network was trained on, or another one that fits it."""
    from dataclasses import replace

    from bayspike.errors import require
    from bayspike.experiments.registry import experiment
    from bayspike.runs.plan.config import DataOptions
    from bayspike.runs.plan.prepare import load_data
    from bayspike.storage.plain import from_plain

    options = from_plain(DataOptions, model.about["data"], f"{model.path}: data")
    if root is not None:
        options = replace(options, root=str(root.resolve()))
    if name is not None and name != options.name:
        options = replace(options, name=name, options={}, train_examples=None, time=options.time or model.about["time"])
    if examples is not None:
        options = replace(options, test_examples=examples)
    dataset = load_data(experiment(model.about["experiment"]), options)
    require(
        dataset.test.inputs == model.network.inputs and len(dataset.classes) <= model.network.classes,
        f"{dataset.name} has {dataset.test.inputs} inputs and {len(dataset.classes)} classes, but the network "
        f"{model.network.inputs} and {model.network.classes}.",
    )
    return dataset
