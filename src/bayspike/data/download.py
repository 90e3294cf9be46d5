"""Downloads that can be broken off at any moment: resumed, bounded, checked by SHA-256, and whole or not there at all.

By hand, because pooch neither resumes nor bounds a download, and knows one address a file.
"""

import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from bayspike.errors import UserError

_CHUNK = 2**18
_TIMEOUT = 30.0


@dataclass(frozen=True)
class Remote:
    """A file, the addresses it can be had from, in order of preference, its SHA-256 and its size in bytes.

    Of some files only an md5 is known, too weak a checksum to trust what a network delivers: they are fetched by hand.
    """

    name: str
    addresses: tuple[str, ...]
    sha256: str = ""
    size: int = 0
    md5: str = ""


def fetch(remote: Remote, folder: Path) -> Path:
    """The file in `folder`, downloaded unless it is there already with the right checksum."""
    return fetch_all([remote], folder)[0]


def fetch_all(remotes: Sequence[Remote], folder: Path) -> list[Path]:
    """The files in `folder`; those that are not there already with the right checksum are downloaded."""
    lacking = [remote for remote in remotes if not _is_whole(folder / remote.name, remote)]
    by_hand = [remote for remote in lacking if not remote.sha256]
    if by_hand:
        files = ", ".join(f"{remote.addresses[0]} (md5 {remote.md5})" for remote in by_hand)
        raise UserError(f"A download needs a SHA-256, and only an md5 is known: fetch by hand into {folder}: {files}.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be made ({error.strerror}): name another folder for the data.") from error
    for remote in lacking:
        _download(remote, folder)
    return [folder / remote.name for remote in remotes]


def _download(remote: Remote, folder: Path) -> None:
    """Try one address after the other."""
    target = folder / remote.name
    part = target.with_name(target.name + ".part")
    failures = []
    for address in remote.addresses:
        try:
            _continue_download(address, part, remote.size)
        except (OSError, HTTPException) as error:  # an URLError is an OSError; what has come so far stays to go on from
            failures.append(f"{address}: {error}")
            continue
        if _is_whole(part, remote):
            os.replace(part, target)
            return
        part.unlink()  # a wrong file is of no use to resume from
        failures.append(f"{address}: the SHA-256 is not {remote.sha256}")
    raise UserError(
        f"{remote.name} could not be downloaded ({'; '.join(failures)}). Try again later, or put the file into "
        f"{folder} by hand."
    )


def _continue_download(address: str, part: Path, size: int) -> None:
    """Append to `part` what is still missing of the `size` bytes at `address`, and never more."""
    have = part.stat().st_size if part.exists() else 0
    if have > size:  # a part of something else
        part.unlink()
        have = 0
    if have == size:
        return
    if size - have > shutil.disk_usage(part.parent).free:
        raise OSError(f"{size - have:,} bytes do not fit on the disk of {part.parent}")
    request = Request(address, headers={"User-Agent": "bayspike", **({"Range": f"bytes={have}-"} if have else {})})
    try:
        response = urlopen(request, timeout=_TIMEOUT)
    except HTTPError as error:
        if error.code == 416:  # the file there ends before our part does
            part.unlink()
        raise
    with response:
        if response.status != 206:
            have = 0
        length = response.headers.get("Content-Length", "")
        if length.isdecimal() and have + int(length) != size:  # no number is as good as none: what comes is counted
            raise OSError(f"the file there has {have + int(length):,} bytes, not {size:,}")
        with _bar() as bar, part.open("ab" if have else "wb") as stream:
            task = bar.add_task(part.stem, total=size, completed=have)
            while have <= size and (chunk := response.read(_CHUNK)):
                stream.write(chunk)
                have += len(chunk)
                bar.update(task, completed=have)
            stream.flush()
            os.fsync(stream.fileno())
    if have > size:
        part.unlink()
        raise OSError(f"more than the {size:,} bytes of the file came")
    if have < size:
        raise OSError(f"the connection broke off after {have:,} of {size:,} bytes")


def _bar() -> Progress:
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _is_whole(path: Path, remote: Remote) -> bool:
    if not path.is_file():
        return False
    digest = hashlib.sha256() if remote.sha256 else hashlib.md5(usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(2**20):
            digest.update(chunk)
    return digest.hexdigest() == (remote.sha256 or remote.md5)
