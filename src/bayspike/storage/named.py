"""Code of one's own by its name, `package.module:name`: found where Python looks, or in the current folder.

A file never runs code by naming it. Whoever reads such names from a file asks `require_permitted` first, and only what
a person has named, or agreed to, passes.
"""

import importlib
import sys
from pathlib import Path
from typing import Any

from bayspike.errors import UserError

ANY = "*"
_PERMITTED: set[str] = set()


def is_named(name: str) -> bool:
    """Whether a name is of code outside the package."""
    return ":" in name


def short_name(name: str) -> str:
    """What tables and files call it: the last part of `package.module:Name`."""
    return name.rpartition(":")[2]


def permit(name: str) -> None:
    """Let files that name this code (or `ANY`) use it, in this process."""
    _PERMITTED.add(name)


def require_permitted(name: str) -> None:
    if not _PERMITTED & {name, ANY}:
        raise UserError(f"{name} is code from outside bayspike: to run it, if you trust it, add --own-code.")


def import_named(name: str, what: str) -> Any:
    """The object that `package.module:name` names."""
    module, _, attribute = name.partition(":")
    if not module or not attribute.isidentifier():
        raise UserError(f"{name!r} does not name {what}: write package.module:name.")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise UserError(f"{name} cannot be imported: it needs the module {error.name!r}.") from error
        raise UserError(
            f"There is no module {module!r} (for {what} {name}) where Python looks or in {here}: "
            "go to its folder, or install it."
        ) from error
    except AttributeError as error:
        raise UserError(f"The module {module!r} has no {attribute!r} (for {what} {name}).") from error
    except Exception as error:  # whatever somebody's module does when it is imported
        raise UserError(f"{name} cannot be imported ({type(error).__name__}: {error}).") from error
    finally:
        sys.path.remove(here)
