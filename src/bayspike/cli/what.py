"""What `bayspike run` and `bayspike tune` have in common: an experiment, its learners, its data, and where to work."""

import os
import sys
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from bayspike.cli.options import (
    DataFlags,
    EngineFlags,
    ExperimentName,
    JudgingFlags,
    MethodName,
    NetworkFlags,
    TrainingFlags,
    said,
)

if TYPE_CHECKING:
    from bayspike.runs.plan.resolve import Changes

Flat = tyro.conf.arg(name="")


@dataclass(frozen=True)
class What:
    """An experiment with the changes one wants."""

    experiment: tyro.conf.Positional[ExperimentName]
    """What to run."""
    method: tuple[MethodName, ...] = ()
    """Which learners; by default those of the preset."""
    rule: tuple[str, ...] = ()
    """Learning rules of your own, as package.module:Class; alone, or beside --method."""
    preset: Literal["demo", "laptop", "paper"] = "demo"
    """Sizes: demo takes about two minutes on two cores, laptop at most thirty, paper is the paper's protocol."""
    set: tuple[str, ...] = ()
    """Hyper-parameters, for example bayes.lr=1000 ewc.network.slope=6."""
    data: Path | None = None
    """Folder of data sets, the only one searched; by default $BAYSPIKE_DATA, then the user's cache."""
    dataset: str | None = None
    """Another data set by name, or a function of your own that returns one, as package.module:function."""
    options: tuple[str, ...] = ()
    """Options of the data set's loader, for example size=28 test_share=0.3."""
    tasks: str | None = None
    """Which classes each task has, as in "cat,dog;bird", or the number of tasks (permuted-mnist: of orders)."""
    simulated: bool = False
    """Use the simulated stand-in for data that are not at hand."""
    out: Path | None = None
    """Directory of the run; by default a new one under runs/."""
    force: bool = False
    """Overwrite an earlier run in that directory."""
    device: str = "cpu"
    """Where torch computes."""
    threads: int | None = None
    """Threads of each job; by default the cores that --parallel leaves. Part of what makes a run repeatable."""
    parallel: int | None = None
    """Jobs (methods and seeds) at a time; by default one for each core."""
    quiet: bool = False
    """No progress."""
    engine: Annotated[EngineFlags, Flat] = field(default_factory=EngineFlags)
    network: Annotated[NetworkFlags, Flat] = field(default_factory=NetworkFlags)
    training: Annotated[TrainingFlags, Flat] = field(default_factory=TrainingFlags)
    sizes: Annotated[DataFlags, Flat] = field(default_factory=DataFlags)
    judging: Annotated[JudgingFlags, Flat] = field(default_factory=JudgingFlags)

    def changes(self) -> "Changes":
        """What was said, as changes of the preset. Code of one's own that is named may run."""
        from bayspike.runs.plan.resolve import Changes
        from bayspike.storage.named import permit

        for name in (*self.rule, *([self.dataset] if self.dataset else [])):
            permit(name)
        return Changes(
            methods=[*self.method, *self._rules()],
            network=self._network(),
            training=said(self.training),
            data=self._data(),
            judging=said(self.judging),
            settings=self.set,
            simulated=self.simulated,
            run={"device": self.device, "threads": self.threads or 1, "tasks": self.tasks},
        )

    def place(self, kind: str = "") -> Path:
        stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
        return self.out or Path("runs") / f"{kind}{self.experiment}-{self.preset}-{stamp}"

    def _network(self) -> dict[str, Any]:
        """What is said about the network; --hidden and --network are two ways to name its layers."""
        from bayspike.errors import require

        found = said(self.network)
        require(
            not {"hidden", "network"} <= set(found),
            "--hidden and --network both name the layers: leave out one of them.",
        )
        if "network" in found:
            found["layers"] = found.pop("network")
        elif "hidden" in found:
            found["layers"] = None
        return found

    def _rules(self) -> tuple[str, ...]:
        from bayspike.errors import require
        from bayspike.storage.named import is_named

        for name in self.rule:
            require(is_named(name), f"--rule takes package.module:Class, but got {name!r}; built-in ones are --method.")
        return self.rule

    def _data(self) -> dict[str, Any]:
        """What is said about the data."""
        from bayspike.errors import require
        from bayspike.runs.plan.config import parse_setting

        data: dict[str, Any] = said(self.sizes)
        if self.data is not None:
            require(self.data.is_dir(), f"--data {self.data} is not a folder.")
            data["root"] = str(self.data.resolve())
        if self.dataset is not None:
            data["name"] = self.dataset
        pairs = [parse_setting(text, "--options", "size=28") for text in self.options]
        names = [name for name, _ in pairs]
        for name in names:
            require(names.count(name) == 1, f"--options gives {name} twice: give it once.")
        return {**data, "options": dict(pairs)} if pairs else data


def typed() -> list[str]:
    """The command as it was given."""
    return [Path(sys.argv[0]).name, *sys.argv[1:]]


def cores() -> int:
    """Cores that torch may use: all of ours, or fewer where OMP_NUM_THREADS says so."""
    wished = os.environ.get("OMP_NUM_THREADS", "")
    ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(ours, int(wished))) if wished.isdecimal() else ours
