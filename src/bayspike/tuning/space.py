"""What is searched: one space for all that methods share, and each rule's own constants.

The threshold is searched in units of its default (1, or for weights of ±1 the root of the fan-in), so that real-valued
and binary methods have one range. A setting that methods share cannot be given a range for one method alone.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bayspike.continual.methods import build_rule, describe_rule, method, rule_options
from bayspike.errors import UserError, require
from bayspike.runs.plan.config import MethodConfig, parse_setting
from bayspike.storage.named import short_name
from bayspike.storage.plain import coerce

THRESHOLD = "network.threshold"
WIDE = 10.0  # a positive range whose ends are so many times apart is searched by its logarithm


@dataclass(frozen=True)
class Range:
    """Numbers from low to high; `log`: by their logarithm."""

    low: float
    high: float
    log: bool = True

    def __post_init__(self) -> None:
        require(
            math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high,
            f"a range has a lower and a higher end, but got {self.low:g} and {self.high:g}.",
        )


Space = Mapping[str, Range]

# For every method, in this order. `network.threshold` in units of the default.
SHARED: Space = {
    "network.readout_scale": Range(4.0, 64.0),
    THRESHOLD: Range(0.125, 4.0),
    "network.membrane_decay": Range(0.3, 0.95, log=False),
    "init_scale": Range(0.1, 3.0),
}

_POINT_RATE, _BINARY_RATE = Range(0.01, 1.0), Range(0.05, 5.0)
OWN: dict[str, Space] = {
    "SGD": {"lr": _POINT_RATE},
    "STE": {"lr": _BINARY_RATE},
    "EWC": {"lr": _POINT_RATE, "strength": Range(1e-9, 1e-2)},
    "SI": {"lr": _POINT_RATE, "strength": Range(1e-3, 10.0)},
    "TACOS": {"lr": _POINT_RATE, "increment": Range(1e-4, 10.0)},
    "GaussianVI": {
        "lr": Range(30.0, 1000.0),
        "temperature": Range(1e-9, 1e-4),
        "prior_precision": Range(100.0, 3000.0),
        "precision_lr": Range(3.0, 100.0),
    },
    "BernoulliVI": {"lr": Range(1.0, 100.0), "temperature": Range(1e-8, 1e-3)},
    "MESU": {"prior_std": Range(0.02, 0.5), "remember": Range(1e4, 1e7)},
    "BGD": {"prior_std": Range(0.02, 0.5), "lr": Range(0.1, 10.0)},
}
# of rules in natural units, which have no rates to search
NATURAL: dict[str, Space] = {
    "GaussianVI": {"prior_std": Range(0.03, 1.0)},
    "BernoulliVI": {"carry": Range(1.0, 1000.0)},
}
MEMORY: Space = {"remember": Range(1e4, 1e7)}


def own_space(base: MethodConfig) -> dict[str, Range]:
    """The constants of a method's own rule, in the units that its present settings are in."""
    kind = method(base.method).rule
    name = kind.__name__
    known = rule_options(kind)
    if name in NATURAL and base.rule.get("lr") is None:
        boundless = base.rule.get("remember") is not None
        return {**NATURAL[name], **(MEMORY if boundless else {})}
    if base.rule.get("binary") is True:
        return {**OWN.get(name, {}), "lr": _BINARY_RATE}
    found = OWN.get(name, {"lr": _POINT_RATE} if "lr" in known else {})
    return {key: each for key, each in found.items() if key not in method(base.method).fixed}


def spaces(methods: Sequence[MethodConfig], said: Sequence[str] = ()) -> tuple[dict[str, Range], dict[str, Space]]:
    """The shared space and each method's own, with what the user says of them: `name=[low,high]`, or `name=none`."""
    shared = dict(SHARED)
    own = {base.method: own_space(base) for base in methods}
    full = {short_name(base.method): base.method for base in methods}
    for text in said:
        key, value = parse_setting(text, "--space", "ewc.strength=[1e-8,1e-2]")
        first, _, rest = key.partition(".")
        chosen = full.get(first)
        if chosen is not None and (rest in shared or "." in rest):
            raise UserError(
                f"--space {key}: methods share {rest}, so its range is the same for all: say --space {rest}=…"
            )
        place, name = (own[chosen], rest) if chosen is not None else (shared, key)
        if chosen is not None:
            known = rule_options(method(chosen).rule)
            require(name in known, f"--space {key}: {chosen} has no {name!r}; it has {', '.join(known)}.")
        if value is None:
            require(name in place, f"--space {key}: nothing of that name is searched.")
            del place[name]
        else:
            place[name] = _range(value, f"--space {key}")
    return shared, {name: dict(each) for name, each in own.items()}


def _range(value: Any, where: str) -> Range:
    require(
        isinstance(value, list) and len(value) == 2,
        f"{where} takes two numbers, as in [0.01,1], but got {json.dumps(value)}.",
    )
    low, high = (coerce(each, float, where) for each in value)
    return Range(low, high, log=low > 0 and high / low >= WIDE)


def searched(base: MethodConfig, shared: Space, own: Space) -> dict[str, Range]:
    """All that is searched for a method: what is shared first, where its rule knows it."""
    known = rule_options(method(base.method).rule)
    return {**{key: each for key, each in shared.items() if "." in key or key in known}, **own}


def settings_for(drawn: Mapping[str, float], default_threshold: float) -> dict[str, float]:
    """What was drawn as settings of `--set`: the threshold in its own units, numbers in six digits."""
    found = {key: value * default_threshold if key == THRESHOLD else value for key, value in drawn.items()}
    return {key: float(f"{value:.6g}") for key, value in found.items()}


def with_settings(base: MethodConfig, settings: Mapping[str, float]) -> MethodConfig:
    """A method with some of its settings replaced."""
    parts: dict[str, dict[str, float]] = {"": {}, "network": {}, "training": {}}
    for key, value in settings.items():
        group, _, name = key.rpartition(".")
        require(group in parts, f"there is no setting {key!r}.")
        parts[group][name] = value
    rule = build_rule(base.method, {**base.rule, **parts[""]})
    try:
        network = replace(base.network, **parts["network"])  # type: ignore[arg-type]
        training = replace(base.training, **parts["training"])  # type: ignore[arg-type]
    except TypeError as error:
        raise UserError(f"{base.method} has no such setting ({error}).") from error
    return replace(base, rule=describe_rule(rule), network=network, training=training)
