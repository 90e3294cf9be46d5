"""What of being noticed as foreign is in the inputs themselves? Every foreign kind of the docs, told without a network.

    BAYSPIKE_DATA=… python studies/inputs_alone.py    # a table; docs/results/inputs-alone.jsonl is written anew

By the surprise of `bayspike.predict.surprise`: how unlikely an example's spikes are if each input fires at a rate of
its own, that of examples to learn from (up to 5,000, those of the experiment behind each line). AUROC against own test
examples, as in the tables of the networks. Nothing is trained; the one draw is that of the spikes.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch
from foreign_after_tasks import among_used
from robustness import CAMERA, Changed, worse

from bayspike.continual.tasks import Concatenated, Remapped, permuted
from bayspike.data import Samples, load
from bayspike.metrics import auroc
from bayspike.predict.surprise import InputRates
from bayspike.seeds import generator_for

OUT = Path("docs/results/inputs-alone.jsonl")
KNOWN, JUDGED = 5000, 2000


class Case(NamedTuple):
    learnt: str
    foreign: str
    known: Samples
    own: Samples
    others: Samples


def few(samples: Samples, count: int) -> Samples:
    """So many of them, drawn evenly."""
    order = torch.randperm(len(samples), generator=generator_for(0, "few"))
    return samples.subset(order[:count])


def cases() -> Iterator[Case]:
    digits, garments = load("mnist", time=20), load("fashion_mnist", time=20).test
    yield Case("MNIST", "Fashion-MNIST", digits.train, digits.test, garments)
    order = torch.randperm(digits.test.inputs, generator=generator_for(0, "shuffled"))
    yield Case("MNIST", "digits with shuffled pixels", digits.train, digits.test, Remapped(digits.test, order))
    few_digits = load("digits", time=20)
    known, own, others = (
        part.subset((lower == (part.labels < 4)).nonzero().flatten())
        for part, lower in ((few_digits.train, True), (few_digits.test, True), (few_digits.test, False))
    )
    yield Case("digits 0 to 3 of the package", "digits 4 to 9", known, own, others)
    for name, stream in (("all", permuted(digits, 10)), ("used", among_used(digits, 10, 0))):
        known = Concatenated(tuple(task.train for task in stream.tasks))
        own = Concatenated(tuple(task.test for task in stream.tasks))
        yield Case(f"MNIST, ten orders of {name} pixels", "Fashion-MNIST", known, own, garments)
    recordings = load("nmnist", time=20, downsample=2)
    for kind, sizes in CAMERA.items():
        for size in sizes:
            test = recordings.test
            changed = Changed(test, test.labels, worse(kind, size, recordings.sample_shape))
            yield Case("N-MNIST", f"{kind} {size}", recordings.train, test, changed)
    light = load("dvs_gesture", time=25, bin_ms=20, test_time=75, foreign_users="all")
    assert light.foreign is not None
    yield Case("DVS-Gesture", "natural light", light.train, light.test, light.foreign)


def main() -> None:
    torch.set_num_threads(1)
    found = []
    print("| learnt | foreign | AUROC by the inputs alone |\n|---|---|---|")
    for case in cases():
        rates = InputRates.of(few(case.known, KNOWN), generator_for(0, "rates"))
        parts = (few(part, JUDGED) for part in (case.own, case.others))
        area = float(auroc(*(rates.surprise(part, generator_for(0, "spikes", k)) for k, part in enumerate(parts))))
        found.append({"learnt": case.learnt, "foreign": case.foreign, "auroc": area})
        print(f"| {case.learnt} | {case.foreign} | {area:.3f} |", flush=True)
    OUT.write_text("".join(json.dumps(line) + "\n" for line in found))


if __name__ == "__main__":
    main()
