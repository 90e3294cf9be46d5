"""All benchmarks in one run, and the page that shows them.

    python benchmarks/everything.py [--page docs/benchmarks.md] [--quick] [--only training inference …]

By the clock, and hence for a quiet machine, are the parts `training-two`, `ranks` and `live`; all others go by the
processor's time.

Each part is a program of its own in this folder and can be run alone. The page keeps its words: what stands between
`<!-- NAME -->` and `<!-- /NAME -->` is replaced, the rest is left. `--quick` runs every part as small as can be, to see
that all of them work; its figures mean nothing, and it writes no page unless one is named.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
Row = dict[str, Any]


class Part(NamedTuple):
    """One table: the program that measures it, full and quick, and which of its columns are shown under which name."""

    program: str
    full: str
    quick: str
    columns: dict[str, str]
    rows: Callable[[Sequence[Any]], list[Row]] = lambda printed: printed[-1]["rows"]


def time_blocks(printed: Sequence[Any]) -> list[Row]:
    return [
        {
            "rule": each["rule"],
            "shape": "x".join(map(str, each["shape"])),
            "kernels": each.get("kernels", "plain"),
            "milliseconds": each["every"]["1"]["milliseconds_per_step"],
            **{f"k{k}": f"{found['speedup']:.2f}×" for k, found in each["every"].items()},
        }
        for each in printed
    ]


def maps(printed: Sequence[Any]) -> list[Row]:
    """Memory in MiB, of an example's steps and of four times as many."""
    columns = {"mebibytes": "memory_bytes", "mebibytes_4t": "memory_4t_bytes"}
    return [
        {**row, **{name: round(row[counted] / 2**20, 1) for name, counted in columns.items()}}
        for row in printed[-1]["rows"]
    ]


def ranks(printed: Sequence[Any]) -> list[Row]:
    rows = []
    for each in printed:
        for count, found in each["ranks"].items():
            rows.append({"rule": each["rule"], "shape": "x".join(map(str, each["shape"])), "ranks": count, **found})
    return rows


def live(printed: Sequence[Any]) -> list[Row]:
    found = printed[-1]
    flat = {
        f"{part}, {name}": value
        for part, facts in found.items()
        if isinstance(facts, dict)
        for name, value in facts.items()
        if isinstance(value, int | float)
    }
    return [{"what": name, "value": round(value, 3)} for name, value in flat.items()]


STEP = {
    "rule": "rule", "sampling": "draws", "kernels": "kernels", "shape": "layer", "inputs": "inputs",
    "threads": "threads", "milliseconds": "ms a step", "over_products": "over products", "over_usual": "over usual way",
    "over_snntorch": "over snnTorch", "over_snntorch_fed": "over snnTorch, fed", "over_snntorch_bptt": "over its BPTT",
}  # fmt: skip
BRIEF = {key: name for key, name in STEP.items() if key != "over_usual"}
BLOCKS = {"rule": "rule", "shape": "layer", "kernels": "kernels", "milliseconds": "ms a step, k = 1"}
PARTS = {
    "training": Part(
        "training_step.py",
        "--shape 784x400 --threads 1 --inputs noise digits --rule bayes bayes-binary sgd --repeats 7",
        "--shape 24x16 --threads 1 --inputs noise --rule sgd --repeats 1",
        STEP,
    ),
    "training-large": Part(
        "training_step.py",
        "--shape 2048x4096 --threads 1 --inputs noise --repeats 3 --brief",
        "--shape 24x16 --threads 1 --inputs noise --repeats 1 --brief --kernels plain",
        BRIEF,
    ),
    "training-two": Part(
        "training_step.py",
        "--shape 784x400 2048x4096 --threads 2 --inputs noise --repeats 3 --brief",
        "--shape 24x16 --threads 2 --inputs noise --repeats 1 --brief --kernels plain",
        BRIEF,
    ),
    "maps": Part(
        "training_step.py",
        "--network 16c5-2p-32c5-2p-128 --threads 1 --repeats 3 --rule bayes sgd",
        "--network 2c3-2p-8 --input 1x8x8 --threads 1 --repeats 1 --rule sgd",
        {"rule": "rule", "sampling": "draws", "network": "network", "milliseconds": "ms a step",
         "over_products": "over products", "over_snntorch": "over snnTorch", "mebibytes": "MiB, T = 20",
         "mebibytes_4t": "MiB, T = 80"},
        maps,
    ),
    "peers": Part(
        "peers.py",
        "--repeats 5",
        "--network 24-16 --repeats 1",
        {"network": "network", "library": "library", "way": "way", "milliseconds": "ms a step",
         "bayes_over_it": "bayspike `bayes` over it", "sgd_over_it": "bayspike `sgd` over it"},
    ),
    "inference": Part(
        "inference.py",
        "--repeats 3",
        "--few --repeats 1",
        {"predictor": "predictor", "kernels": "kernels", "weights": "weights", "shape": "layers", "members": "members",
         "batch": "inputs", "density": "density", "seconds": "seconds", "over_products": "over products",
         "over_stepping": "over stepping"},
    ),
    "streams": Part(
        "streams.py",
        "",
        "--channels 64 --events 2 --steps 10",
        {"channels": "channels", "events": "events a step", "microseconds": "µs a step",
         "microseconds_silent": "µs a silent step", "microseconds_an_event": "µs an event"},
    ),
    "memory": Part(
        "memory.py",
        "",
        "--few",
        {"time": "T", "batch": "batch", "neurons": "neurons", "plain": "`bayes`", "compiled": "`bayes`, compiled",
         "snntorch_online": "snnTorch online", "snntorch_bptt": "snnTorch BPTT"},
    ),
    "time-blocks": Part(
        "time_blocks.py",
        "--every 1 2 5 --rule bayes sgd --rounds 3",
        "--shape 24x16 --every 1 2 5 --rule sgd --rounds 1",
        {**BLOCKS, "k2": "k = 2", "k5": "k = 5"},
        time_blocks,
    ),
    "ranks": Part(
        "distributed.py",
        "--shape 2048x4096 --ranks 1 2 --rounds 3 --steps 10",
        "--shape 24x16 --ranks 1 2 --rounds 1 --steps 2 --rule sgd",
        {"rule": "rule", "shape": "layer", "ranks": "processes", "milliseconds_per_step": "ms a step",
         "speedup": "times as fast, by the clock", "processor_speedup": "by the processor's time",
         "bytes_per_step": "bytes sent a step", "all_reduce_bytes_per_step": "an all-reduce would send"},
        ranks,
    ),
    "live": Part(
        "live.py", "--seconds 5", "--seconds 1 --hidden 16 --members 2", {"what": "what", "value": "figure"}, live
    ),
}  # fmt: skip


def run(part: Part, quick: bool) -> list[Row]:
    """The rows a program prints as JSON; a program that fails is a row that says so."""
    arguments = (part.quick if quick else part.full).split()
    command = [sys.executable, str(HERE / part.program), "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return [{next(iter(part.columns)): f"{part.program} does not run: {done.stderr.strip().splitlines()[-1]}"}]
    return part.rows([json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")])


def table(part: Part, rows: list[Row]) -> str:
    """Markdown. A column that no row has is left out."""
    columns = {key: name for key, name in part.columns.items() if any(key in row for row in rows)}
    lines = [f"| {' | '.join(columns.values())} |", f"|{'---|' * len(columns)}"]
    for row in rows:
        cells = (str(row.get(key, "")).replace("|", "/") for key in columns)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def about(seconds: float, left_out: Sequence[str] = ()) -> str:
    """Machine, versions, load and date."""
    model = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor() or platform.machine(),
    )
    names = ("bayspike", "torch", "numpy", "numba", "snntorch", "norse", "spikingjelly")
    versions = ", ".join(f"{name} {_version(name)}" for name in names)
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    today = datetime.now(timezone.utc).strftime("%-d %B %Y")
    return (
        f"One run of {seconds / 60:.0f} minutes on {today}: {model}, {os.cpu_count()} cores, "
        f"{platform.system()}, Python {platform.python_version()}; {versions}. Load average at its end: {load}."
        + (f" Not part of it: {', '.join(left_out)}." if left_out else "")
    )


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text("utf-8").splitlines()
    except OSError:
        return []


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def put_in(page: str, name: str, text: str) -> str:
    """The page with what stands between the marks of a name replaced."""
    marks = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- /{re.escape(name)} -->)", re.DOTALL)
    if not marks.search(page):
        raise SystemExit(f"the page has no marks <!-- {name} --> and <!-- /{name} -->.")
    return marks.sub(lambda found: f"{found[1]}\n{text}\n\n{found[2]}", page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help=f"the page to write; {PAGE.name} of the docs unless --quick")
    parser.add_argument("--quick", action="store_true", help="as small as can be")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    given = parser.parse_args()
    page = given.page or (None if given.quick else PAGE)
    text = page.read_text("utf-8") if page else ""
    begun = time.monotonic()
    for name in given.only:
        part, started = PARTS[name], time.monotonic()
        made = table(part, run(part, given.quick))
        print(f"{name}: {time.monotonic() - started:.0f} s\n{made}\n", flush=True)
        if page:  # at once: what was measured is not lost if a later part is
            text = put_in(text, name, made)
            page.write_text(text, "utf-8")
    if page and len(given.only) > 1:
        left_out = [name for name in PARTS if name not in given.only]
        page.write_text(put_in(text, "about", about(time.monotonic() - begun, left_out)), "utf-8")


if __name__ == "__main__":
    main()
