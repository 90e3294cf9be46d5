"""The one kind of error that is the user's to mend.

Everything a user can get wrong (an argument, a file, a combination of options) is raised as
`UserError` with one sentence that says what, where and how to mend it. The command line prints that
sentence and exits with code 2; a library user may catch it as the `ValueError` it is.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(ValueError):
    """One clear sentence: what is wrong, where, and how to mend it."""


def hint(word: str, choices: Iterable[str]) -> str:
    """` Did you mean …?` where one of the choices is near."""
    near = get_close_matches(word, list(choices), n=1)
    return f" Did you mean {near[0]}?" if near else ""


def require(condition: bool, sentence: str) -> None:
    """Raise `UserError(sentence)` unless `condition` holds."""
    if not condition:
        raise UserError(sentence)


def require_range(
    name: str,
    value: float,
    low: float = float("-inf"),
    high: float = float("inf"),
    *,
    low_open: bool = False,
    high_open: bool = False,
) -> None:
    """Check `low <= value <= high` (or `<` at an open end, as infinity is); the error names argument and range."""
    above = value > low if low_open or low == float("-inf") else value >= low
    below = value < high if high_open or high == float("inf") else value <= high
    if not (above and below):  # a NaN fails both comparisons, so it is refused too
        left = "(" if low_open or low == float("-inf") else "["
        right = ")" if high_open or high == float("inf") else "]"
        raise UserError(f"{name} must lie in {left}{low:g}, {high:g}{right}, but is {value!r}.")
