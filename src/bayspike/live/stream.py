"""Events that arrive while a page is open, from standard input or a socket: lines `t x y p`, as for `bayspike predict`.

A thread reads; each time bin is handed to the session and waited for, so a camera that is faster than the learner is
slowed down by its pipe, and nothing piles up.
"""

import asyncio
import contextlib
import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import torch

from bayspike.data.delays import Silence
from bayspike.data.inputs import LONGEST_LINE, bins_of_lines
from bayspike.errors import UserError, require
from bayspike.live.inputs import kind_of
from bayspike.live.session import Session
from bayspike.runs.models import about_of


def check_stream(session: Session) -> None:
    """Refuse, before anything is read, a learner that sees no events."""
    encoding = session.now.state.recipe.encoding
    require(
        kind_of(encoding) == "spikes",
        "this learner takes pictures, not events: --stdin and --listen need one that was taught recordings.",
    )
    list(bins_of_lines([], about_of(session.now.state)))  # knows the camera, or says so


def listen_on(port: int) -> socket.socket:
    """A socket of this machine that takes one sender at a time."""
    try:
        return socket.create_server(("127.0.0.1", port), backlog=1)
    except (OSError, OverflowError) as error:
        raise UserError(f"port {port} cannot be listened on ({error}): choose another for --listen.") from error


def read_standard_input(session: Session, loop: asyncio.AbstractEventLoop) -> None:
    _start(lambda: _flow(session, loop, sys.stdin.buffer, "standard input"))


def read_socket(session: Session, loop: asyncio.AbstractEventLoop, server: socket.socket) -> None:
    """One sender after the other, until the socket is closed."""

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                sender, _ = server.accept()
                with sender, sender.makefile("rb") as lines:
                    _flow(session, loop, lines, "the socket")

    _start(serve)


def _start(work: Any) -> None:
    threading.Thread(target=work, name="events", daemon=True).start()


def _flow(session: Session, loop: asyncio.AbstractEventLoop, source: BinaryIO, name: str) -> None:
    """All bins of one source; a line that is not sound ends it, with a sentence on the page."""
    state = session.now.state
    try:
        lines = iter(lambda: source.readline(LONGEST_LINE + 1), b"")
        for spikes in steps_of(bins_of_lines(lines, about_of(state)), state.recipe.encoding.time):
            asyncio.run_coroutine_threadsafe(session.flow(spikes), loop).result()
        sentence, kind = f"The events from {name} have ended.", "note"
    except UserError as error:
        sentence, kind = f"The events from {name} ended: {error}", "problem"
    except (OSError, RuntimeError, asyncio.CancelledError):  # the sender, or the page, has gone
        return
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(session.note, sentence, kind)


def steps_of(bins: Iterable[torch.Tensor | Silence], window: int) -> Iterator[torch.Tensor]:
    """Bins one by one; of a silence no more than ends a window: whoever is silent for longer shows nothing."""
    silent: torch.Tensor | None = None
    for each in bins:
        if isinstance(each, Silence):
            if silent is not None:
                yield from [silent] * min(each.bins, window)
        else:
            silent = torch.zeros_like(each)
            yield each
