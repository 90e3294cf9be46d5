"""What a page says, checked piece by piece; and what it is told when the fault is ours."""

import traceback
from collections.abc import Mapping
from typing import Any

from bayspike.errors import require, require_range
from bayspike.learner.examples import check_name


def unexpected(error: Exception) -> str:
    """A fault of our own: where it came from goes to the terminal, a sentence to the page."""
    traceback.print_exception(error)
    return f"Something went wrong ({type(error).__name__}: {error}); the terminal says where."


def word_of(message: Mapping[str, Any]) -> str:
    word = message.get("word")
    require(isinstance(word, str) and bool(word.strip()), "say what it is: the name of a class, for instance 7.")
    name = str(word).strip()
    check_name(name)
    return name


def number_of(message: Mapping[str, Any], name: str, low: float, high: float) -> float:
    value = message.get("value")
    require(isinstance(value, int | float) and not isinstance(value, bool), f"{name} must be a number.")
    assert isinstance(value, int | float)
    require_range(name, value, low, high)
    return float(value)
