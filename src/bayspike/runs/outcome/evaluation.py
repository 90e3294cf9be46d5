"""A trained predictor judged on a data set, with what held-out examples can add: a temperature, sets with a promise.

A temperature is fitted on the examples that were held back in training, where there are any. Else, and for sets, half
of the test examples calibrate and the other half judge; all scores are then those of the half that judges.
"""

from dataclasses import dataclass
from typing import Any

import torch

from bayspike.continual.judging import score
from bayspike.continual.protocol import Scores
from bayspike.continual.tasks import Task
from bayspike.data.base import Dataset
from bayspike.metrics import compare_scores, detect_foreign
from bayspike.predict.calibration import SetScores, even_checkpoints, fit_sets, halves, judge_sets
from bayspike.predict.predictors import Predictor
from bayspike.predict.temperature import Temperature, fit_temperature
from bayspike.runs.outcome.examination import examine, foreign_prediction, held_back_temperature
from bayspike.seeds import generator_for


@dataclass(frozen=True)
class Wanted:
    """What to judge besides the scores."""

    coverage: float | None = None  # of sets of classes
    temperature: bool = False
    foreign: bool = False

    def halved(self, dataset: Dataset) -> bool:
        """Whether part of the test examples must calibrate."""
        return self.coverage is not None or (self.temperature and dataset.held_back is None)


@dataclass(frozen=True)
class Verdict:
    """What a predictor is worth; None is what was not asked for."""

    scores: Scores
    calibrated_on: int = 0
    temperature: Temperature | None = None
    scaled: Scores | None = None
    sets: SetScores | None = None
    auroc: dict[str, float] | None = None  # foreign inputs against own, by score
    own: Temperature | None = None  # that the model brought along, and that its scores are scaled by

    def as_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = self.scores._asdict()
        if self.sets is not None:
            plain["sets"] = self.sets._asdict()
        if self.own is not None:
            plain["temperature"] = self.own.value
        if self.temperature is not None and self.scaled is not None:
            plain["temperature"] = self.temperature.value
            plain["scaled"] = self.scaled._asdict()
        if self.auroc is not None:
            plain["auroc"] = self.auroc
        return plain


def evaluate(
    predictor: Predictor, dataset: Dataset, wanted: Wanted, seed: int, own: Temperature | None = None
) -> Verdict:
    """Judge on the test examples of a data set. A temperature of the model's `own` scales its probabilities, unless one
    is to be fitted here."""
    labels = dataset.test.labels
    exam = examine(predictor, [Task(dataset.name, dataset.train, dataset.test)], seed)
    calibrating, judging = torch.arange(0), torch.arange(len(labels))
    if wanted.halved(dataset):
        calibrating, judging = halves(labels, generator_for(seed, "halves"))
    held_out, judged = exam.probabilities[:, calibrating], exam.probabilities[:, judging]
    sets = temperature = scaled = auroc = None
    if wanted.coverage is not None:
        first = len(predictor.network.layers) + 1  # before it nothing depends on the input
        checkpoints = even_checkpoints(len(judged), wanted.coverage, len(calibrating), first)
        rule = fit_sets(held_out, labels[calibrating], checkpoints, wanted.coverage)
        sets = judge_sets(rule, judged, labels[judging])
    if wanted.temperature:
        temperature = held_back_temperature(predictor, dataset, seed)
        if temperature is None:
            temperature = fit_temperature(held_out, labels[calibrating])
        scaled = score(temperature.apply(judged[-1]), labels[judging])
    if wanted.foreign and dataset.foreign is not None:
        other = foreign_prediction(predictor, dataset.foreign, seed)
        members = None if exam.members is None else exam.members[:, judging]
        several = members is not None and len(members) > 1
        found = detect_foreign(
            judged[-1],
            other.probabilities[-1],
            members if several else None,
            other.members if several else None,
        )
        if exam.discord is not None and other.discord is not None:
            found["discord"] = compare_scores(exam.discord[judging], other.discord)
        auroc = {name: float(each.auroc) for name, each in found.items()}
    own = None if wanted.temperature else own
    final = judged[-1] if own is None else own.apply(judged[-1])
    return Verdict(score(final, labels[judging]), len(calibrating), temperature, scaled, sets, auroc, own)
