"""What tests of interrupted runs share: a run begun, and all that it leaves behind as values to compare."""

import json
from pathlib import Path

import numpy as np
from safetensors.torch import load_file

from bayspike.runs.checkpoints import steps
from bayspike.runs.directory import RunDirectory, create_run
from bayspike.runs.jobs import Workbench
from bayspike.runs.plan.config import config_to_json, jobs_of
from bayspike.storage.arrays import read_arrays
from bayspike.storage.files import read_json, write_json
from bayspike.storage.sealed import SEAL


def begin(path: Path, bench: Workbench) -> RunDirectory:
    run = create_run(path, force=False)
    write_json(run.config, config_to_json(bench.config))
    return run


def content(run: RunDirectory, bench: Workbench) -> dict[str, object]:
    """Everything a run leaves behind, as values that can be compared to the last bit; clock times are left out."""
    found: dict[str, object] = {"metrics": run.metrics.read_bytes()}
    summary = read_json(run.summary)
    for scores in summary["methods"].values():
        scores.pop("seconds")
    found["summary"] = json.dumps(summary)
    for job in jobs_of(bench.config):
        result = read_json(run.result(job.name))
        for time_bound in ("seconds", SEAL):  # the seal vouches for the time, too
            result.pop(time_bound)
        found[f"{job.name} result"] = json.dumps(result)
        for name, array in read_arrays(run.arrays(job.name)).items():
            found[f"{job.name} {name}"] = (str(array.dtype), array.shape, np.ascontiguousarray(array).tobytes())
        files = {"last": steps(run.checkpoints(job.name))[-1], "best": run.checkpoints(job.name) / "best.json"}
        for kind, path in files.items():
            for name, tensor in load_file(path.with_suffix(".safetensors")).items():
                found[f"{job.name} {kind} {name}"] = tensor.numpy().tobytes()
    return found


def differing(found: dict[str, object], expected: dict[str, object]) -> list[str]:
    """Names of all that is not the same; the values themselves would fill pages."""
    return [name for name in {**expected, **found} if found.get(name) != expected.get(name)]
