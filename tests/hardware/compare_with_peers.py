"""Run an exported NIR artefact in snnTorch and Norse and compare spikes, on the artefact's self-test input.

python tests/hardware/compare_with_peers.py artefacts/nir --members 2
"""

import argparse
import json
from pathlib import Path

from test_nir_peers import load_norse, load_snntorch, spikes_of

from bayspike.hardware import nir
from bayspike.hardware.files import load_self_test


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--members", type=int, default=1)
    args = parser.parse_args()
    manifest = json.loads((args.directory / "manifest.json").read_text())
    depth = len(manifest["neurons"])
    spikes, expected = load_self_test(
        args.directory / "selftest.safetensors", manifest["inputs"], manifest["neurons"][-1]
    )
    for member in range(min(args.members, manifest["members"])):
        path = args.directory / f"member_{member:03d}.nir"
        recurrent = nir.read(path).layers[0].recurrent is not None
        # snnTorch 1.0 does not reset recurrent neurons when reset_delay is off, as its NIR import sets it
        peers = {"Norse": load_norse} if recurrent else {"snnTorch": load_snntorch, "Norse": load_norse}
        answer = expected[member, depth:]
        for name, load in peers.items():
            theirs = spikes_of(load(path), spikes)[-1][:-depth]
            print(f"{name}, member {member}: {int(answer.sum())} spikes, {int((theirs != answer).sum())} differ")


if __name__ == "__main__":
    main()
