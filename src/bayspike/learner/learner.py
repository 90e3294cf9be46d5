"""`Learner`: the one object for people. It holds a `LearnerState` and replaces it by the next whenever it learns."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from bayspike.continual.coresets import Selection
from bayspike.continual.judging import score
from bayspike.continual.protocol import Scores, StreamConfig
from bayspike.data.augment import parse_augment
from bayspike.data.base import Dataset, whole
from bayspike.data.delays import delays_of
from bayspike.errors import require
from bayspike.kernels import Kernels, require_kernels
from bayspike.learner import defaults
from bayspike.learner.answers import Answer, Answers, Judge, LearnerWatch, calibrate, enough, judge_of
from bayspike.learner.encoding import Encoding, Kind, as_array, encoding_of
from bayspike.learner.examples import read_inputs, read_task, word_of
from bayspike.learner.file import load_state, save_state
from bayspike.learner.online import learn_one
from bayspike.learner.state import LearnerState, Recipe, birth, bytes_of, with_classes
from bayspike.learner.tasks import BatchNote, TaskNote, learn_task
from bayspike.predict.gathering import Gather
from bayspike.predict.watching import Score
from bayspike.rules import Rule
from bayspike.seeds import generator_for
from bayspike.spiking.network import NetworkConfig

OnTask = Callable[[TaskNote], None]
OnBatch = Callable[[BatchNote], None]


class Learner:
    """A continual learner to keep: tasks or single examples in, decisions with honest confidence out.

    The same seed and the same examples in the same order give the same learner, bit for bit, on one machine with one
    number of threads, whether or not it was saved and loaded in between. An object is for one thread at a time: to
    predict in one thread while another learns, load a second one from the file.
    """

    def __init__(
        self,
        inputs: int | Sequence[int] | Encoding,
        classes: int | Sequence[str] = (),
        *,
        time: int = defaults.TIME,
        encoder: Kind = "rate",
        hidden: int | Sequence[int] = defaults.HIDDEN,
        network: str | None = None,
        rule: Rule | None = None,
        epochs: int | None = None,
        batch: int = defaults.BATCH,
        coreset_share: float = defaults.CORESET_SHARE,
        coreset_selection: Selection = defaults.CORESET_SELECTION,
        augment_stored: str | None = None,
        members: int = defaults.MEMBERS,
        held_back: float = defaults.HELD_BACK,
        gather: Gather = "mean",
        foreign_score: Score = defaults.FOREIGN_SCORE,
        kernels: Kernels = "plain",
        seed: int = 0,
        on_task: OnTask | None = None,
        on_batch: OnBatch | None = None,
    ) -> None:
        """A learner that knows nothing yet.

        Args:
            inputs: numbers in one example, or its shape, for instance `(28, 28)`; or a whole `Encoding`.
            classes: names that are known already, or how many; others may come with any task.
            time: time-steps for which an example is shown.
            encoder: `rate` or `latency` for images and features, `spikes` for spike trains.
            hidden: neurons of each layer, or of the only one.
            network: any layers in place of `hidden`, for instance `"16c5-2p-32c5-2p-128"`: convolutions and poolings.
            rule: how it learns; by default a Gaussian posterior over every synapse.
            epochs: how often a task is shown; by default once, and a small task more often.
            batch: examples of a mini-batch.
            coreset_share: share of every class of a task that is stored and shown again.
            coreset_selection: which examples these are: by their spike rates `medoids`, which leave every example of
                the class near a stored one; `random` ones, as in the paper; by `herding` those whose mean is nearest
                to that of the class; or a `reservoir`, drawn from all classes at once.
            augment_stored: how stored pictures or events are changed each time they are shown again, for instance
                `"shift=1"`, by up to a pixel: a few of them are soon known by heart, and this is worth more than most.
            members: networks of the committee.
            held_back: share of the examples that are not learnt, but tell which inputs are foreign.
            gather: how the steps of a signal become one answer: `mean`, as in the paper; for events, `weighted` by what
                each step knows or by adding `logits`, with a temperature fitted on the examples held back.
            foreign_score: by what an input is called foreign: `entropy`, all doubt there is; `mutual_information`, how
                differently the members answer; `discord`, how differently they fire; or `confidence`.
            kernels: `compiled` inner loops (numba, extra `fast`) are faster, and the same within rounding.
            seed: of all that is drawn.
            on_task: called after each task.
            on_batch: called after each mini-batch.
        """
        require_kernels(kernels)
        names, seed, time = _names(classes), whole("seed", seed), whole("time", time)
        encoding = inputs if isinstance(inputs, Encoding) else Encoding(encoder, _sizes("inputs", inputs), time)
        chosen = rule or defaults.default_rule()
        layers = NetworkConfig(
            encoding.inputs,
            _sizes("hidden", hidden) if network is None else (),
            max(2, len(names)),  # two rows at least: the second waits for its name
            binary=chosen.binary,
            seed=seed,
            layers=network or "",
            shape=() if network is None or encoding.code is not None else encoding.shape,
        )
        training = StreamConfig(
            batch=whole("batch", batch),
            coreset_share=coreset_share,
            coreset_selection=coreset_selection,
            evidence="once",
            augment_stored=None if augment_stored is None else parse_augment(augment_stored, encoding.shape),
            seed=seed,
            kernels=kernels,
        )
        recipe = Recipe(
            layers,
            encoding,
            chosen,
            training,
            None if epochs is None else whole("epochs", epochs),
            members=whole("members", members),
            held_back=held_back,
            gather=gather,
            foreign_score=foreign_score,
        )
        self._take(birth(recipe, names), on_task, on_batch)

    def _take(self, state: LearnerState, on_task: OnTask | None, on_batch: OnBatch | None) -> None:
        self._state, self.on_task, self.on_batch = state, on_task, on_batch
        self._judge: Judge | None = None

    @classmethod
    def of(cls, state: LearnerState, on_task: OnTask | None = None, on_batch: OnBatch | None = None) -> "Learner":
        """The object for a state, however that was made."""
        learner = cls.__new__(cls)
        learner._take(state, on_task, on_batch)
        return learner

    @classmethod
    def for_data(cls, dataset: Dataset, **settings: Any) -> "Learner":
        """A learner that fits a data set: its inputs, its encoding, its classes. `settings` as of `Learner` itself."""
        for name in ("inputs", "classes", "time", "encoder"):
            require(name not in settings, f"{name} is settled by the data set: leave it out.")
        born = cls(encoding_of(dataset.train, dataset.sample_shape), dataset.classes, **settings)
        recipe, about = born._state.recipe, {"name": dataset.name, "simulated": dataset.simulated}
        if (changes := recipe.training.augment_stored) is not None:
            changes = replace(changes, delays=delays_of(dataset.view))
            recipe = replace(recipe, training=replace(recipe.training, augment_stored=changes))
        state = replace(born._state, recipe=recipe, about={**about, "view": dict(dataset.view)})
        return cls.of(state, born.on_task, born.on_batch)

    @classmethod
    def load(cls, path: str | Path, on_task: OnTask | None = None, on_batch: OnBatch | None = None) -> "Learner":
        """The learner of a file; nothing in the file is ever run."""
        return cls.of(load_state(Path(path)), on_task, on_batch)

    def save(self, path: str | Path) -> Path:
        """Write all of it into one file: whoever has the file can go on learning, without the old data."""
        return save_state(self._state, Path(path))

    @property
    def state(self) -> LearnerState:
        """All that it is, as one value that never changes."""
        return self._state

    @property
    def classes_(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the probabilities."""
        return self._state.classes

    def learn(
        self, task: Any, labels: Any = None, *, names: Sequence[str] | None = None, epochs: int | None = None
    ) -> "Learner":
        """Learn a task: when it ends the posterior becomes the prior, and some examples are stored.

        `task` is a `Task`, a `Dataset`, samples, or an array of examples with `labels`, words or whole numbers. `names`
        are the words for labels that are numbers. Classes never seen before are added. If it fails, by a mistake or by
        Ctrl-C, the learner stays what it was.
        """
        given = read_task(self._state.recipe.encoding, self.classes_, task, labels, names)
        state, note = learn_task(self._state, given, epochs, self.on_batch)
        self._become(state)
        if self.on_task is not None:
            self.on_task(note)
        return self

    def partial_fit(self, x: Any, y: Any = None, classes: Sequence[str] | None = None) -> "Learner":
        """`learn` under the name that scikit-learn has for it; every call is a task."""
        before = self._state
        grown = before if classes is None else with_classes(before, [self._word(each) for each in classes])
        self._become(grown)
        try:
            return self.learn(x, y)
        except BaseException:
            if self._state is grown:  # nothing was learnt
                self._become(before)
            raise

    def learn_one(self, x: Any, label: str | int) -> "Learner":
        """Learn one example, in a stream without task boundaries."""
        self._become(learn_one(self._state, x, self._word(label)))
        return self

    def predict(self, x: Any, confidence: float = 0.0) -> Answers:
        """Decide on examples: an array, samples, or the test part of a data set or task.

        The same examples get the same answer. It abstains where an input looks foreign, and where it is less sure than
        `confidence`.
        """
        samples = read_inputs(self._state.recipe.encoding, x)
        return self._judging().predict(samples, generator_for(self._state.seed, "predict"), confidence)

    def predict_one(self, x: Any, confidence: float = 0.0) -> Answer:
        """Decide on one example."""
        one = self._state.recipe.encoding.one(as_array(x))
        return self._judging().predict(one, generator_for(self._state.seed, "input"), confidence)[0]

    def watch(self, batch: int = 1, confidence: float = 0.0) -> LearnerWatch:
        """Watch `batch` signals while they arrive: `push` the spikes of each time-step, and have the answers so far."""
        return self._judging().open(batch, confidence)

    def evaluate(self, x: Any, labels: Any = None, *, names: Sequence[str] | None = None) -> Scores:
        """Accuracy, calibration and more on labelled examples; of a `Task` or `Dataset` its test part."""
        truth = x.test if hasattr(x, "test") else x
        names = x.classes if isinstance(x, Dataset) and names is None else names
        given = read_task(self._state.recipe.encoding, self.classes_, truth, labels, names, same_time=False)
        place = {name: number for number, name in enumerate(self.classes_)}
        unknown = sorted({word for word in given.words if word not in place})
        require(
            not unknown, f"the learner has never seen the class {', '.join(unknown[:5])}: it cannot be judged on it."
        )
        answers = self.predict(given.samples)
        return score(answers.probabilities, torch.tensor([place[word] for word in given.words]))

    def fit_temperature(self) -> "Learner":
        """Fit one scalar to the examples held back, which sharpens or softens all confidences until it learns more."""
        require(len(self._state.held_back) > 0, "no examples were held back to fit a temperature on.")
        self._become(calibrate(self._state, with_temperature=True))
        return self

    def __repr__(self) -> str:
        state, recipe = self._state, self._state.recipe
        names = ", ".join(state.classes[:6]) + (f", … ({len(state.classes)})" if len(state.classes) > 6 else "")
        layers = " → ".join([str(recipe.encoding.inputs), *recipe.network.described.split("-")])
        rule, held = type(recipe.rule).__name__, sum(len(part) for part in state.held_back)
        weights, examples = bytes_of(state)
        calibrated = state.calibration is not None and state.calibration.foreign is not None
        foreign = (
            f"told at {recipe.false_alarm:.0%} false alarms, from {held} examples held back"
            if calibrated
            else f"not told yet ({held} of {enough(recipe.false_alarm)} examples held back)"
        )
        return (
            f"Learner: {len(state.classes)} classes [{names}]\n"
            f"  network  {layers} neurons, {recipe.encoding.time} time-steps, {rule}, committee of {recipe.members}\n"
            f"  learnt   {len(state.tasks)} tasks and {state.alone} single examples, {sum(state.seen)} in all\n"
            f"  keeps    {weights / 2**20:.1f} MiB of posterior, {sum(len(part) for part in state.memory)} examples "
            f"({examples / 2**10:.0f} KiB with those held back)\n"
            f"  foreign  {foreign}"
        )

    def _become(self, state: LearnerState) -> None:
        self._state, self._judge = state, None

    def _judging(self) -> Judge:
        if self._judge is None:
            self._judge = judge_of(self._state)
        return self._judge

    def _word(self, label: Any) -> str:
        if isinstance(label, str):
            return str(label)
        require(hasattr(label, "__index__"), f"a label must be a word or a whole number, but is {label!r}.")
        number = int(label)
        require(number >= 0, f"a label must not be negative, but is {number}.")
        return word_of(number, self.classes_)


def _sizes(name: str, given: int | Sequence[int]) -> tuple[int, ...]:
    """Several whole numbers, or one."""
    return tuple(whole(name, each) for each in (given if isinstance(given, Iterable) else [given]))


def _names(classes: int | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(classes, Iterable):
        count = whole("the number of classes", classes)
        require(count >= 0, f"classes must be names, or their number, but is {count}.")
        return tuple(str(number) for number in range(count))
    require(not isinstance(classes, str), f"classes must be a list of names, but is the one word {classes!r}.")
    names = tuple(str(name) for name in classes)
    require(len(set(names)) == len(names), f"the name of a class stands twice in {', '.join(names)}.")
    return names
