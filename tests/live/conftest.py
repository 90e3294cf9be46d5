"""A small learner of four digits, trained once; and pages served by a thread of this process."""

from pathlib import Path

import pytest
import torch
from small_live import digit, drawn, small_learner

from bayspike.learner import Learner
from bayspike.live.beginner import beginner
from bayspike.live.moments import Moment, Settings, begin


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def learner() -> Learner:
    return small_learner()


@pytest.fixture(scope="session")
def model(learner: Learner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return learner.save(tmp_path_factory.mktemp("live") / "digits.bayspike")


@pytest.fixture(scope="session")
def settings() -> Settings:
    return Settings()


@pytest.fixture(scope="session")
def moment(learner: Learner, settings: Settings) -> Moment:
    torch.set_num_threads(1)
    return begin(learner.state, "the start", settings)


@pytest.fixture(scope="session")
def beginning(settings: Settings) -> Moment:
    """The beginner, which is what those get who bring no learner."""
    torch.set_num_threads(1)
    return begin(beginner().state, "the beginner", settings)


@pytest.fixture(scope="session")
def sevens() -> list:
    return [drawn(digit(7, place)) for place in range(6)]
