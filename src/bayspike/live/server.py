"""The routes of the page: its files, one WebSocket, what is dropped on it, and what is taken away from it."""

import asyncio
import contextlib
import re
import tempfile
from collections.abc import AsyncIterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from bayspike.data.files import pictures, recordings
from bayspike.errors import UserError, require
from bayspike.learner.file import ENDING, load_state, save_state
from bayspike.live.chip import chip_archive
from bayspike.live.hub import Hub, Line
from bayspike.live.inputs import of_file
from bayspike.live.session import Session
from bayspike.live.wishes import unexpected
from bayspike.storage.files import parse_json

KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
SHARED = ("report.css", "theme.js")  # of the report: the same look
LARGEST_MESSAGE = 2**18  # characters of a wish
LARGEST_DROP, LARGEST_LEARNER = 2**25, 2**28  # bytes
PATIENCE = 30.0  # seconds for an upload to arrive, and again to be read
_CLIENT = re.compile(r"[A-Za-z0-9_-]{8,64}")
_NAME = re.compile(r"[\w .,()+@-]{1,100}")


def make_app(session: Session) -> Starlette:
    """The application, without its guard."""
    hub = Hub()
    session.tell = hub.tell
    pages = _Pages(session, hub)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        hub.end()

    return Starlette(
        routes=[
            Route("/", pages.index),
            Route("/static/{name}", pages.static),
            Route("/drop", pages.drop, methods=["POST"]),
            Route("/learner.bayspike", pages.learner),
            Route("/chip.zip", pages.chip),
            WebSocketRoute("/ws", pages.speak),
        ],
        lifespan=lifespan,
    )


def page_files() -> dict[str, bytes]:
    """All files that a page may ask for, by name."""
    own, report = files("bayspike.live") / "static", files("bayspike.report") / "static"
    found = {each.name: each.read_bytes() for each in own.iterdir() if Path(each.name).suffix in KINDS}
    return {**found, **{name: (report / name).read_bytes() for name in SHARED}}


class _Pages:
    def __init__(self, session: Session, hub: Hub) -> None:
        self._session, self._hub, self._files = session, hub, page_files()

    async def index(self, request: Request) -> Response:
        return self._file("index.html")

    async def static(self, request: Request) -> Response:
        return self._file(request.path_params["name"])

    def _file(self, name: str) -> Response:
        if name not in self._files:
            return _sentence("there is no such file.", 404)
        return Response(self._files[name], media_type=KINDS[Path(name).suffix])

    # The one WebSocket

    async def speak(self, socket: WebSocket) -> None:
        client = socket.query_params.get("client", "")
        if not _CLIENT.fullmatch(client):
            await socket.close(4400)
            return
        await socket.accept()
        line = self._hub.join(client)
        for message in self._session.greeting():
            line.put(message)
        self._hub.tell_pen()
        sending = asyncio.create_task(_send(socket, line))
        try:
            while True:
                text = await socket.receive_text()
                await self._hear(text, line)
        except (WebSocketDisconnect, RuntimeError):  # it has gone, or was let go
            pass
        finally:
            self._hub.leave(line)
            sending.cancel()

    async def _hear(self, text: str, line: Line) -> None:
        try:
            require(len(text) <= LARGEST_MESSAGE, "that is more than one wish can be.")
            try:
                message = parse_json(text)
            except ValueError as error:
                raise UserError("that is no JSON.") from error
            require(isinstance(message, dict), "a wish is an object with the entry `do`.")
            await self._obey(message, line)
        except UserError as error:
            line.put({"tell": "note", "kind": "problem", "text": _capital(str(error))})
        except Exception as error:  # a fault of ours costs one wish, not the page
            line.put({"tell": "note", "kind": "problem", "text": unexpected(error)})

    async def _obey(self, message: Mapping[str, Any], line: Line) -> None:
        if message.get("do") == "take":
            self._hub.take(line)
        elif message.get("do") == "neuron":
            line.put(self._session.neuron(message))
        else:
            require(self._hub.has_pen(line), "another page has the pen: press Take over to write here.")
            await self._session.do(message)

    # What is dropped

    async def drop(self, request: Request) -> Response:
        if not self._hub.client_has_pen(request.headers.get("x-client", "")):
            return _sentence("another page has the pen: press Take over to write here.", 409)
        try:
            name, ending = _checked_name(request.query_params.get("name", ""))
            limit = LARGEST_LEARNER if ending == ENDING else LARGEST_DROP
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"dropped{ending}"
                with anyio.fail_after(PATIENCE):
                    await _receive(request, path, limit, name)
                if ending == ENDING:
                    state = await self._read(load_state, path, name)
                    await self._session.load(state, name)
                    return _sentence(f"{name} is loaded.")
                state = self._session.now.state
                given, word = await self._read(lambda file: of_file(file, name, state), path, name)
                await self._session.ask(given)
                return _sentence(f"{name} is shown.{word}")
        except TimeoutError:
            return _sentence(f"that took longer than {PATIENCE:.0f} seconds: try a smaller file.", 408)
        except UserError as error:
            return _sentence(str(error), 422)

    async def _read(self, reader: Any, path: Path, name: str) -> Any:
        """Read a file beside the event loop, for a bounded time, and call it in errors what people call it."""
        try:
            return await asyncio.wait_for(asyncio.to_thread(reader, path), PATIENCE)
        except asyncio.TimeoutError as error:
            raise TimeoutError from error
        except UserError as error:
            raise UserError(str(error).replace(str(path), name)) from error

    # What is taken away

    async def learner(self, request: Request) -> Response:
        state = self._session.now.state

        def packed() -> bytes:
            with tempfile.TemporaryDirectory() as folder:
                return save_state(state, Path(folder) / "learner.bayspike").read_bytes()

        return _download(await asyncio.to_thread(packed), "learner.bayspike")

    async def chip(self, request: Request) -> Response:
        try:
            return _download(await asyncio.to_thread(chip_archive, self._session.now), "chip.zip")
        except UserError as error:
            return _sentence(str(error), 422)


async def _send(socket: WebSocket, line: Line) -> None:
    """Whatever is on the line, until it ends."""
    while (text := await line.get()) is not None:
        await socket.send_text(text)
    await socket.close(1013)


async def _receive(request: Request, path: Path, limit: int, name: str) -> None:
    """The body of a request into a file, never more than `limit` bytes of it."""
    size = 0
    with path.open("wb") as stream:
        async for block in request.stream():
            size += len(block)
            require(size <= limit, f"{name} is larger than the {limit:,} bytes that are taken.")
            stream.write(block)
    require(size > 0, f"{name} is empty.")


def _checked_name(name: str) -> tuple[str, str]:
    """The name of a dropped file, and its ending in small letters."""
    last = re.split(r"[/\\]", name)[-1]
    ending = Path(last).suffix.lower()
    require(bool(_NAME.fullmatch(last)), "the name of the file has characters that are not taken: rename it.")
    known = (*pictures.ENDINGS, *recordings.ENDINGS, ENDING)
    require(
        ending in known,
        f"{last} is of no kind that is read: drop a picture ({', '.join(pictures.ENDINGS)}), a recording "
        f"({', '.join(recordings.ENDINGS)}) or a learner ({ENDING}).",
    )
    return last, ending


def _sentence(text: str, status: int = 200) -> Response:
    return Response(_capital(text), status, media_type="text/plain")


def _capital(text: str) -> str:
    """As a sentence begins, unless it begins with the name of a file."""
    first = text.split(" ", 1)[0]
    return text if "." in first else text[:1].upper() + text[1:]


def _download(content: bytes, name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(content, headers=headers, media_type="application/octet-stream")
