"""Small changes to input spikes while they are learnt, the same for pictures and events.

    shift    every example moves by up to so many pixels up or down and left or right; what comes in is dark
    turn     every example is turned about its middle by up to so many degrees, either way
    stretch  every example's height and width each change by up to this share
    drop     every spike is left out with this probability
    jitter   every spike moves by up to so many time-steps; two that meet become one

All draws are made with the generator of the mini-batch. Where inputs are seen at several ages (`bayspike.data.delays`),
what is dropped or moves is what was recorded: an event shows the same at every age, or at none.
"""

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from bayspike.data.delays import NOW, check_delays, delayed, undelayed
from bayspike.errors import UserError, require, require_range


@dataclass(frozen=True)
class Augment:
    """What is done to a mini-batch of spikes of samples of the given shape, which ends in height and width.

    delays: at which ages the samples show their inputs.
    """

    shape: tuple[int, ...]
    shift: int = 0
    drop: float = 0.0
    jitter: int = 0
    turn: float = 0.0
    stretch: float = 0.0
    delays: tuple[int, ...] = NOW

    def __post_init__(self) -> None:
        object.__setattr__(self, "delays", check_delays(self.delays))
        for name in ("shift", "jitter"):
            value = getattr(self, name)
            require(value == int(value), f"{name} of augment must be a whole number, but is {value}.")
        require_range("drop of augment", self.drop, 0, 1, high_open=True)
        require_range("jitter of augment", self.jitter, 0)
        require_range("shift of augment", self.shift, 0)
        require_range("turn of augment", self.turn, 0, 180)
        require_range("stretch of augment", self.stretch, 0, 1, high_open=True)
        for name in ("shift", "turn", "stretch"):
            require(
                not getattr(self, name) or len(self.shape) >= 2,
                f"{name} of augment needs pictures or events, not samples of shape {self.shape}.",
            )
        if self.shift:
            require_range("shift of augment", self.shift, 0, min(self.shape[-2:]) - 1)

    @property
    def looks(self) -> int:
        """In how many ways an example can be seen, told apart by whole pixels: for a turn and a stretch, those that the
        middle of a side moves. Spikes that are dropped or moved in time make no new one."""
        if not self.turn and not self.stretch:
            return (2 * self.shift + 1) ** 2
        rim = min(self.shape[-2:]) / 2
        turned, stretched = round(rim * math.radians(self.turn)), round(rim * self.stretch)
        return (2 * self.shift + 1) ** 2 * (2 * turned + 1) * (2 * stretched + 1) ** 2

    def __call__(self, spikes: Tensor, generator: torch.Generator) -> Tensor:
        """Spikes `(time, batch, inputs)` as they are shown this once."""
        require(
            not (self.shift or self.turn or self.stretch) or math.prod(self.shape) == spikes.shape[2],
            f"augment is for samples of shape {self.shape}, but there are {spikes.shape[2]} inputs.",
        )
        if self.turn or self.stretch:
            spikes = _warped(spikes, self.shape, self.turn, self.stretch, generator)
        if self.shift:
            spikes = _shifted(spikes, self.shape, self.shift, generator)
        if (self.drop or self.jitter) and self.delays != NOW:
            recorded = self._recorded(spikes)
            return delayed(self._thinned(recorded, generator), self.delays, lead=max(self.delays))
        return self._thinned(spikes, generator)

    def _thinned(self, spikes: Tensor, generator: torch.Generator) -> Tensor:
        if self.drop:
            spikes = spikes * (torch.rand(spikes.shape, generator=generator) >= self.drop).to(spikes.dtype)
        if self.jitter:
            spikes = _jittered(spikes, self.jitter, generator)
        return spikes

    def _recorded(self, spikes: Tensor) -> Tensor:
        """What all ages show a part of."""
        ages = len(self.delays)
        recorded = undelayed(spikes, self.delays) if spikes.shape[2] % ages == 0 else None
        require(
            recorded is not None and torch.equal(delayed(recorded, self.delays, lead=max(self.delays)), spikes),
            f"drop and jitter of augment change what was recorded, but these inputs are not the same one at {ages} "
            "ages (wired anew, perhaps): leave drop and jitter out, or the delays.",
        )
        assert recorded is not None
        return recorded


def parse_augment(text: str, shape: tuple[int, ...], delays: tuple[int, ...] = NOW) -> Augment | None:
    """An `Augment` from a text such as `shift=2,drop=0.1`; None where it is `none`."""
    if text.strip().lower() in ("", "none"):
        return None
    known = [each.name for each in fields(Augment) if each.name not in ("shape", "delays")]
    values: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or name not in known:
            raise UserError(f"augment takes {', '.join(known)}, as in shift=2,drop=0.1, but got {part.strip()!r}.")
        require(name not in values, f"augment gives {name} twice: {text!r}.")
        try:
            values[name] = float(value)
        except ValueError as error:
            raise UserError(f"{name} of augment must be a number, but is {value!r}.") from error
        require(math.isfinite(values[name]), f"{name} of augment must be a number, but is {value!r}.")
    shift, jitter = values.get("shift", 0.0), values.get("jitter", 0.0)
    for name, each in (("shift", shift), ("jitter", jitter)):
        require(each == int(each), f"{name} of augment must be a whole number, but is {each:g}.")
    real = {name: values.get(name, 0.0) for name in ("drop", "turn", "stretch")}
    return Augment(shape, shift=int(shift), jitter=int(jitter), delays=delays, **real)


def _shifted(spikes: Tensor, shape: tuple[int, ...], most: int, generator: torch.Generator) -> Tensor:
    time, batch, inputs = spikes.shape
    height, width = shape[-2:]
    moves = torch.randint(-most, most + 1, (batch, 2), generator=generator).tolist()
    planes = spikes.reshape(time, batch, inputs // (height * width), height, width)
    out = torch.zeros_like(planes)
    for number, (down, right) in enumerate(moves):
        to_rows, from_rows = _overlap(down, height)
        to_columns, from_columns = _overlap(right, width)
        out[:, number, :, to_rows, to_columns] = planes[:, number, :, from_rows, from_columns]
    return out.reshape(time, batch, inputs)


def _warped(spikes: Tensor, shape: tuple[int, ...], turn: float, stretch: float, generator: torch.Generator) -> Tensor:
    """Each pixel of the result takes the spikes of the nearest pixel that it comes from, or none from outside."""
    time, batch, inputs = spikes.shape
    height, width = shape[-2:]
    angle = math.radians(turn) * (2 * torch.rand(batch, 1, generator=generator) - 1)
    factor = 1 + stretch * (2 * torch.rand(batch, 2, 1, generator=generator) - 1)
    down, right = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    down, right = down.flatten() - (height - 1) / 2, right.flatten() - (width - 1) / 2
    row = ((angle.cos() * down + angle.sin() * right) / factor[:, 0] + (height - 1) / 2).round().long()
    column = ((angle.cos() * right - angle.sin() * down) / factor[:, 1] + (width - 1) / 2).round().long()
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    origin = torch.where(inside, row * width + column, height * width)  # outside: a pixel that is always dark
    planes = torch.nn.functional.pad(spikes.reshape(time, batch, -1, height * width), (0, 1))
    return planes.gather(-1, origin[None, :, None].expand(time, -1, planes.shape[2], -1)).reshape(time, batch, inputs)


def _overlap(move: int, side: int) -> tuple[slice, slice]:
    """Where the part that stays in the picture goes to, and where it comes from."""
    return slice(max(0, move), side + min(0, move)), slice(max(0, -move), side - max(0, move))


def _jittered(spikes: Tensor, most: int, generator: torch.Generator) -> Tensor:
    step, example, channel = spikes.nonzero(as_tuple=True)
    moved = step + torch.randint(-most, most + 1, step.shape, generator=generator)
    out = torch.zeros_like(spikes)
    out[moved.clamp(0, len(spikes) - 1), example, channel] = 1
    return out
