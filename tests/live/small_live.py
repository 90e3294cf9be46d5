"""Small learners, real digits, strokes, and a server in a thread."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bayspike.data.sets.mnist import embedded_digits
from bayspike.learner import Learner
from bayspike.live.inputs import Input
from bayspike.live.moments import Moment, Settings
from bayspike.live.recording import Recorder
from bayspike.live.session import Session

TIME = 12
SEVEN = [[[0.25, 0.2], [0.5, 0.19], [0.75, 0.2], [0.6, 0.5], [0.45, 0.85]]]
ONE = [[[0.5, 0.15], [0.5, 0.5], [0.49, 0.85]]]


def digit(label: int, place: int) -> NDArray[np.uint8]:
    """A real digit, 28×28; of each class there are 500."""
    values, labels = embedded_digits()
    return values[(labels == label).nonzero().flatten()[place]].numpy().reshape(28, 28)


def digits(known: tuple[int, ...], each: int) -> tuple[NDArray[np.uint8], list[str]]:
    pictures = [digit(label, 100 + place) for label in known for place in range(each)]
    return np.stack(pictures), [str(label) for label in known for _ in range(each)]


def drawn(picture: NDArray[np.uint8], name: str = "the drawing") -> Input:
    return Input("picture", picture, name)


def small_learner(members: int = 4) -> Learner:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    learner = Learner((28, 28), time=TIME, hidden=(40,), members=members, held_back=0.2)
    learner.learn(*digits((0, 1, 2, 3), 60))
    torch.set_num_threads(before)
    return learner


def camera_learner() -> Learner:
    """Of spike trains of a 34×34 camera (simulated): two blinking halves."""
    random = np.random.default_rng(0)
    trains = np.zeros((40, TIME, 2, 34, 34), np.uint8)
    words = ["left", "right"] * 20
    for k, word in enumerate(words):
        half = slice(0, 17) if word == "left" else slice(17, 34)
        trains[k, :, :, :, half] = random.random((TIME, 2, 34, 17)) < 0.1
    from dataclasses import replace

    learner = Learner((2, 34, 34), time=TIME, encoder="spikes", hidden=(20,), members=3, held_back=0.2)
    learner.learn(trains.reshape(40, TIME, -1), words)
    return Learner.of(replace(learner.state, about={"name": "nmnist", "simulated": True}))


@contextlib.contextmanager
def served(
    moment: Moment,
    record: Path | None = None,
    save: Path | None = None,
    model: Path | None = None,
    **more: Any,
) -> Iterator[tuple[Any, Session]]:
    """A server with its session; when the block ends it is stopped as by Ctrl-C."""
    from bayspike.live.running import Running

    session = Session(moment, Settings(), Recorder(record), save, model)
    running = Running(session, **more)
    ready = threading.Event()
    failed: list[BaseException] = []

    def work() -> None:
        torch.set_num_threads(1)
        try:
            running.kept = asyncio.run(running.serve(ready.set))
        except BaseException as error:
            failed.append(error)
            ready.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    ready.wait(30)
    try:
        yield running, session
    finally:
        running.stop()
        thread.join(30)
        assert not thread.is_alive()
        assert not failed, failed
