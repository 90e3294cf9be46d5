"""Lock files: whoever holds one has the directory to itself until its process ends, however that happens.

A lock file is opened without being emptied and never through a link, so a link put in its place harms nothing.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from bayspike.errors import UserError, require
from bayspike.storage.files import make_folder, reason

_OPENED = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class Held:
    """A lock that is held; it knows whether its file is still the one that is there."""

    def __init__(self, path: Path, handle: int | None) -> None:
        self.path, self._handle = path, handle

    def require_there(self) -> None:
        """Refuse to go on where the directory was deleted, or put back by another process."""
        try:
            found = os.lstat(self.path if self._handle is not None else self.path.parent)
            ours = found if self._handle is None else os.fstat(self._handle)
            same = (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino)
        except OSError:
            same = False
        require(same, f"{self.path.parent} was deleted or replaced under the run: nothing more can be kept there.")


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[Held]:
    """Hold a lock file; it falls with the process, however that ends. Another's lock is refused, or waited for."""
    try:
        import fcntl
    except ImportError:  # not on Windows, where nothing guards the directory
        yield Held(path, None)
        return
    handle = _open(path)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError as error:
            raise UserError(f"{path.parent} is in use by another bayspike process: wait for it to end.") from error
        except OSError as error:
            raise UserError(f"{path} cannot be locked ({reason(error)}).") from error
        yield Held(path, handle)
    finally:
        os.close(handle)


def _open(path: Path) -> int:
    require(not path.is_symlink(), f"{path} is a link, which a lock never is: remove it.")
    try:
        make_folder(path.parent)
        handle = os.open(path, _OPENED, 0o644)
    except OSError as error:
        raise UserError(f"{path} cannot be opened ({reason(error)}): the directory must be writable.") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UserError(f"{path} is not a plain file, which a lock is: remove it.")
    return handle
