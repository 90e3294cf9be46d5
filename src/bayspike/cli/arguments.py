"""What was typed, held against the options of a command before anything is parsed: a mistake is one sentence.

The options are read off the dataclass of the command, so there is no second list of them.
"""

import dataclasses
import re
import types
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import tyro

from bayspike.errors import UserError

_POSITIONAL = get_args(tyro.conf.Positional[int])[1]
_NUMBER = re.compile(r"-[0-9.]|-inf$|-nan$", re.IGNORECASE)


class Option(NamedTuple):
    """One option or positional argument: the kind of its values, how many, and what they may be."""

    name: str
    kind: Any  # int, float, bool, str or Path
    many: bool
    choices: tuple[str, ...]
    positional: bool
    required: bool

    @property
    def shown(self) -> str:
        return self.name.upper() if self.positional else f"--{self.name}"


def options_of(command: type) -> list[Option]:
    """All options of a command, those of its groups among them."""
    hints = get_type_hints(command, include_extras=True)
    found = []
    for each in dataclasses.fields(command):
        hint, positional = hints[each.name], False
        while get_origin(hint) is Annotated:
            positional |= _POSITIONAL in get_args(hint)[1:]
            hint = get_args(hint)[0]
        if dataclasses.is_dataclass(hint):
            assert isinstance(hint, type)
            found += options_of(hint)
            continue
        required = each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
        found.append(_option(each.name.replace("_", "-"), hint, positional, required))
    return found


def _option(name: str, hint: Any, positional: bool, required: bool) -> Option:
    choices: tuple[str, ...] = ()
    many = optional = False
    while get_origin(hint) in (Union, types.UnionType, tuple):
        if get_origin(hint) is tuple:
            many, hint = True, get_args(hint)[0]
        else:
            optional = True
            (hint,) = (choice for choice in get_args(hint) if choice is not type(None))
    if get_origin(hint) is Literal:
        choices, hint = tuple(map(str, get_args(hint))), str
    elif hint is bool and optional:  # a choice of two; a plain one is a flag without a value
        choices, hint = ("True", "False"), str
    return Option(name, hint, many, choices, positional, required)


def check_arguments(arguments: Sequence[str], commands: Mapping[str, type]) -> None:
    """Refuse what no command understands."""
    if not arguments or arguments[0].startswith("-"):
        _check_top(arguments)
        return
    first, *rest = arguments
    if first not in commands:
        raise UserError(_choose(f"There is no command {first!r}", first, list(commands)))
    if not {"-h", "--help"} & set(rest):
        _check_command(first, rest, options_of(commands[first]))


def _check_top(arguments: Sequence[str]) -> None:
    known = ["--help", "--version", "--debug"]
    first = arguments[0] if arguments else "--help"
    if first not in ("-h", "-V", *known) and not first.startswith("--tyro-"):
        raise UserError(_choose(f"bayspike has no option {first}", first, known))


def _check_command(command: str, arguments: Sequence[str], options: Sequence[Option]) -> None:
    named = {option.name: option for option in options if not option.positional}
    loose: list[str] = []
    seen: set[str] = set()
    at = 0
    while at < len(arguments):
        token = arguments[at]
        at += 1
        if not token.startswith("--") or token == "--":
            if token.startswith("-") and token != "-" and not _NUMBER.match(token):
                raise UserError(_choose(f"bayspike {command} has no option {token}", token, [f"--{n}" for n in named]))
            loose.append(token)
            continue
        name, equals, value = token[2:].partition("=")
        option = named.get(name.replace("_", "-"))
        if option is None:
            offered = [f"--{each}" for each in named]
            raise UserError(_choose(f"bayspike {command} has no option --{name}", f"--{name}", offered))
        if option.name in seen:
            more = ": put all values behind one" if option.many else ""
            raise UserError(f"{option.shown} is given twice{more}.")
        seen.add(option.name)
        end = at + _values(option, arguments[at:]) if not equals else at
        values = [value] if equals else list(arguments[at:end])
        at = end
        if option.kind is bool:
            if equals:
                raise UserError(f"{option.shown} takes no value: leave out ={value}.")
            continue
        if not values and not option.many:
            raise UserError(f"{option.shown} needs a value{_among(option)}.")
        for each in values:
            _check_value(option, each)
    _check_loose(command, loose, [option for option in options if option.positional])
    for option in named.values():
        if option.required and option.name not in seen:
            raise UserError(f"bayspike {command} needs {option.shown}.")


def _values(option: Option, following: Sequence[str]) -> int:
    """How many of the following words are values of the option."""
    if option.kind is bool:
        return 0
    count = 0
    for word in following:
        if word.startswith("-") and not _NUMBER.match(word):
            break
        count += 1
        if not option.many:
            break
    return count


def _check_loose(command: str, words: Sequence[str], options: Sequence[Option]) -> None:
    left = list(words)
    for option in options:
        taken, left = (left, []) if option.many else (left[:1], left[1:])
        if not taken and option.required and not option.many:
            raise UserError(f"bayspike {command} needs {option.shown}{_among(option)}.")
        for word in taken:
            _check_value(option, word)
    if left:
        raise UserError(f"bayspike {command} does not know what to do with {left[0]!r}.")


def _check_value(option: Option, value: str) -> None:
    if option.choices and value not in option.choices:
        raise UserError(_choose(f"{option.shown} {value}", value, option.choices))
    if option.kind in (int, float):
        kind = "a whole number" if option.kind is int else "a number"
        try:
            option.kind(value)
        except ValueError as error:
            raise UserError(f"{option.shown} takes {kind}, but got {value[:40]!r}.") from error


def _choose(what: str, word: str, choices: Sequence[str]) -> str:
    near = get_close_matches(word, choices, n=1, cutoff=0.5)
    all_of_them = ", ".join(choices) if len(choices) <= 24 else ""
    if near:
        return f"{what}: did you mean {near[0]}?" + (f" There are {all_of_them}." if all_of_them else "")
    return f"{what}: choose from {all_of_them}." if all_of_them else f"{what}; --help lists them all."


def _among(option: Option) -> str:
    return f": one of {', '.join(option.choices)}" if option.choices else ""
