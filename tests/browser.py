"""A headless Chromium, driven by Playwright: the one of the system, none is downloaded."""

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser as Chromium
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SECONDS = 60.0


class Browser:
    """One page; what it logs as an error or a warning, throws or asks of the network is kept."""

    def __init__(self, chromium: Chromium) -> None:
        self._chromium = chromium
        self._context: BrowserContext | None = None
        self._page: Page
        self.errors: list[str] = []
        self.requests: list[str] = []

    def screen(self, width: int, height: int, *, phone: bool = False) -> None:
        """A fresh window of this size, with nothing kept from the last one."""
        if self._context:
            self._context.close()
        self.errors.clear()
        self.requests.clear()
        self._context = self._chromium.new_context(
            viewport={"width": width, "height": height},
            device_scale_factor=2 if phone else 1,
            is_mobile=phone,
            has_touch=phone,
            color_scheme="light",
        )
        self._context.set_default_timeout(1000 * SECONDS)
        self._page = self._context.new_page()
        self._page.on("console", self._note)
        self._page.on("pageerror", lambda error: self.errors.append(str(error)))
        self._page.on("request", lambda request: self.requests.append(request.url))

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.errors.append(message.text)

    def theme(self, *, dark: bool) -> None:
        """The system's."""
        self._page.emulate_media(color_scheme="dark" if dark else "light")

    @property
    def page(self) -> Page:
        return self._page

    def another(self) -> "Browser":
        """A second one, which shares nothing with the first."""
        return Browser(self._chromium)

    def open(self, place: Path | str) -> None:
        """A file, or an address."""
        self._page.goto(place if isinstance(place, str) else place.resolve().as_uri())

    def value(self, expression: str) -> Any:
        """The JSON value of an expression in the page."""
        return self._page.evaluate(expression)

    def wait(self, expression: str) -> None:
        """Until an expression holds; asked from here, so that a failure can show what the page logged."""
        until = time.monotonic() + SECONDS
        while not self.value(f"Boolean({expression})"):
            assert time.monotonic() < until, f"waited in vain for {expression}; errors: {self.errors}"
            self._page.wait_for_timeout(50)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """A screenshot, for a person to look at."""
        self._page.screenshot(path=path, full_page=whole)


@contextlib.contextmanager
def open_browser() -> Iterator[Browser]:
    """Start Chromium and end it again, whatever happens."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield Browser(chromium)
        finally:
            chromium.close()
