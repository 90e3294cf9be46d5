"""`bayspike evaluate` and `export`: from a trained network in a checkpoint."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from bayspike.cli.checks import agree, at_least_one, check_committee

if TYPE_CHECKING:
    from bayspike.continual.protocol import Scores
    from bayspike.data.base import Dataset
    from bayspike.posteriors.distributions import Posterior
    from bayspike.runs.models import Model
    from bayspike.runs.outcome.evaluation import Verdict

PredictorName = Literal["committee", "ensemble", "mean", "point", "committee-8bit", "committee-packed", "point-8bit"]


@dataclass(frozen=True)
class Evaluate:
    """Judge a trained network on test data.

    bayspike evaluate runs/demo

    bayspike evaluate digits.bayspike --dataset digits

    bayspike evaluate runs/demo --coverage 0.9 --temperature

    bayspike evaluate runs/demo --controls

    bayspike evaluate runs/demo --prune 0.5 0.75 0.9 0.95 --keep

    bayspike evaluate runs/demo --job sgd-seed0 --json

    bayspike evaluate runs/demo/checkpoints/bayes-seed0/best.json --dataset mnist --data ~/data
    """

    model: tyro.conf.Positional[Path]
    """A run directory, a folder of checkpoints, one checkpoint, a packed posterior, or a learner's file (.bayspike)."""
    job: str | None = None
    """Which job of a run, for example sgd-seed0."""
    predictor: tuple[PredictorName, ...] = ()
    """How to predict; by default in all ways the method has."""
    members: int | None = None
    """Networks of the committee; by default as in the run."""
    coverage: float | None = None
    """Also judge sets of classes that hold the right one with this probability; half of the examples calibrate."""
    temperature: bool = False
    """Also judge probabilities scaled by a fitted temperature; the examples a run held back calibrate, else half of
    the test examples."""
    gather: Literal["mean", "weighted", "logits"] | None = None
    """How the steps of a signal become one answer; by default the paper's mean, with the run's own way beside it."""
    kernels: Literal["plain", "compiled"] = "plain"
    """Inner loops of torch, or compiled ones (extra `fast`): faster, the same within rounding."""
    foreign: bool = False
    """Also how well the data set's foreign inputs are told from its own (AUROC)."""
    controls: bool = False
    """Judge the posterior beside its controls: the same means with constant, permuted, matched and no spread; a point
    beside itself with the noise that is best for it. Half of the examples choose, the other half judges."""
    prune: tuple[float, ...] = ()
    """Judge the network without these shares of its synapses, for example 0.5 0.9 0.95: cut by the posterior's signal
    to noise, and by size alone."""
    keep: bool = False
    """With --controls or --prune: judge every finished job of a run (or --job) on the run's own tasks, and keep what
    comes out in the run, for its summary, its report and its figures."""
    dataset: str | None = None
    """Another data set with the same inputs and classes."""
    data: Path | None = None
    """Folder of data sets."""
    test_examples: int | None = None
    """Only that many test examples."""
    own_code: bool = False
    """Run the data set or the rule from outside bayspike that the model names."""
    seed: int | None = None
    """Of encodings, weight draws and halves; by default 0, for a learner's file its own."""
    json: bool = False
    """One JSON object instead of a table."""

    def execute(self) -> int:
        from bayspike.continual.methods import method
        from bayspike.errors import require, require_range
        from bayspike.predict.by_name import make_predictor
        from bayspike.runs.models import load_model
        from bayspike.runs.outcome.evaluation import Wanted, evaluate
        from bayspike.runs.outcome.examination import committee_generator, final_predictors

        if self.coverage is not None:
            require_range("--coverage", self.coverage, 0, 1, low_open=True, high_open=True)
        at_least_one(members=self.members, test_examples=self.test_examples)
        agree(self.own_code, self.dataset)
        beside = self.predictor or self.gather or self.coverage is not None or self.temperature or self.foreign
        for name, asked in (("--controls", self.controls), ("--prune", self.prune)):
            require(
                not (asked and beside),
                f"{name} judges committees in one way: leave out --predictor, --gather, --coverage, --temperature and "
                "--foreign.",
            )
        require(
            not (self.controls and self.prune) or self.keep,
            "--controls and --prune are two tables: ask for one of them, or for both with --keep, in a run's report.",
        )
        if self.keep:
            return self._keep()
        model = load_model(self.model, self.job)
        check_committee(model, self.predictor, self.members)
        dataset = load_data_of(model, self.data, self.dataset, self.test_examples)
        require(
            not self.foreign or dataset.foreign is not None,
            f"{dataset.name} comes with no foreign inputs: leave out --foreign.",
        )
        names = self.predictor or final_predictors(method(model.method), model.posteriors)
        members = self.members or int(model.about["members"])
        seed = model.seed if self.seed is None else self.seed
        if self.prune:
            from bayspike.cli.controls import tell_pruned

            return tell_pruned(model, dataset, self.prune, members, seed, as_json=self.json)
        if self.controls:
            from bayspike.cli.controls import tell_controls

            require(
                len(dataset.test) >= 2,
                "--controls needs two test examples or more: half of them choose, the other half judges.",
            )
            return tell_controls(model, dataset, members, seed, as_json=self.json)
        wanted = Wanted(self.coverage, self.temperature, self.foreign)
        verdicts = {}
        gathered = model.about.get("gather", "mean")
        ways = [(name, self.gather or "mean") for name in names]
        if self.gather is None and gathered != "mean":
            ways.append((names[0], gathered))
        for name, how in ways:
            drawn = committee_generator(seed)
            predictor = make_predictor(name, model.network, model.posteriors, members, drawn, how, self.kernels)
            own = model.own_calibration(name, members, seed) if how == gathered else None
            scale = own.temperature if own else None
            verdicts[name if how == "mean" else f"{name}-{how}"] = evaluate(predictor, dataset, wanted, seed, scale)
        if self.json:
            facts: dict[str, Any] = {"model": str(model.path), "dataset": dataset.name, "simulated": dataset.simulated}
            if wanted.halved(dataset):
                facts["calibrated_on"] = next(iter(verdicts.values())).calibrated_on
            if self.coverage is not None:
                facts["coverage"] = self.coverage
            print(json.dumps({**facts, "scores": {name: each.as_json() for name, each in verdicts.items()}}))
            return 0
        kind = " (simulated)" if dataset.simulated else ""
        self._print(verdicts, seed, f"{model.about['label']}, seed {model.about['seed']}, on {dataset.name}{kind}")
        return 0

    def _keep(self) -> int:
        from bayspike.cli.controls import keep_in_run
        from bayspike.errors import require

        require(bool(self.controls or self.prune), "--keep goes with --controls or --prune: say what to keep.")
        require(
            self.dataset is None and self.test_examples is None and self.members is None and not self.json,
            "--keep judges a run as it was made: leave out --dataset, --test-examples, --members and --json.",
        )
        return keep_in_run(self.model, self.job, self.prune, self.controls, self.data)

    def _print(self, verdicts: Mapping[str, "Verdict"], seed: int, title: str) -> None:
        from rich.table import Table

        from bayspike.runs.reporting import wide_console

        table = Table(title=title)
        areas = ["AUROC", "by discord"] if self.foreign else []
        headings = ["accuracy", "ECE", "NLL", "Brier", *areas, "examples"]
        sets = Table(title=f"Sets that hold the right class with probability {self.coverage}")
        for each, names in ((table, headings), (sets, ["coverage", "mean size", "single class", "mean stop at t"])):
            each.add_column("predictor")
            for heading in names:
                each.add_column(heading, justify="right")
        notes = []
        for name, verdict in verdicts.items():
            auroc = []
            if verdict.auroc is not None:
                auroc = [f"{verdict.auroc.get('mutual_information', verdict.auroc['entropy']):.3f}"]
                auroc += [f"{verdict.auroc['discord']:.3f}" if "discord" in verdict.auroc else ""]
            table.add_row(name, *_numbers(verdict.scores, auroc))
            if verdict.own is not None:
                notes.append(f"{name}: {verdict.own.note} That is the learner's own.")
            if verdict.scaled is not None and verdict.temperature is not None:
                table.add_row(f"{name}, scaled", *_numbers(verdict.scaled, ["" for _ in auroc]))
                notes.append(f"{name}: {verdict.temperature.note}")
            if (found := verdict.sets) is not None:
                shares = f"{found.coverage:.2%}", f"{found.size:.2f}", f"{found.single:.2%}", f"{found.stopped_at:.1f}"
                sets.add_row(name, *shares)
        console, first = wide_console(), next(iter(verdicts.values()))
        console.print(table)
        if first.sets is not None:
            console.print(sets)
            notes.append(
                f"A set is given as soon as it is a single class at one of {first.sets.checkpoints} time-steps, "
                "or at the last of them."
            )
        if first.calibrated_on:
            notes.append(
                f"{first.calibrated_on} test examples calibrated; all figures are of the other {first.scores.examples} "
                f"(half of every class each, drawn with seed {seed})."
            )
        if self.foreign:
            notes.append(
                "AUROC of foreign inputs against own: by mutual information, of a single network by entropy; "
                "and by the discord of the members' spikes."
            )
        for note in notes:
            console.print(note, highlight=False, soft_wrap=True)


def _numbers(scores: "Scores", extra: list[str]) -> list[str]:
    shown = [f"{scores.accuracy:.2%}", *(f"{value:.3f}" for value in (scores.ece, scores.nll, scores.brier))]
    return [*shown, *extra, str(scores.examples)]


@dataclass(frozen=True)
class Export:
    """Write a trained committee for hardware, with a self-test that is run on the written files.

    bayspike export runs/demo --out chip

    bayspike export runs/demo --to nir --members 3 --out graphs

    bayspike export runs/demo --prune 0.75 --out sparse

    bayspike export runs/demo --to packed --out small
    """

    model: tyro.conf.Positional[Path]
    """A run directory, a folder of checkpoints, one checkpoint, or a learner's file (.bayspike)."""
    out: Path
    """Directory to write."""
    to: Literal["fixed-point", "nir", "netx", "packed"] = "fixed-point"
    """The chip's integers, NIR graphs, Lava's .net files, or the posterior itself in two bytes a synapse."""
    job: str | None = None
    """Which job of a run."""
    members: int | None = None
    """Networks of the committee; by default as in the run (one for frequentist methods)."""
    prune: float | None = None
    """Cut this share of every layer's synapses, for example 0.75: fewer operations, less energy and memory."""
    prune_by: Literal["size", "signal-to-noise"] = "size"
    """Cut the smallest weights, or those whose posterior is least sure that they are not zero."""
    examples: int = 16
    """Test examples of the self-test."""
    own_code: bool = False
    """Run the data set or the rule from outside bayspike that the model names."""
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
        from bayspike.runs.models import load_model
        from bayspike.runs.outcome.examination import committee_generator
        from bayspike.runs.packed import save_packed

        at_least_one(members=self.members, examples=self.examples)
        agree(self.own_code)
        model = load_model(self.model, self.job)
        check_committee(model, (), self.members)
        posteriors = self._pruned(model.posteriors)
        if self.to == "packed":
            written = save_packed(self.out, model.about, model.posteriors, force=self.force)
            print(f"The posterior in {written:,} bytes, two a synapse, in {self.out}: evaluate or predict with it.")
            return 0
        bayesian = method(model.method).bayesian
        members = self.members or (int(model.about["members"]) if bayesian else 1)
        committee = make_predictor("committee", model.network, posteriors, members, committee_generator(self.seed))
        assert isinstance(committee, Committee)
        test = load_data_of(model, self.data, None, self.examples, learnt_too=True).test
        spikes = test.spikes(torch.arange(len(test)), torch.Generator().manual_seed(self.seed))
        manifest = export(
            model.network,
            committee.weights,
            self.out,
            self.to,
            spikes=spikes.numpy(),
            labels=test.labels.numpy(),
            metadata={
                "method": model.method,
                "dataset": model.about["name"],
                "classes": model.classes,
                # the planes of the inputs are of these ages, in steps: the chip's input axons need them
                **{key: value for key, value in model.about.get("view", {}).items() if key == "delays"},
                **self._cut(),
            },
            force=self.force,
        )
        print(f"{members} network(s) as {self.to} in {self.out}, checked against their self-test.")
        if self.prune is not None and "kept_synapses" in manifest:
            print(f"{self.prune:.0%} of the synapses cut by {self.prune_by}: {sum(manifest['kept_synapses']):,} left.")
        if "budget" in manifest:
            price, cores = manifest["budget"], manifest["budget"]["cores"]
            print(
                f"By estimate a decision takes {1e6 * price['joules']:.3g} µJ and {price['synaptic_operations']:,.0f} "
                f"synaptic operations; the weights take {price['bytes']:,} bytes on {cores or 'too many'} cores."
            )
        for warning in manifest.get("warnings", []):
            print(f"warning: {warning}", file=sys.stderr)
        return 0

    def _pruned(self, posteriors: Sequence["Posterior"]) -> Sequence["Posterior"]:
        from bayspike.errors import require
        from bayspike.posteriors.pruning import prune

        require(self.prune is not None or self.prune_by == "size", "--prune-by needs --prune: say how much to cut.")
        if self.prune is None:
            return posteriors
        require(
            self.to != "packed",
            "--prune is for chips and graphs: a packed posterior takes two bytes for a synapse, cut or not.",
        )
        return prune(posteriors, self.prune, "size" if self.prune_by == "size" else "signal")

    def _cut(self) -> dict[str, Any]:
        return {} if self.prune is None else {"pruned": self.prune, "pruned_by": self.prune_by}


def load_data_of(
    model: "Model", root: Path | None, name: str | None, examples: int | None, learnt_too: bool = False
) -> "Dataset":
    """The data set a network was trained on, or another one that fits it; of a learner's file what it holds itself."""
    from dataclasses import replace

    from bayspike.errors import require
    from bayspike.experiments.registry import experiment
    from bayspike.runs.models import as_tasks_saw_it, own_data
    from bayspike.runs.plan.config import DataOptions
    from bayspike.runs.plan.prepare import load_data
    from bayspike.storage.plain import from_plain

    if "experiment" not in model.about:
        return own_data(model, root, name, examples, learnt_too)
    options = from_plain(DataOptions, model.about["data"], f"{model.path}: data")
    if root is not None:
        options = replace(options, root=str(root.resolve()))
    own = options.name
    if name is not None and name != own:
        options = replace(options, name=name, options={}, train_examples=None, time=options.time or model.about["time"])
    if examples is not None:
        options = replace(options, test_examples=examples)
    learnt = experiment(model.about["experiment"])
    dataset = load_data(learnt, options)
    if options.name == own:
        dataset = as_tasks_saw_it(dataset, learnt, model.about)
    require(
        dataset.test.inputs == model.network.inputs and len(dataset.classes) <= model.network.classes,
        f"{dataset.name} has {dataset.test.inputs} inputs and {len(dataset.classes)} classes, but the network "
        f"{model.network.inputs} and {model.network.classes}.",
    )
    return dataset
