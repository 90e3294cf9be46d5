"""The words of a stack: what they mean, and one sentence for each mistake."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayspike.errors import UserError
from bayspike.spiking.network import NetworkConfig, build
from bayspike.spiking.stack import Conv, Dense, Pool, Word, parse_stack, stack_text


def test_words() -> None:
    assert parse_stack(" 16c5-2p-32c5s2-3m-8c3s2p0-128r-10 ") == (
        Conv(16, 5),
        Pool(2),
        Conv(32, 5, 2),
        Pool(3, largest=True),
        Conv(8, 3, 2, 0),
        Dense(128, recurrent=True),
        Dense(10),
    )


small = st.integers(1, 999)
maps: st.SearchStrategy[Word] = st.one_of(
    st.builds(Conv, small, st.just(7), small, st.one_of(st.none(), st.integers(0, 6))),
    st.builds(Pool, small, st.booleans()),
)


@given(st.lists(maps, max_size=4), st.lists(st.builds(Dense, small, st.booleans()), min_size=1, max_size=3))
def test_what_is_written_is_read_again(lower: list[Word], upper: list[Dense]) -> None:
    words = (*lower, *upper)
    assert parse_stack(stack_text(words)) == words


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("16c5-2x-128", r"word 2 \('2x'\) is none of 128 \(dense\)"),
        ("", r"word 1 \(''\)"),
        ("16c5--128", r"word 2 \(''\)"),
        ("16c", r"word 1 \('16c'\)"),
        ("0c5-10", "whole numbers from 1"),
        ("16c5s0", "whole numbers from 1"),
        ("9999999", "no number may be above 1,048,576"),
        ("128-16c5", r"word 2 \('16c5'\) comes after a dense layer"),
        ("16c3-10-2p", r"word 3 \('2p'\) comes after a dense layer"),
        ("2p-2m", "has no layer of neurons"),
        ("16c3p3", "padding must be smaller than the kernel"),
        ("1" * 500, "word 1"),
    ],
)
def test_mistakes_are_one_sentence_that_says_where(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        parse_stack(text)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("layers", "shape", "inputs", "said"),
    [
        ("4c3-10", (12,), 12, r"\(height, width\) or \(channels, height, width\), but they have \(12,\)"),
        ("4c3-10", (), 12, r"but they have \(\)"),
        ("4c3-10", (3, 4), 13, "has 12 inputs, but there are 13"),
        ("4c9p0-10", (4, 4), 16, r"word 1 \(4c9p0\): the kernel is larger than the maps below, 4 × 4"),
        ("4c3-3p-3p-10", (4, 4), 16, r"word 3 \(3p\): nothing is left"),
        ("100000c3", (32, 32), 1024, "neurons is larger than"),
        ("1000000-1000000", (), 16, "synapses, more than"),
    ],
)
def test_stacks_that_do_not_fit_their_inputs(layers: str, shape: tuple[int, ...], inputs: int, said: str) -> None:
    with pytest.raises(UserError, match=said):
        NetworkConfig(inputs, (), 10, layers=layers, shape=shape)


def test_hidden_and_layers_are_two_ways_to_say_the_same() -> None:
    by_words = NetworkConfig(20, (), 3, layers="7r-5r")
    by_sizes = NetworkConfig(20, (7, 5), 3, recurrent=True)
    assert by_words.described == by_sizes.described
    for ours, theirs in zip(build(by_words).layers, build(by_sizes).layers, strict=True):
        assert ours.shape == theirs.shape
        assert ours.readout.equal(theirs.readout)
    with pytest.raises(UserError, match="leave hidden empty"):
        NetworkConfig(20, (7,), 3, layers="7")
    with pytest.raises(UserError, match="128r"):
        NetworkConfig(20, (), 3, layers="7", recurrent=True)
