"""The page as a file: whole, closed to the network, safe against hostile names, and honest about what is missing."""

import base64
import hashlib
import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from jinja2 import UndefinedError
from parsed import Element, data, parse
from synthetic import CLASSES, HOSTILE, TASKS, TIME

from bayspike.errors import UserError
from bayspike.report import write_report
from bayspike.report.markup import templates


def sections(root: Element) -> list[str]:
    return [each.attributes["id"] for each in root.every("section")]


def copy(run: Path, to: Path) -> Path:
    return Path(shutil.copytree(run, to / "copy"))


def test_every_panel_that_has_data_is_there(report: Path) -> None:
    assert sections(parse(report.read_text())) == [
        "results", "stream", "reliability", "over-time", "sets", "foreign", "course", "training", "matrices",
        "parameters", "provenance",
    ]  # fmt: skip


def test_a_name_stands_for_one_place(report: Path) -> None:
    named = [each.attributes["id"] for each in parse(report.read_text()).every() if "id" in each.attributes]
    assert len(set(named)) == len(named) > 10


def test_two_moons_has_maps_and_no_tasks(two_moons: Path, tmp_path: Path) -> None:
    root = parse(write_report([two_moons], tmp_path / "r.html").read_text())
    found = sections(root)
    assert "two-moons" in found
    assert not {"matrices", "training", "foreign"} & set(found)
    maps = [trace for plot in data(root)["plots"].values() for trace in plot["data"] if trace["type"] == "heatmap"]
    assert len(maps) == 3
    stored = np.load(two_moons / "results" / "sgd-seed0.npz")["grid/point"][..., 1]
    assert any(np.allclose(np.array(each["z"]), stored, atol=5e-4) for each in maps)


def test_nothing_is_fetched(report: Path) -> None:
    root = parse(report.read_text())
    for element in root.every():
        for key in ("src", "href", "action", "srcset", "data", "poster"):
            value = element.attributes.get(key, "")
            assert value.startswith(("#", "data:image/png;base64,")) or not value, (element.tag, value)
    (policy,) = [m for m in root.every("meta") if m.attributes.get("http-equiv") == "Content-Security-Policy"]
    scripts = [each.texts[0] for each in root.every("script") if "id" not in each.attributes]
    hashes = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts]
    assert policy.attributes["content"] == (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}' 'sha256-{hashes[1]}'; style-src 'unsafe-inline'; "
        "img-src data: blob:"
    )
    assert "@import" not in root.every("style")[0].text


def test_plotly_is_there_once(report: Path) -> None:
    from plotly.offline import get_plotlyjs

    page = report.read_text()
    assert page.count(get_plotlyjs()[:200]) == 1
    assert len(page) < len(get_plotlyjs()) + 600_000


def test_hostile_names_stay_text(hostile_run: Path, run: Path, tmp_path: Path) -> None:
    page = write_report([hostile_run, run], tmp_path / "r.html").read_text()
    root = parse(page)
    assert len(root.every("script")) == 3
    assert not root.every("img")
    for element in root.every():
        assert not [key for key in element.attributes if key.startswith("on")], element
    assert any(HOSTILE in each.text for each in root.every("th"))  # it is shown, as it was written
    (block,) = root.every("script", id="data")
    assert not re.search("[<>&]", block.text)
    plots = json.dumps(data(root)["plots"], ensure_ascii=False)
    assert "<img" not in plots  # plotly reads a little HTML, so plots get entities
    assert "&lt;img" in plots


def test_simulated_data_are_flagged_everywhere(run: Path, simulated_run: Path, tmp_path: Path) -> None:
    root = parse(write_report([simulated_run], tmp_path / "s.html").read_text())
    cards = root.every("figure", kind="card")
    assert cards
    for card in cards:
        assert "simulated data" in card.text
    assert root.every("p", kind="warning")
    assert all(stream["simulated"] for stream in data(root)["streams"])
    both = parse(write_report([run, simulated_run], tmp_path / "b.html").read_text())
    together = [each for each in both.every("figure", kind="wide") if not re.search("AUROC|by input", each.text)]
    assert together
    assert all("partly simulated data" in card.text for card in together)
    legends = json.dumps(data(both)["plots"])
    assert "made-up: sgd (simulated)" in legends
    assert "plain: sgd (simulated)" not in legends
    own = [card for card in both.every("figure", kind="card") if card.text.startswith("plain:")]
    assert own
    assert not any("simulated data" in card.text for card in own)


def test_a_real_run_has_no_flag(report: Path) -> None:
    assert not parse(report.read_text()).every(kind="badge")


@pytest.mark.parametrize("missing", ["summary.json", "config.json", "environment.json", "results", "results/*.npz"])
def test_what_is_missing_costs_only_its_panels(run: Path, tmp_path: Path, missing: str) -> None:
    kept = copy(run, tmp_path)
    for path in kept.glob(missing):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    found = sections(parse(write_report([kept]).read_text()))
    assert "provenance" in found
    assert ("results" in found) == (missing != "summary.json")
    assert ("matrices" in found) == (missing != "results")
    assert ("reliability" in found) == (not missing.startswith("results"))


def test_unreadable_arrays_are_named(run: Path, tmp_path: Path) -> None:
    kept = copy(run, tmp_path)
    damaged = kept / "results" / "sgd-seed0.npz"
    content = bytearray(damaged.read_bytes())
    content[len(content) // 3 : len(content) // 3 + 2000] = b"\0" * 2000
    damaged.write_bytes(content)
    root = parse(write_report([kept]).read_text())
    notes = [each.text for each in root.every("p", kind="missing")]
    assert notes
    assert all("sgd-seed0.npz" in note for note in notes)
    assert {"results", "provenance"} <= set(sections(root))


def test_probabilities_that_are_none_are_named(run: Path, tmp_path: Path) -> None:
    kept = copy(run, tmp_path)
    path = kept / "results" / "sgd-seed0.npz"
    arrays = dict(np.load(path))
    arrays["probabilities/point"][3, 5, 2] = np.nan
    np.savez(path, **arrays)
    root = parse(write_report([kept]).read_text())
    assert any("NaN" in each.text for each in root.every("p", kind="missing"))
    assert "training" in sections(root)


def test_arrays_that_would_run_code_are_not_loaded(run: Path, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (tmp_path / "sprung",))  # type: ignore[return-value]

    kept = copy(run, tmp_path)
    path = kept / "results" / "sgd-seed0.npz"
    arrays = {**dict(np.load(path)), "probabilities/point": np.array([Trap()], dtype=object)}
    np.savez(path, **arrays)
    page = write_report([kept]).read_text()
    assert not (tmp_path / "sprung").exists()
    assert parse(page).every("p", kind="missing")


def test_directories_that_are_no_runs(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a directory"):
        write_report([tmp_path / "nowhere"])
    with pytest.raises(UserError, match="neither"):
        write_report([tmp_path])
    with pytest.raises(UserError, match="at least one"):
        write_report([])
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(UserError, match=r"config\.json is not readable JSON"):
        write_report([tmp_path])


def test_where_it_is_written(run: Path, simulated_run: Path, tmp_path: Path) -> None:
    kept = copy(run, tmp_path)
    assert write_report([kept]) == kept / "report.html"
    assert write_report([kept, simulated_run]) == kept / "comparison.html"
    assert write_report([str(kept)], tmp_path / "new" / "x.html") == tmp_path / "new" / "x.html"
    assert not list(tmp_path.rglob("*.part"))
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="choose another place"):
        write_report([kept], tmp_path / "file" / "x.html")


def test_pictures_are_taken_from_the_run_only(run: Path, tmp_path: Path) -> None:
    kept = copy(run, tmp_path)
    picture = b"\x89PNG\r\n\x1a\n" + b"0" * 64
    (tmp_path / "secret.png").write_bytes(picture)
    (kept / "figures").mkdir()
    (kept / "figures" / "own.png").write_bytes(picture)
    (kept / "figures" / "text.png").write_bytes(b"no picture")
    index = [
        {"name": "own", "caption": "A caption.", "files": ["own.png", "own.csv"]},
        {"name": "other", "caption": "Elsewhere.", "files": ["../../secret.png"]},
        {"name": "text", "caption": "Not a picture.", "files": ["text.png"]},
    ]
    (kept / "figures" / "index.json").write_text(json.dumps(index))
    root = parse(write_report([kept]).read_text())
    assert len(root.every("img")) == 1
    assert [each.text for each in root.every("figure", kind="picture")] == [
        "A caption. own", "Elsewhere. other", "Not a picture. text",
    ]  # fmt: skip


def test_streams_begin_with_the_hardest_and_show_every_class(run: Path, report: Path) -> None:
    (stream,) = data(parse(report.read_text()))["streams"]  # both methods saw the same spikes
    stored = {name: np.load(run / "results" / f"{name}-seed0.npz") for name in ("sgd", "bayes")}
    places = stored["bayes"]["frames_of"]
    labels = stored["bayes"]["labels"][stored["bayes"]["subset"][places]]
    ends = [
        stored[name][f"probabilities/{predictor}"][-1, places, labels]
        for name, predictor in (("sgd", "point"), ("bayes", "committee"))
    ]
    hardest = int(np.mean(ends, axis=0).argmin())
    firsts = [next(k for k in range(len(places)) if labels[k] == c and k != hardest) for c in range(CLASSES)]
    shown = [hardest, *firsts]
    assert stream["labels"] == [labels[hardest], *range(CLASSES)]
    assert stream["shape"] == [2, 12, 12]
    assert stream["time"] == TIME
    for k, packed in zip(shown, stream["frames"], strict=True):
        assert base64.b64decode(packed) == stored["bayes"]["frames"][k].tobytes()
    (method,) = [each for each in stream["methods"] if each["name"] == "bayes, committee"]
    own = stored["bayes"]["probabilities/committee"][:, places[shown]].transpose(1, 0, 2)
    assert np.allclose(np.array(method["p"]) / 1000, own, atol=6e-4)


def test_streams_of_version_0_1_are_the_first_of_the_subset(run: Path, tmp_path: Path) -> None:
    kept = copy(run, tmp_path)
    for path in (kept / "results").glob("*.npz"):
        arrays = dict(np.load(path))
        del arrays["frames_of"]
        np.savez(path, **{**arrays, "frames": arrays["frames"][:4]})
    (stream,) = data(parse(write_report([kept]).read_text()))["streams"]
    stored = np.load(kept / "results" / "sgd-seed0.npz")
    assert sorted(stream["labels"]) == sorted(set(stored["labels"][stored["subset"][:4]].tolist()))
    held = [frame.tobytes() for frame in stored["frames"]]
    assert all(base64.b64decode(packed) in held for packed in stream["frames"])


def test_places_of_frames_that_are_none_show_no_stream(run: Path, tmp_path: Path) -> None:
    kept = copy(run, tmp_path)
    for path in (kept / "results").glob("*.npz"):
        arrays = dict(np.load(path))
        np.savez(path, **{**arrays, "frames_of": arrays["frames_of"] + 1000})
    assert "stream" not in sections(parse(write_report([kept]).read_text()))


def test_standard_deviations_are_seen(run: Path, report: Path) -> None:
    root = parse(report.read_text())
    (parameters,) = root.every("section", id="parameters")
    plots = data(root)["plots"]
    drawn = {
        card.every("figcaption")[0].text: plots[card.every("div", kind="plot")[0].attributes["id"]]
        for card in parameters.every("figure", kind="card")
    }
    assert list(drawn) == ["sgd", "bayes", "bayes: standard deviations", "bayes: standard deviation by input"]
    (line,) = drawn["bayes: standard deviations"]["data"]
    assert line["x"] == [0.025, 0.075]
    assert line["y"] == [0.0625, 0.938]
    pictures = drawn["bayes: standard deviation by input"]["data"]
    assert len(pictures) == TASKS
    for each in pictures:  # not from zero, where a small difference would be lost
        assert (each["zmin"], each["zmax"]) == (pytest.approx(0.06), pytest.approx(0.1))


def test_the_command_can_be_pasted(run: Path, hostile_run: Path, tmp_path: Path) -> None:
    for each in (run, hostile_run):
        root = parse(write_report([each], tmp_path / f"{each.name}.html").read_text())
        (command,) = root.every("pre", kind="command")
        (code,) = command.every("code")
        assert shlex.split(code.texts[0]) == json.loads((each / "environment.json").read_text())["command"]


def test_configuration_is_folded_and_figures_are_open(run: Path, tmp_path: Path) -> None:
    kept = copy(run, tmp_path)
    (kept / "figures").mkdir()
    (kept / "figures" / "index.json").write_text(json.dumps([{"name": "own", "caption": "A caption.", "files": []}]))
    root = parse(write_report([kept]).read_text())
    folds = root.every("details")
    assert [fold.every("summary")[0].text for fold in folds] == [
        "Methods", "Data set", "Environment", "Configuration", "Protocol",
    ]  # fmt: skip
    assert not [fold for fold in folds if "open" in fold.attributes]
    assert not [fold for fold in folds if fold.every("figure")]
    assert len(root.every("figure", kind="picture")) == 1
    (reduced,) = root.every("ul", kind="reduced")
    assert not [fold for fold in folds if reduced in fold.every("ul")]


def test_the_header_says_what_the_data_are(run: Path, tmp_path: Path) -> None:
    kept = copy(run, tmp_path)
    config = json.loads((kept / "config.json").read_text())
    config["dataset"]["about"] = f"601 recordings of users 1–19 {HOSTILE}"
    (kept / "config.json").write_text(json.dumps(config))
    (header,) = parse(write_report([kept]).read_text()).every("header")
    (line,) = header.every("ul", kind="runs")
    assert line.text.startswith("copy · preset demo")
    assert "· 601 recordings of users 1–19 <img" in line.text
    assert not header.every("img")
    config["dataset"] = None
    (kept / "config.json").write_text(json.dumps(config))
    (line,) = parse(write_report([kept]).read_text()).every("ul", kind="runs")
    assert "recordings" not in line.text


def test_templates_escape_and_miss_nothing() -> None:
    for name in templates().list_templates():
        templates().get_template(name)  # it compiles
    assert templates().from_string("<b title='{{ a }}'>{{ a | short }}</b>").render(a="'<&>\"") == (
        "<b title='&#39;&lt;&amp;&gt;&#34;'>&#39;&lt;&amp;&gt;&#34;</b>"
    )
    with pytest.raises(UndefinedError, match="'a' is undefined"):
        templates().from_string("{{ a }}").render()
