"""The walk-through of the documentation runs as it is printed, only smaller."""

import re
from pathlib import Path

import pytest

from bayspike.hardware.export import read_manifest

PAGE = Path(__file__).parents[2] / "docs" / "hardware.md"


@pytest.mark.slow
def test_the_walk_through_runs(tmp_path, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    sizes = 'hidden, batches, members, out = 400, 190, 10, Path("artefacts")'
    assert sizes in code
    code = code.replace(sizes, f"hidden, batches, members, out = 30, 3, 2, Path({str(tmp_path)!r})")
    exec(compile(code, str(PAGE), "exec"), {})
    assert capsys.readouterr().out.count("Verified(") == 3
    for name in ("fixed-point", "netx", "nir"):
        assert read_manifest(tmp_path / name)["members"] == 2
