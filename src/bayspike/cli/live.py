"""`bayspike live`: a page on this machine to ask a learner, teach it, and see what it remembers."""

import importlib.util
import sys
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

if TYPE_CHECKING:
    from bayspike.learner.tasks import BatchNote
    from bayspike.live.moments import Moment, Settings

NEEDED = ("starlette", "uvicorn", "websockets")


@dataclass(frozen=True)
class Live:
    """Draw a digit and watch a decision grow; teach something new and see what is remembered.

    bayspike live

    bayspike live digits.bayspike --save digits.bayspike

    bayspike live --record monday.jsonl

    bayspike live --replay monday.jsonl

    event-camera | bayspike live gestures.bayspike --stdin

    Opens a page of this machine alone; its address holds a secret, so give it to nobody. Ctrl-C ends it and keeps
    what was learnt.
    """

    model: tyro.conf.Positional[Path | None] = None
    """A learner's file (.bayspike), or the directory of a run. Left out: a beginner that knows the digits 0 to 3, which
    learns them now, in seconds, without any download."""
    save: Path | None = None
    """File that always holds the learner as the page shows it. Left out: what was learnt goes to a new file beside
    MODEL (or here) when Save is pressed and at the end; no other file is ever written over."""
    force: bool = False
    """Let --save replace a file of another learner."""
    record: Path | None = None
    """Write down everything that happens, into a new file that --replay can do again bit for bit."""
    replay: Path | None = None
    """Do everything in a recording again, without a page, and say whether every bit came out the same."""
    port: int = 0
    """Port of the page; 0: any that is free."""
    no_browser: bool = False
    """Only print the address."""
    coverage: float = 0.9
    """Probability with which the sets of classes hold the right one, if inputs are like those held back."""
    confidence: float = 0.6
    """Abstain below this; it can be changed on the page."""
    stdin: bool = False
    """Also watch events from standard input: lines `t x y p` (µs, pixels, 0 or 1)."""
    listen: int | None = None
    """Also watch such lines from whoever connects to this port of this machine."""

    def execute(self) -> int:
        from bayspike.errors import require, require_range

        missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
        require(not missing, f"this needs {', '.join(missing)}: pip install 'bayspike[live]'.")
        require_range("--coverage", self.coverage, 0, 1, low_open=True, high_open=True)
        require_range("--confidence", self.confidence, 0, 1)
        require_range("--port", self.port, 0, 65535)
        if self.replay is not None:
            return self._replay(self.replay)
        if self.listen is not None:
            require_range("--listen", self.listen, 1, 65535)
        return self._serve()

    def _serve(self) -> int:
        import torch

        from bayspike.live.keeping import check_place
        from bayspike.live.moments import Settings
        from bayspike.live.recording import Recorder
        from bayspike.live.running import Running, Sources, run
        from bayspike.live.session import Session
        from bayspike.live.stream import listen_on

        torch.set_num_threads(1)  # small products gain nothing from more, and a recording must not depend on it
        check_place(self.save, self.model, self.force)
        recorder = Recorder(self.record)
        listening = None if self.listen is None else listen_on(self.listen)
        settings = Settings(self.coverage, self.confidence)
        moment, path = self._first(settings)
        session = Session(moment, settings, recorder, self.save, path)
        running = Running(session, self.port, Sources(self.stdin, listening))

        def ready() -> None:
            print(f"The page is at {running.address}", flush=True)
            print("Ctrl-C ends it and keeps what was learnt.", flush=True)
            if not self.no_browser:
                webbrowser.open(running.address)

        kept = run(running, ready)
        print()
        if kept is not None:
            print(f"The learner is in {kept}: go on with `bayspike live {kept}`.")
        else:
            print("There was nothing new to keep.")
        if self.record is not None:
            print(f"What happened is in {self.record}: `bayspike live --replay {self.record}` does it again.")
        return 0

    def _first(self, settings: "Settings") -> tuple["Moment", Path | None]:
        from bayspike.errors import require
        from bayspike.learner.file import is_learner_file, load_state
        from bayspike.live.beginner import beginner
        from bayspike.live.keeping import models_in
        from bayspike.live.moments import begin

        if self.model is None:
            print("A beginner learns the digits 0 to 3 ", end="", flush=True)
            learner = beginner(_dots)
            print(" done.", flush=True)
            return begin(learner.state, "the beginner", settings), None
        path = models_in(self.model) if self.model.is_dir() else self.model
        require(path.exists(), f"{path} does not exist: give a learner's file (.bayspike), or leave it out.")
        require(is_learner_file(path), f"{path} is not a learner's file (.bayspike): only a learner can be taught.")
        return begin(load_state(path), path.name, settings), path

    def _replay(self, path: Path) -> int:
        from bayspike.live.recording import replay

        def told(number: int, did: str) -> None:
            print(f"line {number}: {did}, the same", flush=True)

        done = replay(path, told)
        print(
            f"{done.asked} questions, {done.taught} lessons and {done.others} other things were done again: "
            "every bit is the same."
        )
        if done.torn:
            print("The last line was cut off and is left out.", file=sys.stderr)
        return 0


def _dots(note: "BatchNote") -> None:
    if note.batch % 4 == 0:
        print("·", end="", flush=True)
