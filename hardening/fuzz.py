"""Damage genuine files in a million ways; every reader and command must succeed or say one sentence.

    python hardening/fuzz.py --cases 1000000 --state fuzz.json --findings found/

Cases run in child processes with limits on time and memory: a hang, a crash or a full memory is a finding like any
other exception. One case in sixteen is traced, and damaged files that reach lines of the package that none reached
before are damaged further. Counts add up in the state file, so that a campaign can be continued. With `--atheris NAME`
one reader is given to Atheris, where that is installed, which is guided by the coverage of every case.
"""

import argparse
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from mutations import damaged
from targets import Target, commands, readers, stored_runs

import bayspike
from bayspike.errors import UserError

MEMORY = 6 * 2**30  # of addresses: torch alone takes a good part
SECONDS = 20.0  # for one case
BATCH = 2_000  # cases of one child of a plain reader
PACKAGE = str(Path(bayspike.__file__).parent)


class Reached:
    """Lines of the package that cases went through."""

    def __init__(self) -> None:
        self.lines: set[tuple[str, int]] = set()

    def new(self, target: Target) -> tuple[bool, BaseException | None]:
        """Read under a trace: whether lines were reached for the first time, and what was raised."""
        before, raised = len(self.lines), None

        def local(frame: FrameType, event: str, _: Any) -> Any:
            self.lines.add((frame.f_code.co_filename, frame.f_lineno))
            return local

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            return local if frame.f_code.co_filename.startswith(PACKAGE) else None

        sys.settrace(trace)
        try:
            target.read(target.path)
        except BaseException as error:  # judged by the caller
            raised = error
        finally:
            sys.settrace(None)
        return len(self.lines) > before, raised


def one_case(target: Target, content: bytes, reached: Reached | None) -> tuple[str, bool]:
    """`accepted`, `sentence` or the finding, and whether new lines were reached."""
    target.path.write_bytes(content)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    new, raised = False, None
    try:
        if reached is not None:
            new, raised = reached.new(target)
        else:
            target.read(target.path)
    except BaseException as error:  # everything but one sentence is a finding
        raised = error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if raised is None:
        return "accepted", new
    if isinstance(raised, UserError):
        sentence = str(raised)
        good = sentence.strip() and "\n" not in sentence and len(sentence) < 2_000 and "Traceback" not in sentence
        return ("sentence" if good else f"not one sentence: {sentence[:300]!r}"), new
    where = traceback.extract_tb(raised.__traceback__)[-1]
    return f"{type(raised).__name__}: {str(raised)[:200]} at {Path(where.filename).name}:{where.lineno}", new


def too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"a case took more than {SECONDS:.0f} seconds")


def child(target: Target, cases: int, seed: str, answer: Path) -> None:
    """A batch of cases; the answer is written at the end, and the file of the case under way lies where it is read."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, too_long)
    chance, counts, reached = random.Random(seed), Counter[str](), Reached()
    corpus, findings = [target.genuine], {}
    for number in range(cases):
        base = chance.choice(corpus)
        try:
            content = target.damage(base, chance)
        except Exception:  # the base of a structural damage was damaged beyond structure
            content = target.damage(target.genuine, chance)
        outcome, new = one_case(target, content, reached if number % 16 == 0 else None)
        counts["cases"] += 1
        if new and len(corpus) < 64:
            corpus.append(content)
        if outcome in ("accepted", "sentence"):
            counts[outcome] += 1
        elif outcome not in findings:
            findings[outcome] = content.hex()
    target.path.write_bytes(target.genuine)
    answer.write_text(json.dumps({"counts": counts, "findings": findings, "lines": len(reached.lines)}))


def batch(name: str, target: Target, cases: int, seed: str, folder: Path) -> dict[str, Any]:
    """One child; where it dies or hangs, that is the finding, with the file it was reading."""
    answer = folder / "answer.json"
    answer.unlink(missing_ok=True)
    process = os.fork()
    if process == 0:
        code = 1
        try:
            if os.environ.get("FUZZ_QUIET", "1") == "1":
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            child(target, cases, seed, answer)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    deadline = time.monotonic() + 60 + SECONDS + 0.5 * cases
    while time.monotonic() < deadline:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            break
        time.sleep(0.005)
    else:
        os.kill(process, signal.SIGKILL)
        _, status = os.waitpid(process, 0)
    if answer.exists():
        found: dict[str, Any] = json.loads(answer.read_text())
        return found
    content = target.path.read_bytes()
    target.path.write_bytes(target.genuine)
    return {"counts": {}, "findings": {f"process ended with {status}": content.hex()}, "lines": 0}


def campaign(
    cases: int, names: list[str] | None, state: Path | None, findings: Path | None, seconds: float, salt: str = ""
) -> int:
    stored = json.loads(state.read_text()) if state and state.exists() else {}
    counts: dict[str, Counter[str]] = {name: Counter(each) for name, each in stored.get("counts", {}).items()}
    found: dict[str, list[str]] = stored.get("findings", {})
    until = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as made:
        folder = Path(made)
        targets = {**readers(folder), **stored_runs(folder), **commands(folder)}
        chosen = {name: each for name, each in targets.items() if names is None or name in names}
        total = sum(each["cases"] for each in counts.values())
        while total < cases and time.monotonic() < until:
            # the one that is furthest behind its share
            name = min(chosen, key=lambda each: counts.get(each, Counter())["cases"] / chosen[each].share)
            mine = counts.setdefault(name, Counter())
            size = max(1, min(int(BATCH * chosen[name].share), cases - total))
            answer = batch(name, chosen[name], size, f"{salt}{name} {mine['cases']}", folder)
            mine.update(answer["counts"])
            mine["lines"] = max(mine["lines"], answer["lines"]) - answer["counts"].get("lines", 0)
            if not answer["counts"]:
                mine["cases"] += size
            total = sum(each["cases"] for each in counts.values())
            for what, content in answer["findings"].items():
                if what not in found.setdefault(name, []):
                    found[name].append(what)
                    if findings:
                        findings.mkdir(parents=True, exist_ok=True)
                        file = f"{name.replace(' ', '-')}-{len(found[name])}-{chosen[name].path.name}"
                        (findings / file).write_bytes(bytes.fromhex(content))
            if state:
                state.with_suffix(".part").write_text(json.dumps({"counts": counts, "findings": found}, indent=1))
                state.with_suffix(".part").replace(state)
    print(f"{'what':22s} {'cases':>9s} {'accepted':>9s} {'sentence':>9s}")
    for name, each in sorted(counts.items()):
        print(f"{name:22s} {each['cases']:9d} {each['accepted']:9d} {each['sentence']:9d}")
    print(f"{'all':22s} {sum(each['cases'] for each in counts.values()):9d}")
    wrong = sum(map(len, found.values()))
    print(f"findings: {wrong}")
    for name, each in found.items():
        for what in each:
            print(f"  {name}: {what}")
    return 1 if wrong else 0


def with_atheris(name: str, cases: int) -> None:
    """One reader, guided by Atheris through the coverage of every case."""
    import atheris

    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as made:
        target = {**readers(Path(made)), **stored_runs(Path(made))}[name]
        (Path(made) / "corpus").mkdir()
        for number in range(20):
            (Path(made) / "corpus" / str(number)).write_bytes(damaged(target.genuine, random.Random(number)))
        (Path(made) / "corpus" / "genuine").write_bytes(target.genuine)
        for module in [each for name, each in sys.modules.items() if name.startswith("bayspike.")]:
            for each in [each for each in vars(module).values() if isinstance(each, FunctionType)]:
                if each.__module__.startswith("bayspike."):  # the package alone: all of torch would take minutes
                    atheris.instrument_func(each)

        def test_one(data: bytes) -> None:
            target.path.write_bytes(data)
            try:
                target.read(target.path)
            except UserError as error:
                if "\n" in str(error):
                    raise AssertionError("more than one sentence") from error

        arguments = [sys.argv[0], f"-runs={cases}", "-max_len=4096", "-timeout=20", "-rss_limit_mb=6000"]
        atheris.Setup([*arguments, str(Path(made) / "corpus")], test_one)
        atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1_000_000, help="in all, with those in the state file")
    parser.add_argument("--targets", nargs="+", help="only these")
    parser.add_argument("--state", type=Path, help="where counts are kept")
    parser.add_argument("--findings", type=Path, help="folder for files that were findings")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after that time")
    parser.add_argument("--salt", default="", help="another word, other damage: for several campaigns at a time")
    parser.add_argument("--atheris", metavar="NAME", help="give this one reader to Atheris")
    given = parser.parse_args()
    if given.atheris:
        with_atheris(given.atheris, given.cases)
        return 0
    return campaign(given.cases, given.targets, given.state, given.findings, given.seconds, given.salt)


if __name__ == "__main__":
    sys.exit(main())
