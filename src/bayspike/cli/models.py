"""`bayspike evaluate`, `predict` and `export`."""

from dataclasses import dataclass
from pathlib import Path

import tyro


@dataclass(frozen=True)
class Evaluate:
    """Judge a trained network."""

    model: tyro.conf.Positional[Path]

    def execute(self) -> int:
        return 0


@dataclass(frozen=True)
class Predict:
    """Predict."""

    model: tyro.conf.Positional[Path]

    def execute(self) -> int:
        return 0


@dataclass(frozen=True)
class Export:
    """Export."""

    model: tyro.conf.Positional[Path]

    def execute(self) -> int:
        return 0
