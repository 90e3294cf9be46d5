"""Run an exported artefact on Lava itself and compare with the expected answers, on the artefact's self-test input.

    PYTHONPATH=src python3.10 tests/hardware/compare_with_lava.py artefacts/fixed-point --members 2 --examples 3

A fixed-point artefact is compared in every bit of spikes, current and voltage; a netx artefact is loaded by lava-dl's
netx and compared in its spikes. Needs lava-nc (and lava-dl), not torch.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from lava_reference import run_lava, run_netx

from bayspike.hardware import lava
from bayspike.hardware.files import load_network, load_self_test
from bayspike.hardware.fixed_point import run


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--members", type=int, default=1)
    parser.add_argument("--examples", type=int, default=1)
    args = parser.parse_args()
    manifest = json.loads((args.directory / "manifest.json").read_text())
    spikes, expected = load_self_test(
        args.directory / "selftest.safetensors", manifest["inputs"], manifest["neurons"][-1]
    )
    compare = compare_netx if manifest["format"] == "netx" else compare_bits
    values = differing = 0
    for member in range(min(args.members, manifest["members"])):
        for example in range(min(args.examples, spikes.shape[1])):
            answer = expected[member, :, example]
            seen, wrong = compare(args.directory, member, spikes[:, example], answer, len(manifest["neurons"]))
            values, differing = values + seen, differing + wrong
            print(f"member {member}, example {example}: {int(answer.sum())} spikes out, {seen} values, {wrong} differ")
    print(f"{manifest['format']}: {values} values compared with Lava, {differing} differ")
    raise SystemExit(1 if differing else 0)


def compare_bits(directory, member, spikes, answer, _layers):
    network = load_network(directory / "network.safetensors").member(member)
    layers = [
        {
            "weight": layer.weight[0],
            "recurrent": None if layer.recurrent is None else layer.recurrent[0],
            "threshold": layer.threshold,
            "current_decay": layer.current_decay,
            "voltage_decay": layer.voltage_decay,
            "weight_exponent": layer.weight_exponent,
        }
        for layer in network.layers
    ]
    theirs = run_lava(layers, spikes)
    values, differing = answer.size, int((theirs[0][-1] != answer).sum())
    for index, ours in enumerate(run(network, spikes[:, None], trajectories=True)):
        for mine, lavas in zip((ours.spikes, ours.current, ours.voltage), theirs, strict=True):
            values += lavas[index].size
            differing += int((mine[0, :, 0] != lavas[index]).sum())
    return values, differing


def compare_netx(directory, member, spikes, answer, layers):
    path = directory / f"member_{member:03d}.net"
    emitted = run_netx(path, spikes, layers)
    ours = run(lava.read(path), spikes[:, None])
    values, differing = answer.size, int((emitted[-1] != answer).sum())
    for mine, lavas in zip(ours, emitted, strict=True):
        values += lavas.size
        differing += int(np.sum(mine.spikes[0, :, 0] != lavas))
    return values, differing


if __name__ == "__main__":
    main()
