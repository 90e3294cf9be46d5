"""Where a learner is kept: never over a file that the user did not name for it, and never lost."""

from pathlib import Path

from bayspike.errors import require
from bayspike.learner.file import ENDING

DEFAULT = f"live{ENDING}"


def check_place(save: Path | None, model: Path | None, force: bool) -> None:
    """Before anything is learnt: a file of another learner is not to be written over by a slip."""
    if save is None or not save.exists():
        return
    require(not save.is_dir(), f"{save} is a folder: name a file for --save.")
    if force:
        return
    same = model is not None and model.exists() and save.samefile(model)
    require(
        same,
        f"{save} exists: to go on from it say `bayspike live {save} --save {save}`; to replace it add --force.",
    )


def free_place(model: Path | None) -> Path:
    """Where nothing is yet: beside the learner that was opened, or here."""
    first = Path(DEFAULT) if model is None else model.with_name(f"{model.stem}-live{ENDING}")
    if model is not None and model.stem.rstrip("0123456789-").endswith("-live"):
        first = model.with_name(f"{model.stem.rpartition('-live')[0]}-live{ENDING}")
    place, number = first, 2
    while place.exists():
        place = first.with_name(f"{first.stem}-{number}{ENDING}")
        number += 1
    return place


def models_in(folder: Path) -> Path:
    """The learner that a run left: of its Bayesian job, if there is one."""
    found = sorted((folder / "models").glob(f"*{ENDING}"))
    require(
        len(found) > 0,
        f"{folder} holds no learner: give a learner's file ({ENDING}), or the directory of a run that has one in "
        "models/.",
    )
    return next((path for path in found if path.name.startswith("bayes")), found[0])
