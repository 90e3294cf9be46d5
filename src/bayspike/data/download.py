"""Downloads that can be broken off at any moment: resumed, checked by md5, and whole or not there at all."""

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
    """A file, the addresses it can be had from, in order of preference, and its md5."""

    name: str
    addresses: tuple[str, ...]
    md5: str


def fetch(remote: Remote, folder: Path) -> Path:
    """The file in `folder`, downloaded unless it is there already with the right checksum."""
    target = folder / remote.name
    if target.is_file() and _md5(target) == remote.md5:
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be made ({error.strerror}): name another folder for the data.") from error
    part = target.with_name(target.name + ".part")
    failures = []
    for address in remote.addresses:
        try:
            _continue_download(address, part)
        except (
            OSError,
            HTTPException,
        ) as error:  # an URLError is an OSError; what has come so far stays for the next try
            failures.append(f"{address}: {error}")
            continue
        if _md5(part) == remote.md5:
            os.replace(part, target)
            return target
        part.unlink()  # a wrong file is of no use to resume from
        failures.append(f"{address}: the md5 is not {remote.md5}")
    raise UserError(
        f"{remote.name} could not be downloaded ({'; '.join(failures)}). Try again later, or put the file into "
        f"{folder} by hand."
    )


def fetch_all(remotes: Sequence[Remote], folder: Path) -> list[Path]:
    return [fetch(remote, folder) for remote in remotes]


def _continue_download(address: str, part: Path) -> None:
    """Append to `part` what is still missing of the file at `address`."""
    have = part.stat().st_size if part.exists() else 0
    request = Request(address, headers={"User-Agent": "bayspike", **({"Range": f"bytes={have}-"} if have else {})})
    try:
        response = urlopen(request, timeout=_TIMEOUT)
    except HTTPError as error:
        if error.code == 416:  # nothing is left to send: the part is whole, or it is wrong and its md5 will say so
            return
        raise
    with response:
        resumed = response.status == 206
        length = response.headers.get("Content-Length")
        total = int(length) + (have if resumed else 0) if length else None
        if total and total - have > shutil.disk_usage(part.parent).free:
            raise OSError(f"{total - have:,} bytes do not fit on the disk of {part.parent}")
        with _bar() as bar, part.open("ab" if resumed else "wb") as stream:
            task = bar.add_task(part.stem, total=total, completed=have if resumed else 0)
            while chunk := response.read(_CHUNK):
                stream.write(chunk)
                bar.advance(task, len(chunk))
            stream.flush()
            os.fsync(stream.fileno())
    if total is not None and part.stat().st_size < total:
        raise OSError(f"the connection broke off after {part.stat().st_size:,} of {total:,} bytes")


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


def _md5(path: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()
