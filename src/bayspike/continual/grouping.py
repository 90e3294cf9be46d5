"""Tasks as a person writes them: `cat,dog;bird` names the classes of each, `3` shares them out in order."""

from itertools import pairwise

from bayspike.continual.tasks import Stream, split_by_class
from bayspike.data.base import Dataset
from bayspike.errors import UserError, hint, require


def split_as_written(dataset: Dataset, text: str) -> Stream:
    """One task for each group of classes in `text`, or as many tasks as it says, alike in size."""
    if text.strip().isdecimal():
        require(
            len(text.strip()) < 10, f"--tasks {text[:12]}… is more than there are classes ({len(dataset.classes)})."
        )
        return split_by_class(dataset, shares(len(dataset.classes), int(text)))
    return split_by_class(dataset, groups(dataset.classes, text))


def shares(classes: int, count: int) -> list[list[int]]:
    """`count` groups of classes in order, whose sizes differ by one at most; the larger come first."""
    require(1 <= count <= classes, f"--tasks must lie in [1, {classes}], the number of classes, but is {count}.")
    least, more = divmod(classes, count)
    ends = [least * k + min(k, more) for k in range(count + 1)]
    return [list(range(first, last)) for first, last in pairwise(ends)]


def groups(classes: tuple[str, ...], text: str) -> list[list[int]]:
    """Numbers of the classes that `cat,dog;bird` names; every class must stand in one task."""
    found = []
    for part in text.split(";"):
        names = [name.strip() for name in part.split(",")]
        for name in names:
            if name not in classes:
                raise UserError(
                    f"--tasks names {name!r}, which is no class: they are {', '.join(classes)}.{hint(name, classes)}"
                )
        found.append([classes.index(name) for name in names])
    named = [label for group in found for label in group]
    for label, name in enumerate(classes):
        require(named.count(label) <= 1, f"--tasks names {name!r} twice: every class stands in one task.")
        require(label in named, f"--tasks leaves out {name!r}: every class stands in one task.")
    return found
