"""Dataclasses to plain JSON values and back, strictly: an unknown key or a value of another type is refused by name."""

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from bayspike.errors import UserError

T = TypeVar("T")
LARGEST_WHOLE, LARGEST_NUMBER = 2**63, 1e300  # beyond, numbers are a mistake; NaN and the infinities too


def to_plain(value: Any) -> Any:
    """Dataclasses to dictionaries, tuples to lists, all the way down."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(each) for each in value]
    return value


def from_plain(kind: type[T], value: Any, where: str) -> T:
    """The dataclass `kind` from a dictionary; missing keys take the defaults, if there are any."""
    if not isinstance(value, Mapping):
        raise UserError(f"{where} must be an object with named entries, but is {_shown(value)}.")
    hints = get_type_hints(kind)
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    for key in value:
        if key not in names:
            raise UserError(f"{where} has no entry {_shown(key)}: its entries are {', '.join(names)}.")
    given = {key: coerce(each, hints[key], f"{where}.{key}") for key, each in value.items()}
    try:
        return kind(**given)
    except TypeError as error:
        raise UserError(f"{where} is not complete ({error}).") from error


def coerce(value: Any, hint: Any, where: str) -> Any:
    """`value` as the type `hint`, where that loses nothing; else one sentence that says what was expected."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        return _coerce_union(value, arguments, where)
    if origin is Literal:
        return _expect(value in arguments, value, value, where, "one of " + ", ".join(map(str, arguments)))
    if origin is tuple:
        items = value if isinstance(value, list | tuple) else [value]
        return tuple(coerce(each, arguments[0], where) for each in items)
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return _expect(isinstance(value, Mapping), value, value, where, "an object with named entries")
    if dataclasses.is_dataclass(hint):
        return value if isinstance(value, hint) else from_plain(hint, value, where)  # type: ignore[arg-type]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if hint is float:
        finite = number and abs(value) <= LARGEST_NUMBER
        return float(_expect(finite, value, value, where, "a finite number" if number else "a number"))
    if hint is int:
        whole = number and abs(value) < LARGEST_WHOLE and value == int(value)
        return int(_expect(whole, value, value, where, "a whole number"))
    if hint is bool:
        return _expect(isinstance(value, bool), value, value, where, "true or false")
    if hint is str:
        return _expect(isinstance(value, str), value, value, where, "a word")
    raise UserError(f"{where} cannot be set from plain values.")


def _coerce_union(value: Any, choices: tuple[Any, ...], where: str) -> Any:
    if value is None and type(None) in choices:
        return None
    rest = [choice for choice in choices if choice is not type(None)]
    for choice in rest[:-1]:
        try:
            return coerce(value, choice, where)
        except UserError:
            continue
    return coerce(value, rest[-1], where)


def _expect(condition: bool, result: Any, value: Any, where: str, expected: str) -> Any:
    if not condition:
        raise UserError(f"{where} must be {expected}, but is {_shown(value)}.")
    return result


def _shown(value: Any) -> str:
    """A value in an error, however long it is."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= 80 else text[:77] + "…"


def differences(ours: Any, theirs: Any, where: str = "") -> list[tuple[str, Any, Any]]:
    """Every place where two plain values differ: its name, our value and theirs."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        found = []
        for key in [*ours, *(key for key in theirs if key not in ours)]:
            found += differences(ours.get(key), theirs.get(key), f"{where}.{key}" if where else str(key))
        return found
    return [] if ours == theirs else [(where, ours, theirs)]
