"""Values as the messages that a page draws: inputs, steps, the lesson being prepared, one neuron's synapses."""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor

from bayspike.data.delays import shape_now
from bayspike.data.encoders import pack
from bayspike.errors import require
from bayspike.learner.state import LearnerState, posteriors_of
from bayspike.live.inputs import Input, Kind
from bayspike.live.moments import Moment
from bayspike.live.playing import Step
from bayspike.posteriors.distributions import variance_of


def input_message(given: Input | None, steps: int, moment: Moment, kind: Kind) -> dict[str, Any]:
    """That a signal begins; `given` is None for a stream, whose content nobody knows yet."""
    encoding = moment.state.recipe.encoding
    return {
        "tell": "input",
        "name": "the stream" if given is None else given.name,
        "truth": None if given is None else given.truth,
        "teachable": given is not None and not given.judged and given.kind == kind,
        "judged": given is not None and given.judged,
        "steps": steps,
        "inputs": encoding.inputs,
        "shape": list(encoding.shape),
        "frame": list(shape_now(encoding.shape, moment.state.about.get("view", {}))),  # what is drawn of a step
        "classes": list(moment.state.classes),
    }


def step_message(step: Step, spikes: Tensor) -> dict[str, Any]:
    """One step and its spikes, eight to a byte."""
    return {"tell": "step", "spikes": _text(pack(spikes.numpy().astype(np.uint8))), **step.to_plain()}


def tray_message(tray: Sequence[tuple[Input, str]]) -> list[dict[str, Any]]:
    """The lesson being prepared, as small pictures with their words."""
    return [{"word": word, "name": given.name, **_thumbnail(given)} for given, word in tray]


def neuron_message(state: LearnerState, layer: Any, neuron: Any) -> dict[str, Any]:
    """Means and standard deviations of the synapses of one neuron; of layer 0 they are pictures of the input."""
    posteriors = posteriors_of(state)
    require(isinstance(layer, int) and 0 <= layer < len(posteriors), f"the layer must be 0 to {len(posteriors) - 1}.")
    means = posteriors[layer].mean()
    require(isinstance(neuron, int) and 0 <= neuron < len(means), f"the neuron must be 0 to {len(means) - 1}.")
    spread = variance_of(posteriors[layer])[neuron].sqrt()
    encoding = state.recipe.encoding
    picture = layer == 0 and encoding.code is None and not state.recipe.network.recurrent
    return {
        "tell": "neuron",
        "layer": layer,
        "neuron": neuron,
        "shape": list(encoding.shape) if picture else [means.shape[1]],
        "mean": [round(value, 5) for value in means[neuron].tolist()],
        "spread": [round(value, 5) for value in spread.tolist()],
    }


def _thumbnail(given: Input) -> dict[str, Any]:
    """Grey bytes; of spikes how often each input fired."""
    values = given.values
    if given.kind == "spikes":
        rate = values.mean(axis=0)
        values = np.round(255 * rate / max(float(rate.max()), 1e-9)).astype(np.uint8)
    elif given.kind == "point":
        values = np.zeros(1, np.uint8)
    return {"grey": _text(values), "shape": list(values.shape)}


def _text(block: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(block).tobytes()).decode()
