"""TACOS in two protocols: trials are told apart by their seed, and a file that names none goes on."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import tacos_protocol as tacos

FOUND = {"accuracy": 0.8, "ece": 0.1, "nll": 0.5, "tasks": [0.8]}


def test_every_seed_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    out = tmp_path / "lines.jsonl"
    out.write_text(json.dumps({"learner": "sgd", "protocol": "class-incremental", **FOUND}) + "\n")
    asked: list[int] = []
    monkeypatch.setattr(tacos, "rules", lambda: {"sgd": None})
    monkeypatch.setattr(tacos, "small", lambda seed: (None, None))
    monkeypatch.setattr(tacos, "split_by_class", lambda data: None)
    monkeypatch.setattr(tacos, "by_domain", lambda stream: None)
    monkeypatch.setattr(
        tacos, "trial", lambda rule, stream, seed: asked.append(seed) or {**FOUND, "accuracy": 0.6 + 0.2 * seed}
    )
    for words in (["--seeds", "2"], ["--seeds", "2"], ["--table"]):
        monkeypatch.setattr(sys, "argv", ["tacos_protocol.py", "--out", str(out), *words])
        tacos.main()
    assert asked == [0, 1, 1]  # of the first protocol the file had the first seed
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "| class-incremental | sgd | 2 | 80.0 ± 0.0 | 0.100 ± 0.000 | 0.500 ± 0.000 |",
        "| domain-incremental | sgd | 2 | 70.0 ± 14.1 | 0.100 ± 0.000 | 0.500 ± 0.000 |",
    ]
