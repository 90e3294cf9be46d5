"""The moments that can be gone back to, and what is told of those that cannot any more."""

from typing import Any

from bayspike.errors import require
from bayspike.live.moments import Moment, chain

MOST_MOMENTS = 50
MOST_BYTES = 2**30  # of all moments together; the newest two are always kept


class History:
    """Numbered moments, newest last. One that was undone can still be found while it is among the newest."""

    def __init__(self, first: Moment) -> None:
        self._made = 0  # moments ever made after the first
        self._kept = [(0, first)]
        self._undone: list[tuple[int, Moment]] = []
        self.past: list[dict[str, Any]] = chain([first])

    @property
    def now(self) -> Moment:
        return self._kept[-1][1]

    @property
    def number(self) -> int:
        """Of the present moment."""
        return self._kept[-1][0]

    @property
    def can_undo(self) -> bool:
        return len(self._kept) > 1

    def add(self, moment: Moment) -> None:
        self._made += 1
        self._kept.append((self._made, moment))
        self.past += chain([moment])
        while len(self._kept) > 2 and (len(self._kept) > MOST_MOMENTS or self._bytes() > MOST_BYTES):
            self._kept.pop(0)

    def undo(self) -> Moment:
        """Go back by one; what is left behind is returned."""
        require(self.can_undo, "there is no lesson to undo.")
        self._undone = [*self._undone[-1:], self._kept.pop()]
        self.past.pop()
        return self._undone[-1][1]

    def find(self, number: int) -> Moment | None:
        return dict([*self._undone, *self._kept]).get(number)

    def _bytes(self) -> int:
        return sum(moment.bytes for _, moment in self._kept)
