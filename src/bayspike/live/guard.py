"""Who may speak to the server: the page it opened itself, and nobody else.

The address holds a random token; without it nothing is answered. `Host` must be this machine by name, so that a foreign
name that was made to point here (DNS rebinding) leads nowhere; an `Origin`, if there is one, must be the page itself,
and whatever may change something must have one. The policy in the headers allows no script but the server's own files
and no connection but to it.
"""

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

REFUSED = 4403  # how a WebSocket is closed that may not be opened


def new_token() -> str:
    return secrets.token_urlsafe(24)


class Guard:
    """Lets requests for `/TOKEN/…` through to `app`, which sees them without the token."""

    def __init__(self, app: App, token: str, port: int) -> None:
        self._app, self._token = app, token.encode()
        self._hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}
        self._origins = {b"http://" + host for host in self._hosts}
        sockets = " ".join(f"ws://{host.decode()}" for host in sorted(self._hosts))
        self._headers = [
            (
                b"content-security-policy",
                f"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
                f"connect-src 'self' {sockets}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'".encode(),
            ),
            (b"x-content-type-options", b"nosniff"),
            (b"x-frame-options", b"DENY"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cache-control", b"no-store"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal:
            await self._refuse(scope, refusal, receive, send)
            return
        path = scope["path"].split("/", 2)
        inside = dict(scope, path=f"/{path[2]}", raw_path=None, root_path="")

        async def dressed(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *self._headers]
            await send(message)

        await self._app(inside, receive, dressed)

    def _refusal(self, scope: Scope) -> str:
        headers = scope["headers"]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return "this server answers to 127.0.0.1 and localhost alone."
        origins = [value for name, value in headers if name == b"origin"]
        changing = scope["type"] == "websocket" or scope["method"] not in ("GET", "HEAD")
        if any(origin not in self._origins for origin in origins) or (changing and len(origins) != 1):
            return "this server answers to its own page alone."
        parts = scope["path"].split("/", 2)
        if len(parts) != 3 or not hmac.compare_digest(parts[1].encode(), self._token):
            return "the address lacks the token that `bayspike live` printed."
        return ""

    async def _refuse(self, scope: Scope, sentence: str, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()  # the wish to connect
            await send({"type": "websocket.close", "code": REFUSED, "reason": "refused"})
            return
        body = f"Refused: {sentence}\n".encode()
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 403, "headers": [*headers, *self._headers]})
        await send({"type": "http.response.body", "body": body})
