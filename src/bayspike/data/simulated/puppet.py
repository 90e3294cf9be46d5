"""A puppet that makes the eleven gestures of DVS-Gesture: where its hands go, and the light it reflects.

Lengths are in pixels of a 32×32 picture, x to the right and y down, counted from the middle of the shoulders; the
puppet faces the camera, so its right arm is on the left of the picture.
"""

import math
from dataclasses import dataclass, fields

import torch
from torch import Tensor

SIDE = 32
_BEATS = torch.tensor([1.3, 1.5, 1.5, 0.9, 0.9, 0.9, 0.9, 1.6, 1.4, 2.0, 1.1])  # Hz at speed 1


@dataclass(frozen=True)
class Puppets:
    """One entry per recording of everything that tells one recording from another."""

    gesture: Tensor  # int64
    size: Tensor
    shoulder: Tensor  # half the width of the shoulders
    arm: Tensor  # length of the arm
    speed: Tensor
    amplitude: Tensor
    left: Tensor  # displacement in the picture
    top: Tensor
    shirt: Tensor  # light that it sends back, 0 to 1
    skin: Tensor
    phase: Tensor  # of the movement, radians
    whim: Tensor  # (recordings, 4): the frequencies and phases of the gesture "other"

    def __len__(self) -> int:
        return len(self.gesture)

    def part(self, start: int, stop: int) -> "Puppets":
        return Puppets(**{f.name: getattr(self, f.name)[start:stop] for f in fields(self)})


def hands(puppets: Puppets, seconds: float) -> tuple[Tensor, Tensor]:
    """Where the right and the left hand are: two tensors `(recordings, 2)`."""
    phase = puppets.phase + 2 * math.pi * _BEATS[puppets.gesture] * puppets.speed * seconds
    sine, cosine, swing = torch.sin(phase), torch.cos(phase), puppets.amplitude
    ones = torch.ones_like(phase)
    whim = puppets.whim

    def at(x: Tensor | float, y: Tensor | float) -> Tensor:
        return torch.stack([x * ones, y * ones], -1)

    def mirror(place: Tensor) -> Tensor:
        return place * torch.tensor([-1.0, 1.0])

    rest = at(-7.0, 11.0)
    clap = at(-0.8 - 2.2 * swing * (1 - cosine), 4.5 - 0.4 * cosine)
    wave = at(-9.0 + 3.8 * swing * sine, -6.5 + 0.8 * swing * cosine * cosine)
    clockwise = at(-8.5 + 5.5 * swing * cosine, 0.5 + 6.5 * swing * sine)
    counter = at(-8.5 + 5.5 * swing * cosine, 0.5 - 6.5 * swing * sine)
    roll, roll_opposite = (
        at(d + 2.0 * swing * s * cosine, 5.0 + 3.5 * swing * s * sine) for d, s in ((-1, 1), (1, -1))
    )
    drum, drum_opposite = (at(x, 5.0 + 4.0 * swing * s * sine) for x, s in ((-5.0, 1), (5.0, -1)))
    strum, neck = at(-1.5 + 1.2 * swing * sine, 7.5 + 3.0 * swing * sine), at(10.0, 2.0 + 0.4 * cosine)
    first, second = (torch.sin(phase * whim[:, i] + 6.3 * whim[:, i + 1]) for i in (0, 2))
    odd = at(-6.0 + 4.0 * swing * first, 2.0 + 6.0 * swing * second)
    odd_other = at(6.0 + 4.0 * swing * second, 3.0 + 5.0 * swing * first)

    right = [clap, wave, rest, clockwise, counter, rest, rest, roll, drum, strum, odd]
    # what is clockwise in the picture stays clockwise, so the left arm's circles are the right arm's other ones
    left = [mirror(clap), mirror(rest), mirror(wave), mirror(rest), mirror(rest), mirror(counter), mirror(clockwise)]
    left += [roll_opposite, drum_opposite, neck, odd_other]
    which = torch.arange(len(puppets))
    return torch.stack(right)[puppets.gesture, which], torch.stack(left)[puppets.gesture, which]


def standing(puppets: Puppets, background: float) -> Tensor:
    """Light that wall, head and body send back to every pixel, 0 to 1: `(recordings, 32 * 32)`."""
    middle, size = _middle(puppets), puppets.size[:, None]
    light = torch.full((len(puppets), SIDE * SIDE), background)
    belly, hips, chin, brow = (middle + size * torch.tensor([0.0, y]) for y in (3.5, 18.0, -4.2, -5.2))
    light = light.lerp(puppets.shirt[:, None], _capsule(belly, hips, 0.8 * puppets.shoulder * puppets.size))
    return light.lerp(puppets.skin[:, None], _capsule(chin, brow, 2.8 * puppets.size))


def gesturing(puppets: Puppets, seconds: float, body: Tensor) -> Tensor:
    """The picture `standing` with the arms at their place in the movement."""
    middle, size = _middle(puppets), puppets.size[:, None]
    shirt, skin = puppets.shirt[:, None], puppets.skin[:, None]
    light = body.clone()
    for side, hand in zip((-1.0, 1.0), hands(puppets, seconds), strict=True):
        shoulder = torch.stack([side * puppets.shoulder, torch.zeros_like(puppets.shoulder)], -1)
        elbow, wrist = _bent_arm(shoulder, hand, puppets.arm, side)
        points = [middle + size * point for point in (shoulder, elbow, wrist)]
        light.lerp_(shirt * 1.3, _capsule(points[0], points[1], 1.25 * puppets.size))
        light.lerp_(skin, _capsule(points[1], points[2], 1.0 * puppets.size))
        light.lerp_(skin, _capsule(points[2], points[2], 1.5 * puppets.size))
    return light


def _middle(puppets: Puppets) -> Tensor:
    """The middle of the shoulders in the picture."""
    return torch.stack([15.5 + puppets.left, 13.0 + puppets.top], -1)


def _bent_arm(shoulder: Tensor, hand: Tensor, arm: Tensor, side: float) -> tuple[Tensor, Tensor]:
    """Elbow and wrist of an arm of two equal bones; the elbow points down and outward."""
    reach = hand - shoulder
    distance = reach.norm(dim=-1).clamp(min=1e-3)
    along = reach / distance[:, None]
    reached = torch.minimum(distance, 0.995 * arm)
    outward = torch.tensor([0.6 * side, 0.8])
    bend = outward - (along @ outward)[:, None] * along
    bend = bend / bend.norm(dim=-1, keepdim=True).clamp(min=0.05)
    depth = torch.sqrt((arm / 2) ** 2 - (reached / 2) ** 2)
    elbow = shoulder + along * reached[:, None] / 2 + bend * depth[:, None]
    return elbow, shoulder + along * reached[:, None]


_PIXEL_X = (torch.arange(SIDE * SIDE) % SIDE).float()
_PIXEL_Y = (torch.arange(SIDE * SIDE) // SIDE).float()


def _capsule(start: Tensor, end: Tensor, radius: Tensor) -> Tensor:
    """How much of every pixel a round-ended bar covers, 0 to 1: `(recordings, pixels)`."""
    bar = end - start
    length = (bar * bar).sum(-1, keepdim=True).clamp(min=1e-6)
    x, y = _PIXEL_X - start[:, :1], _PIXEL_Y - start[:, 1:]
    share = (x * (bar[:, :1] / length)).addcmul_(y, bar[:, 1:] / length).clamp_(0, 1)
    x.addcmul_(share, bar[:, :1], value=-1)
    y.addcmul_(share, bar[:, 1:], value=-1)
    distance = x.mul_(x).addcmul_(y, y).sqrt_()
    return (radius[:, None] + 0.5 - distance).clamp_(0, 1)
