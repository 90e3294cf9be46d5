"""The report in a real browser. Skipped where there is no Chromium."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from parsed import data, parse
from synthetic import TIME

from bayspike.report import write_report
from browser import CHROMIUM, Browser, open_browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (Debian: apt install chromium)")

SHOWN = "document.querySelector('#{section} figure:not([hidden]) .plot')"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as found:
        yield found


@pytest.fixture
def page(browser: Browser) -> Iterator[Browser]:
    """A fresh desktop window; whatever it does, it must log no error and ask nothing of the network."""
    browser.screen(1280, 900)
    yield browser
    assert browser.errors == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:", "blob:"))] == []


def scroll_through(page: Browser) -> None:
    """Bring every plot on screen once, so that each is drawn."""
    page.value(
        "(async () => { for (const plot of document.querySelectorAll('.plot')) { plot.scrollIntoView();"
        " await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 30))); } })()"
    )
    visible = "[...document.querySelectorAll('.plot')].filter((plot) => plot.offsetParent !== null)"
    page.wait(f"{visible}.every((plot) => plot.querySelector('.main-svg'))")


def draw(page: Browser, section: str) -> str:
    """Scroll to a section and wait for its first visible plot; an expression for that plot."""
    plot = SHOWN.format(section=section)
    page.value(f"{plot}.scrollIntoView()")
    page.wait(f"{plot}.querySelector('.main-svg')")
    return plot


def move(page: Browser, section: str, t: int) -> None:
    page.value(
        f"(() => {{ const input = document.querySelector('#{section} .slider input'); input.value = {t};"
        " input.dispatchEvent(new Event('input')); })()"
    )


def test_all_plots_are_drawn_without_errors(page: Browser, report: Path) -> None:
    page.open(report)
    scroll_through(page)
    assert page.value("document.querySelectorAll('.main-svg').length") > 10


def test_the_slider_changes_the_plot(page: Browser, report: Path) -> None:
    page.open(report)
    plot = draw(page, "reliability")
    last = page.value(f"{plot}.data[3].y")
    note = "document.querySelector('#reliability figure:not([hidden]) .note').textContent"
    assert page.value(note).startswith(f"t = {TIME}:")
    path = f"[...{plot}.querySelectorAll('.bars path')].map((bar) => bar.getAttribute('d')).join(' ')"
    drawn = page.value(path)
    move(page, "reliability", 2)
    page.wait(f"{note}.startsWith('t = 2:')")
    page.wait(f"{path} !== {json.dumps(drawn)}")
    early = page.value(f"{plot}.data[3].y")
    assert early != last
    assert sum(early) == pytest.approx(1, abs=0.01)
    move(page, "reliability", TIME)
    page.wait(f"{path} === {json.dumps(drawn)}")


def test_the_slider_moves_foreign_histograms(page: Browser, report: Path) -> None:
    page.open(report)
    plot = draw(page, "foreign")
    last = page.value(f"{plot}.data[1].y")
    move(page, "foreign", 1)
    page.wait(f"JSON.stringify({plot}.data[1].y) !== {json.dumps(json.dumps(last, separators=(',', ':')))}")


def test_tables_show_the_summary(page: Browser, run: Path, report: Path) -> None:
    page.open(report)
    summary = json.loads((run / "summary.json").read_text())
    rows = page.value(
        "[...document.querySelectorAll('#headline tbody tr:not([hidden])')]"
        ".map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    for label, scores in summary["methods"].items():
        (row,) = [each for each in rows if each[0] == label]
        accuracy, error = scores["accuracy"], scores["ece"]
        assert row[2] == f"{100 * accuracy['mean']:.2f} ± {100 * accuracy['std']:.2f} %"
        assert row[3] == f"{error['mean']:.3f} ± {error['std']:.3f}"


def test_tables_sort(page: Browser, report: Path) -> None:
    page.open(report)
    numbers = (
        "[...document.querySelector('#headline tbody').rows].map((row) => row.cells[3].dataset.value)"
        ".filter((value) => value !== undefined).map(Number)"
    )
    for order in (-1, 1):
        page.value("document.querySelectorAll('#headline thead th')[3].click()")
        found = page.value(numbers)
        assert found == sorted(found, key=lambda value: order * value)


def test_samples_play_and_pause(page: Browser, report: Path) -> None:
    page.open(report)
    page.value("document.querySelector('.stream').scrollIntoView()")
    page.wait("document.querySelector('.stream .main-svg')")
    canvas = "document.querySelector('.stream canvas').toDataURL()"
    length = "document.querySelector('.stream .plot').data[0].x.length"
    at_end = page.value(canvas)
    assert page.value(length) == TIME
    page.value("document.querySelector('.stream .play').click()")
    page.wait(f"{length} > 2 && {length} < {TIME}")  # the line grows while it plays
    page.value("document.querySelector('.stream .play').click()")
    stopped = page.value("document.querySelector('.stream .slider input').value")
    assert page.value(canvas) != at_end
    page.value("new Promise((done) => setTimeout(done, 300))")
    assert page.value("document.querySelector('.stream .slider input').value") == stopped


def test_the_canvas_shows_the_events(page: Browser, run: Path, report: Path) -> None:
    """At t = 1 of sample k, on events stand in column k and off events two to the left of it, rows 2 to 9."""
    (stream,) = data(parse(report.read_text()))["streams"]
    stored = np.load(run / "results" / "bayes-seed0.npz")["frames"]
    (k,) = [k for k in range(len(stored)) if stored[k].tobytes() == base64.b64decode(stream["frames"][0])][:1]
    on, off = k % 12, (k - 2) % 12
    page.open(report)
    page.value("document.querySelector('.stream').scrollIntoView()")
    move(page, "stream", 1)
    page.wait("document.querySelector('.stream output').textContent === '1'")
    page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    values = page.value(
        "[...document.querySelector('.stream canvas').getContext('2d').getImageData(0, 0, 12, 12).data]"
    )
    image = np.array(values).reshape(12, 12, 4)
    assert (image[2:10, on, 2] > image[2:10, on, 0]).all()  # bluish
    assert (image[2:10, off, 0] > image[2:10, off, 2]).all()  # reddish
    lit = image[..., :3].any(-1)
    assert lit.sum() == 16
    assert not lit[[0, 1, 10, 11]].any()


def test_the_predictor_menu(page: Browser, report: Path) -> None:
    page.open(report)
    captions = "document.querySelectorAll('#reliability figure:not([hidden]) figcaption')"
    titles = f"[...{captions}].map((each) => each.firstChild.data)"
    assert page.value(titles) == ["sgd", "bayes, committee"]
    page.value("document.getElementById('view').value = 'mean'")
    page.value("document.getElementById('view').dispatchEvent(new Event('change'))")
    assert page.value(titles) == ["sgd", "bayes, mean"]
    scroll_through(page)


def test_light_and_dark(page: Browser, report: Path) -> None:
    text = "document.querySelector('.main-svg .xtick text').style.fill"
    colours = f"[getComputedStyle(document.body).backgroundColor, {text}]"
    page.open(report)
    draw(page, "reliability")
    light = page.value(colours)
    page.theme(dark=True)
    page.wait(f"{colours}.every((colour, k) => colour !== {json.dumps(light)}[k])")
    page.value("document.getElementById('theme').click()")
    page.wait(f"{colours}.every((colour, k) => colour === {json.dumps(light)}[k])")


def test_a_phone_needs_no_sideways_scrolling(page: Browser, report: Path, two_moons: Path, tmp_path: Path) -> None:
    page.screen(390, 844, phone=True)
    for path in (report, write_report([two_moons], tmp_path / "moons.html")):
        page.open(path)
        scroll_through(page)
        assert page.value("document.documentElement.scrollWidth") == 390


def test_wide_tables_scroll_with_a_hint(page: Browser, report: Path) -> None:
    """Where a table is wider than the screen it says so and scrolls, its first column staying; else no hint."""
    hint = "[...document.querySelectorAll('#results .hint')].map((each) => each.offsetParent !== null)"
    page.open(report)
    page.value("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    assert page.value(hint) == [False, False, False]
    page.screen(390, 844, phone=True)
    page.open(report)
    page.wait(f"{hint}[0]")
    box = "document.querySelector('#headline').parentElement"
    assert page.value(f"{box}.scrollWidth > {box}.clientWidth")
    cell = "document.querySelector('#headline tbody th').getBoundingClientRect().left"
    before = page.value(cell)
    page.value(f"{box}.scrollLeft = 100")
    assert page.value(f"{box}.scrollLeft") == 100
    assert page.value(cell) == before


def test_the_paper_stays_at_the_bottom_however_one_sorts(page: Browser, report: Path) -> None:
    page.open(report)
    names = "[...document.querySelectorAll('#headline tbody tr')].slice(-2).map((row) => row.cells[0].innerText)"
    paper = page.value(names)
    assert "paper" in paper[0].lower()
    for _ in range(2):
        page.value("document.querySelectorAll('#headline thead th')[2].click()")
        assert page.value(names) == paper


def test_hostile_names_do_nothing(page: Browser, hostile_run: Path, run: Path, tmp_path: Path) -> None:
    page.open(write_report([hostile_run, run], tmp_path / "hostile.html"))
    scroll_through(page)
    assert page.value("window.hacked === undefined")
    assert page.value("document.querySelectorAll('img').length") == 0
    text = page.value("document.querySelector('#headline tbody th').innerText")
    assert 'onerror="window.hacked=1"' in text


def test_two_moons_are_drawn(page: Browser, two_moons: Path, tmp_path: Path) -> None:
    page.open(write_report([two_moons], tmp_path / "moons.html"))
    scroll_through(page)
    assert (
        page.value("document.querySelectorAll('#two-moons .main-svg .heatmaplayer image, #two-moons .hm image').length")
        >= 3
    )
