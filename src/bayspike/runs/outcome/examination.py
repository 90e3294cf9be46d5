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
from bayspike.continual.tasks import Task
from bayspike.data.base import Dataset, Samples
from bayspike.errors import UserError
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


def held_back_temperature(predictor: Predictor, dataset: Dataset, seed: int) -> Temperature | None:
    """The one number that makes the examples held back most likely at their end; None where there are none."""
    if dataset.held_back is None:
        return None
    done = predict_samples(
        predictor, dataset.held_back, generator_for(seed, "held back"), over_time=False, keep_members="none"
    )
    return fit_temperature(done.probabilities[-1], dataset.held_back.labels.to(done.probabilities.device))


def interim(network: Network, method: Method, options: JudgingOptions, seed: int) -> Evaluate:
    """The judge of `run_stream`: headline predictor and the mean weights, on a fixed part of the test examples."""
    names = [headline(method, options)] + (["mean"] if method.bayesian else [])

    def evaluate(
        posteriors: Sequence[Posterior], judges: Sequence[Task], moment: int
    ) -> dict[str, tuple[tuple[Scores, ...], Scores]]:
        parts = judged(judges, options.interim_examples, seed)
        verdicts = {}
        for name in dict.fromkeys(names):
            predictor = make_predictor(name, network, posteriors, options.members, committee_generator(seed))
            generator = torch.Generator().manual_seed(moment)  # the same spikes for every predictor
            finals = [
                predict_samples(predictor, part, generator, over_time=False, keep_members="none").probabilities[-1]
                for part in parts
            ]
            verdicts[name] = verdict(finals, parts)
        return verdicts

    return evaluate


class Examination(NamedTuple):
    """What one predictor made of all test examples."""

    probabilities: Tensor  # (time, examples, classes)
    members: Tensor | None  # (members, examples, classes), final step
    tasks: tuple[Scores, ...]
    overall: Scores
    rates: list[float]


def examine(
    predictor: Predictor, judges: Sequence[Task], seed: int, temperature: Temperature | None = None
) -> Examination:
    """The final examination on all test examples of all tasks, in the order of the judges.

    A temperature scales what the predictor says; its members are left as they are.
    """
    generator = generator_for(seed, "final")
    done = [_scaled(predict_samples(predictor, task.test, generator), temperature) for task in judges]
    probabilities = torch.cat([each.probabilities for each in done], dim=1)
    tasks, overall = verdict([each.probabilities[-1] for each in done], [task.test for task in judges])
    return Examination(probabilities, _joined(done), tasks, overall, _rates(done, judges))


def _joined(done: Sequence[Prediction]) -> Tensor | None:
    members = [each.members for each in done if each.members is not None]
    return torch.cat(members, dim=1) if members else None


def _rates(done: Sequence[Prediction], judges: Sequence[Task]) -> list[float]:
    sizes = torch.tensor([len(task.test) for task in judges], dtype=torch.float64)
    rates = torch.stack([each.rates.double() for each in done])
    return [float(rate) for rate in (rates * sizes.unsqueeze(1)).sum(dim=0) / sizes.sum()]


def foreign_prediction(
    predictor: Predictor, foreign: Samples, seed: int, temperature: Temperature | None = None
) -> Prediction:
    """What a predictor makes of foreign inputs."""
    return _scaled(predict_samples(predictor, foreign, generator_for(seed, "foreign")), temperature)


def _scaled(done: Prediction, temperature: Temperature | None) -> Prediction:
    return done if temperature is None else done._replace(probabilities=temperature.apply(done.probabilities))


def frames(judges: Sequence[Task], chosen: Tensor, seed: int) -> NDArray[np.uint8]:
    """Input spikes of test examples by their number over all judges, packed: `(k, time, ceil(inputs / 8))`."""
    offsets = torch.tensor([0, *(len(task.test) for task in judges)]).cumsum(0)
    shown = []
    for number in chosen.tolist():
        task = int(torch.searchsorted(offsets, number, right=True)) - 1
        inner = torch.tensor([number - int(offsets[task])])
        generator = torch.Generator().manual_seed(seed_for(seed, "frames", number))
        shown.append(judges[task].test.spikes(inner, generator)[:, 0].numpy())
    return np.packbits(np.stack(shown), axis=-1)
