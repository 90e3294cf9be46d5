"""Files of a run that were changed or damaged: noticed, and said in one sentence."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from told import JOB, Told, changed, go_on, newest, sentence_of

from bayspike.cli import main
from bayspike.data.base import StaticSamples
from bayspike.errors import UserError
from bayspike.experiments.registry import experiment
from bayspike.runs import checkpoints
from bayspike.runs.directory import RunDirectory
from bayspike.runs.engine import run_jobs, take_up
from bayspike.runs.jobs import Stop, Workbench
from bayspike.runs.plan.prepare import describe_data

# --- checkpoints ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["progress"].update(batch=-2),
        lambda header: header["progress"]["evaluations"][0]["overall"].update(accuracy=0.99),
        lambda header: header["identity"]["method"]["rule"].update(lr=1.0),
        lambda header: header.update(seconds=1e9),
        lambda header: header.pop("digest"),
    ],
)
def test_a_changed_checkpoint_is_not_gone_on_from(
    change: Callable[[dict[str, Any]], None], half: RunDirectory, bench: Workbench
) -> None:
    changed(newest(half), change)
    with pytest.raises(UserError, match="digest"):
        checkpoints.load(newest(half))
    told = go_on(half, bench)  # from the one before, and says so
    assert any("Going on from the checkpoint before" in each for each in told.sentences)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["progress"].update(batch=-2),
        lambda header: header["progress"].update(batch=10**6),
        lambda header: header["progress"].update(task=99),
        lambda header: header["progress"].update(coresets=10**9),
        lambda header: header["progress"].update(evaluations=[{}]),
        lambda header: header.update(progress=[]),
        lambda header: header.update(seconds="long"),
        lambda header: header.pop("identity"),
        lambda header: header.pop("progress"),
    ],
)
def test_a_checkpoint_of_no_place_in_the_run_is_one_sentence(
    change: Callable[[dict[str, Any]], None], half: RunDirectory, bench: Workbench
) -> None:
    """Sealed anew, as by a hostile hand."""
    changed(newest(half), change, sealed=True)
    with pytest.raises(UserError, match="heckpoint"):
        run_jobs(half, bench, Told(), Stop())


def test_an_old_checkpoint_is_read_and_said_to_be_unverified(half: RunDirectory, bench: Workbench) -> None:
    def as_of_old(header: dict[str, Any]) -> None:
        header["format"] = 1
        header.pop("digest")

    for path in checkpoints.steps(half.checkpoints(JOB)):
        changed(path, as_of_old)
    assert any("unverified" in each for each in go_on(half, bench).sentences)


@pytest.mark.parametrize("fault", ["all damaged", "another format"])
def test_nothing_begins_anew_in_silence(
    fault: str, half: RunDirectory, bench: Workbench, capsys: pytest.CaptureFixture[str]
) -> None:
    found = checkpoints.steps(half.checkpoints(JOB))
    if fault == "all damaged":
        for path in found:
            path.with_suffix(".safetensors").write_bytes(b"gone")
    else:
        changed(found[-1], lambda header: header.update(format=99), sealed=True)
    with pytest.raises(UserError, match="--restart"):
        run_jobs(half, bench, Told(), Stop())
    assert len(checkpoints.steps(half.checkpoints(JOB))) == len(found)
    assert main(["resume", str(half.path), "--restart", "--quiet"]) == 0
    assert "begins anew" in capsys.readouterr().err
    assert half.result(JOB).is_file()
    assert list(half.checkpoints(JOB).glob("*.set-aside"))  # nothing is thrown away


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.pop("model"),
        lambda header: header["model"].pop("network"),
        lambda header: header["model"].update(method=[]),
        lambda header: header["model"].update(members="many"),
        lambda header: header["model"].update(data=None),
        lambda header: header["model"]["network"].update(hidden=[10**9]),
        lambda header: header["model"].update(rule={"lr": {}}),
    ],
)
def test_a_model_that_is_none_is_one_sentence(
    change: Callable[[dict[str, Any]], None], done: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    changed(newest(done), change, sealed=True)
    sentence_of(["evaluate", str(done.path)], capsys)


# --- results and data ----------------------------------------------------------------------------------------------


def test_results_are_tied_to_their_settings(
    half: RunDirectory, bench: Workbench, capsys: pytest.CaptureFixture[str]
) -> None:
    go_on(half, bench)
    assert main(["report", str(half.path), "--out", str(half.path.parent / "r.html")]) == 0
    capsys.readouterr()
    changed(half.config, lambda config: config["methods"][0]["rule"].update(lr=12345.0))
    assert "methods" not in (said := sentence_of(["report", str(half.path)], capsys))
    assert "method.rule.lr is" in said
    assert "12345.0 here" in said


def test_a_changed_result_is_noticed(half: RunDirectory, bench: Workbench, capsys: pytest.CaptureFixture[str]) -> None:
    go_on(half, bench)
    changed(half.result(JOB), lambda result: result["final"]["committee"]["overall"].update(accuracy=1.0))
    assert "digest" in sentence_of(["report", str(half.path)], capsys)


@pytest.mark.parametrize(
    "change",
    [
        lambda result: result.pop("final"),
        lambda result: result.update(final=[]),
        lambda result: result["final"]["committee"].pop("overall"),
        lambda result: result.update(headline_predictor="oracle"),
        lambda result: result.update(evaluations=[1]),
        lambda result: result.update(memory_bytes=None),
        lambda result: result.update(method="magic"),
        lambda result: result.update(seconds="a while"),
        lambda result: result.update(chip=None),
        lambda result: result.update(chip={"examples": 1, "accuracy": "x"}),
        lambda result: result.clear(),
    ],
)
def test_a_malformed_result_is_one_sentence(
    change: Callable[[dict[str, Any]], None], done: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    changed(done.result(JOB), change)
    assert str(done.result(JOB)) in sentence_of(["report", str(done.path)], capsys)


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"a": 1e999}', b"[]", b"\xff", b"nothing"])
def test_a_result_that_is_no_json_is_one_sentence(
    content: bytes, done: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    done.result(JOB).write_bytes(content)
    sentence_of(["report", str(done.path)], capsys)


@pytest.mark.parametrize(
    "line",
    [b'{"kind": "batch"}', b'{"task": "a", "batch": 1, "kind": "batch"}', b"[" * 10_000, b"\xff", b"7", b'{"kind": 1}'],
)
def test_lines_of_metrics_that_are_none_are_dropped(line: bytes, half: RunDirectory, bench: Workbench) -> None:
    path = half.job_metrics(JOB)
    whole = path.read_bytes()
    path.write_bytes(whole + line + b"\n")
    go_on(half, bench)
    assert path.read_bytes().startswith(whole)


def test_inverted_pictures_are_other_data(
    half: RunDirectory, bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bayspike.data import catalogue

    real = catalogue.load

    def inverted(*given: Any, **named: Any) -> Any:
        dataset = real(*given, **named)
        train = dataset.train
        return replace(dataset, train=StaticSamples(255 - train.values, train.labels, train.time, train.encoder))

    monkeypatch.setattr(catalogue, "load", inverted)
    with pytest.raises(UserError, match=r"not those .* was started with: fingerprint was"):
        take_up(half, experiment)


def test_the_fingerprint_of_data_is_one_of_all_parts(bench: Workbench) -> None:
    def digest(**parts: Any) -> str:
        return str(describe_data(replace(bench.dataset, **parts), bench.stream, bench.config.data)["fingerprint"])

    test = bench.dataset.test
    assert isinstance(test, StaticSamples)
    values = test.values.clone()
    values[3, 7] ^= 1
    assert digest() == digest()
    assert digest(test=StaticSamples(values, test.labels, test.time)) != digest()
    assert digest(foreign=test) != digest()
