import numpy as np
import pytest

from bayspike.continual.grouping import groups, shares, split_as_written
from bayspike.data.base import Dataset
from bayspike.errors import UserError

NAMES = ("bird", "cat", "dog", "fish", "hen")


def data() -> Dataset:
    y = np.arange(50) % 5
    return Dataset.from_arrays(np.eye(5)[y], [NAMES[label] for label in y], time=3)


def test_tasks_as_written() -> None:
    stream = split_as_written(data(), " cat, dog;bird ;hen,fish")
    assert [task.name for task in stream.tasks] == ["{cat,dog}", "{bird}", "{hen,fish}"]
    assert [sorted(task.train.labels.unique().tolist()) for task in stream.tasks] == [[1, 2], [0], [3, 4]]


def test_a_number_shares_the_classes_out() -> None:
    assert shares(5, 2) == [[0, 1, 2], [3, 4]]
    assert shares(5, 5) == [[0], [1], [2], [3], [4]]
    assert shares(10, 3) == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]
    assert [len(split_as_written(data(), str(count)).tasks) for count in (1, 2, 5)] == [1, 2, 5]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("cat,dgo;bird", "'dgo', which is no class: they are bird, cat.* Did you mean dog"),
        ("cat,dog;bird,cat,fish,hen", "'cat' twice"),
        ("cat,dog", "leaves out 'bird'"),
        ("", "names ''"),
        ("cat,dog;;bird,fish,hen", "names ''"),
        ("0", r"must lie in \[1, 5\]"),
        ("6", r"must lie in \[1, 5\]"),
        ("9" * 5000, "more than there are classes"),
    ],
)
def test_what_cannot_be_split_is_said(text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        split_as_written(data(), text)
    assert groups(NAMES, "hen;bird;cat;dog;fish") == [[4], [0], [1], [2], [3]]
