"""Draw docs/img/live.png: the beginner of `bayspike live` after three lessons, photographed in Chromium.

    python docs/img/make_live.py [FOLDER]

The drawings are strokes of a simulated hand: a few templates, each time slanted and stretched otherwise.
"""

import asyncio
import random
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Page, sync_playwright

from bayspike.live.beginner import beginner
from bayspike.live.moments import Settings, begin
from bayspike.live.recording import Recorder
from bayspike.live.running import Running
from bayspike.live.session import Session

HERE = Path(__file__).parent
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
STROKES = {
    "7": [[(0.25, 0.2), (0.5, 0.19), (0.75, 0.2), (0.6, 0.5), (0.45, 0.85)]],
    "4": [[(0.35, 0.15), (0.28, 0.5), (0.72, 0.5)], [(0.65, 0.2), (0.62, 0.55), (0.6, 0.88)]],
    "6": [[(0.6, 0.15), (0.4, 0.35), (0.32, 0.6), (0.4, 0.82), (0.58, 0.82), (0.66, 0.68), (0.55, 0.57), (0.36, 0.65)]],
}


def wait(page: Page, expression: str, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not page.evaluate(f"Boolean({expression})"):
        assert time.monotonic() < until, expression
        page.wait_for_timeout(50)


def draw(page: Page, word: str, hand: random.Random) -> None:
    page.locator("#pad").scroll_into_view_if_needed()
    box: Any = page.locator("#pad").bounding_box()
    slant, wide = hand.uniform(-0.18, 0.18), hand.uniform(0.8, 1.1)
    for stroke in STROKES[word]:
        places = []
        for x, y in stroke:
            moved = 0.5 + (x - 0.5) * wide + slant * (0.5 - y) + hand.uniform(-0.015, 0.015)
            places.append(
                (box["x"] + moved * box["width"], box["y"] + (y + hand.uniform(-0.015, 0.015)) * box["height"])
            )
        page.mouse.move(*places[0])
        page.mouse.down()
        for place in places[1:]:
            page.mouse.move(*place, steps=6)
        page.mouse.up()


def act(page: Page, address: str) -> None:
    """Three lessons of eight drawings, then a question."""
    hand = random.Random(0)
    page.goto(address)
    wait(page, "document.querySelectorAll('#classes .memo').length === 4")
    for known, word in enumerate(STROKES, start=5):
        for count in range(1, 9):
            draw(page, word, hand)
            page.fill("#word", word)
            page.click("#add")
            wait(page, f"document.querySelectorAll('#tray figure').length === {count}")
        page.click("#give")
        wait(page, f"document.querySelectorAll('#classes .memo').length === {known}")
    page.select_option("#rival", "sgd")
    draw(page, "4", hand)
    decided = "[...document.querySelectorAll('.bar')]"
    wait(page, f"{decided}.length === 7 && {decided}.every((bar) => bar.dataset.time === '50')")
    page.evaluate("document.getElementById('notes').replaceChildren()")
    page.evaluate("window.scrollTo(0, 0)")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    torch.set_num_threads(1)
    settings = Settings()
    session = Session(begin(beginner().state, "the beginner", settings), settings, Recorder(None))
    session.save = lambda: Path("nowhere")  # type: ignore[method-assign]
    running, ready = Running(session), threading.Event()
    threading.Thread(target=lambda: asyncio.run(running.serve(ready.set)), daemon=True).start()
    ready.wait(60)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page(viewport={"width": 1180, "height": 900}, color_scheme="light")
        act(page, running.address)
        end = page.evaluate("document.getElementById('memory').getBoundingClientRect().bottom") + 14
        page.screenshot(path=HERE / "live.png", clip={"x": 0, "y": 0, "width": 1180, "height": end}, full_page=True)
        if folder is not None:  # the whole page, wide and narrow, light and dark, to be looked at
            for width in (1280, 800, 390):
                for scheme in ("light", "dark"):
                    page.set_viewport_size({"width": width, "height": 844})
                    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
                    page.wait_for_timeout(400)
                    page.screenshot(path=folder / f"live-{width}-{scheme}.png", full_page=True)
        chromium.close()
    for name, marks in session.now.marks.items():
        print(f"{name}: accuracy {marks.accuracy:.3f}, ECE {marks.ece:.3f} on the four first digits")
    running.stop()


if __name__ == "__main__":
    main()
