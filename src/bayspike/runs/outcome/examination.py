"""How a learner is judged in a run: on part of the test examples while it learns, and on all of them at the end
(paper, Sec. "Performance Measures")."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bayspike.continual.judging import verdict
from bayspike.continual.methods import Method
from bayspike.continual.protocol import Evaluate, Scores
from bayspike.continual.tasks import Remapped, Task
from bayspike.data.base import Dataset, Samples
from bayspike.errors import UserError
from bayspike.kernels import Kernels
from bayspike.metrics import accuracy, ece, mutual_information
from bayspike.posteriors.distributions import Bernoulli, BinaryPoint, Posterior
from bayspike.predict.by_name import make_predictor
from bayspike.predict.predictors import Prediction, Predictor, predict_samples
from bayspike.predict.temperature import Temperature, fit_temperature
from bayspike.runs.plan.config import JudgingOptions
from bayspike.runs.plan.prepare import judged
from bayspike.seeds import generator_for, seed_for
from bayspike.spiking.network import Network


def committee_generator(seed: int) -> torch.Generator:
    """Whose draws make the committee of a run's seed: the same one during training, at the end, and from a file."""
    return generator_for(seed, "committee")


def headline(method: Method, options: JudgingOptions) -> str:
    """The predictor whose figures stand for a method."""
    chosen = options.headline
    if chosen is None or not method.bayesian:
        return method.predictors[0]
    if chosen not in method.predictors:
        raise UserError(f"the headline predictor must be one of {', '.join(method.predictors)}, but is {chosen!r}.")
    return chosen


def final_predictors(method: Method, posteriors: Sequence[Posterior]) -> tuple[str, ...]:
    """All predictors of the final examination that gather as the paper does."""
    binary = any(isinstance(each, Bernoulli | BinaryPoint) for each in posteriors)
    return method.predictors if binary else (*method.predictors, f"{method.predictors[0]}-8bit")


def held_back_temperature(
    predictor: Predictor,
    dataset: Dataset,
    seed: int,
    newest: Task | None = None,
    known: Tensor | None = None,
    *,
    over_time: bool = True,
) -> Temperature | None:
    """What makes the examples held back most likely, at their end and at every step of them; None where there are none.

    Where tasks re-wire the inputs, they are seen as the `newest` task sees them: a stream's last examples, kept back.
    With `known`, the labels of what was learnt so far, those of other classes are left aside. `over_time=False`: at
    their end alone.
    """
    kept = dataset.held_back
    if kept is None:
        return None
    if known is not None:
        kept = kept.subset(torch.isin(kept.labels, known).nonzero().flatten())
    if len(kept) == 0:  # a user kept back need not have made every gesture
        return None
    if newest is not None and isinstance(newest.test, Remapped):
        kept = Remapped(kept, newest.test.source)
    done = predict_samples(predictor, kept, generator_for(seed, "held back"), over_time=over_time, keep_members="none")
    said = done.probabilities if over_time else done.probabilities[-1]
    return fit_temperature(said, kept.labels.to(done.probabilities.device))


def interim(
    network: Network,
    method: Method,
    options: JudgingOptions,
    seed: int,
    kernels: Kernels = "plain",
    calibrating: Dataset | None = None,
) -> Evaluate:
    """The judge of `run_stream`: headline predictor and the mean weights, on a fixed part of the test examples.

    With a data set for `calibrating` also the headline that gathers otherwise than the paper's, with a temperature that
    is fitted anew each time on what is held back of the judged classes; so all judges must have been learnt.
    """
    first, gather = headline(method, options), options.gather
    beside = f"{first}-{gather}" if gather != "mean" and calibrating is not None else None
    names = [first, *(["mean"] if method.bayesian else []), *([] if beside is None else [beside])]

    def evaluate(
        posteriors: Sequence[Posterior], judges: Sequence[Task], moment: int
    ) -> dict[str, tuple[tuple[Scores, ...], Scores]]:
        parts = judged(judges, options.interim_examples, seed)
        verdicts = {}
        for name in dict.fromkeys(names):
            drawn = committee_generator(seed)
            base, how = (first, gather) if name == beside else (name, "mean")
            predictor = make_predictor(base, network, posteriors, options.members, drawn, how, kernels)
            scale = None
            if name == beside and calibrating is not None:
                known = torch.cat([part.labels for part in parts]).unique()
                scale = held_back_temperature(predictor, calibrating, seed, judges[-1], known, over_time=False)
            generator = torch.Generator().manual_seed(moment)  # the same spikes for every predictor
            finals = [
                _scaled(
                    predict_samples(predictor, part, generator, over_time=False, keep_members="none"), scale
                ).probabilities[-1]
                for part in parts
            ]
            verdicts[name] = verdict(finals, parts)
        return verdicts

    return evaluate


MOST_NUMBERS = 1 << 27  # probabilities over time that are held at once


class Examination(NamedTuple):
    """What one predictor made of all test examples; over time, and member by member, of some of them."""

    final: Tensor  # (examples, classes)
    probabilities: Tensor  # (time, kept, classes)
    members: Tensor | None  # (members, kept, classes), final step
    mutual_information: Tensor | None  # (examples,), of several members
    discord: Tensor | None  # (examples,), of several members
    tasks: tuple[Scores, ...]
    overall: Scores
    rates: list[float]
    course: dict[str, list[float]]  # accuracy and ECE at every step: of all examples, or of the kept if those are many


def examine(
    predictor: Predictor,
    judges: Sequence[Task],
    seed: int,
    kept: Tensor | None = None,
    temperature: Temperature | None = None,
) -> Examination:
    """The final examination on all test examples of all tasks, in the order of the judges.

    `kept` are the examples, by their number over all tasks, whose probabilities over time and members are wanted; None:
    all. Of the others only the final answer stays, so that many tasks take little memory. A temperature scales what
    the predictor says; its members are left as they are.
    """
    generator = generator_for(seed, "final")
    sizes = [len(task.test) for task in judges]
    kept = torch.arange(sum(sizes)) if kept is None else kept
    finals, information, apart, rates, steps = [], [], [], [], []
    over_time = members = None
    first = 0
    for task, size in zip(judges, sizes, strict=True):
        done = _scaled(predict_samples(predictor, task.test, generator), temperature)
        places = ((kept >= first) & (kept < first + size)).nonzero().flatten()
        inner = kept[places] - first
        if over_time is None:
            over_time = done.probabilities.new_empty(len(done.probabilities), len(kept), done.probabilities.shape[2])
            members = None if done.members is None else done.members.new_empty(len(done.members), *over_time.shape[1:])
        over_time[:, places] = done.probabilities[:, inner]
        if members is not None and done.members is not None:
            members[:, places] = done.members[:, inner]
            if len(done.members) > 1:
                information.append(mutual_information(done.members))
        if done.discord is not None:
            apart.append(done.discord)
        if done.probabilities[:, 0].numel() * sum(sizes) <= MOST_NUMBERS:
            steps.append(done.probabilities)
        finals.append(done.probabilities[-1].clone())  # not a view that would keep all time-steps
        rates.append(done.rates.double())
        first += size
    assert over_time is not None
    tasks, overall = verdict(finals, [task.test for task in judges])
    known = torch.cat(information) if information else None
    labels = torch.cat([task.test.labels for task in judges])
    said, of = (torch.cat(steps, dim=1), labels) if steps else (over_time, labels[kept])
    course = {"accuracy": accuracy(said.cpu(), of).tolist(), "ece": ece(said.cpu(), of).tolist()}
    differ = torch.cat(apart) if apart else None
    rates_of_all = _rates(rates, sizes)
    return Examination(torch.cat(finals), over_time, members, known, differ, tasks, overall, rates_of_all, course)


def _rates(rates: Sequence[Tensor], sizes: Sequence[int]) -> list[float]:
    counts = torch.tensor(sizes, dtype=torch.float64)
    return [float(rate) for rate in (torch.stack(list(rates)) * counts.unsqueeze(1)).sum(dim=0) / counts.sum()]


def foreign_prediction(
    predictor: Predictor, foreign: Samples, seed: int, temperature: Temperature | None = None
) -> Prediction:
    """What a predictor makes of foreign inputs."""
    return _scaled(predict_samples(predictor, foreign, generator_for(seed, "foreign")), temperature)


def _scaled(done: Prediction, temperature: Temperature | None) -> Prediction:
    return done if temperature is None else done._replace(probabilities=temperature.apply_over_time(done.probabilities))


def frames(judges: Sequence[Task], chosen: Tensor, seed: int, inputs: int) -> NDArray[np.uint8]:
    """Spikes of the first `inputs` of test examples by their number over all judges, packed: `(k, time, bytes)`."""
    offsets = torch.tensor([0, *(len(task.test) for task in judges)]).cumsum(0)
    shown = []
    for number in chosen.tolist():
        task = int(torch.searchsorted(offsets, number, right=True)) - 1
        inner = torch.tensor([number - int(offsets[task])])
        generator = torch.Generator().manual_seed(seed_for(seed, "frames", number))
        shown.append(judges[task].test.spikes(inner, generator)[:, 0, :inputs].numpy())
    return np.packbits(np.stack(shown), axis=-1)
