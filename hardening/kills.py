"""Kill runs at random instants and at every single write, resume them, and compare all files with a run never killed.

    python hardening/kills.py --kills 1000 --state kills.json

Places: `instant` (SIGKILL at a random time), `write` (before, in the middle of and after each write, fsync, rename,
removal), `power` (the same, and all that no fsync secured is lost), `parent`, `worker` and `tree` (real processes with
workers), `drawing` and `drawing write` (while figures and report are made). A resume is killed again as often as not;
these second kills are counted as `resume`. Counts add up in the state file, so that a campaign can be continued.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from disk import Disk
from twins import Twin, begin, content, differing, draw, finished_copy, tiny_bench, train, undisturbed

from bayspike.runs.directory import RunDirectory
from bayspike.runs.jobs import Workbench

Work = Callable[[RunDirectory, Workbench], None]
AGAIN = 0.5  # chance that a resume is killed, too
FAMILIES = {"light": ("instant", "write", "power"), "drawing": ("drawing", "drawing write"),
            "processes": ("parent", "worker", "tree")}  # fmt: skip


class Campaign:
    """Counts of kills and of runs compared, by place, and every difference that was found."""

    def __init__(self, state: Path | None) -> None:
        self.state = state
        stored = json.loads(state.read_text()) if state and state.exists() else {}
        self.kills: Counter[str] = Counter(stored.get("kills", {}))
        self.compared: Counter[str] = Counter(stored.get("compared", {}))
        self.faults: list[dict[str, object]] = stored.get("faults", [])
        self.next_write: dict[str, int] = stored.get("next_write", {})

    @property
    def total(self) -> int:
        return sum(self.kills.values())

    def store(self) -> None:
        if self.state:
            plain = {"kills": self.kills, "compared": self.compared, "faults": self.faults}
            beside = self.state.with_suffix(".part")
            beside.write_text(json.dumps({**plain, "next_write": self.next_write}, indent=1))
            beside.replace(self.state)

    def table(self) -> str:
        lines = [f"{'place':20s} {'kills':>6s} {'compared':>9s}"]
        lines += [f"{place:20s} {n:6d} {self.compared[place]:9d}" for place, n in sorted(self.kills.items())]
        lines.append(f"{'all':20s} {self.total:6d} {sum(self.compared.values()):9d}")
        lines.append(f"differences or failed resumes: {len(self.faults)}")
        return "\n".join(lines + [f"  {each}" for each in self.faults])


def in_child(work: Callable[[], None], seconds: float | None = None) -> int | None:
    """Run in a forked child, killed after some time; None if it was killed, else its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            sys.stderr = open(os.devnull, "w") if seconds is not None else sys.stderr  # noqa: SIM115
            work()
            code = 0
        finally:
            os._exit(code)
    deadline = time.monotonic() + (600 if seconds is None else seconds)
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return None if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def kill_at_instant(run: RunDirectory, bench: Workbench, work: Work, twin: Twin, chance: random.Random) -> bool:
    return in_child(lambda: work(run, bench), chance.uniform(0, 1) ** 2 * twin.seconds) is None


def kill_at_write(
    run: RunDirectory, bench: Workbench, work: Work, number: int, moment: str, power: random.Random | None
) -> bool:
    def die() -> None:
        Disk(str(run.path), number, moment, power).install()  # type: ignore[arg-type]
        work(run, bench)

    return in_child(die) is None


def kill_processes(run: RunDirectory, bench: Workbench, place: str, chance: random.Random) -> bool:
    """A parent in a process group of its own with two workers; one of them, the parent, or all are killed."""
    parent = os.fork()
    if parent == 0:
        code = 1
        try:
            os.setsid()
            sys.stderr = open(os.devnull, "w")  # noqa: SIM115
            os.dup2(sys.stderr.fileno(), 2)
            train(run, bench, parallel=2)
            code = 0
        finally:
            os._exit(code)
    deadline, killed = time.monotonic() + chance.uniform(0.1, 12), False
    while time.monotonic() < deadline:
        if os.waitpid(parent, os.WNOHANG)[0]:
            return False
        time.sleep(0.01)
    workers = children(parent)
    victims = {"parent": [parent], "worker": workers[:1] or [parent], "tree": [*workers, parent]}[place]
    for victim in victims:
        try:
            os.kill(victim, signal.SIGKILL)
            killed = True
        except ProcessLookupError:
            pass
    os.waitpid(parent, 0)
    return killed


def children(parent: int) -> list[int]:
    found = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(each) for each in found.read_text().split()] if found.exists() else []


def one_run(
    campaign: Campaign, place: str, folder: Path, bench: Workbench, twin: Twin, operations: int, chance: random.Random
) -> None:
    """Kill one run once or several times, let it come to its end, and compare it."""
    drawing = place.startswith("drawing")
    work: Work = draw if drawing else train
    path = folder / f"kill-{campaign.total}" / "run"  # the same name as the twin's, which a report tells
    # a copy, begun once: the environment a run notes down is not to differ between the twins
    run = finished_copy(twin, path) if drawing else RunDirectory(Path(shutil.copytree(folder / "fresh", path)))
    if drawing:
        for each in (run.summary, run.report, run.figures):
            shutil.rmtree(each) if each.is_dir() else each.unlink(missing_ok=True)
    shown = place
    while True:
        if place in ("instant", "drawing"):
            killed = kill_at_instant(run, bench, work, twin, chance)
        elif place in ("parent", "worker", "tree"):
            killed = kill_processes(run, bench, place, chance)
        else:
            moment = ("before", "middle", "after")[campaign.next_write.get(place, 0) % 3]
            number = campaign.next_write.get(place, 0) // 3 * 7 % operations  # without a common factor: all come
            campaign.next_write[place] = campaign.next_write.get(place, 0) + 1
            power = random.Random(chance.random()) if place == "power" else None
            again = shown == "resume"
            killed = kill_at_write(run, bench, work, chance.randrange(60) if again else number, moment, power)
        if killed:
            campaign.kills[shown if shown == place else f"resume of {place}"] += 1
        if not killed or chance.random() > AGAIN:
            break
        shown = "resume"
    code = in_child(lambda: work(run, bench))
    found = differing(content(run.path), twin.content) if code == 0 else [f"exit code {code}"]
    campaign.compared[place] += 1
    if found:
        kept = folder / f"difference-{len(campaign.faults)}"
        shutil.copytree(run.path, kept, dirs_exist_ok=True)
        campaign.faults.append({"place": place, "after": campaign.total, "differs": found[:5], "kept": str(kept)})
    shutil.rmtree(path.parent, ignore_errors=True)


def count_operations(path: Path, bench: Workbench, work: Work) -> int:
    """Writes, syncs, renames and removals of one undisturbed run."""
    tally = path.with_suffix(".count")

    def counted() -> None:
        disk = Disk(str(path)).install()
        work(RunDirectory(path), bench)
        Path(tally).write_text(str(disk.count))

    if in_child(counted) != 0:
        raise SystemExit("the undisturbed run failed")
    return int(tally.read_text())


def campaign_of(
    kills: int,
    places: list[str],
    state: Path | None,
    folder: Path,
    seconds: float,
    methods: tuple[str, ...] = ("bayes", "ewc"),
) -> Campaign:
    campaign = Campaign(state)
    bench = tiny_bench(methods)
    begin(folder / "fresh", bench)
    shutil.copytree(folder / "fresh", folder / "twin" / "run")
    trained = undisturbed(folder / "twin" / "run", bench, train)
    drawn = trained
    if any(place.startswith("drawing") for place in places):
        shutil.copytree(trained.run.path, folder / "drawn" / "run")
        drawn = undisturbed(folder / "drawn" / "run", bench, draw)
    operations = count_operations(begin(folder / "counted" / "run", bench).path, bench, train)
    strokes = 0
    if "drawing write" in places:
        shutil.copytree(trained.run.path, folder / "counted-drawing" / "run")
        strokes = count_operations(folder / "counted-drawing" / "run", bench, draw)
    while operations % 7 == 0:
        operations += 1
    print(f"one run: {operations} writes, {trained.seconds:.2f} s; drawing: {strokes} writes", flush=True)
    until, told = time.monotonic() + seconds, time.monotonic()
    while campaign.total < kills and time.monotonic() < until:
        place = places[sum(campaign.compared.values()) % len(places)]
        twin, writes = (drawn, strokes) if place.startswith("drawing") else (trained, operations)
        one_run(
            campaign, place, folder, bench, twin, max(1, writes), random.Random(f"{methods} {place} {campaign.total}")
        )
        campaign.store()
        if time.monotonic() - told > 60:
            told = time.monotonic()
            print(f"{campaign.total} kills, {len(campaign.faults)} faults", flush=True)
    return campaign


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000, help="in all, with those in the state file")
    parser.add_argument("--state", type=Path, help="where counts are kept")
    parser.add_argument("--places", nargs="+", default=[each for family in FAMILIES.values() for each in family])
    parser.add_argument("--folder", type=Path, help="where the runs go; by default a temporary folder")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after that time")
    parser.add_argument("--methods", nargs="+", default=["bayes", "ewc"], help="the learners of the run")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        campaign = campaign_of(
            given.kills, given.places, given.state, Path(folder), given.seconds, tuple(given.methods)
        )
    print(campaign.table())
    return 1 if campaign.faults else 0


if __name__ == "__main__":
    sys.exit(main())
