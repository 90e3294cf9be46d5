"""`make bench`: every part runs in its quick form, and the page has a place for every table. No figure is judged."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import everything  # noqa: E402


def test_the_page_has_a_filled_place_for_every_table() -> None:
    page = everything.PAGE.read_text("utf-8")
    for name in ("about", *everything.PARTS):
        _, mark, rest = page.partition(f"<!-- {name} -->")
        inner, end, _ = rest.partition(f"<!-- /{name} -->")
        assert mark, name
        assert end, name
        assert len(inner.strip()) > 50, f"{name} is empty: make bench"


def test_only_what_is_between_the_marks_is_replaced() -> None:
    page = "words\n<!-- a -->\nold\n<!-- /a -->\nmore <!-- b -->\n<!-- /b -->\n"
    assert everything.put_in(page, "a", r"new \1") == page.replace("old\n", "\nnew \\1\n\n")
    with pytest.raises(SystemExit, match="no marks"):
        everything.put_in(page, "c", "")


def test_a_table_leaves_out_columns_that_no_row_has() -> None:
    part = everything.Part("x.py", "", "", {"one": "Eins", "two": "Zwei", "three": "Drei"})
    made = everything.table(part, [{"one": 1, "three": "a|b"}, {"three": 2}])
    assert made.splitlines() == ["| Eins | Drei |", "|---|---|", "| 1 | a/b |", "|  | 2 |"]


def test_the_table_of_maps_says_what_memory_they_take() -> None:
    part = everything.PARTS["maps"]
    printed = {"rule": "sgd", "network": "2c3-8", "memory_bytes": 3 * 2**20, "memory_4t_bytes": 13 * 2**18}
    header, _, row = everything.table(part, part.rows([{"rows": [printed]}])).splitlines()
    assert header == "| rule | network | MiB, T = 20 | MiB, T = 80 |"
    assert row == "| sgd | 2c3-8 | 3.0 | 3.2 |"


def test_a_part_that_does_not_run_says_so() -> None:
    part = everything.Part("streams.py", "--channels none", "", {"channels": "channels"})
    (row,) = everything.run(part, quick=False)
    assert "streams.py does not run" in row["channels"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "names", [("streams", "time-blocks", "inference"), ("training-large", "maps"), ("ranks", "memory")]
)
def test_quick_runs_give_tables(names: tuple[str, ...], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("".join(f"<!-- {name} -->\n<!-- /{name} -->\n" for name in ("about", *names)), "utf-8")
    command = [sys.executable, everything.__file__, "--quick", "--page", str(page), "--only", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "does not run" not in done.stdout
    assert "Not part of it: training," in page.read_text("utf-8")
    text = page.read_text("utf-8")
    for name in names:
        inner = text.partition(f"<!-- {name} -->")[2].partition(f"<!-- /{name} -->")[0]
        header, line, *rows = inner.strip().splitlines()
        assert len(rows) >= 1
        assert all(row.count("|") == header.count("|") == line.count("|") for row in rows)
