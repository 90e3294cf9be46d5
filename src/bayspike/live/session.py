"""What changes while a page is open: the moments of the learner, the signal being played, the lesson being prepared.

Everything here happens in the event loop's thread, one thing at a time. Two threads work for it: the eyes watch a
signal step by step, the hands learn. What they take and return never changes, so a question asked during a lesson is
answered by the learner as it was before, whole.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from bayspike.errors import UserError, require
from bayspike.learner.file import save_state
from bayspike.learner.state import LearnerState
from bayspike.learner.tasks import BatchNote
from bayspike.live.drawing import picture_of_strokes
from bayspike.live.history import History
from bayspike.live.inputs import Input, kind_of, of_samples
from bayspike.live.judging import to_show
from bayspike.live.keeping import free_place
from bayspike.live.lessons import MOST_EXAMPLES, read_lesson, teach
from bayspike.live.moments import OWN, RIVALS, Moment, Settings, begin, facts
from bayspike.live.playing import Playing
from bayspike.live.recording import Recorder
from bayspike.live.showing import input_message, neuron_message, step_message, tray_message
from bayspike.live.wishes import number_of, unexpected, word_of
from bayspike.seeds import generator_for

T = TypeVar("T")
Tell = Callable[[dict[str, Any]], None]
PACE, SLOWEST, FASTEST = 25.0, 1.0, 200.0  # time-steps a second
MOST_STEPS = 1000  # of the signal being shown that a page gets again when it is reloaded
LAST_LESSON = 60.0  # seconds for which the end of a lesson is waited for when the page is closed


class Session:
    """One learner on one page."""

    def __init__(
        self,
        moment: Moment,
        settings: Settings,
        recorder: Recorder,
        save: Path | None = None,
        model: Path | None = None,
    ) -> None:
        self.history, self.settings, self._recorder = History(moment), settings, recorder
        self._save, self._model = save, model
        self._kept_state: LearnerState | None = moment.state  # what is in the file, or came from one
        self._homes: dict[int, tuple[Path | None, Path | None, LearnerState | None]] = {}  # before each loading
        self.pace = PACE
        self.tray: list[tuple[Input, str]] = []
        self.lesson: dict[str, Any] | None = None
        self.given: Input | None = None  # the input on screen
        self._messages: list[dict[str, Any]] = []  # by which a page that comes later catches up with the signal
        self.tell: Tell = lambda message: None
        self._eyes = ThreadPoolExecutor(1, "eyes")
        self._hands = ThreadPoolExecutor(1, "hands")
        self._play: asyncio.Task[None] | None = None
        self._teach: asyncio.Task[None] | None = None
        self._flowing: Playing | None = None  # a window of a stream of events
        self._window: list[Tensor] = []
        self._number = 0  # of the moment that watches it
        self._shown = 0  # samples so far

    def open(self) -> None:
        """The first page may come: from now on everything is recorded."""
        self._recorder.begin(self.now.state, self.now.about, self.settings)

    @property
    def now(self) -> Moment:
        return self.history.now

    # What a page is told

    def snapshot(self) -> dict[str, Any]:
        """All that a page shows but the signal itself."""
        return {
            "tell": "state",
            "learner": facts(self.now),
            "history": self.history.past,
            "can_undo": self.history.can_undo and self.lesson is None,
            "tray": tray_message(self.tray),
            "lesson": self.lesson,
            "pace": self.pace,
            "settings": {"coverage": self.settings.coverage, "confidence": self.settings.confidence},
            "rivals": RIVALS,
            "own": OWN,
            "kept": self._is_kept(),
            "file": "" if self._save is None else str(self._save),
            "recording": "" if self._recorder.path is None else str(self._recorder.path),
            "draws": self._draws(),
        }

    def greeting(self) -> list[dict[str, Any]]:
        """For a page that has just come, or come again."""
        return [self.snapshot(), *self._messages]

    def note(self, sentence: str, kind: str = "note") -> None:
        self.tell({"tell": "note", "kind": kind, "text": sentence})

    # What a page may ask for

    async def do(self, message: Mapping[str, Any]) -> None:
        """One wish of the page that holds the pen."""
        wishes: dict[str, Callable[[Mapping[str, Any]], Awaitable[None]]] = {
            "draw": self._on_draw, "sample": self._on_sample, "again": self._on_again, "stop": self._on_stop,
            "add": self._on_add, "remove": self._on_remove, "teach": self._on_teach, "undo": self._on_undo,
            "save": self._on_save, "pace": self._on_pace, "confidence": self._on_confidence,
        }  # fmt: skip
        wish = wishes.get(str(message.get("do")))
        if wish is None:
            raise UserError(f"there is nothing called {str(message.get('do'))[:40]!r} to do.")
        await wish(message)

    async def _on_draw(self, message: Mapping[str, Any]) -> None:
        require(self._draws(), "this learner takes no drawings: drop a file, or play a sample.")
        height, width = self.now.state.recipe.encoding.shape
        await self.ask(Input("picture", picture_of_strokes(message.get("strokes"), (height, width)), "the drawing"))

    async def _on_sample(self, message: Mapping[str, Any]) -> None:
        """Another example every time, in an order of its own."""
        found, judged = to_show(self.now.state)
        require(len(found) > 0, "the learner's file holds no example to show: draw one, or drop a file.")
        self._shown += 1
        generator = generator_for(0, "live", "sample", self._shown)
        part, word, index = found[int(torch.randint(len(found), (), generator=generator))]
        encoding = self.now.state.recipe.encoding
        await self.ask(of_samples(part, index, encoding, f"sample {self._shown}", word, judged))

    async def _on_again(self, message: Mapping[str, Any]) -> None:
        await self.ask(self._current())

    async def _on_stop(self, message: Mapping[str, Any]) -> None:
        await self._stop_playing()

    async def _on_add(self, message: Mapping[str, Any]) -> None:
        """Put the input on screen into the lesson being prepared."""
        word = word_of(message)
        given = self._current()
        given.example(self.now.state.recipe.encoding)  # refuses what cannot be taught
        require(all(each is not given for each, _ in self.tray), "it is in the lesson already: draw another.")
        require(len(self.tray) < MOST_EXAMPLES, f"a lesson has at most {MOST_EXAMPLES} examples: teach them first.")
        self.tray.append((given, word))
        self.tell(self.snapshot())

    async def _on_remove(self, message: Mapping[str, Any]) -> None:
        place = message.get("place")
        require(isinstance(place, int) and 0 <= place < len(self.tray), "there is no such example in the lesson.")
        assert isinstance(place, int)
        del self.tray[place]
        self.tell(self.snapshot())

    async def _on_teach(self, message: Mapping[str, Any]) -> None:
        """Teach what was prepared; if nothing was, the input on screen under the word that came along."""
        self._require_no_lesson()
        lesson = list(self.tray)
        if not lesson:
            lesson = [(self._current(), word_of(message))]
        examples, words = [each for each, _ in lesson], [word for _, word in lesson]
        given = read_lesson(self.now, examples, words)  # refuses what cannot be taught
        self.lesson = {"name": given.name, "batch": 0, "batches": 0, "phase": "learning"}
        self.tell(self.snapshot())
        self._teach = asyncio.create_task(self._give(lesson, examples, words))

    async def _on_undo(self, message: Mapping[str, Any]) -> None:
        self._require_no_lesson()
        left = self.history.number
        undone = self.history.undo()
        self._save, self._model, self._kept_state = self._homes.pop(
            left, (self._save, self._model, self._kept_state)
        )  # that of the learner which a loaded one had replaced
        self._autosave()
        self.tell(self.snapshot())
        self.note(f"Undone: {undone.about}. The learner is what it was before, bit for bit.")
        self._recorder.undone(self.now)

    async def _on_save(self, message: Mapping[str, Any]) -> None:
        self.note(f"The learner is in {self.save()}.")
        self.tell(self.snapshot())

    async def _on_pace(self, message: Mapping[str, Any]) -> None:
        self.pace = number_of(message, "steps a second", SLOWEST, FASTEST)
        self.tell(self.snapshot())

    async def _on_confidence(self, message: Mapping[str, Any]) -> None:
        self.settings = replace(self.settings, confidence=number_of(message, "confidence", 0, 1))
        self.tell(self.snapshot())

    def neuron(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Means and standard deviations of one neuron's synapses; for anybody who looks."""
        return neuron_message(self.now.state, message.get("layer", 0), message.get("neuron", 0))

    # Watching

    async def ask(self, given: Input) -> None:
        """Show an input to the learner, step by step; one that is being shown gives way."""
        spikes = given.spikes(self.now.state)
        await self._stop_playing()
        self._flowing = None
        self._show(given, len(spikes))
        self._play = asyncio.create_task(self._playing(given, spikes))

    async def flow(self, spikes: Tensor) -> None:
        """One time bin of a stream of events. A stream is a row of signals, each as long as the learner looks."""
        if self._play is not None and not self._play.done():
            self._flowing = None  # somebody asks something else: the stream waits for its next window
            return
        time = self.now.state.recipe.encoding.time
        if self._flowing is None:
            self._flowing, self._window = Playing(self.now, self.settings, time), []
            self._number = self.history.number
            self._show(None, time)
        playing = self._flowing
        self._window.append(spikes)
        step = await self._run(self._eyes, playing.push, spikes)
        self._keep_and_tell(step_message(step, spikes))
        if len(self._window) == time and self._flowing is playing:
            self.given = Input("spikes", torch.stack(self._window).numpy(), "the stream")
            self._record_question(self.given, playing, self._number)
            self._flowing = None

    async def _playing(self, given: Input, spikes: Tensor) -> None:
        settings, number, playing = self.settings, self.history.number, Playing(self.now, self.settings, len(spikes))
        loop = asyncio.get_running_loop()
        due = loop.time()
        try:
            for row in spikes:
                step = await self._run(self._eyes, playing.push, row)
                self._keep_and_tell(step_message(step, row))
                due = max(due + 1 / self.pace, loop.time() - 1)
                await asyncio.sleep(due - loop.time())
        except Exception as error:
            self.note(unexpected(error), "problem")
        finally:
            self._record_question(given, playing, number, settings)

    async def _stop_playing(self) -> None:
        if self._play is not None and not self._play.done():
            self._play.cancel()
            await asyncio.wait([self._play])
        self._play = None

    def _show(self, given: Input | None, steps: int) -> None:
        self.given = given
        self._messages = [input_message(given, steps, self.now, kind_of(self.now.state.recipe.encoding))]
        self.tell(self._messages[0])

    def _keep_and_tell(self, message: dict[str, Any]) -> None:
        if len(self._messages) > MOST_STEPS:
            del self._messages[1]
        self._messages.append(message)
        self.tell(message)

    def _record_question(self, given: Input, playing: Playing, number: int, settings: Settings | None = None) -> None:
        try:
            self._recorder.asked(given, playing, settings or self.settings, number)
        except UserError as error:
            self.note(str(error), "problem")

    # Learning

    async def _give(self, lesson: list[tuple[Input, str]], examples: list[Input], words: list[str]) -> None:
        loop = asyncio.get_running_loop()

        def on_batch(note: BatchNote) -> None:
            loop.call_soon_threadsafe(self._progress, {"batch": note.batch, "batches": note.batches})

        def on_learnt(state: LearnerState) -> None:
            loop.call_soon_threadsafe(self._progress, {"phase": "judging"})

        try:
            work = partial(teach, self.now, examples, words, self.settings, on_batch, on_learnt)
            moment = await self._run(self._hands, work)
            self.history.add(moment)
            taught = {id(each) for each, _ in lesson}
            self.tray = [each for each in self.tray if id(each[0]) not in taught]
            self._autosave()
            self.note(f"Learnt: {moment.about}.")
            self._recorder.taught(examples, words, moment)
        except UserError as error:
            self.note(str(error), "problem")
        except Exception as error:  # the learner stays what it was
            self.note(unexpected(error), "problem")
        finally:
            self.lesson = None
            self.tell(self.snapshot())

    def _progress(self, change: dict[str, Any]) -> None:
        if self.lesson is not None:
            self.lesson = {**self.lesson, **change}
            self.tell({"tell": "lesson", "lesson": self.lesson})

    async def load(self, state: LearnerState, name: str) -> None:
        """Another learner takes the place of this one, which is kept, and can be had back by undoing."""
        self._require_no_lesson()
        if not self._is_kept():
            self.note(f"What was learnt so far is kept in {self.save()}.")
        self.lesson = {"name": f"loading {name}", "batch": 0, "batches": 0, "phase": "judging"}
        self.tell(self.snapshot())
        try:
            moment = await self._run(self._hands, partial(begin, state, f"{name}, loaded", self.settings))
            await self._stop_playing()
            self.history.add(moment)
            self.tray, self.given, self._messages, self._flowing = [], None, [], None
            self._homes[self.history.number] = (self._save, self._model, self._kept_state)
            self._save, self._model, self._kept_state = None, Path(name), state
            self.tell({"tell": "clear"})
            self.note(f"{name} is loaded; Undo brings the other learner back.")
            self._recorder.loaded(moment)
        finally:
            self.lesson = None
            self.tell(self.snapshot())

    # Keeping

    def save(self) -> Path:
        """Write the learner as it is now; where nobody has said where, to a name that is free."""
        if self._save is None:
            self._save = free_place(self._model)
        save_state(self.now.state, self._save)
        self._kept_state = self.now.state
        return self._save

    def _autosave(self) -> None:
        """A file that the user named always holds the learner as the page shows it."""
        if self._save is None:
            return
        try:
            self.save()
        except UserError as error:
            self.note(str(error), "problem")

    async def close(self) -> Path | None:
        """The end: a lesson under way is finished, what was learnt is kept. Returns where, if there was anything."""
        await self._stop_playing()
        if self._teach is not None and not self._teach.done():
            await asyncio.wait([self._teach], timeout=LAST_LESSON)
        self._recorder.close()
        self._eyes.shutdown(wait=False, cancel_futures=True)
        self._hands.shutdown(wait=False, cancel_futures=True)
        if self._is_kept() and (self._save is None or self._save.exists()):
            return None
        try:
            return self.save()
        except UserError as error:  # a full disk, a folder that has gone: anywhere is better than nowhere
            print(f"bayspike: {error}", file=sys.stderr)
            self._save = free_place(Path(tempfile.gettempdir()) / "rescued.bayspike")
            return self.save()

    def _is_kept(self) -> bool:
        return self.now.state is self._kept_state

    # Small things

    async def _run(self, threads: ThreadPoolExecutor, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(threads, work, *arguments)

    def _draws(self) -> bool:
        encoding = self.now.state.recipe.encoding
        return kind_of(encoding) == "picture" and len(encoding.shape) == 2

    def _current(self) -> Input:
        if self.given is None:
            raise UserError("there is no input yet: draw something, play a sample, or drop a file.")
        return self.given

    def _require_no_lesson(self) -> None:
        require(self.lesson is None, "a lesson is under way: wait for its end.")
