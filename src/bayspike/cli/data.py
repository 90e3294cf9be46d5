"""`bayspike data` and `bayspike info`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Data:
    """Which data sets are at hand."""

    json: bool = False

    def execute(self) -> int:
        return 0


@dataclass(frozen=True)
class Info:
    """Versions and the machine."""

    json: bool = False

    def execute(self) -> int:
        return 0
