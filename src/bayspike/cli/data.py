"""`bayspike data` and `bayspike info`."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import tyro


@dataclass(frozen=True)
class Data:
    """Which data sets are at hand; get one, or look at one.

    bayspike data

    bayspike data --json

    bayspike data get mnist

    bayspike data show nmnist --out nmnist.png
    """

    action: tyro.conf.Positional[Literal["list", "get", "show"]] = "list"
    """What to do."""
    name: tyro.conf.Positional[str | None] = None
    """Which data set."""
    data: Path | None = None
    """Folder of data sets; by default $BAYSPIKE_DATA, then the user's cache."""
    out: Path | None = None
    """Picture that `show` writes; by default NAME.png."""
    force: bool = False
    """Overwrite that picture."""
    json: bool = False
    """JSON instead of a table."""

    def execute(self) -> int:
        from bayspike.data import catalogue
        from bayspike.errors import UserError, require

        if self.action == "list":
            require(self.name is None, f"say `bayspike data get {self.name}` or `bayspike data show {self.name}`.")
            return self._list()
        if self.name is None:
            raise UserError(f"name the data set: bayspike data {self.action} NAME.")
        if self.action == "get":
            print(catalogue.get(self.name, root=self.data))
            return 0
        out = self.out or Path(f"{self.name}.png")
        require(self.force or not out.exists(), f"{out} is there already: choose another --out or give --force.")
        print(catalogue.show(self.name, out, root=self.data))
        return 0

    def _list(self) -> int:
        from rich.table import Table

        from bayspike.data import catalogue
        from bayspike.runs.reporting import wide_console

        entries = catalogue.status(self.data)
        if self.json:
            print(json.dumps([asdict(each) for each in entries], ensure_ascii=False))
            return 0
        table = Table("data set", "ready", "what", "size", "licence")
        for each in entries:
            table.add_row(each.name, "yes" if each.ready else "no", each.what, each.size, each.licence)
        console = wide_console()
        console.print(table)
        for each in entries:
            if each.state != "needs no files":
                console.print(f"{each.name}: {each.state}", highlight=False, markup=False, soft_wrap=True)
        return 0


@dataclass(frozen=True)
class Info:
    """Versions, machine, experiments and methods."""

    json: bool = False
    """JSON instead of text."""

    def execute(self) -> int:
        from bayspike.continual.methods import METHODS
        from bayspike.experiments.registry import EXPERIMENTS
        from bayspike.runs.environment import describe_machine, git_commit

        facts = {
            **describe_machine(),
            "git": git_commit(),
            "experiments": {name: each.title for name, each in EXPERIMENTS.items()},
            "methods": {name: each.about for name, each in METHODS.items()},
        }
        if self.json:
            print(json.dumps(facts, ensure_ascii=False))
            return 0
        for key, value in facts.items():
            if isinstance(value, dict):
                print(f"{key}:")
                for name, each in value.items():
                    print(f"  {name:14s} {each}")
            else:
                print(f"{key}: {value}")
        return 0
