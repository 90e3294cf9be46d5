"""The committee for hardware, as one archive: the chip's integers with their self-test, as `bayspike export` writes."""

import io
import tempfile
import zipfile
from pathlib import Path

import torch

from bayspike.errors import require
from bayspike.hardware.export import export
from bayspike.live.moments import Moment

EXAMPLES = 16  # of the self-test


def chip_archive(moment: Moment) -> bytes:
    """A zip archive of the exported folder, which was verified after it was written."""
    state, committee = moment.state, moment.judge.committee
    parts = [part for part in (*state.held_back, *state.memory) if len(part)]
    require(len(parts) > 0, "the self-test of an export needs an example: teach the learner something first.")
    samples = parts[0]
    some = torch.randperm(len(samples), generator=torch.Generator().manual_seed(0))[:EXAMPLES].sort().values
    spikes = samples.spikes(some, torch.Generator().manual_seed(0))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "chip"
        export(
            committee.network,
            committee.weights,
            out,
            "fixed-point",
            spikes=spikes.numpy(),
            labels=samples.labels[some].numpy(),
            metadata={"method": "live", "dataset": str(state.about.get("name", "")), "classes": list(state.classes)},
        )
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(out.iterdir()):
                archive.write(path, f"chip/{path.name}")
    return buffer.getvalue()
