"""What a run does less of than the paper, in sentences: printed before it starts and stored with it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bayspike.runs.plan.config import MethodConfig, RunConfig
from bayspike.runs.plan.experiment import PaperData


def reductions(config: RunConfig, paper: RunConfig, data: PaperData | None = None) -> list[str]:
    """One sentence for everything that is smaller than in the preset `paper`. Images are counted when they are there
    (`fewer_images`), if it is known how many the paper had."""
    return list(dict.fromkeys(_sentences(config, paper, data)))


def fewer_images(dataset: Mapping[str, Any], data: PaperData | None) -> Iterator[str]:
    """How many images a run really has, from what is known of its data set, where the paper had more."""
    if data is None or data.images is None:
        return
    kinds = zip(("training", "test"), (dataset["train"], dataset["test"]), data.images, strict=True)
    fewer = [(kind, ours, theirs) for kind, ours, theirs in kinds if ours < theirs]
    if fewer:
        had = " and ".join(f"{ours:,} {kind}" for kind, ours, _ in fewer)
        yield f"{had} images instead of {' and '.join(f'{theirs:,}' for *_, theirs in fewer)}."


def repeated(reduced: Sequence[str], before: int, now: int, theirs: int) -> Iterator[str]:
    """The sentences of a run that has been given more repetitions than it was begun with."""
    old, new = (list(_fewer("repetitions", count, theirs)) for count in (before, now))
    for sentence in reduced:
        yield from new if sentence in old else [sentence]


def _fewer(what: str, ours: int | None, theirs: int | None) -> Iterator[str]:
    if _less(ours, theirs):
        shown = what.removesuffix("s") if ours == 1 else what
        yield f"{ours:,} {shown} instead of {'all' if theirs is None else f'{theirs:,}'}."


def _sentences(config: RunConfig, paper: RunConfig, data: PaperData | None) -> Iterator[str]:
    named = paper.data.name if data is None else data.name
    if config.simulated:
        yield f"The data are simulated ({config.data.name}), not the recordings of the paper ({named})."
    elif config.data.name != named:
        yield f"The data set is {config.data.name} instead of {named}."
    counted = data is not None and data.images is not None
    for what, ours, theirs in (
        ("training examples", None if counted else config.data.train_examples, paper.data.train_examples),
        ("test examples", None if counted else config.data.test_examples, paper.data.test_examples),
        ("time-steps", config.data.time, paper.data.time),
        ("repetitions", len(config.seeds), len(paper.seeds)),
        ("committee members", config.judging.members, paper.judging.members),
    ):
        yield from _fewer(what, ours, theirs)
    for ours_, theirs_ in zip(config.methods, (_same(paper, m.method) for m in config.methods), strict=True):
        layers, wanted = ours_.network.described, theirs_.network.described
        if layers != wanted:
            yield f"Layers of {layers} neurons instead of {wanted}."
        if ours_.training.epochs < theirs_.training.epochs:
            epochs = "epoch" if ours_.training.epochs == 1 else "epochs"
            yield f"{ours_.training.epochs} {epochs} per task instead of {theirs_.training.epochs}."


def _same(paper: RunConfig, method: str) -> MethodConfig:
    return next(each for each in paper.methods if each.method == method)


def _less(ours: int | None, theirs: int | None) -> bool:
    return ours is not None and (theirs is None or ours < theirs)
