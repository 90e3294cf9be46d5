"""The server's life: bound to this machine alone, from the address that is printed to the learner that is kept."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import uvicorn

from bayspike.errors import UserError
from bayspike.live.guard import Guard, new_token
from bayspike.live.server import LARGEST_MESSAGE, make_app
from bayspike.live.session import Session
from bayspike.live.stream import check_stream, read_socket, read_standard_input

HOST = "127.0.0.1"
GRACE = 3  # seconds for open pages to take leave
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Sources(NamedTuple):
    """Where events come from besides the page."""

    stdin: bool = False
    listening: socket.socket | None = None


class Running:
    """A server with its address; `serve` runs until `stop`, then returns where the learner was kept, if it was."""

    def __init__(self, session: Session, port: int = 0, sources: Sources | None = None) -> None:
        self._session, self._sources = session, sources or Sources()
        if self._sources.stdin or self._sources.listening is not None:
            check_stream(session)
        try:
            self._socket = socket.create_server((HOST, port))
        except (OSError, OverflowError) as error:
            raise UserError(f"port {port} cannot be used ({error}): choose another with --port.") from error
        self.port = int(self._socket.getsockname()[1])
        self.token = new_token()
        self.address = f"http://{HOST}:{self.port}/{self.token}/"
        guarded: Any = Guard(make_app(session), self.token, self.port)
        config = uvicorn.Config(
            guarded,
            log_level="error",
            access_log=False,
            ws_max_size=4 * LARGEST_MESSAGE,
            ws_per_message_deflate=False,  # to this very machine; squeezing would cost more than it saves
            limit_concurrency=64,
            timeout_keep_alive=10,
            timeout_graceful_shutdown=GRACE,
            server_header=False,
            date_header=False,
        )
        self._server: Any = uvicorn.Server(config)
        self._server.capture_signals = contextlib.nullcontext  # `run` has its own way with them

    def stop(self) -> None:
        """From any thread, or from a signal."""
        self._server.should_exit = True

    async def serve(self, on_ready: Callable[[], None] | None = None) -> Path | None:
        loop = asyncio.get_running_loop()
        self._session.open()
        serving = asyncio.create_task(self._server.serve([self._socket]))
        while not self._server.started and not serving.done():
            await asyncio.sleep(0.01)
        if self._sources.stdin:
            read_standard_input(self._session, loop)
        if self._sources.listening is not None:
            read_socket(self._session, loop, self._sources.listening)
        if on_ready is not None and not serving.done():
            on_ready()
        try:
            await serving
        finally:
            if self._sources.listening is not None:
                self._sources.listening.close()
            kept = await self._session.close()
        return kept


def run(running: Running, on_ready: Callable[[], None]) -> Path | None:
    """Until Ctrl-C (or a plain kill), which ends it well; a second Ctrl-C is taken by its word."""
    before = {each: signal.getsignal(each) for each in SIGNALS}

    def stop(number: int, frame: FrameType | None) -> None:
        running.stop()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    for each in SIGNALS:
        signal.signal(each, stop)
    try:
        return asyncio.run(running.serve(on_ready))
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
