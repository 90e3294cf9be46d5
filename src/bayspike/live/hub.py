"""The pages that are open: one holds the pen, the others watch; all are told the same."""

import asyncio
import json
from typing import Any

from bayspike.storage.files import plain_numbers

LONGEST_QUEUE = 4000  # messages that a page may be behind before it is let go


class Line:
    """What is on its way to one page. `text` of None ends it."""

    def __init__(self, client: str) -> None:
        self.client = client
        self._waiting: asyncio.Queue[str | None] = asyncio.Queue(LONGEST_QUEUE)
        self.lost = False

    def put(self, message: dict[str, Any]) -> None:
        self.put_text(as_text(message))

    def put_text(self, text: str) -> None:
        if self.lost:
            return
        try:
            self._waiting.put_nowait(text)
        except asyncio.QueueFull:  # a page that sleeps is told everything afresh when it comes again
            self.end()

    def end(self) -> None:
        self.lost = True
        while not self._waiting.empty():
            self._waiting.get_nowait()
        self._waiting.put_nowait(None)

    async def get(self) -> str | None:
        return await self._waiting.get()


class Hub:
    """Who is there, and who holds the pen: whoever came first, or took it over, or comes back after a reload."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._pen: Line | None = None

    def tell(self, message: dict[str, Any]) -> None:
        if self._lines:
            text = as_text(message)
            for line in list(self._lines):
                line.put_text(text)

    def join(self, client: str) -> Line:
        line = Line(client)
        self._lines.append(line)
        if self._pen is None or self._pen.client == client:
            self._pen = line
        return line

    def leave(self, line: Line) -> None:
        if line in self._lines:
            self._lines.remove(line)
        if self._pen is line:
            self._pen = None
        self.tell_pen()

    def take(self, line: Line) -> None:
        self._pen = line
        self.tell_pen()

    def has_pen(self, line: Line) -> bool:
        return self._pen is line

    def client_has_pen(self, client: str) -> bool:
        return self._pen is not None and self._pen.client == client

    def tell_pen(self) -> None:
        for line in self._lines:
            line.put({"tell": "pen", "yours": line is self._pen, "taken": self._pen is not None})

    def end(self) -> None:
        for line in self._lines:
            line.end()


def as_text(message: dict[str, Any]) -> str:
    return json.dumps(plain_numbers(message), separators=(",", ":"), allow_nan=False)
