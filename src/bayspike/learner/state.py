"""All that a learner is, as one value: how it was made, and where it stands.

Every function of this room takes such a value and returns the next; none changes the one it was given. All draws are
seeded by the learner's seed and the place (which task, which example), so nothing of a random generator needs keeping.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, get_args

import torch
from torch import Tensor

from bayspike.continual.protocol import StreamConfig
from bayspike.errors import require, require_range
from bayspike.learner import defaults
from bayspike.learner.encoding import Encoding
from bayspike.learner.examples import Plain, check_name
from bayspike.learning.batch import init_states, posteriors
from bayspike.posteriors.distributions import Posterior
from bayspike.predict.gathering import Gather, check_gather
from bayspike.predict.temperature import Temperature
from bayspike.predict.watching import ForeignRule, Score
from bayspike.rules import Rule
from bayspike.rules.base import State, state_bytes
from bayspike.seeds import generator_for
from bayspike.spiking.network import Network, NetworkConfig, build, with_more_classes

MOST_MEMBERS = 10_000


@dataclass(frozen=True)
class Recipe:
    """How a learner was made; it stays the same for life.

    network: as at birth; classes that come later add rows to its read-outs. epochs: of a task; None: by its size.
    remember: how many examples a rule in natural units remembers where there are no boundaries; horizon: what a rule in
    the paper's units takes instead. replay: stored examples beside each that comes alone. memory: how many of
    those are stored. held_back: share of the examples that are kept for calibration and not learnt.
    false_alarm: share of its own inputs that may be called foreign; foreign_score: by what. gather: how the steps of a
    signal become one answer; with another way than the paper's mean, a temperature is fitted on the examples held back
    after each task.
    """

    network: NetworkConfig
    encoding: Encoding
    rule: Rule
    training: StreamConfig
    epochs: int | None = None
    remember: float = defaults.REMEMBER
    horizon: float = defaults.HORIZON
    replay: int = defaults.REPLAY
    memory: int = defaults.MEMORY
    members: int = defaults.MEMBERS
    held_back: float = defaults.HELD_BACK
    false_alarm: float = defaults.FALSE_ALARM
    gather: Gather = "mean"
    foreign_score: Score = defaults.FOREIGN_SCORE

    def __post_init__(self) -> None:
        require(
            self.network.inputs == self.encoding.inputs,
            f"the network has {self.network.inputs} inputs, but an example {self.encoding.inputs}.",
        )
        binary = "" if self.rule.binary else "not "
        require(
            self.network.binary == self.rule.binary,
            f"{type(self.rule).__name__} is {binary}a rule for binary synapses, but the network is otherwise: "
            f"set binary={self.rule.binary} in its NetworkConfig.",
        )
        if self.epochs is not None:
            require_range("epochs", self.epochs, 1)
        require_range("remember", self.remember, 0, low_open=True)
        require_range("horizon", self.horizon, 1)
        require_range("replay", self.replay, 0, 100_000)
        require_range("memory", self.memory, 0)
        require_range("members", self.members, 1, MOST_MEMBERS)
        require_range("held_back", self.held_back, 0, 0.5)
        require_range("false_alarm", self.false_alarm, 0, 1, low_open=True, high_open=True)
        check_gather(self.gather)
        offered = ", ".join(get_args(Score))
        require(
            self.foreign_score in get_args(Score),
            f"foreign_score must be one of {offered}, but is {self.foreign_score!r}.",
        )
        require(
            self.members > 1 or self.foreign_score in ("entropy", "confidence"),
            f"foreign_score={self.foreign_score!r} asks how members differ: a committee of one has none.",
        )

    @property
    def seed(self) -> int:
        return self.training.seed

    @property
    def online_rule(self) -> Rule:
        """The rule where nobody says when a task ends: with a memory or a horizon, if it has such a thing."""
        settings: Any = self.rule
        names = {each.name for each in fields(settings)}
        free: Rule = self.rule
        if "remember" in names and settings.lr is None:
            free = self.rule if settings.remember is not None else replace(settings, remember=self.remember)
        elif "horizon" in names and settings.horizon is None:
            free = replace(settings, horizon=self.horizon)
        return free


@dataclass(frozen=True)
class Calibration:
    """What examples that were held back say: above which doubt an input is foreign, and a temperature if asked for."""

    foreign: ForeignRule | None
    examples: int
    temperature: Temperature | None = None


@dataclass(frozen=True)
class LearnerState:
    """Where a learner stands. Stored examples are here themselves, labelled by places in `classes`."""

    recipe: Recipe
    classes: tuple[str, ...]
    states: tuple[State, ...]  # of each layer: the posterior, and the prior it came from
    tasks: tuple[str, ...] = ()  # names of those learnt
    stored: tuple[Plain, ...] = ()  # of each task
    online: Plain | None = None  # of those that came alone
    held_back: tuple[Plain, ...] = ()  # for calibration
    seen: tuple[int, ...] = ()  # examples of each class so far
    seen_alone: tuple[int, ...] = ()  # those of them that came alone
    since_task: int = 0  # of these, after the last task
    presentations: int = 0
    replayed: int = 0
    calibration: Calibration | None = None
    about: Mapping[str, Any] = field(default_factory=dict)  # plain words on where the data are from

    @property
    def seed(self) -> int:
        return self.recipe.seed

    @property
    def alone(self) -> int:
        """Examples that came alone: the place of the next one."""
        return sum(self.seen_alone)

    @property
    def memory(self) -> tuple[Plain, ...]:
        """All stored examples that may be shown again."""
        return self.stored if self.online is None else (*self.stored, self.online)


def birth(recipe: Recipe, classes: Sequence[str], about: Mapping[str, Any] | None = None) -> LearnerState:
    """A learner before its first example."""
    network = build(recipe.network)
    states = init_states(network, recipe.rule, generator_for(recipe.seed, "init"))
    newborn = LearnerState(recipe, (), tuple(states), about=dict(about or {}))
    return with_classes(newborn, classes)


def with_classes(state: LearnerState, names: Sequence[str]) -> LearnerState:
    """The learner with those classes added that it does not know; nothing else changes."""
    new = [name for name in dict.fromkeys(names) if name not in state.classes]
    for name in new:
        check_name(name)
    if not new:
        return state
    none = (0,) * len(new)
    return replace(state, classes=(*state.classes, *new), seen=state.seen + none, seen_alone=state.seen_alone + none)


def network_of(state: LearnerState) -> Network:
    """The network with a row for every class: a pure function of the seed and their number."""
    config = state.recipe.network
    return with_more_classes(build(config), config, max(config.classes, len(state.classes)))


def posteriors_of(state: LearnerState) -> list[Posterior]:
    return posteriors(state.recipe.rule, state.states)


def fresh_copy(states: Sequence[State]) -> tuple[State, ...]:
    """States that may be spent, without what a rule only works in."""
    return tuple(state._replace(**{name: _kept(part) for name, part in state._asdict().items()}) for state in states)


def _kept(part: Any) -> Any:
    if isinstance(part, Tensor):
        return part.clone()
    return part if isinstance(part, int | float) else None


def counted(before: Sequence[int], labels: Tensor) -> tuple[int, ...]:
    """Examples of each class after these."""
    more = torch.bincount(labels, minlength=len(before)).tolist()
    return tuple(old + new for old, new in zip(before, more, strict=True))


def bytes_of(state: LearnerState) -> tuple[int, int]:
    """What the posterior and the stored examples take."""
    examples = sum(len(part) * part.bytes_per_sample for part in (*state.memory, *state.held_back))
    return sum(state_bytes(layer) for layer in fresh_copy(state.states)), examples
