"""Decisions while the signal is still arriving (paper, Sec. "Confidence levels"; the anytime reading of
eqs. pred-conf-freq, pred-conf-bayes).

A stream takes the spikes of one time-step and answers with the decision it would give if the signal stopped there. It
keeps the state of the neurons and a running sum, so its memory does not grow with time. It abstains where it is not
sure enough, or where the input looks foreign: more uncertain than all but a chosen share of inputs of its own kind.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from bayspike.errors import UserError, require, require_range
from bayspike.metrics.uncertainty import split_uncertainty
from bayspike.predict.discord import discord
from bayspike.predict.gathering import Gather, Gathering
from bayspike.predict.synapses import Synapses
from bayspike.predict.unrolled import arrive, check_binary, propagate, start
from bayspike.spiking.network import Network

LONGEST_ECHO = 100_000  # silent steps that a network may need to come to rest

Score = Literal["mutual_information", "entropy", "confidence", "discord"]


class Decision(NamedTuple):
    """One row per stream."""

    label: Tensor  # the most probable class, (batch,)
    confidence: Tensor  # its probability, (batch,)
    epistemic: Tensor  # mutual information between class and member, in nats: 0 for a single network, (batch,)
    foreign: Tensor  # whether the input looks unlike those the rule was calibrated on, (batch,)
    abstain: Tensor  # foreign, or less sure than was asked for, (batch,)
    time: int  # steps seen, from 1
    probabilities: Tensor  # (batch, classes)
    discord: Tensor  # how differently members fire, see `bayspike.predict.discord`: 0 for a single network, (batch,)


@dataclass(frozen=True)
class ForeignRule:
    """An input is foreign when its score lies above the threshold of the time-step; the last one holds ever after."""

    score: Score
    thresholds: Tensor  # (time,)

    def __post_init__(self) -> None:
        require(
            self.score in get_args(Score), f"score must be one of {', '.join(get_args(Score))}, but is {self.score!r}."
        )
        require(
            self.thresholds.ndim == 1 and len(self.thresholds) > 0 and not bool(self.thresholds.isnan().any()),
            "thresholds must be one number for each time-step.",
        )

    def flags(self, members: Tensor, time: int, discord: Tensor | None = None) -> Tensor:
        """Whether each input is foreign at step `time` (from 1), given cumulative `(members, batch, classes)` and, for
        a rule that goes by it, the discord `(batch,)`."""
        threshold = self.thresholds[min(time, len(self.thresholds)) - 1]
        return uncertainty_score(members, self.score, discord) > threshold


def uncertainty_score(members: Tensor, score: Score, discord: Tensor | None = None) -> Tensor:
    """Higher for stranger inputs: `(members, ..., classes)` to `(...)`. `confidence` is scored as one minus it, the
    discord of members' spikes is given."""
    if score == "discord":
        if discord is None:
            raise UserError(
                "the score 'discord' goes by how differently members fire: give their discord, too (a single network "
                "has none)."
            )
        return discord.to(torch.float64)
    if score == "confidence":
        return 1 - members.to(torch.float64).mean(dim=0).amax(dim=-1)
    parts = split_uncertainty(members)
    return parts.epistemic if score == "mutual_information" else parts.total


def calibrate_foreign(
    members: Tensor,
    false_alarm: float = 0.05,
    score: Score = "mutual_information",
    discord: Tensor | None = None,
) -> ForeignRule:
    """The rule that calls at most a share `false_alarm` of inputs of the model's own kind foreign, at each time-step.

    `members` are the cumulative probabilities `(members, time, examples, classes)` of held-out inputs that took no part
    in training; for the score `discord` theirs is given, too, `(time, examples)`. If those and a new input are
    exchangeable, the promise is exact at any one t: the threshold is the ⌈(n + 1)(1 − false_alarm)⌉-th smallest of n
    scores. It says nothing of the chance of an alarm at *some* t.
    """
    require_range("false_alarm", false_alarm, 0, 1, low_open=True, high_open=True)
    require(members is not None, "there are no members to go by: predict with keep_members='all'.")
    members, discord = torch.as_tensor(members), None if discord is None else torch.as_tensor(discord)
    require(
        members.ndim == 4,
        f"members must have the shape (members, time, examples, classes), but have {tuple(members.shape)}; "
        "predict with keep_members='all'.",
    )
    scores = uncertainty_score(members, score, discord)  # (time, examples)
    require(
        scores.shape == members.shape[1:3],
        f"discord must have the shape {tuple(members.shape[1:3])}, a number for each step and example, "
        f"but has {tuple(scores.shape)}; predict with keep_members='all'.",
    )
    examples = scores.shape[1]
    rank = math.ceil((examples + 1) * (1 - false_alarm) - 1e-9)
    require(
        rank <= examples,
        f"{examples} held-out examples cannot hold a false-alarm rate of {false_alarm:g}: "
        f"give at least {math.ceil(1 / false_alarm - 1e-9) - 1}.",
    )
    return ForeignRule(score, scores.sort(dim=1).values[:, rank - 1])


class Watch:
    """A batch of signals being watched; `predictor.open()` makes one. Every signal starts at the first push."""

    def __init__(
        self,
        network: Network,
        synapses: Sequence[Synapses],
        batch: int,
        confidence: float = 0.0,
        foreign: ForeignRule | None = None,
        gather: Gather = "mean",
    ) -> None:
        require_range("confidence", confidence, 0, 1)
        self.network, self.batch = network, batch
        self.confidence, self.foreign = confidence, foreign
        self.time = 0
        self._synapses = list(synapses)
        members = self._synapses[0].members
        self._states = start(network, members, batch)
        readout = network.layers[-1].readout
        self._device = readout.device
        silent = readout.new_full((members, batch, network.classes), 1 / network.classes)
        # a spike takes one step per layer, and `propagate` leaves these steps out
        self._fired = readout.new_zeros(members, batch, network.layers[-1].neurons)
        self._on_their_way = deque([(silent, torch.zeros_like(self._fired))] * len(network.layers))
        self._gathering = Gathering(gather, silent)

    @property
    def members(self) -> Tensor:
        """Cumulative probabilities of each member so far, `(members, batch, classes)`."""
        if self.time == 0:
            raise UserError("the stream has seen no time-step yet: push spikes first.")
        return self._gathering.answer()

    @property
    def discord(self) -> Tensor:
        """How differently members have fired so far, `(batch,)`."""
        return discord(self._fired)

    @torch.no_grad()
    def push(self, spikes: Tensor) -> Decision:
        """Take in the spikes `(batch, inputs)` of the next time-step (`(inputs,)` of a single one) and decide."""
        spikes = torch.as_tensor(spikes)
        spikes = spikes.unsqueeze(0) if spikes.ndim == 1 and self.batch == 1 else spikes
        if spikes.ndim != 2 or len(spikes) != self.batch:
            raise UserError(
                f"spikes must have the shape ({self.batch}, {self.network.inputs}), one row per stream, "
                f"but have {tuple(spikes.shape)}."
            )
        block = spikes.unsqueeze(0).to(self._device)
        check_binary(self.network, block)
        self._advance(block)
        return self._decide()

    @torch.no_grad()
    def rest(self, steps: int) -> Decision:
        """Take in `steps` time-steps without a single spike, and decide.

        Step by step until all that came before has died away; the rest at once, since from then on every step adds
        the same. Memory and time stay bounded however long the silence is.
        """
        require_range("steps", steps, 1)
        block = torch.zeros((1, self.batch, self.network.inputs), dtype=torch.uint8, device=self._device)
        for done in range(steps):
            if self._at_rest():
                left = steps - done
                self._gathering.add(self._on_their_way[0][0], left)
                self.time += left
                break
            require(
                done < LONGEST_ECHO,
                f"after {LONGEST_ECHO:,} silent steps the network is still active, so a silence of {steps:,} steps "
                "cannot be passed over; send events more often.",
            )
            self._advance(block)
        return self._decide()

    def _advance(self, block: Tensor) -> None:
        """One step: spikes `(1, batch, inputs)` that were checked."""
        torch.set_flush_denormal(True)
        currents = arrive(self.network, self._synapses, block)(slice(None))
        done = propagate(self.network, self._synapses, currents, self._states)
        self._states = done.states
        self._on_their_way.append((done.probabilities[:, 0], done.fired[:, 0]))
        self.time += 1
        if self.time <= len(self.network.layers) + 1:
            self._gathering.forget()  # what came before could not depend on the signal
        said, fired = self._on_their_way.popleft()
        self._gathering.add(said)
        self._fired += fired

    def _at_rest(self) -> bool:
        """Whether nothing is left of any spike: no trace, no refractoriness, nothing on its way."""
        if self.time <= len(self.network.layers) + 1:
            return False
        first, _ = self._on_their_way[0]
        echoes = any(bool(fired.any()) or not torch.equal(first, said) for said, fired in self._on_their_way)
        return not echoes and not any(
            bool(part.any()) for state in self._states for part in (*state.filtered, state.refractory, state.spikes)
        )

    def _decide(self) -> Decision:
        members = self.members
        probabilities = members.mean(dim=0)
        confidence, label = probabilities.max(dim=-1)
        foreign, apart = torch.zeros_like(label, dtype=torch.bool), self.discord.to(confidence.dtype)
        if self.foreign is not None:
            foreign = self.foreign.flags(members, self.time, apart)  # rounded as what its thresholds were made of
        epistemic = split_uncertainty(members).epistemic.to(confidence.dtype)
        abstain = foreign | (confidence < self.confidence)
        return Decision(label, confidence, epistemic, foreign, abstain, self.time, probabilities, apart)
