"""What a page does, without a browser: plain requests and the one WebSocket."""

import contextlib
import http.client
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

websockets = pytest.importorskip("websockets", reason="needs the extra `live`")

from websockets.sync.client import connect  # noqa: E402

CLIENT = "abcdefgh12345678"


def ask(running: Any, path: str, method: str = "GET", body: bytes = b"", **headers: str) -> tuple[int, str, Any]:
    """One plain request; `path` begins behind the token, unless it begins with a slash."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
    whole = path if path.startswith("/") else f"/{running.token}/{path}"
    connection.putrequest(method, whole, skip_host=True)
    given = {"Host": f"127.0.0.1:{running.port}", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if body:
        given.setdefault("Content-Length", str(len(body)))
    for name, value in given.items():
        connection.putheader(name, value)
    connection.endheaders(body or None)
    answer = connection.getresponse()
    text = answer.read().decode("utf-8", "replace")
    connection.close()
    return answer.status, text, answer.headers


class Page:
    """What a page does, without a browser."""

    def __init__(self, running: Any, client: str = CLIENT, **more: Any) -> None:
        self.running = running
        origin = more.pop("origin", f"http://127.0.0.1:{running.port}")
        address = f"ws://127.0.0.1:{running.port}/{running.token}/ws?client={client}"
        self._open = contextlib.ExitStack()
        wanted = connect(more.pop("address", address), origin=origin, open_timeout=20, max_size=None)
        self.socket = self._open.enter_context(wanted)
        self.state: dict[str, Any] = {}

    def send(self, **message: Any) -> None:
        self.socket.send(json.dumps(message))

    def hear(self, wanted: str, seconds: float = 60, **more: Any) -> dict[str, Any]:
        """The next message of a kind with these entries."""
        until = time.monotonic() + seconds
        while True:
            message = json.loads(self.socket.recv(timeout=max(0.1, until - time.monotonic())))
            if message["tell"] == "state":
                self.state = message
            if message["tell"] == wanted and all(message.get(name) == value for name, value in more.items()):
                return message

    def until(self, condition: Any) -> dict[str, Any]:
        while not condition(self.state):
            self.hear("state")
        return self.state

    def close(self) -> None:
        self._open.close()


@contextlib.contextmanager
def page(running: Any, client: str = CLIENT) -> Iterator[Page]:
    found = Page(running, client)
    found.hear("pen")
    try:
        yield found
    finally:
        found.close()
