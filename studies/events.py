"""Settings for genuine recordings of event cameras, chosen on validation users and recordings alone.

    BAYSPIKE_DATA=… python studies/events.py ns3 nb3 gs1    # run trials by name; those in the file are not repeated
    python studies/events.py --table                        # what docs/results/events-trials.jsonl holds

Data have `validation=true`: users 13 to 15 of DVS-Gesture judge, or a fifth of N-MNIST's training recordings; the test
parts are never read. A trial is scored with each way to gather, as it is (`ece`, and `worst_ece` at any step after the
first fifth of the signal) and with a temperature: fitted at the last step on one half of the judging examples, scored
on the other (`scaled_…`).
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bayspike.continual.methods import build_rule, method
from bayspike.continual.protocol import StreamConfig, run_stream
from bayspike.continual.tasks import Stream, split_by_class
from bayspike.data import catalogue
from bayspike.data.augment import parse_augment
from bayspike.data.base import Dataset, Samples
from bayspike.data.delays import delays_of
from bayspike.experiments.split_gestures import in_tasks
from bayspike.learning.batch import posteriors
from bayspike.metrics import accuracy, auroc, ece, entropy, mutual_information, nll
from bayspike.predict.by_name import make_predictor
from bayspike.predict.calibration import halves
from bayspike.predict.gathering import GATHERS, gathered
from bayspike.predict.predictors import Predictor
from bayspike.predict.temperature import fit_temperature
from bayspike.predict.unrolled import unroll_members
from bayspike.runs.plan.experiment import offline
from bayspike.seeds import generator_for
from bayspike.spiking.network import NetworkConfig, build

OUT = Path("docs/results/events-trials.jsonl")
TRIALS = Path("studies/events-trials.json")  # name -> data, options of the loader, method, rule, network, training
TRAINING = "training."
STREAMS: Mapping[str, Callable[[Dataset], Stream]] = {
    "offline": offline,
    "split": split_by_class,
    "split-gestures": in_tasks,
}
Spec = Mapping[str, Any]


def judged(name: str, spec: Spec) -> dict[str, Any]:
    """Learn as a trial says, and score it on the validation part."""
    torch.set_num_threads(1)
    data = catalogue.load(spec["data"], **spec["options"])
    network, learnt, seconds = learn(spec, data)
    kind = "committee" if method(spec["method"]).bayesian else "point"
    predictor = make_predictor(kind, network, learnt, 10, generator_for(0, "committee"))
    own = (said(predictor, data.test), data.test.labels)
    foreign = None if data.foreign is None else said(predictor, data.foreign)
    facts = {"name": name, **spec, "seconds": round(seconds), "about": data.about}
    return {**facts, "synapses": sum(math.prod(layer.shape) for layer in network.layers)} | scored(
        *own, foreign, len(network.layers)
    )


def learn(spec: Spec, data: Dataset) -> tuple[Any, Any, float]:
    of_rule, of_training = {}, {}
    for name, value in spec.get("rule", {}).items():  # as the presets have them
        (of_training if name.startswith(TRAINING) else of_rule)[name.removeprefix(TRAINING)] = value
    rule = build_rule(spec["method"], of_rule)
    network = network_of(spec, data, rule.binary)
    training = {**spec["training"], **of_training}
    in_order = STREAMS[spec.get("stream", "offline")]
    if in_order is offline:
        training = {"replay": "none", "coreset_share": 0.0, **training}
    for which in ("augment", "augment_stored"):
        if training.get(which) is not None:
            training[which] = parse_augment(training[which], data.sample_shape, delays_of(data.view))
    config = StreamConfig(**{**method(spec["method"]).suits, **training, **method(spec["method"]).training})
    begin = time.perf_counter()
    done = run_stream(network, rule, in_order(data), config)
    return network, posteriors(rule, done.states), time.perf_counter() - begin


def network_of(spec: Spec, data: Dataset, binary: bool) -> Any:
    said_of = {key: tuple(value) if isinstance(value, list) else value for key, value in spec["network"].items()}
    if "layers" in said_of:
        said_of |= {"hidden": (), "shape": data.sample_shape}
    return build(NetworkConfig(inputs=data.train.inputs, classes=len(data.classes), binary=binary, **said_of))


def said(predictor: Predictor, samples: Samples) -> Tensor:
    """What every member says at every single step, `(members, time, examples, classes)`."""
    parts = []
    for indices in torch.arange(len(samples)).split(256):
        spikes = samples.spikes(indices, torch.Generator().manual_seed(1)).float()
        part = torch.empty(predictor.members, samples.time, len(indices), predictor.network.classes)
        for piece in unroll_members(predictor.network, predictor.synapses(len(indices), None), spikes):
            part[piece.members, :, piece.rows] = piece.probabilities
        parts.append(part)
    return torch.cat(parts, dim=2)


def scored(own: Tensor, labels: Tensor, foreign: Tensor | None, layers: int) -> dict[str, Any]:
    """Scores of each way to gather."""
    choosing, judging = halves(labels, generator_for(0, "halves"))
    found: dict[str, Any] = {}
    for how in GATHERS:
        members = gathered(how, own[:, layers:])
        answers = members.mean(0)
        late = answers[max(0, own.shape[1] // 5 - layers) :]
        temperature = fit_temperature(answers[-1, choosing], labels[choosing])
        scaled = temperature.apply(late[:, judging])
        found[how] = {
            "accuracy": float(accuracy(answers[-1], labels)),
            "ece": float(ece(answers[-1], labels)),
            "nll": float(nll(answers[-1], labels)),
            "worst_ece": float(ece(late, labels).max()),
            "temperature": temperature.value,
            "scaled_ece": float(ece(scaled[-1], labels[judging])),
            "scaled_worst_ece": float(ece(scaled, labels[judging]).max()),
        }
        if foreign is not None:
            others = gathered(how, foreign[:, layers:])[:, -1]
            found[how]["auroc_entropy"] = float(auroc(entropy(answers[-1]), entropy(others.mean(0))))
            if len(members) > 1:
                score = auroc(mutual_information(members[:, -1]), mutual_information(others))
                found[how]["auroc_mutual_information"] = float(score)
    return found


def known(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()] if out.exists() else []


def table(entries: list[dict[str, Any]]) -> Iterator[str]:
    for each in entries:
        ways = "  ".join(
            f"{how} {each[how]['accuracy']:.3f} ece {each[how]['ece']:.3f} → {each[how]['scaled_ece']:.3f}"
            f" (worst {each[how]['scaled_worst_ece']:.3f})"
            for how in GATHERS
        )
        area = each["mean"].get("auroc_mutual_information", each["mean"].get("auroc_entropy"))
        foreign = "" if area is None else f"  auroc {area:.2f}"
        yield f"{each['name']:8s} {each['method']:6s} {ways}{foreign}  {each['seconds']} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    trials = json.loads(TRIALS.read_text("utf-8"))
    for name in options.names:
        if name not in {each["name"] for each in known(options.out)}:
            found = judged(name, trials[name])
            with options.out.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(found) + "\n")
            print(*table([found]), flush=True)
    if options.table:
        print("\n".join(table(known(options.out))))


if __name__ == "__main__":
    main()
