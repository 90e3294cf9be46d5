"""The learners one can ask for by name: a rule, what it replays, and which tasks it is shown.

To add a method: add one line to `METHODS`. Its hyper-parameters are those of its rule; each experiment's table
`TUNED` says which differ from the rule's defaults, and `like` names the method whose entries hold where it has
none of its own.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_type_hints

from bayspike.errors import UserError
from bayspike.posteriors.grid import Grid
from bayspike.rules import BGD, EWC, MESU, SGD, SI, STE, TACOS, BernoulliVI, GaussianVI, Rule
from bayspike.storage.plain import coerce, to_plain


@dataclass(frozen=True)
class Method:
    """A learner by name. `fixed` and `training` are what makes it this method and not another of the same rule."""

    rule: type
    about: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    tasks: Literal["stream", "joint", "coresets"] = "stream"
    like: str | None = None

    @property
    def bayesian(self) -> bool:
        return self.rule in (GaussianVI, BernoulliVI, MESU, BGD)

    @property
    def predictors(self) -> tuple[str, ...]:
        """The ways to predict with it, the headline first."""
        return ("committee", "ensemble", "mean") if self.bayesian else ("point",)


_NO_REPLAY = {"replay": "none"}

METHODS: dict[str, Method] = {
    "bayes": Method(GaussianVI, "Gaussian variational inference, real-valued synapses, coresets"),
    "bayes-binary": Method(BernoulliVI, "Bernoulli variational inference, binary synapses, coresets"),
    "sgd": Method(SGD, "frequentist, real-valued synapses, the same coresets (replay only)"),
    "ste": Method(STE, "frequentist, binary synapses by the straight-through estimator, the same coresets"),
    "ewc": Method(EWC, "elastic weight consolidation with the same coresets", like="sgd"),
    "ewc-online": Method(EWC, "EWC with one running importance", {"online": True}, like="ewc"),
    "ewc-binary": Method(EWC, "EWC on binary synapses", {"binary": True}, like="ste"),
    "tacos": Method(TACOS, "metaplasticity and heterosynaptic decay, no replay", {}, _NO_REPLAY),
    "tacos-replay": Method(TACOS, "TACOS with the same coresets", like="tacos"),
    "finetune": Method(SGD, "frequentist without any replay: the floor", {}, _NO_REPLAY, like="sgd"),
    "coreset-only": Method(
        SGD, "trained once on the coresets alone at the end (as GDumb)", {}, _NO_REPLAY, "coresets", "sgd"
    ),
    "joint": Method(SGD, "frequentist on all tasks at once: the ceiling", {}, _NO_REPLAY, "joint", "sgd"),
    "bayes-joint": Method(GaussianVI, "Bayesian on all tasks at once", {}, _NO_REPLAY, "joint", "bayes"),
    "bayes-stream": Method(
        GaussianVI,
        "Bayesian without task boundaries: a memory of examples, a prior that is never replaced",
        like="bayes",
    ),
    "bayes-flat": Method(
        GaussianVI, "the same with one precision a layer: a control", {"flat": True}, like="bayes-stream"
    ),
    "mesu": Method(MESU, "metaplasticity from synaptic uncertainty, no boundaries, nothing stored", {}, _NO_REPLAY),
    "bgd": Method(BGD, "Bayesian gradient descent (FOO-VB, diagonal), no boundaries, nothing stored", {}, _NO_REPLAY),
    "si": Method(SI, "synaptic intelligence with the same coresets", like="sgd"),
}


def method(name: str) -> Method:
    if name not in METHODS:
        raise UserError(f"There is no method {name!r}: choose from {', '.join(METHODS)}.")
    return METHODS[name]


def rule_options(kind: type) -> list[str]:
    """The hyper-parameters of a rule."""
    return [each.name for each in dataclasses.fields(kind)]


def build_rule(name: str, options: Mapping[str, Any]) -> Rule:
    """The rule of a method. `grid` is given as the step of the 8-bit grid."""
    kind = method(name).rule
    hints = get_type_hints(kind)
    known = rule_options(kind)
    given = {**method(name).fixed, **options}
    values: dict[str, Any] = {}
    for key, value in given.items():
        if key not in known:
            raise UserError(f"The method {name!r} has no hyper-parameter {key!r}: it has {', '.join(known)}.")
        if key == "grid":
            values[key] = None if value is None else Grid(coerce(value, float, f"{name}.grid"))
        else:
            values[key] = coerce(value, hints[key], f"{name}.{key}")
    rule: Rule = kind(**values)
    return rule


def describe_rule(rule: Rule) -> dict[str, Any]:
    """All hyper-parameters of a rule as plain values: what `build_rule` takes."""
    plain: dict[str, Any] = to_plain(rule)
    if isinstance(plain.get("grid"), dict):
        plain["grid"] = plain["grid"]["step"]
    return plain
