"""What a run does less of than the paper, in sentences: printed before it starts and stored with it."""

from collections.abc import Iterator

from bayspike.runs.plan.config import MethodConfig, RunConfig


def reductions(config: RunConfig, paper: RunConfig) -> list[str]:
    """One sentence for everything that is smaller than in the preset `paper`."""
    return list(dict.fromkeys(_sentences(config, paper)))


def _sentences(config: RunConfig, paper: RunConfig) -> Iterator[str]:
    if config.simulated:
        yield f"The data are simulated ({config.data.name}), not the recordings of the paper ({paper.data.name})."
    elif config.data.name != paper.data.name:
        yield f"The data set is {config.data.name} instead of {paper.data.name}."
    for what, ours, theirs in (
        ("training examples", config.data.train_examples, paper.data.train_examples),
        ("test examples", config.data.test_examples, paper.data.test_examples),
        ("time-steps", config.data.time, paper.data.time),
        ("repetitions", len(config.seeds), len(paper.seeds)),
        ("committee members", config.judging.members, paper.judging.members),
    ):
        if _less(ours, theirs):
            shown = what.removesuffix("s") if ours == 1 else what
            yield f"{ours:,} {shown} instead of {'all' if theirs is None else f'{theirs:,}'}."
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
