"""A fresh checkout gets the versions that were tested: whatever the project asks for by name is pinned."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PINNED = dict(
    line.split("==")
    for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
)
NOT_MADE = {"lava-nc", "norse"}  # `make` installs neither: Lava is for older Pythons, norse comes as source only


def test_everything_that_is_asked_for_is_pinned() -> None:
    project = (
        (ROOT / "pyproject.toml").read_text("utf-8").partition("dependencies = [")[2].partition("[project.scripts]")[0]
    )
    wanted = set(re.findall(r'"([a-z0-9-]+)[><=]', project))
    assert {"torch", "pillow", "aedat", "tonic", "mkdocs-material", "ruff"} <= wanted
    assert wanted - NOT_MADE <= set(PINNED)


def test_pins_are_exact() -> None:
    for name, version in PINNED.items():
        assert re.fullmatch(r"[a-z0-9-]+", name), name
        assert re.fullmatch(r"[0-9]+(\.[0-9]+)*", version), name
