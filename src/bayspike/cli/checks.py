"""What several commands check before they do anything."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayspike.runs.models import Model

DRAWN = (
    "committee",
    "committee-8bit",
    "committee-packed",
    "ensemble",
    "mean",
)  # predictors that need a distribution over weights


def at_least_one(**numbers: int | None) -> None:
    """Numbers by the names of their options; None where nothing was said."""
    from bayspike.errors import require

    for name, value in numbers.items():
        option = name.replace("_", "-")
        require(value is None or value >= 1, f"--{option} must be at least 1, but is {value}.")


def check_committee(model: "Model", predictors: Sequence[str], members: int | None) -> None:
    """A frequentist has one network: it forms no committee."""
    from bayspike.continual.methods import method
    from bayspike.errors import require

    if method(model.method).bayesian:
        return
    label = model.about["label"]
    for name in predictors:
        require(name not in DRAWN, f"{label} is one network and has no {name}: choose point or point-8bit.")
    require(
        members in (None, 1), f"{label} is one network, not {members}: leave out --members, or choose a Bayesian job."
    )


def agree(own_code: bool, *names: str | None) -> None:
    """Let files name code from outside the package, where the user says so, or has named it."""
    from bayspike.storage.named import ANY, is_named, permit

    if own_code:
        permit(ANY)
    for name in names:
        if name is not None and is_named(name):
            permit(name)
