"""DVS-Gesture (Amir et al. 2017) with the paper's pre-processing and partition (sec. DVS-Gestures).

128×128 pixels become 32×32×2 inputs in bins of 10 ms; 500 ms for training, 1,500 ms for test. The first 15 users
train, the others test; four lights are in-distribution, the fifth gives the foreign inputs. The division into trials
for training and test that comes with the files is not used. Where files lie is the matter of `gesture_sessions`.

Recordings whose polarity was merged (every event has p = 1) become inputs of one polarity, not of two with one silent.
With `delays` every input is seen at several ages (`bayspike.data.delays`), which tells the direction of a movement.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from bayspike.data.base import Dataset, Samples, SpikeSamples
from bayspike.data.delays import NOW, at_ages, check_delays
from bayspike.data.encoders import pack
from bayspike.data.files.events import Events, binned
from bayspike.data.places import missing
from bayspike.data.sets.gesture_sessions import GESTURES, IN_A_MIRROR, LIGHTS, Session, clips, find_sessions, spans
from bayspike.data.sets.recordings import with_bar
from bayspike.errors import require, require_range

__all__ = ["GESTURES", "LIGHTS", "find_sources", "load"]

BIN = 10_000  # µs
TIME = 50
TEST_TIME = 150
MOST_STEPS = 100_000
SIDE = 32
TRAIN_USERS = 15
VALIDATION_USERS = 3  # of those who train
FOLDS = TRAIN_USERS // VALIDATION_USERS
_PIXELS = 128
HOW = (
    "Get DvsGesture.tar.gz by hand from https://ibm.ent.box.com/s/3hiq58ww1pbbjrinh367ykfdf60xsfm8/folder/50167556794 "
    "(or the pre-cut files 38022171 and 38020584 of figshare) and unpack it to the folder dvs_gesture there."
)
STAND_IN = "gestures_simulated"
find_sources = find_sessions


class Part(NamedTuple):
    """Some sessions, cut into pieces: spikes as bits `(pieces, time, 2·side²/8)`, and what they are of."""

    packed: NDArray[np.uint8]
    labels: list[int]
    recordings: int
    two_polarities: bool


def load(
    *,
    root: Path | None = None,
    seed: int = 0,
    time: int = TIME,
    test_time: int = TEST_TIME,
    windows: int = 3,
    stride: int | None = None,
    bin_ms: int = BIN // 1000,
    side: int = SIDE,
    delays: Sequence[int] = NOW,
    foreign_light: str | None = "natural",
    foreign_users: str = "test",
    untaught: Sequence[int] = (),
    mirror: bool = False,
    held_back_users: int = 0,
    validation: bool = False,
    fold: int = FOLDS,
    archive: str | None = None,
    sort: bool = False,
) -> Dataset:
    """`time` and `test_time` count bins of `bin_ms`; a training gesture gives up to `windows` pieces of `time` bins.

    stride: bins from one piece to the next; None: `time`, so that none is seen twice.
    delays: ages, in bins, at which every input is seen. A piece from within a recording has a past to show.
    foreign_light: kept out of training; its recordings are the foreign inputs, those of users who test or, with
    `foreign_users="all"`, of all: known people in an unknown light. "none": every light is taught.
    untaught: gestures (0 to 10) that are neither taught nor tested; those of users who test, in the lights they test
    in, are the foreign inputs, in place of the foreign light's.
    mirror: what is learnt is seen in a mirror as well, where a left hand's wave is a right hand's.
    held_back_users: so many of the users who train, the last ones, are not learnt from but kept for calibration.
    validation: settings are to be chosen; three users who train take the place of those who test, the last three or,
    by `fold` 1 to 5, others.
    archive: which zip to read, where there are several. Nothing is drawn at random, so `seed` is not used.
    """
    del seed
    foreign_light = foreign_light or "none"  # as `foreign_light=none` on the command line means it
    stride, delays = time if stride is None else stride, check_delays(delays)
    _check(time, test_time, windows, stride, bin_ms, side, foreign_light, foreign_users, untaught)
    sessions = find_sessions(root, archive)
    if sessions is None:
        raise missing("dvs_gesture", root, HOW, STAND_IN)
    require_range("fold", fold, 1, FOLDS)
    require(validation or fold == FOLDS, "fold says which users validate: it goes with validation=true.")
    training = list(range(1, TRAIN_USERS + 1))
    if validation:
        sessions = [each for each in sessions if each.user <= TRAIN_USERS]
        del training[VALIDATION_USERS * (fold - 1) : VALIDATION_USERS * fold]
    require_range("held_back_users", held_back_users, 0, len(training) - 1)
    apart = training[len(training) - held_back_users :]
    parts: dict[str, list[Session]] = {"train": [], "test": [], "foreign": [], "held back": []}
    for session in sessions:
        tests = session.user not in training
        if session.light == foreign_light:
            part = "foreign" if tests or foreign_users == "all" else ""
        elif tests:
            part = "test"
        else:
            part = "held back" if session.user in apart else "train"
        if part:
            parts[part].append(session)
    for part in ("train", "test"):
        require(
            bool(parts[part]),
            f"DVS-Gesture in {sessions[0].path.parent} has no sessions to {part} on: users {spans(training)} train, "
            "the others test.",
        )
    taught = set(range(len(GESTURES))) - set(untaught)

    def read(name: str, cut: Cut, wanted: set[int], mirror: bool = False) -> Part | None:
        return _read(parts[name], name, cut, side, wanted, sort, mirror) if parts[name] else None

    lead, step = max(delays) if windows > 1 else 0, bin_ms * 1000  # a first piece has no past
    pieces, whole = Cut(time, windows, stride, lead, step), Cut(test_time, 1, test_time, 0, step)
    train, test = read("train", pieces, taught, mirror), read("test", whole, taught)
    assert train is not None
    assert test is not None
    held_back = read("held back", whole, taught)
    # of the same people in the same lights as those that judge: nothing but the gesture may be foreign
    other = read("test", whole, set(untaught)) if untaught else read("foreign", whole, taught)
    found = [each for each in (train, test, held_back, other) if each is not None]
    merged = not any(each.two_polarities for each in found)
    planes = 1 if merged else 2
    about = (
        f"DVS-Gesture, {sum(each.recordings for each in found)} recordings of users "
        f"{spans([each.user for part in parts.values() for each in part])}"
        f"{', polarity merged' if merged else ''}"
        f"{'; the users who test are of those meant for training: for choosing settings' if validation else ''}"
    )

    def samples(part: Part, cut: Cut) -> Samples:
        inputs = planes * side * side
        kept = torch.from_numpy(np.ascontiguousarray(part.packed[..., -inputs // 8 :] if merged else part.packed))
        return at_ages(SpikeSamples(kept, torch.tensor(part.labels), cut.lead + cut.bins, inputs), delays, cut.lead)

    return Dataset(
        "dvs_gesture",
        samples(train, pieces),
        samples(test, whole),
        GESTURES,
        (len(delays) * planes, side, side),
        foreign=None if other is None else samples(other, whole),
        foreign_about="" if other is None else _foreign_about(foreign_light, foreign_users, untaught),
        foreign_classes=not untaught,
        view={"bin_ms": bin_ms, **({} if delays == NOW else {"delays": list(delays)})},
        about=about,
        held_back=None if held_back is None else samples(held_back, whole),
    )


def _check(
    time: int,
    test_time: int,
    windows: int,
    stride: int,
    bin_ms: int,
    side: int,
    light: str,
    users: str,
    untaught: Sequence[int],
) -> None:
    require(light in (*LIGHTS, "none"), f"foreign_light must be one of {', '.join(LIGHTS)} or none, not {light!r}.")
    require(users in ("test", "all"), f"foreign_users must be test or all, but is {users!r}.")
    require(
        min(time, test_time, windows, stride, bin_ms) >= 1,
        "time, test_time, windows, stride and bin_ms must be at least 1.",
    )
    require_range("test_time", test_time, 1, MOST_STEPS)
    require(side in (8, 16, 32, 64, 128), f"side must be 8, 16, 32, 64 or 128 pixels, but is {side}.")
    require(
        all(0 <= each < len(GESTURES) for each in untaught) and len(set(untaught)) < len(GESTURES),
        f"untaught must name gestures from 0 to {len(GESTURES) - 1}, and leave some: {list(untaught)}.",
    )


def _foreign_about(light: str, users: str, untaught: Sequence[int]) -> str:
    if untaught:
        return f"gestures never taught: {', '.join(GESTURES[each] for each in untaught)}"
    return f"gestures in {light} light{', of all users' if users == 'all' else ''}"


class Cut(NamedTuple):
    """How a recording is cut: up to so many `pieces` of `bins` bins of `step` µs, each with `lead` bins before it."""

    bins: int
    pieces: int
    stride: int
    lead: int
    step: int


def _read(
    sessions: Sequence[Session], name: str, cut: Cut, side: int, wanted: set[int], sort: bool, mirror: bool
) -> Part | None:
    encoded: list[NDArray[np.uint8]] = []
    labels: list[int] = []
    recordings, both = 0, False
    for session in with_bar(sessions, f"reading DVS-Gesture ({name})"):
        for label, events in clips(session, sort=sort):
            if label not in wanted:
                continue
            recordings, both = recordings + 1, both or not bool(events.p.all())
            for shown, seen in ((label, events), (IN_A_MIRROR[label], events.mirrored()))[: 1 + mirror]:
                if shown in wanted:  # a gesture never taught is not taught by a mirror either
                    pieces = list(_pieces(seen, cut, side))
                    encoded += pieces
                    labels += [shown] * len(pieces)
    require(bool(encoded), f"DVS-Gesture ({name}): {sessions[0].path} and its like hold no gestures.")
    return Part(np.stack(encoded), labels, recordings, both)


def _pieces(events: Events, cut: Cut, side: int) -> Iterable[NDArray[np.uint8]]:
    """The first piece may be short of events at its end, the others are whole.

    A last event within the last bin is enough to be whole: a recording cut at 1.5 s has three pieces of half a second.
    """
    first = int(events.t[0])
    for number in range(cut.pieces):
        begin = number * cut.stride * cut.step
        if number and begin + cut.bins * cut.step > events.duration + cut.step:
            return
        start, bins = first + begin - cut.lead * cut.step, cut.lead + cut.bins
        yield pack(binned(events, bins, cut.step, start=start, downsample=_PIXELS // side))
