"""What the page does to a learner, without a page: drawings, watching, lessons, undoing, keeping, recording."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from small_live import ONE, TIME, digit, drawn, small_learner

from bayspike.continual import draw_coreset
from bayspike.errors import UserError
from bayspike.learner import Learner, birth
from bayspike.learner.tasks import hold_back
from bayspike.live.beginner import beginner, is_beginner, unseen
from bayspike.live.chip import chip_archive
from bayspike.live.drawing import picture_of_strokes
from bayspike.live.history import MOST_MOMENTS, History
from bayspike.live.inputs import Input, from_plain
from bayspike.live.judging import to_show, yardsticks
from bayspike.live.keeping import check_place, free_place, models_in
from bayspike.live.lessons import teach
from bayspike.live.moments import MOST_WEIGHTS, OWN, begin, digest_of
from bayspike.live.playing import Playing, play
from bayspike.live.recording import Recorder, replay
from bayspike.live.showing import neuron_message
from bayspike.predict.calibration import even_checkpoints
from bayspike.predict.conformal import calibrate_early_stopping
from bayspike.seeds import generator_for
from bayspike.storage.sealed import seal


def test_watching_says_what_the_library_says(learner, moment, settings):
    """The last step is `Learner.predict_one`, every step is `Learner.watch`."""
    given = drawn(picture_of_strokes(ONE, (28, 28)))
    spikes = given.spikes(learner.state)
    playing, watch = Playing(moment, settings), learner.watch()
    for row in spikes:
        step, answers = playing.push(row), watch.push(row)
        assert step.probabilities == answers.probabilities[0].tolist()
        assert (step.confidence, step.foreign) == (float(answers.confidence[0]), bool(answers.foreign[0]))
        assert np.mean(step.members, axis=0) == pytest.approx(step.probabilities, abs=1e-6)
    answer = learner.predict_one(given.values)
    assert step.probabilities == pytest.approx(list(answer.probabilities.values()), abs=1e-6)
    assert learner.classes_[int(np.argmax(step.probabilities))] == answer.label == "1"


def test_the_sets_are_those_of_split_conformal_prediction(learner, moment, settings):
    """Thresholds from the examples held back; step by step the set is what `EarlyStopping.sets` gives for the whole."""
    state = learner.state
    examples = sum(map(len, state.held_back))
    assert moment.sets.checkpoints == even_checkpoints(TIME, 0.9, examples, 2)
    (part,) = state.held_back
    over_time = learner.predict(part).over_time  # other encodings, so other thresholds, but not by much
    again = calibrate_early_stopping(over_time, part.labels, moment.sets.checkpoints, 0.1)
    assert float((again.thresholds - moment.sets.thresholds).abs().max()) < 0.35
    given = drawn(digit(2, 7))
    spikes = given.spikes(state)
    playing, inside = Playing(moment, settings), []
    series = []
    for row in spikes:
        step = playing.push(row)
        inside.append(step.inside)
        series.append(np.mean(step.members, axis=0))
    whole = moment.sets.sets(torch.tensor(np.array(series), dtype=torch.float32).unsqueeze(1))[:, 0]
    assert [inside[t - 1] for t in moment.sets.checkpoints] == whole.tolist()


def test_verdicts(moment, settings):
    sure = play(moment, drawn(digit(0, 3)).spikes(moment.state), settings).last
    assert (sure.verdict, sure.since is not None) == ("commits", True)
    strict = replace(settings, confidence=0.999)
    assert play(moment, drawn(digit(0, 3)).spikes(moment.state), strict).last.verdict in ("abstains", "foreign")
    noise = np.random.default_rng(0).integers(0, 256, (28, 28)).astype(np.uint8)
    assert play(moment, drawn(noise).spikes(moment.state), settings).last.verdict in ("foreign", "abstains")


def test_a_lesson_is_learnt_and_the_past_is_judged(moment, settings, sevens):
    before = digest_of(moment.state)
    seen: list = []
    after = teach(moment, sevens, ["7"] * 6, settings, on_batch=seen.append)
    assert digest_of(moment.state) == before  # it learnt on a copy
    assert after.state.classes == ("0", "1", "2", "3", "7")
    assert seen[-1].batch == seen[-1].batches
    right, count, _ = after.marks[OWN].classes["7"]
    assert right > count / 2
    assert after.yards["7"].unseen is False  # too few were held back, so it says that these were learnt from
    assert after.marks[OWN].examples == moment.marks[OWN].examples == sum(map(len, moment.state.held_back))
    assert after.marks[OWN].accuracy > 0.8
    assert set(after.marks) == {OWN, "sgd", "sgd-replay"}
    assert len(after.state.stored[-1]) == 5  # all but the one held back
    assert after.state.recipe == moment.state.recipe


def test_of_a_long_lesson_the_medoids_are_stored_for_the_rival_as_well(moment, settings):
    """Fifty of sixty, but for those held back."""
    given = [drawn(digit(label, place)) for label in (7, 9) for place in range(30)]
    words = ["7"] * 30 + ["9"] * 30
    after, recipe, number = teach(moment, given, words, settings), moment.state.recipe, len(moment.state.tasks)
    samples = recipe.encoding.samples(np.stack([each.values for each in given]), torch.tensor([4] * 30 + [5] * 30))
    learnt = samples.subset(hold_back(recipe, samples.labels, number)[1])
    kept = draw_coreset(learnt, 50 / 60, "medoids", generator_for(recipe.seed, "coreset", number))
    assert 0 < len(kept) < len(learnt)
    for each in (after.state, after.rivals["sgd-replay"]):
        assert torch.equal(each.stored[-1].values, learnt.values[kept])


def test_plain_sgd_had_the_same_lesson_and_forgets_more(moment, settings):
    """Three lessons of one new class each: only the newest is shown to plain SGD."""
    now = moment
    for label in (7, 9, 5):
        now = teach(now, [drawn(digit(label, place)) for place in range(10)], [str(label)] * 10, settings)
    assert now.rivals["sgd"].classes == now.state.classes
    assert now.marks[OWN].accuracy - now.marks["sgd"].accuracy > 0.1
    assert now.rivals["sgd"].replayed == moment.rivals["sgd"].replayed
    assert now.rivals["sgd-replay"].replayed > moment.rivals["sgd-replay"].replayed


def test_rivals_begin_at_the_means(moment):
    for name in ("sgd", "sgd-replay"):
        (weights,) = moment.rival_judges[name].committee.weights
        assert torch.equal(weights[0], moment.state.states[0].mean)


def test_lessons_that_cannot_be(moment, settings, sevens):
    with pytest.raises(UserError, match="nothing to teach"):
        teach(moment, [], [], settings)
    with pytest.raises(UserError, match="name of a class"):
        teach(moment, sevens[:1], ["a\nb"], settings)
    with pytest.raises(UserError, match="judge the learner"):
        teach(moment, [replace(sevens[0], judged=True)], ["7"], settings)
    with pytest.raises(UserError, match="is spikes, but the learner"):
        teach(moment, [Input("spikes", np.zeros((TIME, 784), np.uint8), "x")], ["7"], settings)


def test_a_learner_without_a_class_can_be_taught_its_first(learner, settings):
    newborn = begin(
        birth(replace(learner.state.recipe, network=replace(learner.state.recipe.network, classes=2)), ()), "", settings
    )
    step = play(newborn, drawn(digit(1, 0)).spikes(newborn.state), settings).last
    assert (step.probabilities, step.verdict) == ([], "abstains")
    first = teach(newborn, [drawn(digit(1, 0))], ["one"], settings)
    assert play(first, drawn(digit(1, 0)).spikes(first.state), settings).last.probabilities == [1.0]
    second = teach(first, [drawn(digit(0, 0))], ["zero"], settings)
    assert second.state.classes == ("one", "zero")


def test_history_goes_back_and_stays_bounded(moment):
    history = History(moment)
    with pytest.raises(UserError, match="no lesson to undo"):
        history.undo()
    others = [replace(moment, about=str(k)) for k in range(MOST_MOMENTS + 5)]
    for each in others:
        history.add(each)
    assert len(history.past) == MOST_MOMENTS + 6
    assert (history.now.about, history.number) == (others[-1].about, MOST_MOMENTS + 5)
    assert history.undo() is others[-1]
    assert history.find(MOST_MOMENTS + 5) is others[-1]  # a question asked before may still be recorded
    assert history.find(0) is None
    steps = 0
    while history.can_undo:
        history.undo()
        steps += 1
    assert steps == MOST_MOMENTS - 2


def test_the_beginner_is_good_and_always_the_same(beginning, tmp_path):
    first = Learner.of(beginning.state)
    assert is_beginner(first.state)
    assert digest_of(first.state) == digest_of(beginner().state)
    assert is_beginner(Learner.load(first.save(tmp_path / "b.bayspike")).state)
    found = beginning
    assert found.marks[OWN].accuracy > 0.9  # 0.955 when written
    assert len(found.sets.checkpoints) == 10
    judging, showing = unseen()
    assert sorted(judging.labels.unique().tolist()) == list(range(10))
    rows = {row.numpy().tobytes() for row in judging.values}
    assert not rows & {row.numpy().tobytes() for row in showing.values}
    learnt = {row.numpy().tobytes() for part in first.state.stored for row in part.values}
    assert not learnt & rows
    found, judged = to_show(first.state)
    assert (len(found), judged) == (len(showing), False)


def test_a_new_digit_of_the_beginner_is_judged_by_digits_it_never_saw(beginning, settings):
    after = teach(beginning, [drawn(digit(7, place)) for place in range(10)], ["7"] * 10, settings)
    assert after.yards["7"].unseen
    right, count, _ = after.marks[OWN].classes["7"]
    assert count == 50
    assert right > 20


def test_held_back_examples_may_be_shown_but_not_taught(moment):
    found, judged = to_show(moment.state)
    assert judged
    assert len(found) == sum(map(len, moment.state.held_back))
    assert set(yardsticks(moment.state)) == set(moment.state.classes)


def test_inputs_survive_the_recording():
    spikes = (np.random.default_rng(0).random((5, 13)) < 0.4).astype(np.uint8)
    for each in (
        drawn(digit(3, 0)), Input("spikes", spikes, "rec.bin", "a"), Input("point", np.float32([0.5, -1]), "p"),
    ):  # fmt: skip
        again = from_plain(json.loads(json.dumps(each.to_plain())))
        assert (again.kind, again.name, again.truth) == (each.kind, each.name, each.truth)
        np.testing.assert_array_equal(again.values, each.values)
    for damage in ({"kind": "code"}, {"shape": [2**40, 2]}, {"content": "%"}, {"content": "AAAA"}, {"shape": None}):
        with pytest.raises(UserError):
            from_plain({**drawn(digit(3, 0)).to_plain(), **damage})


@pytest.fixture(scope="module")
def recording(moment, settings, sevens, tmp_path_factory) -> Path:
    """Two questions, a lesson, one asked before it ended and one after, an undo, another learner, half a question."""
    torch.set_num_threads(1)
    path = tmp_path_factory.mktemp("recorded") / "monday.jsonl"
    recorder = Recorder(path)
    recorder.begin(moment.state, "the start", settings)
    history = History(moment)
    for given in sevens[:2]:
        recorder.asked(given, play(moment, given.spikes(moment.state), settings), settings, 0)
    history.add(teach(moment, sevens, ["7"] * 6, settings))
    recorder.taught(sevens, ["7"] * 6, history.now)
    late = play(moment, sevens[2].spikes(moment.state), settings)  # asked before the lesson ended
    recorder.asked(sevens[2], late, settings, 0)
    recorder.asked(sevens[2], play(history.now, sevens[2].spikes(moment.state), settings), settings, 1)
    history.undo()
    recorder.undone(history.now)
    history.add(begin(small_learner(members=2).state, "other, loaded", settings))
    recorder.loaded(history.now)
    half = Playing(history.now, replace(settings, confidence=0.3), TIME)  # broken off in the middle
    for row in sevens[0].spikes(history.now.state)[:5]:
        half.push(row)
    recorder.asked(sevens[0], half, replace(settings, confidence=0.3), history.number)
    recorder.close()
    return path


def test_a_recording_is_done_again_bit_for_bit(recording, moment, settings, sevens, tmp_path):
    done = replay(recording)
    assert done == (5, 1, 2, False)
    with pytest.raises(UserError, match="exists: name another"):
        Recorder(recording)
    lines = recording.read_bytes().splitlines(keepends=True)
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(b"".join(lines[:2]) + lines[2][:100])
    assert replay(torn) == (1, 0, 0, True)
    entry = json.loads(lines[1])
    assert entry["answer"]["probabilities"] == play(moment, sevens[0].spikes(moment.state), settings).last.probabilities


def test_a_recording_that_was_changed_is_noticed(recording, tmp_path):
    lines = recording.read_bytes().splitlines(keepends=True)
    broken = tmp_path / "broken.jsonl"

    def changed(number: int, **change: object) -> None:
        entry = {**json.loads(lines[number]), **change}
        new = (json.dumps(seal(entry)) + "\n").encode()
        broken.write_bytes(b"".join([*lines[:number], new, *lines[number + 1 :]]))

    broken.write_bytes(b"".join(lines).replace(b'"steps": 12', b'"steps": 11', 1))
    with pytest.raises(UserError, match="line 2 is damaged or was changed"):
        replay(broken)
    changed(1, bits="0" * 32)
    with pytest.raises(UserError, match="line 2: the answer on the drawing is another, although versions"):
        replay(broken)
    changed(3, words=["3"] * 6)
    with pytest.raises(UserError, match="line 4: the learner that came of it is another"):
        replay(broken)
    changed(1, moment=99)
    with pytest.raises(UserError, match="nothing is known"):
        replay(broken)
    changed(1, did="run")
    with pytest.raises(UserError, match="nothing of the kind 'run'"):
        replay(broken)
    changed(0, learner="AAAA")
    with pytest.raises(UserError, match="a learner in it is not sound"):
        replay(broken)
    broken.write_bytes(b"{}\n")
    with pytest.raises(UserError, match="damaged"):
        replay(broken)


def test_no_file_is_written_over_by_a_slip(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = tmp_path / "a.bayspike"
    here.write_bytes(b"x")
    with pytest.raises(UserError, match="exists: to go on from it"):
        check_place(here, None, force=False)
    check_place(here, here, force=False)
    check_place(here, None, force=True)
    check_place(tmp_path / "new.bayspike", None, force=False)
    with pytest.raises(UserError, match="is a folder"):
        check_place(tmp_path, None, force=True)
    assert free_place(None) == Path("live.bayspike")
    (tmp_path / "live.bayspike").touch()
    assert free_place(None) == Path("live-2.bayspike")
    assert free_place(here).name == "a-live.bayspike"
    (tmp_path / "a-live.bayspike").touch()
    assert free_place(tmp_path / "a-live.bayspike").name == "a-live-2.bayspike"
    with pytest.raises(UserError, match="holds no learner"):
        models_in(tmp_path)
    (tmp_path / "models").mkdir()
    for name in ("sgd-seed0.bayspike", "bayes-seed0.bayspike"):
        (tmp_path / "models" / name).touch()
    assert models_in(tmp_path).name == "bayes-seed0.bayspike"


def test_one_neuron(moment):
    told = neuron_message(moment.state, 0, 5)
    layer = moment.state.states[0]
    assert told["shape"] == [28, 28]
    assert told["mean"] == pytest.approx(layer.mean[5].tolist(), abs=1e-5)
    assert told["spread"] == pytest.approx(layer.precision[5].rsqrt().tolist(), abs=1e-5)
    for layer_number, neuron in ((1, 0), (0, 40), ("0", 0), (0, None)):
        with pytest.raises(UserError):
            neuron_message(moment.state, layer_number, neuron)


def test_the_chip_gets_a_verified_committee(moment, tmp_path):
    import io
    import zipfile

    from bayspike.hardware.export import verify

    zipfile.ZipFile(io.BytesIO(chip_archive(moment))).extractall(tmp_path)
    assert verify(tmp_path / "chip").members == 4


def test_a_committee_that_is_too_large_is_refused(learner, settings):
    many = replace(learner.state, recipe=replace(learner.state.recipe, members=10_000))
    assert MOST_WEIGHTS < 10_000 * 784 * 40
    with pytest.raises(UserError, match="more than a page can hold"):
        begin(many, "", settings)


def test_learners_of_other_kinds_can_be_begun(settings):
    from bayspike.rules import BernoulliVI

    binary = Learner((28, 28), time=TIME, hidden=(10,), members=2, rule=BernoulliVI())
    binary.learn(np.stack([digit(k, p) for k in (0, 1) for p in range(10)]), ["a"] * 10 + ["b"] * 10)
    start = begin(binary.state, "", settings)
    assert start.sets is None
    assert "held-out examples cannot promise" in start.why_no_sets
    after = teach(start, [drawn(digit(2, 0))], ["c"], settings)
    assert set(after.rivals) == {"sgd", "sgd-replay"}
