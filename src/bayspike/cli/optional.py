"""How help shows an option that may be left out: `--seeds INT`, not `--seeds {None}|INT`, and a default only where
there is one to tell."""

import dataclasses
import types
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

registry = ConstructorRegistry()
_NOTHING_TO_TELL = tyro.conf.arg(help_behavior_hint="")
_SEVERAL = tyro.conf.arg(help_behavior_hint="(at least one)", metavar="PATH [PATH ...]")
_SHOWN: dict[Any, str] = {int: "INT", float: "FLOAT", str: "TEXT", Path: "PATH"}


@registry.primitive_rule
def _or_nothing(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Values of a type that may also be None, which is what they are when nothing is said."""
    parts = get_args(info.type) if get_origin(info.type) in (Union, types.UnionType) else ()
    kinds = [part for part in parts if part is not type(None)]
    if len(kinds) != 1 or len(parts) != 2:
        return None
    kind, many = kinds[0], False
    if get_origin(kind) is tuple:
        kind, many = get_args(kind)[0], True
    choices: tuple[str, ...] | None = None
    make: Any = kind
    if get_origin(kind) is Literal:
        choices, make = tuple(map(str, get_args(kind))), str
    elif kind is bool:
        choices, make = ("True", "False"), lambda word: word == "True"
    elif kind not in _SHOWN:
        return None
    one = f"{{{','.join(choices)}}}" if choices else _SHOWN[kind]
    return PrimitiveConstructorSpec(
        nargs="*" if many else 1,
        metavar=f"{one} [{one} ...]" if many else one,
        instance_from_str=lambda words: tuple(make(word) for word in words) if many else make(words[0]),
        is_instance=lambda value: value is None or many == isinstance(value, tuple),
        str_from_instance=lambda value: [] if value is None else [str(value)],
        choices=choices,
    )


@cache
def with_plain_help(command: type) -> type:
    """The command, whose help says nothing of a default that is no value: a flag, or what may be left out."""
    hints = get_type_hints(command, include_extras=True)
    for each in dataclasses.fields(command):
        hint = hints[each.name]
        bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        if dataclasses.is_dataclass(bare):
            assert isinstance(bare, type)
            with_plain_help(bare)
        elif each.default is dataclasses.MISSING and get_origin(bare) is tuple:
            command.__annotations__[each.name] = Annotated[hint, _SEVERAL]
        elif each.default is None or each.default is False or each.default == ():
            command.__annotations__[each.name] = Annotated[hint, _NOTHING_TO_TELL]
    return command
