"""The learners one can ask for by name: a rule, what it replays, and which tasks it is shown.

To add a method: add one line to `METHODS`; a rule that stays outside the package is named `package.module:Class`. Its
hyper-parameters are those of its rule; each experiment's table `TUNED` says which differ from the rule's defaults, and
`like` names the method whose entries hold where it has none of its own.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, get_type_hints

from bayspike.errors import UserError, hint, require, require_range
from bayspike.posteriors.grid import Grid
from bayspike.rules import BGD, EWC, MESU, SGD, SI, STE, TACOS, BernoulliVI, GaussianVI, Laplace, Metaplastic, Rule
from bayspike.storage.named import import_named, is_named, require_permitted
from bayspike.storage.plain import coerce, to_plain


@dataclass(frozen=True)
class Method:
    """A learner by name. `fixed` and `training` are what makes it this method and not another of the same rule; `suits`
    is how it goes through its tasks unless something else is asked for."""

    rule: type
    about: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    tasks: Literal["stream", "joint", "coresets"] = "stream"
    like: str | None = None
    suits: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bayesian(self) -> bool:
        return self.rule in (GaussianVI, BernoulliVI, MESU, BGD) or bool(getattr(self.rule, "bayesian", False))

    @property
    def predictors(self) -> tuple[str, ...]:
        """The ways to predict with it, the headline first."""
        return ("committee", "ensemble", "mean") if self.bayesian else ("point",)


LARGEST_RATE = 1e6  # a learning rate beyond it leaves nothing of float32 after a step
_NO_REPLAY = {"replay": "none"}
_ONCE = {"evidence": "once"}  # however often it is shown, an example is evidence once

METHODS: dict[str, Method] = {
    "bayes": Method(GaussianVI, "Gaussian variational inference, real-valued synapses, coresets"),
    "bayes-binary": Method(
        BernoulliVI,
        "Bernoulli variational inference, binary synapses, coresets; with sampling=neuron by the central limit theorem",
    ),
    "sgd": Method(SGD, "frequentist, real-valued synapses, the same coresets (replay only)"),
    "ste": Method(STE, "frequentist, binary synapses by the straight-through estimator, the same coresets"),
    "ewc": Method(EWC, "elastic weight consolidation with the same coresets", like="sgd"),
    "ewc-online": Method(EWC, "EWC with one running importance", {"online": True}, like="ewc"),
    "laplace": Method(
        Laplace,
        "weights learnt as by EWC, with the strength that Bayes' rule gives, and the precision that it holds them by: "
        "a Gaussian by Laplace's method, carried from task to task",
        like="sgd",
        suits={"fisher_examples": 1000},
    ),
    "ewc-binary": Method(EWC, "EWC on binary synapses", {"binary": True}, like="ste"),
    "tacos": Method(TACOS, "metaplasticity and heterosynaptic decay, no replay", {}, _NO_REPLAY),
    "tacos-replay": Method(TACOS, "TACOS with the same coresets", like="tacos"),
    "finetune": Method(SGD, "frequentist without any replay: the floor", {}, _NO_REPLAY, like="sgd"),
    "coreset-only": Method(
        SGD, "trained once on the coresets alone at the end (as GDumb)", {}, _NO_REPLAY, "coresets", "sgd"
    ),
    "joint": Method(SGD, "frequentist on all tasks at once: the ceiling", {}, _NO_REPLAY, "joint", "sgd"),
    "bayes-joint": Method(GaussianVI, "Bayesian on all tasks at once", {}, _NO_REPLAY, "joint", "bayes"),
    "bayes-carried": Method(
        GaussianVI, "Gaussian in natural units, its posterior carried as hard as what is stored asks for", suits=_ONCE
    ),
    "bayes-stream": Method(
        GaussianVI, "Bayesian without task boundaries: a memory of examples, a lasting prior", {"remember": 300_000.0}
    ),
    "bayes-flat": Method(
        GaussianVI,
        "the same with one precision a layer: a control",
        {"remember": 300_000.0, "flat": True},
        {},
        like="bayes-stream",
    ),
    "mesu": Method(MESU, "metaplasticity from synaptic uncertainty, no boundaries, nothing stored", {}, _NO_REPLAY),
    "bgd": Method(BGD, "Bayesian gradient descent (FOO-VB, diagonal), no boundaries, nothing stored", {}, _NO_REPLAY),
    "si": Method(SI, "synaptic intelligence with the same coresets", like="sgd"),
    "metaplastic": Method(
        Metaplastic, "binary synapses that resist flipping back, no boundaries", {}, _NO_REPLAY, like="ste"
    ),
    "bayes-binary-stream": Method(
        BernoulliVI,
        "Bernoulli without task boundaries, in natural units: a memory of examples, a lasting prior; "
        "potentials drawn at the neurons by the central limit theorem",
        {"lr": None, "temperature": None, "sampling": "neuron", "remember": 300_000.0},
    ),
}


def method(name: str) -> Method:
    """The method of a name, or a rule of one's own by its class, if it is permitted to run."""
    if is_named(name):
        require_permitted(name)
        return _own_method(name)
    if name not in METHODS:
        raise UserError(f"There is no method {name!r}: choose from {', '.join(METHODS)}.{hint(name, METHODS)}")
    return METHODS[name]


@lru_cache(maxsize=64)
def _own_method(name: str) -> Method:
    kind = import_named(name, "a rule")
    require(
        isinstance(kind, type) and dataclasses.is_dataclass(kind),
        f"{name} is no rule: a rule is a frozen dataclass of hyper-parameters (see bayspike.rules.base).",
    )
    needed = ("lr", "binary", "samples", "needs_fisher", "init", "drive", "update", "end_task", "posterior")
    known = {*dir(kind), *rule_options(kind)}
    missing = [each for each in needed if each not in known]
    require(not missing, f"{name} is no rule: it has no {', '.join(missing)} (see bayspike.rules.base).")
    return Method(kind, about_rule(name))


def about_rule(name: str) -> str:
    """What a table says of a method by its name; of one's own, without running it."""
    return METHODS[name].about if name in METHODS else f"a rule of one's own, {name}"


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
            raise UserError(
                f"The method {name!r} has no hyper-parameter {key!r}: it has {', '.join(known)}.{hint(key, known)}"
            )
        if key == "grid":
            values[key] = None if value is None else Grid(coerce(value, float, f"{name}.grid"))
        else:
            values[key] = coerce(value, hints[key], f"{name}.{key}")
    if values.get("lr") is not None:  # a rule in natural units has none
        require_range(f"{name}.lr", values["lr"], 0, LARGEST_RATE)
    try:
        rule: Rule = kind(**values)
    except TypeError as error:
        raise UserError(f"The method {name!r} is not complete ({error}): give the rest with --set.") from error
    return rule


def describe_rule(rule: Rule) -> dict[str, Any]:
    """All hyper-parameters of a rule as plain values: what `build_rule` takes."""
    plain: dict[str, Any] = to_plain(rule)
    if isinstance(plain.get("grid"), dict):
        plain["grid"] = plain["grid"]["step"]
    return plain
