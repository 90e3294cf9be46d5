"""The panel of prediction sets against sets made from the stored arrays in numpy."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from parsed import data, parse, table
from synthetic import make_run

from bayspike.predict.calibration import halves
from bayspike.report import write_report
from bayspike.report.panels.sets import sets_over_time
from bayspike.report.runs import compare, load_runs


def stored(run: Path, job: str, predictor: str) -> tuple[np.ndarray, np.ndarray]:
    arrays = np.load(run / "results" / f"{job}.npz")
    return arrays[f"probabilities/{predictor}"].astype(np.float64), arrays["labels"][arrays["subset"]]


def by_hand(p: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coverage and mean size at every t, and (coverage, size, single, step) of early stopping at three checkpoints."""
    a, b = (part.numpy() for part in halves(torch.from_numpy(labels), torch.Generator().manual_seed(0)))

    def sets(t: int, alpha: float) -> np.ndarray:
        strangeness = np.sort(1 - p[t, a, labels[a]])
        return 1 - p[t][b] <= strangeness[math.ceil((len(a) + 1) * (1 - alpha)) - 1]

    every = np.stack([sets(t, 0.1) for t in range(len(p))])
    right = every[:, np.arange(len(b)), labels[b]]
    checkpoints = [math.ceil(len(p) * k / 3) for k in (1, 2, 3)]
    inside = np.logical_and.accumulate([sets(t - 1, 0.1 / 3) for t in checkpoints])
    stop = [next((k for k in range(3) if inside[k, i].sum() <= 1), 2) for i in range(len(b))]
    given = inside[stop, np.arange(len(b))]
    early = [
        given[np.arange(len(b)), labels[b]].mean(),
        given.sum(-1).mean(),
        (given.sum(-1) == 1).mean(),
        np.mean([checkpoints[k] for k in stop]),
    ]
    return right.mean(-1), every.sum(-1).mean(-1), np.array(early)


def test_curves_and_early_stopping_are_those_of_the_definition(run: Path) -> None:
    for series in compare(load_runs([run])).series:
        found = sets_over_time(series)
        assert found is not None
        seeds = [by_hand(*stored(run, f"{series.label}-seed{seed}", series.predictor)) for seed in range(2)]
        coverage, size, early = (np.mean(each, axis=0) for each in zip(*seeds, strict=True))
        np.testing.assert_allclose(found.coverage, coverage)
        np.testing.assert_allclose(found.size, size)
        np.testing.assert_allclose(found.early[:-1], early)
        assert found.early.checkpoints == 3  # thirty examples promise 90 % no more than thrice
        assert found.examples == 60  # thirty of each seed


def test_the_page_shows_them_with_the_promise(run: Path, report: Path) -> None:
    root = parse(report.read_text())
    rows = {row[0].text: row for row in table(root, "sets-table")}
    assert set(rows) == {"sgd", "bayes, committee", "bayes, mean", "bayes, committee-8bit"}
    for series in compare(load_runs([run])).series:
        found = sets_over_time(series)
        assert found is not None
        shown = {cell.attributes["data-key"]: cell for cell in rows[series.name] if "data-key" in cell.attributes}
        assert float(shown["coverage"].attributes["data-value"]) == found.early.coverage
        assert shown["stopped_at"].text == f"{found.early.stopped_at:.1f}"
    plots = [plot for plot in data(root)["plots"].values() if plot["data"][0].get("name") == "promise"]
    assert plots
    assert all(plot["data"][0]["y"] == [0.9, 0.9] for plot in plots)


def test_a_run_with_too_few_stored_examples_has_no_panel(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", seeds=1)
    for path in (run / "results").glob("*.npz"):
        arrays = dict(np.load(path))
        arrays["subset"] = arrays["subset"][:17]
        for name in arrays:
            if name.startswith("probabilities/"):
                arrays[name] = arrays[name][:, :17]
        np.savez(path, **arrays)
    assert 'id="sets"' not in write_report([run]).read_text()


@pytest.mark.parametrize("place", ["hostile_run", "two_moons"])
def test_other_runs_are_shown_too(place: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    page = write_report([request.getfixturevalue(place)], tmp_path / "report.html").read_text()
    assert 'id="sets"' in page
    assert "Not shown" not in page
