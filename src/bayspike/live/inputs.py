"""One input as a person hands it over: a picture, a point, or the spikes of a recording; and as plain JSON."""

import base64
import binascii
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bayspike.data.base import CoordinateSamples, StaticSamples
from bayspike.data.encoders import pack, unpack
from bayspike.data.files import pictures
from bayspike.data.files.pictures import read_picture
from bayspike.data.inputs import spikes_of_file
from bayspike.errors import UserError, require
from bayspike.learner.encoding import LONGEST, Encoding
from bayspike.learner.examples import Plain
from bayspike.learner.state import LearnerState
from bayspike.runs.models import about_of
from bayspike.seeds import generator_for

Kind = Literal["picture", "point", "spikes"]
MOST_NUMBERS = 2**26  # of one input: bits of its spikes


@dataclass(frozen=True, eq=False)
class Input:
    """`values` are bytes of the example's shape, coordinates, or zeros and ones `(time, inputs)`.

    judged: it is one of those by which the learner is judged, and so is never taught.
    """

    kind: Kind
    values: NDArray[Any]
    name: str
    truth: str | None = None
    judged: bool = False

    def spikes(self, state: LearnerState) -> Tensor:
        """Spikes `(time, inputs)`: the very ones that `Learner.predict_one` would see."""
        if self.kind == "spikes":
            found = torch.from_numpy(self.values)
        else:
            one = state.recipe.encoding.one(self.values)
            found = one.spikes(torch.tensor([0]), generator_for(state.seed, "input"))[:, 0]
        require(
            found.shape[1] == state.recipe.encoding.inputs,
            f"{self.name} has {found.shape[1]} inputs, but the learner takes {state.recipe.encoding.inputs}.",
        )
        return found

    def example(self, encoding: Encoding) -> NDArray[Any]:
        """As one row of a lesson; a recording is taken from its beginning, for as long as the learner looks."""
        require(not self.judged, f"{self.name} is one of those that judge the learner: teach it another.")
        wanted: Kind = kind_of(encoding)
        require(self.kind == wanted, f"{self.name} is {self.kind}, but the learner learns from a {wanted}.")
        if self.kind != "spikes":
            return self.values
        time = encoding.time
        require(len(self.values) >= time, f"{self.name} has {len(self.values)} time-steps, but a lesson needs {time}.")
        return self.values[:time]

    def to_plain(self) -> dict[str, Any]:
        block = pack(self.values) if self.kind == "spikes" else self.values
        content = base64.b64encode(np.ascontiguousarray(block).tobytes()).decode()
        shape = list(self.values.shape)
        return {"kind": self.kind, "shape": shape, "content": content, "name": self.name, "truth": self.truth}


def from_plain(given: Mapping[str, Any]) -> Input:
    """The inverse of `Input.to_plain`, with everything checked."""
    try:
        kind, name, truth = given["kind"], given["name"], given["truth"]
        shape = tuple(int(side) for side in given["shape"])
        content = base64.b64decode(given["content"], validate=True)
        require(kind in get_args(Kind) and isinstance(name, str) and isinstance(truth, str | None), "its words")
        require(all(side > 0 for side in shape) and math.prod(shape) <= MOST_NUMBERS, "its shape")
        if kind == "spikes":
            require(len(shape) == 2 and shape[0] <= LONGEST, "its shape")
            packed = np.frombuffer(content, np.uint8).reshape(shape[0], -(-shape[1] // 8))
            return Input("spikes", unpack(packed, shape[1]), name, truth)
        dtype = np.uint8 if kind == "picture" else np.float32
        return Input(kind, np.frombuffer(content, dtype).reshape(shape).copy(), name, truth)
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise UserError(f"an input of the recording is not sound ({error}).") from error


def kind_of(encoding: Encoding) -> Kind:
    """What a learner learns from."""
    kinds: dict[str, Kind] = {"spikes": "spikes", "population": "point"}
    return kinds.get(encoding.kind, "picture")


def of_samples(samples: Plain, index: int, encoding: Encoding, name: str, truth: str, judged: bool) -> Input:
    """One of some stored examples."""
    if isinstance(samples, StaticSamples):
        return Input("picture", samples.values[index].numpy().reshape(encoding.shape), name, truth, judged)
    if isinstance(samples, CoordinateSamples):
        return Input("point", samples.coordinates[index].numpy(), name, truth, judged)
    return Input("spikes", unpack(samples.packed[index].numpy(), samples.inputs), name, truth, judged)


def of_file(path: Path, name: str, state: LearnerState) -> tuple[Input, str]:
    """A file that somebody dropped, and a word on how it was read; errors call it by the name it came with."""
    encoding = state.recipe.encoding
    try:
        if path.suffix.lower() in pictures.ENDINGS:
            require(
                kind_of(encoding) == "picture" and len(encoding.shape) == 2,
                f"{name} is a picture, but this learner takes none: give a recording of events.",
            )
            height, width = encoding.shape
            grey = read_picture(path, (height, width), name=name, resize=True)
            light = dark_on_light(grey)
            word = " It is dark on light, so it was turned round." if light else ""
            return Input("picture", 255 - grey if light else grey, name), word
        about = about_of(state)
        require(
            kind_of(encoding) == "spikes",
            f"{name}: a learner of {about['name']} takes pictures ({', '.join(pictures.ENDINGS)}), not recordings.",
        )
        spikes = spikes_of_file(path, about, generator_for(state.seed, "input"))
        return Input("spikes", spikes.numpy(), name), ""
    except UserError as error:
        raise UserError(str(error).replace(str(path), name)) from error


def dark_on_light(grey: NDArray[np.uint8]) -> bool:
    """Whether the rim of a picture is bright, as paper is."""
    rim = np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])
    return float(rim.mean()) > 127
