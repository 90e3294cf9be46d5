"""The page in a real browser: a hand draws, teaches, undoes, reloads, and what is shown is what the library says."""

import base64
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from small_live import ONE, SEVEN, TIME, digit, served

from browser import CHROMIUM, Browser, open_browser

pytest.importorskip("starlette", reason="needs the extra `live`")
pytest.importorskip("uvicorn", reason="needs the extra `live`")
pytest.importorskip("websockets", reason="needs the extra `live`")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (Debian: apt install chromium)")

from bayspike.learner import Learner  # noqa: E402
from bayspike.live import lessons  # noqa: E402
from bayspike.live import session as session_module  # noqa: E402
from bayspike.live.moments import OWN, Settings, begin  # noqa: E402
from bayspike.live.recording import replay  # noqa: E402
from bayspike.seeds import generator_for  # noqa: E402

CONNECTED = "document.body.dataset.connected === 'yes' && document.querySelectorAll('#classes .memo').length > 0"
MEMOS = "[...document.querySelectorAll('#classes .memo')]"
BARS = "[...document.querySelectorAll('.bar')]"
DECIDED = f"{BARS}.length > 0 && {BARS}.every((bar) => bar.dataset.time === '{TIME}')"
SHOWN = f"Object.fromEntries({BARS}.map((bar) => [bar.dataset.class, Number(bar.dataset.p)]))"
TRAY = "document.querySelectorAll('#tray figure').length"
NOTES = "document.getElementById('notes').innerText"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with open_browser() as found:
        yield found


@pytest.fixture
def page(chromium: Browser) -> Iterator[Browser]:
    """A fresh window; whatever it does, it logs no error and asks nothing of any other server."""
    chromium.screen(1280, 900)
    yield chromium
    # a page that is still open when its server has gone says so
    assert [error for error in chromium.errors if "ERR_CONNECTION_REFUSED" not in error] == []
    assert [url for url in chromium.requests if not url.startswith(("http://127.0.0.1:", "data:", "blob:"))] == []


def enter(page: Browser, address: str, fast: bool = True) -> None:
    page.open(address)
    page.wait(CONNECTED)
    if fast:
        page.value("document.getElementById('pace').max = 200")
        slide(page, "pace", 200)


def slide(page: Browser, name: str, value: int) -> None:
    page.value(
        f"(() => {{ const slider = document.getElementById('{name}'); slider.value = {value};"
        " slider.dispatchEvent(new Event('input')); })()"
    )


def draw(page: Browser, strokes: list[list[list[float]]]) -> None:
    """With the mouse."""
    page.page.locator("#pad").scroll_into_view_if_needed()
    box = page.page.locator("#pad").bounding_box()
    assert box is not None
    mouse = page.page.mouse
    for stroke in strokes:
        places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke]
        mouse.move(*places[0])
        mouse.down()
        for place in places[1:]:
            mouse.move(*place, steps=4)
        mouse.up()


def ask(page: Browser, strokes: list[list[list[float]]]) -> dict[str, float]:
    """Draw, wait for the last step, and read the probabilities off the bars."""
    page.value("document.getElementById('bars').replaceChildren()")
    draw(page, strokes)
    page.wait(DECIDED)
    return page.value(SHOWN)


def teach(page: Browser, word: str, classes: int) -> None:
    page.page.fill("#word", word)
    page.page.click("#give")
    page.wait(f"{MEMOS}.length === {classes} && document.getElementById('progress').hidden")


def recorded(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def picture_in(entry: dict) -> np.ndarray:
    return np.frombuffer(base64.b64decode(entry["content"]), np.uint8).reshape(28, 28).copy()


def test_drawn_strokes_get_the_librarys_probabilities(page, moment, learner, tmp_path):
    """What the page shows is `Learner.watch` (to the bit) and `Learner.predict_one` on the picture that was drawn."""
    with served(moment, record=tmp_path / "r.jsonl") as (running, _):
        enter(page, running.address)
        shown = ask(page, ONE)
        verdict = page.value("document.getElementById('verdict').innerText")
    (entry,) = [each for each in recorded(tmp_path / "r.jsonl") if each.get("did") == "ask"]
    picture = picture_in(entry["input"])
    answer = learner.predict_one(picture)
    assert shown == pytest.approx(dict(answer.probabilities), abs=1e-6)
    torch.set_num_threads(1)
    watch = learner.watch()
    one = learner.state.recipe.encoding.one(picture)
    for row in one.spikes(torch.tensor([0]), generator_for(learner.state.seed, "input"))[:, 0]:
        now = watch.push(row)
    assert list(shown.values()) == now.probabilities[0].tolist()
    assert answer.label in verdict


def test_teach_a_class_ask_again_see_the_bar_undo_it(page, moment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with served(moment, record=tmp_path / "r.jsonl") as (running, _):
        enter(page, running.address)
        before = ask(page, SEVEN)
        assert "7" not in before
        for number, move in enumerate((0.0, 0.03, -0.03), start=1):
            draw(page, [[[x + move * y, y] for x, y in stroke] for stroke in SEVEN])
            page.page.fill("#word", "7")
            page.page.click("#add")  # without waiting for an answer
            page.wait(f"{TRAY} === {number}")
        teach(page, "7", 5)
        assert page.value(TRAY) == 0
        after = ask(page, SEVEN)
        assert max(after, key=after.__getitem__) == "7"
        memo = "document.querySelector('#classes .memo[data-class=\"7\"]')"
        assert page.value(f"Number({memo}.dataset.now)") == 1.0
        assert page.value(
            f"{memo}.querySelector('.fill').classList.contains('learnt')"
        )  # judged by what it learnt from
        page.page.click("#undo")
        page.wait(f"{MEMOS}.length === 4")
        assert ask(page, SEVEN) == before  # bit for bit, in the page's own numbers
        assert "Undone" in page.value(NOTES)
    done = replay(tmp_path / "r.jsonl")
    assert (done.taught, done.others) == (1, 1)
    assert done.asked >= 3


def test_save_stop_start_load_same_answer(page, moment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with served(moment) as (running, _):
        enter(page, running.address)
        draw(page, SEVEN)
        teach(page, "seven", 5)
        answer = ask(page, SEVEN)
        page.page.click("#save")
        page.wait(f"{NOTES}.includes('live.bayspike')")
    saved = tmp_path / "live.bayspike"
    with served(begin(Learner.load(saved).state, "again", Settings())) as (running, _):
        enter(page, running.address)
        assert ask(page, SEVEN) == answer
    with served(moment) as (running, _):  # a learner without that class, into which the other is dropped
        enter(page, running.address)
        page.page.set_input_files("#load", saved)
        page.wait(f"{MEMOS}.length === 5")
        page.value("document.getElementById('pace').dispatchEvent(new Event('input'))")
        assert ask(page, SEVEN) == answer


def test_a_damaged_file_is_a_sentence(page, moment, tmp_path):
    (tmp_path / "broken.bayspike").write_bytes(b"PK\x03\x04rubbish")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nrubbish")
    with served(moment) as (running, _):
        enter(page, running.address)
        page.page.set_input_files("#load", tmp_path / "broken.bayspike")
        page.wait(f"{NOTES}.includes('broken.bayspike is damaged')")
        page.page.set_input_files("#file", tmp_path / "broken.png")
        page.wait(f"{NOTES}.includes('broken.png cannot be read as a picture')")
        # what Chromium itself logs of an answer that is not 200
        assert all("status of 422" in error for error in page.errors)
        page.errors.clear()


def test_a_dropped_picture_is_asked_about(page, moment, learner, tmp_path):
    Image.fromarray(digit(2, 5)).save(tmp_path / "two.png")
    content = base64.b64encode((tmp_path / "two.png").read_bytes()).decode()
    with served(moment) as (running, _):
        enter(page, running.address)
        page.value(
            "(() => { const data = new DataTransfer();"
            f" const bytes = Uint8Array.from(atob('{content}'), (c) => c.charCodeAt(0));"
            " data.items.add(new File([bytes], 'two.png'));"
            " const dropped = new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true });"
            " document.querySelector('.desk').dispatchEvent(dropped); })()"
        )
        page.wait(DECIDED)
        assert page.value(SHOWN) == pytest.approx(dict(learner.predict_one(digit(2, 5)).probabilities), abs=1e-6)
        assert "two.png is shown" in page.value(NOTES)


def test_a_reload_in_the_middle_of_a_lesson_loses_nothing(page, moment, tmp_path, monkeypatch):
    """The lesson is slowed down here, so that it lasts while the page goes and comes."""
    monkeypatch.chdir(tmp_path)
    go_on = threading.Event()

    def slow(*arguments, **named):
        go_on.wait(30)
        return lessons.teach(*arguments, **named)

    monkeypatch.setattr(session_module, "teach", slow)
    with served(moment) as (running, _):
        enter(page, running.address)
        draw(page, ONE)
        page.page.fill("#word", "eins")
        page.page.click("#add")
        page.wait(f"{TRAY} === 1")
        page.page.click("#give")
        page.wait("!document.getElementById('progress').hidden")
        page.page.reload()
        page.wait(CONNECTED)
        assert not page.value("document.getElementById('progress').hidden")
        assert page.value(TRAY) == 1
        assert page.value("document.getElementById('watching').hidden")  # it has its pen again
        page.wait(DECIDED)  # and the signal that it was watching
        draw(page, SEVEN)  # the page is not frozen: this is answered by the learner as it was
        page.wait("document.getElementById('verdict').innerText.includes('the drawing') || " + DECIDED)
        assert page.value(f"{BARS}.length") == 4
        go_on.set()
        page.wait(f"{MEMOS}.length === 5")
        assert page.value(TRAY) == 0


def test_a_second_tab_watches_and_may_take_over(page, moment):
    other = page.another()
    with served(moment) as (running, _):
        enter(page, running.address)
        other.screen(1280, 900)
        other.open(running.address)
        other.wait(CONNECTED)
        assert page.value("document.getElementById('watching').hidden")
        assert not other.value("document.getElementById('watching').hidden")
        assert other.value("document.getElementById('sample').disabled")
        draw(other, ONE)  # does nothing
        shown = ask(page, ONE)
        other.wait(DECIDED)
        assert other.value(SHOWN) == shown
        other.page.click("#take")
        other.wait("document.getElementById('watching').hidden")
        page.wait("!document.getElementById('watching').hidden")
        other.page.click("#sample")
        other.wait("document.getElementById('verdict').innerText.includes('It is a')")
        page.wait("document.getElementById('verdict').innerText.includes('It is a')")
        assert page.value("document.getElementById('add').disabled")
        other.page.context.close()
    assert other.errors == []


def test_sgd_beside_it(page, moment, sevens, settings):
    after = lessons.teach(moment, sevens, ["7"] * 6, settings)
    with served(after) as (running, _):
        enter(page, running.address)
        ask(page, SEVEN)
        assert page.value("[...document.querySelectorAll('.bar .rival')].every((each) => each.hidden)")
        for name in ("sgd", "sgd-replay"):
            page.page.select_option("#rival", name)
            page.wait("[...document.querySelectorAll('.bar .rival')].every((each) => !each.hidden)")
            shown = page.value(
                f"Object.fromEntries({MEMOS}.map((each) => [each.dataset.class, Number(each.dataset.rival)]))"
            )
            marks = after.marks[name].classes
            assert shown == {word: right / count for word, (right, count, _) in marks.items()}
        own = page.value("document.querySelector('#marks tbody td.n').firstChild.data")
        assert own.startswith(f"{100 * after.marks[OWN].accuracy:.1f}")
        page.page.select_option("#rival", "")
        page.wait("[...document.querySelectorAll('.bar .rival')].every((each) => each.hidden)")


def test_the_slider_goes_back_in_time(page, moment):
    with served(moment) as (running, _):
        enter(page, running.address)
        ask(page, ONE)
        last = page.value("document.getElementById('picture').toDataURL()")
        slide(page, "step", 2)
        assert page.value(f"{BARS}.every((bar) => bar.dataset.time === '2')")
        assert page.value("document.getElementById('picture').toDataURL()") != last
        assert page.value("document.getElementById('verdict').innerText").startswith("t = 2.")


def test_hostile_names_stay_text(page, moment, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = '<img src=x onerror="window.hacked=1">'
    with served(moment) as (running, _):
        enter(page, running.address)
        draw(page, ONE)
        teach(page, name, 5)
        ask(page, ONE)
        assert page.value("window.hacked === undefined")
        assert page.value("document.querySelectorAll('img').length") == 0
        assert name in page.value("document.querySelector('#classes .memo:last-child .name').textContent")


def test_synapses_follow_the_slider(page, moment):
    with served(moment) as (running, _):
        enter(page, running.address)
        drawn = "document.getElementById('mean').toDataURL() + document.getElementById('spread').toDataURL()"
        page.wait("document.getElementById('mean-note').textContent.includes('from')")
        first = page.value(drawn)
        slide(page, "neuron", 9)
        page.wait(f"{drawn} !== {json.dumps(first)}")


def test_a_phone_in_the_dark(page, moment):
    page.screen(390, 844, phone=True)
    page.theme(dark=True)
    with served(moment) as (running, _):
        enter(page, running.address)
        ask(page, ONE)
        assert page.value("document.documentElement.scrollWidth") == 390
        assert page.value("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 26)"
        page.page.locator("#theme").click()
        page.wait("getComputedStyle(document.body).backgroundColor === 'rgb(246, 247, 249)'")
