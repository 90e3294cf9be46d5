"""A learner's own file on the command line, and the files that runs write."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from bayspike import Learner, data
from bayspike.cli import main
from bayspike.continual import split_by_class
from bayspike.hardware.export import verify
from bayspike.learner.file import load_state, save_state
from bayspike.predict.predictors import Committee, predict_samples
from bayspike.runs.checkpoints import load, steps
from bayspike.runs.directory import RunDirectory
from bayspike.runs.models import load_model, own_data
from bayspike.runs.outcome.examination import committee_generator
from bayspike.seeds import generator_for

TINY = [
    "--hidden", "16", "--time", "8", "--train-examples", "60", "--test-examples", "20", "--batch", "16",
    "--members", "2", "--threads", "1", "--parallel", "1", "--quiet",
]  # fmt: skip
METHODS = ("bayes", "ewc-online", "bayes-binary", "joint", "coreset-only")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twos, threes and sevens, under names of its own; enough are held back to tell what is foreign."""
    digits = data.load("digits", time=8)
    words = {2: "two", 3: "three", 7: "seven"}
    chosen = torch.isin(digits.train.labels, torch.tensor(list(words)))
    learner = Learner(inputs=(28, 28), time=8, hidden=(20,), members=3, held_back=0.1, epochs=1)
    learner.learn(digits.train.values[chosen], [words[label] for label in digits.train.labels[chosen].tolist()])
    return learner.save(tmp_path_factory.mktemp("learner") / "mine.bayspike")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    out = tmp_path_factory.mktemp("cli") / "run"
    assert main(["run", "digits", "--method", *METHODS, "--out", str(out), *TINY]) == 0
    return RunDirectory(out)


def printed(capsys: pytest.CaptureFixture[str], *command: object) -> str:
    assert main([str(each) for each in command]) == 0
    return capsys.readouterr().out


def test_predict_says_what_the_learner_says(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digits = data.load("digits", time=8)
    picture = digits.test.values[int((digits.test.labels == 7).nonzero()[0])].numpy().reshape(28, 28)
    Image.fromarray(picture).save(tmp_path / "seven.png")
    lines = printed(capsys, "predict", file, tmp_path / "seven.png", "--json", "--foreign").splitlines()
    last, answer = json.loads(lines[-1]), Learner.load(file).predict_one(picture)
    assert len(lines) == last["time"] == 8
    assert last["class"] == answer.label
    assert last["confidence"] == pytest.approx(answer.confidence, abs=1e-5)
    assert last["epistemic"] == pytest.approx(answer.disagreement, abs=1e-5)
    assert last["foreign"] == answer.foreign


def test_pictures_are_encoded_and_seen_as_the_learner_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By latency, and dark on bright: neither is the command's own way."""
    random = np.random.default_rng(0)
    for word, bright in (("left", slice(0, 4)), ("right", slice(4, 8))):
        (tmp_path / "ink" / word).mkdir(parents=True)
        for number in range(12):
            ink = random.integers(0, 40, (8, 8)).astype(np.uint8)
            ink[:, bright] += 200
            Image.fromarray(255 - ink).save(tmp_path / "ink" / word / f"{number}.png")
    folder = data.load("folder", root=tmp_path / "ink", time=12, invert=True, encoder="latency")
    learner = Learner.for_data(folder, hidden=(30,), members=3).learn(folder, epochs=5)
    saved = learner.save(tmp_path / "ink.bayspike")
    picture = tmp_path / "ink" / "left" / "0.png"
    last = json.loads(printed(capsys, "predict", saved, picture, "--json").splitlines()[-1])
    answer = learner.predict_one(255 - np.asarray(Image.open(picture)))
    assert last["class"] == answer.label == "left"
    assert last["confidence"] == pytest.approx(answer.confidence, abs=1e-5)  # spikes by latency are not drawn


@pytest.fixture(scope="module")
def scaled(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same learner with a temperature, and with a seed of its own."""
    digits = data.load("digits", time=8)
    chosen = torch.isin(digits.train.labels, torch.tensor([2, 3, 7]))
    learner = Learner(inputs=(28, 28), time=8, hidden=(20,), members=3, held_back=0.1, epochs=1, seed=5)
    learner.learn(digits.train.values[chosen], [str(label) for label in digits.train.labels[chosen].tolist()])
    return learner.fit_temperature().save(tmp_path_factory.mktemp("learner") / "scaled.bayspike")


def test_predict_uses_what_the_learner_has_fitted(
    scaled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No option is needed: the probabilities are the learner's own, and so is what it calls foreign."""
    digits, learner = data.load("digits", time=8), Learner.load(scaled)
    calibration = learner.state.calibration
    assert calibration is not None
    assert calibration.temperature is not None
    assert abs(calibration.temperature.value - 1) > 0.1  # else the test could not fail
    pictures = digits.test.values[::40].numpy().reshape(-1, 28, 28)  # of all ten digits, seven of them strangers
    files = [tmp_path / f"{number}.png" for number in range(len(pictures))]
    for picture, path in zip(pictures, files, strict=True):
        Image.fromarray(picture).save(path)
    lines = [json.loads(line) for line in printed(capsys, "predict", scaled, *files, "--json").splitlines()]
    last = {line["file"]: line for line in lines}
    for picture, path in zip(pictures, files, strict=True):
        answer, line = learner.predict_one(picture), last[str(path)]
        assert line["probabilities"] == pytest.approx(
            [answer.probabilities[name] for name in learner.classes_], abs=2e-6
        )
        assert (line["class"], line["foreign"]) == (answer.label, answer.foreign)
        assert line["temperature"] == calibration.temperature.value
    assert {line["foreign"] for line in last.values()} == {True, False}
    # of another committee it is not known which temperature it needs
    other = json.loads(printed(capsys, "predict", scaled, files[0], "--members", 2, "--json").splitlines()[-1])
    assert not {"temperature", "foreign"} & set(other)


def test_evaluate_uses_the_fitted_temperature(scaled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = load_state(scaled)
    assert state.calibration is not None
    assert state.calibration.temperature is not None
    plain = save_state(replace(state, calibration=None), tmp_path / "plain.bayspike")
    command = ["--dataset", "digits", "--predictor", "committee", "mean", "--json"]
    own, raw = (json.loads(printed(capsys, "evaluate", path, *command))["scores"] for path in (scaled, plain))
    model = load_model(scaled)
    test = own_data(model, None, "digits", None).test
    committee = Committee.draw(model.network, model.posteriors, 3, generator=committee_generator(5))
    final = predict_samples(committee, test, generator_for(5, "final")).probabilities[-1].double()
    sharp = final.clamp_min(1e-12) ** (1 / state.calibration.temperature.value)
    for scores, p in ((raw, final), (own, sharp / sharp.sum(dim=1, keepdim=True))):
        right = p[torch.arange(len(test)), test.labels]
        assert scores["committee"]["nll"] == pytest.approx(float(-right.log().mean()), rel=1e-5)
    assert own["committee"]["nll"] != pytest.approx(raw["committee"]["nll"], rel=1e-3)
    assert own["mean"] == raw["mean"]  # fitted for the committee alone
    assert "temperature" not in raw["committee"]
    told = printed(capsys, "evaluate", scaled, "--dataset", "digits")
    assert "That is the learner's own." in told


def test_evaluate_on_what_it_held_back_or_on_a_data_set(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    learner = Learner.load(file)
    own = json.loads(printed(capsys, "evaluate", file, "--predictor", "committee", "--json"))
    assert own["dataset"] == "the examples it held back"
    assert own["scores"]["committee"]["examples"] == sum(len(part) for part in learner.state.held_back) == 120
    assert own["scores"]["committee"]["accuracy"] > 0.7
    assert main(["evaluate", str(file), "--dataset", "digits"]) == 2  # its digits have words for names
    assert "but the learner 784 and two, three, seven" in capsys.readouterr().err


def test_evaluate_finds_classes_by_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digits = data.load("digits", time=8)
    learner = Learner(inputs=(28, 28), time=8, hidden=(20,), members=3, epochs=1)
    learner.learn(split_by_class(digits, [[7, 3]]).tasks[0])
    assert learner.classes_ == ("3", "7")
    learner.save(tmp_path / "a.bayspike")
    told = json.loads(printed(capsys, "evaluate", tmp_path / "a.bayspike", "--dataset", "digits", "--json"))
    assert told["dataset"] == "digits (2 of 10 classes)"
    scores = told["scores"]["committee"]
    assert scores["examples"] == 200
    assert scores["accuracy"] > 0.8
    by_hand = learner.evaluate(split_by_class(digits, [[7, 3]]).tasks[0])
    assert scores["accuracy"] == pytest.approx(by_hand.accuracy, abs=0.05)  # other draws of the spikes


def test_export_checks_itself_on_examples_of_the_file(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "3 network(s)" in printed(capsys, "export", file, "--out", tmp_path / "chip")
    checked = verify(tmp_path / "chip")
    assert (checked.members, checked.differing) == (3, 0)
    assert checked.spikes > 0


def test_report_is_a_page_without_scripts(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert printed(capsys, "report", file, "--out", page).strip() == str(page)
    text = page.read_text("utf-8")
    assert "<script" not in text
    for word in ("two", "three", "seven", "784 → 20 neurons", "GaussianVI", "held back", "median standard deviation"):
        assert word in text
    counts = re.findall(r"data-value=\"(\d+)\"", text)
    assert counts.count("400") == 3  # examples seen of each class
    assert main(["report", str(file), "--out", str(page)]) == 2
    assert "--force" in capsys.readouterr().err


def test_names_of_classes_are_text_in_the_page(tmp_path: Path) -> None:
    learner = Learner(2, classes=["<script>alert(1)</script>", "b"], hidden=(3,), time=3)
    learner.save(tmp_path / "a.bayspike")
    assert main(["report", str(tmp_path / "a.bayspike")]) == 0
    text = (tmp_path / "a.html").read_text("utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize("command", ["predict", "evaluate", "export", "report"])
def test_damaged_files_are_one_sentence(
    command: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.bayspike"
    broken.write_bytes(file.read_bytes()[:-500])
    more = {"predict": ["x.png"], "export": ["--out", str(tmp_path / "chip")]}.get(command, [])
    assert main([command, str(broken), *more]) == 2
    said = capsys.readouterr().err
    assert "broken.bayspike is damaged or cut off" in said
    assert said.count("\n") == 1


def test_a_learner_of_one_class_cannot_be_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Learner(2, classes=["a"], hidden=(3,), time=3).save(tmp_path / "a.bayspike")
    assert main(["evaluate", str(tmp_path / "a.bayspike")]) == 2
    assert "fewer than two classes" in capsys.readouterr().err
    Learner(2, classes=["a", "b"], hidden=(3,), time=3).save(tmp_path / "a.bayspike")
    assert main(["evaluate", str(tmp_path / "a.bayspike")]) == 2
    assert "name a data set with --dataset" in capsys.readouterr().err


@pytest.mark.parametrize("method", METHODS)
def test_a_run_leaves_a_learner_of_every_job(
    method: str, run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    """The network of the last checkpoint, judged alike, with the stored examples: and it goes on learning."""
    name = f"{method}-seed0"
    learner = Learner.load(run.model(name))
    stored = load(steps(run.checkpoints(name))[-1]).tensors
    for index, layer in enumerate(learner.state.states):
        for part, values in layer._asdict().items():
            assert not isinstance(values, torch.Tensor) or torch.equal(values, stored[f"layer.{index}.{part}"])
    assert [len(part) for part in learner.state.stored] == [
        len(stored[f"coreset.{k}"]) for k in range(len(learner.state.tasks))
    ]
    job = ["evaluate", run.path, "--job", name, "--json"]
    ours = json.loads(printed(capsys, "evaluate", run.model(name), "--json"))
    assert ours["scores"] == json.loads(printed(capsys, *job))["scores"]
    before = learner.state.presentations
    learner.learn(np.zeros((12, 28, 28)), ["blank"] * 12)
    assert learner.classes_ == (*"0123456789", "blank")
    assert learner.state.presentations > before
    assert learner.state.tasks[-1] == "{blank}"


def test_a_run_killed_before_its_results_writes_the_same_learner(run: RunDirectory) -> None:
    file, result = run.model("bayes-seed0"), run.result("bayes-seed0")
    before, scores = file.read_bytes(), json.loads(result.read_text("utf-8"))["final"]
    file.unlink()
    result.unlink()
    assert main(["resume", str(run.path), "--quiet", "--parallel", "1"]) == 0
    assert file.read_bytes() == before
    assert json.loads(result.read_text("utf-8"))["final"] == scores


def test_points_are_kept_with_their_code(tmp_path: Path) -> None:
    command = ["run", "two-moons", "--method", "bayes", "--out", str(tmp_path / "moons"), *TINY]
    assert main(command) == 0
    files = sorted((tmp_path / "moons" / "models").iterdir())
    assert len(files) == 3  # one of each temperature
    learner = Learner.load(files[0])
    assert learner.state.recipe.encoding.kind == "population"
    learner.learn_one([0.5, 0.2], 1)
    assert learner.predict_one([0.5, 0.2]).label in learner.classes_
