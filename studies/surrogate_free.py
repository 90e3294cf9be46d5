"""A gradient and a curvature without surrogate, beside mean(g²): is it worth its place in the library?

    BAYSPIKE_DATA=… python studies/surrogate_free.py

A neuron whose weights are drawn at its potential, N(μ, v), fires with probability Φ(z), z = (μ − ϑ)/√v. So the expected
loss has exact derivatives: with Δ_i the change of the loss when neuron i fires rather than not, by its first order e_i,

    ∂/∂m_ij = Δ_i·φ(z_i)/√v_i·x_j          2·∂/∂σ²_ij = −Δ_i·z_i·φ(z_i)/v_i·x_j² = h_ij   (Price's theorem)

and p ← p + d + d²/(2p) with d = η·mean(h), which stays positive (Lin, Schmidt & Khan, ICML 2020). Judged by the trials
of `studies/posterior.py` on validation images. `price` takes both, `squared` the gradient above with its own mean(g²).
"""

import argparse
import json
import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import posterior as trials  # the study beside this one
import torch
from torch import Tensor

from bayspike.posteriors import draws
from bayspike.rules import GaussianVI
from bayspike.rules.gaussian import GaussianState
from bayspike.spiking import surrogates
from bayspike.spiking.local import LocalGradient

SMALLEST_VARIANCE = 1e-8


@dataclass
class DrawnPotential:
    """Potentials drawn at the neurons, with what the derivatives need; `step` takes the refractory part off them."""

    mean: Tensor
    precision: Tensor
    generator: torch.Generator

    def __call__(self, pre: Tensor) -> Tensor:
        self.variance = (pre.square() @ self.precision.reciprocal().T).clamp_(min=SMALLEST_VARIANCE)
        centre = pre @ self.mean.T
        self.noise = draws.normal(centre.shape, centre, self.generator)
        self.potential = centre.addcmul_(self.variance.sqrt(), self.noise)
        return self.potential


@dataclass(frozen=True)
class SurrogateFree(GaussianVI):
    curvature: str = "price"
    threshold: float = 1.0

    def drive(self, state: GaussianState, generator: torch.Generator) -> Any:
        return DrawnPotential(state.mean, state.precision, generator)

    def update(self, state: GaussianState, gradient: LocalGradient) -> GaussianState:
        drive, share = gradient.drive, 1 / gradient.batch
        assert isinstance(drive, DrawnPotential)
        spread = drive.variance.sqrt()
        z = (drive.potential - self.threshold) / spread - drive.noise  # the drawn noise taken off again
        density = torch.exp(-0.5 * z.square()) / math.sqrt(2 * math.pi)
        error = gradient.delta  # the surrogate's factor was one: this is e
        delta = error * density / spread
        squares, counted = gradient.pre.square(), 1.0 if self.crowd is None else state.mean.shape[0] / self.crowd
        evidence = 1.0 if gradient.evidence is None else gradient.evidence
        if self.curvature == "price":
            h = -error * z * density / drive.variance * evidence
            d = (h.T @ squares) * (self.precision_rate * share * counted)
            state.precision.add_(d + d.square() / (2 * state.precision))
        else:
            state.precision.addmm_((delta.square() * evidence).T, squares, alpha=self.precision_rate * share * counted)
        state.mean.addcdiv_(delta.T @ gradient.pre, state.precision, value=-self.rate * share)
        return state

    def without_pull(self) -> "SurrogateFree":
        return replace(self, temperature=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/results/surrogate-free.jsonl"))
    parser.add_argument("--images", type=int, default=10_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    known = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    done = {(line["curvature"], line["stream"]) for line in known}
    plain = surrogates.SURROGATES["sigmoid"]
    for curvature in ("price", "squared", "surrogate"):
        free = curvature != "surrogate"
        # the rule takes the error itself, so the network's own factor is one
        surrogates.SURROGATES["sigmoid"] = (lambda distance, slope: torch.ones_like(distance)) if free else plain
        more: dict[str, Any] = {"curvature": curvature} if free else {}
        kind = SurrogateFree if free else GaussianVI
        for stream in ("split, 10 stored", "permuted, 784-100"):
            if (curvature, stream) in done:
                continue
            begin = time.perf_counter()
            if stream.startswith("split"):
                found = trials.split_trial(kind(**more), 10, 0, "once")
            else:
                rule = kind(remember=300_000.0, **more)
                found = trials.permuted_trial(rule, 100, options.images, 0, 16.0, 0.5)
            line = json.dumps({"curvature": curvature, "stream": stream, "found": found})
            print(line, round(time.perf_counter() - begin, 1), flush=True)
            with options.out.open("a") as out:
                out.write(line + "\n")


if __name__ == "__main__":
    main()
