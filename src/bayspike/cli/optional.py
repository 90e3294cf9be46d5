"""How help shows an option that may be left out: `--seeds INT`, not `--seeds {None}|INT`."""

import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

registry = ConstructorRegistry()
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
